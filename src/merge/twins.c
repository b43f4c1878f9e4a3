#include "merge/twins.h"

#include <string.h>

#include "base/fail.h"

/* The first part that is joined and has this label; NULL: none. */
static const struct svi_part *twins_part(const struct svi_merge *m, svs_value label) {
    for (int64_t i = 0; i < m->count; i++) {
        const struct svi_sums *r = &m->part[i]->record;
        const enum svi_part_state state = svi_part_state(m->part[i]);
        if (state != SVI_PART_JOINED && state != SVI_PART_STALE)
            continue;
        for (int k = 0; k < r->sums.classes; k++)
            if (svs_value_equal(r->classes[k], label))
                return m->part[i];
    }
    return NULL;
}

/* The integer class that reads like `string`; -1: none. */
static int twins_integer(const svs_model *model, svs_value string) {
    char text[4 * SVS_NAME_MAX + 4], other[4 * SVS_NAME_MAX + 4];
    if (string.kind != SVS_STR || !strchr("-0123456789", string.as.s[0]))
        return -1;
    svs_value_text(string, text, sizeof text);
    for (int k = 0; k < model->class_count; k++)
        if (model->classes[k].kind == SVS_INT &&
            strcmp(text, svs_value_text(model->classes[k], other, sizeof other)) == 0)
            return k;
    return -1;
}

static void twins_describe(svs_value string, const struct svi_part *p, const struct svi_part *q,
                           svs_error *why) {
    char label[4 * SVS_NAME_MAX + 4], a[4 * SVI_PART_MAX + 1], b[4 * SVI_PART_MAX + 1];
    svi_fail(why, SVS_AMBIGUOUS_CLASS,
             "the label %.40s is a string in part %.60s and an integer in part %.60s: these are two classes; "
             "send y in one form everywhere",
             svs_value_text(string, label, sizeof label),
             svi_escape(a, sizeof a, p->record.part, strlen(p->record.part)),
             svi_escape(b, sizeof b, q->record.part, strlen(q->record.part)));
}

int svi_merge_twins(const struct svi_merge *m, int from, svs_error *why) {
    const svs_model *model = m->model;
    for (int i = from; model && i < model->class_count; i++) {
        const int k = twins_integer(model, model->classes[i]);
        const struct svi_part *p = k < 0 ? NULL : twins_part(m, model->classes[i]),
                              *q = k < 0 ? NULL : twins_part(m, model->classes[k]);
        if (p && q) {
            twins_describe(model->classes[i], p, q, why);
            return i + 1;
        }
    }
    return 0;
}
