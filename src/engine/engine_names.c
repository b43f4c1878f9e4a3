/* Reports of probable mistakes: names in the settings limits and context that no column has, labels that are
 * two classes but look like one, and labels that are new after many. None is refused, since a column may be
 * added and a class be meant at any time. Without a report, a misspelt limit would silently have no effect,
 * and a misspelt label would silently be a class. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "config/rule_settings.h"
#include "data/cell.h"
#include "engine/engine_internal.h"
#include "learner/learner_held.h"

#define STRANGERS_SHOWN 4  /* names, and as many columns */
#define STRANGER_TEXT   40 /* bytes of each */

#define LATE_CLASS 1000 /* labelled samples after which a new class is reported */

struct strangers {
    const svi_engine *e;
    char *text;
    size_t size, at;
    int count;
};

/* Is there a column, or a feature, of this name, or of this number where columns have no names? */
static bool columns_has(const svi_engine *e, struct svi_span name) {
    const size_t length = (size_t)(name.end - name.at);
    const int column = svi_schema_find(&e->schema, name.at, length, 0);
    if (column >= 0)
        return svi_schema_kind(&e->schema, column) != SVI_COLUMN_IGNORED;
    for (int j = 0; j < e->schema.shape.d; j++) {
        char number[16];
        const char *own = svi_schema_name(&e->schema, j);
        snprintf(number, sizeof number, "%d", j);
        own = own ? own : number;
        if (strlen(own) == length && memcmp(own, name.at, length) == 0)
            return true;
    }
    return false;
}

static bool strangers_has(const void *user, const char *name, size_t length) {
    return columns_has(user, (struct svi_span){name, name + length});
}

/* May the entry of `limits` be about this key? Any dot may end its pattern of keys. */
static bool strangers_concern(const struct svi_limit *limit, const char *key) {
    const char *dot = memchr(limit->column, '.', limit->length);
    for (size_t at = 0; key && dot && at < limit->length; at++)
        if (limit->column[at] == '.' && svi_text_matches(limit->column, at, key))
            return true;
    return !key || !dot;
}

/* Appends a name unless a column has it. The names beyond STRANGERS_SHOWN are counted only. */
static void strangers_add(struct strangers *t, const char *setting, struct svi_span name) {
    char shown[STRANGER_TEXT];
    if (name.at == name.end || columns_has(t->e, name) || t->count++ >= STRANGERS_SHOWN)
        return;
    svi_escape(shown, sizeof shown, name.at, (size_t)(name.end - name.at));
    t->at += (size_t)snprintf(t->text + t->at, t->size - t->at, "%s%s (%s)",
                              t->count > 1 ? ", " : "no column so far is called ", shown, setting);
}

/* Appends the first columns, from which the intended one can be guessed. */
static void strangers_columns(struct strangers *t) {
    const struct svi_schema *s = &t->e->schema;
    const int count = svi_schema_columns(s);
    char shown[STRANGER_TEXT];
    if (!svi_schema_column_name(s, 0)) {
        snprintf(t->text + t->at, t->size - t->at, ": columns have no names, but numbers from 0 to %d",
                 s->shape.d - 1);
        return;
    }
    for (int c = 0; c < count && c < STRANGERS_SHOWN && t->at < t->size; c++) {
        const char *name = svi_schema_column_name(s, c);
        t->at += (size_t)snprintf(t->text + t->at, t->size - t->at, "%s%s", c ? ", " : ": there are ",
                                  name ? svi_escape(shown, sizeof shown, name, strlen(name)) : "...");
    }
    if (count > STRANGERS_SHOWN && t->at < t->size)
        snprintf(t->text + t->at, t->size - t->at, " and %d more", count - STRANGERS_SHOWN);
}

/* Is the class an older one in another type (1 and "1")? Then it is reported. */
static bool names_report_twin(struct svi_engine *e, int k, const char *shown, double now) {
    char reason[SVS_ERROR_TEXT], other[4 * SVS_NAME_MAX + 4];
    const svs_value y = svs_learner_class(e->learner, k);
    for (int j = 0; j < k; j++) {
        const svs_value before = svs_learner_class(e->learner, j);
        if (before.kind == y.kind || strcmp(svs_value_text(before, other, sizeof other), shown) != 0)
            continue;
        snprintf(reason, sizeof reason,
                 "the label %.40s was %s before and is %s now: these are two classes; send y in one form",
                 shown, before.kind == SVS_STR ? "a string" : "an integer",
                 y.kind == SVS_STR ? "a string" : "an integer");
        svi_publish_error(e, SVS_AMBIGUOUS_CLASS, reason, NULL, 0, now);
        return true;
    }
    return false;
}

void svi_engine_report_classes(struct svi_engine *e, int from, double now) {
    char reason[SVS_ERROR_TEXT], shown[4 * SVS_NAME_MAX + 4];
    for (int k = from; k < svs_learner_class_count(e->learner); k++) {
        svs_value_text(svs_learner_class(e->learner, k), shown, sizeof shown);
        if (names_report_twin(e, k, shown, now))
            continue;
        /* The second class is what the stream was waiting for, however late it begins. */
        if (k < 2 || svi_learner_arrivals(e->learner) <= LATE_CLASS)
            continue;
        snprintf(reason, sizeof reason,
                 "the label %.40s is new, after more than %d labelled samples of %d classes: if it is a "
                 "mistake, correct its producer, and forget the sample if it has an id",
                 shown, LATE_CLASS, k);
        svi_publish_error(e, SVS_NEW_CLASS, reason, NULL, 0, now);
    }
}

bool svi_engine_strangers(const svi_engine *e, const struct svi_settings *s, char *text, size_t size) {
    struct strangers t = {.e = e, .text = text, .size = size};
    struct svi_limit limit;
    text[0] = '\0';
    if (e->schema.shape.d == 0)
        return false;
    /* An entry that names keys is compared with the columns of this one only if it concerns it. */
    for (const char *at = s->limits; svi_limit_next(&at, &limit);)
        if (svi_limit_column(&limit, svi_settings_keyed(s), strangers_has, e) == limit.length &&
            strangers_concern(&limit, e->label))
            strangers_add(&t, "limits", (struct svi_span){limit.column, limit.column + limit.length});
    for (const char *at = s->context; *at; at += *at == ',') {
        const char *end = at + strcspn(at, ",");
        strangers_add(&t, "context", svi_trim((struct svi_span){at, end}));
        at = end;
    }
    if (t.count > STRANGERS_SHOWN)
        t.at += (size_t)snprintf(text + t.at, size - t.at, " and %d more", t.count - STRANGERS_SHOWN);
    if (t.count > 0)
        strangers_columns(&t);
    return t.count > 0;
}
