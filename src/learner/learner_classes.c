/* Classes: labels and their indices in order of first sight, rows of W, and the room that a new class needs.
 *
 * Two classes are one row, positive = the second; from three on each class has its row. What can fail is in
 * svi_class_reserve, so that svi_class_add cannot. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_held.h"
#include "learner/learner_internal.h"

int svi_class_find(svs_learner *l, svs_value y) {
    if (l->last_class < l->class_count && svs_value_equal(l->classes[l->last_class], y))
        return l->last_class;
    for (int k = 0; k < l->class_count; k++)
        if (svs_value_equal(l->classes[k], y))
            return l->last_class = k;
    return -1;
}

svs_code svi_room_for_rows(svs_learner *l, int rows, svs_error *err) {
    if (rows <= l->class_room)
        return SVS_OK;
    size_t old = (size_t)l->class_room, room = 2 * (size_t)rows, width = (size_t)l->feature_room + 1;
    if (!svi_grow_doubles(&l->scores, old, room) || !svi_grow_doubles(&l->target[0], old, room) ||
        !svi_grow_doubles(&l->target[1], old, room) || !svi_grow_doubles(&l->b, old, room) ||
        !svi_grow_doubles(&l->W, old * width, room * width))
        return svi_fail_memory(err, "the scores of a new class");
    l->class_room = (int)room;
    return SVS_OK;
}

svs_code svi_class_names(svs_learner *l, svs_value y, svs_error *err) {
    if (y.kind != SVS_STR || l->class_names)
        return SVS_OK;
    l->class_names = svi_alloc_array((size_t)l->o.max_classes, SVS_NAME_MAX);
    return l->class_names ? SVS_OK : svi_fail_memory(err, "the names of the classes");
}

svs_code svi_class_room(svs_learner *l, int count, svs_error *err) {
    const int rows = svi_rows_of(count);
    svs_code code = svi_room_for_rows(l, rows, err);
    if (code == SVS_OK && l->waiting.stride < l->feature_room + rows) /* scores are kept after the row */
        code = svi_ring_restride(&l->waiting, l->feature_room + 2 * rows, l->waiting.stride, 0, 0, 0, err);
    if (code == SVS_OK)
        code = svi_gram_grow(&l->gram, count < 2 ? 2 : count, err);
    return code == SVS_OK ? svi_alsvm_reserve_rows(l->m, rows, err) : code;
}

svs_code svi_class_reserve(svs_learner *l, svs_value y, svs_error *err) {
    int count = l->class_count + 1;
    if (count > l->o.max_classes) {
        char text[SVS_NAME_MAX + 1];
        return svi_fail(err, SVS_LIMIT, "label %s would be class number %d, but max.classes is %d",
                        svs_value_text(y, text, sizeof text), count, l->o.max_classes);
    }
    svs_code code = svi_class_names(l, y, err);
    return code == SVS_OK ? svi_class_room(l, count, err) : code;
}

/* r of "not in this class": - sum s z over everything that is in. */
static void classes_all_others(svs_learner *l, double *r) {
    int n = l->d + 1;
    memset(r, 0, (size_t)n * sizeof *r);
    if (l->o.window == 0) {
        for (int j = 0; j < n; j++)
            r[j] = -l->gram.sums[j];
        return;
    }
    struct svi_learned row;
    for (int32_t i = 0; svi_next_row(l, &i, &row);)
        for (int j = 0; j < n; j++)
            r[j] -= row.s * row.z[j];
}

/* Two classes are one row, positive = classes[1]; the third makes them three: -f, f and a new one. */
static void classes_split_row(svs_learner *l) {
    int n = l->d + 1;
    double *w = l->scratch[0];
    memset(w, 0, (size_t)n * sizeof *w);
    svs_alsvm_add_row(l->m, w, NULL);
    memcpy(w, svs_alsvm_weights(l->m, 0), (size_t)n * sizeof *w);
    svs_alsvm_set_weights(l->m, 1, w);
    for (int j = 0; j < n; j++)
        w[j] = -w[j];
    svs_alsvm_set_weights(l->m, 0, w);
}

int svi_class_add(svs_learner *l, svs_value y) {
    int k = l->class_count;
    if (y.kind == SVS_STR)
        y.as.s = memcpy(l->class_names + (size_t)k * SVS_NAME_MAX, y.as.s, y.length);
    l->classes[l->class_count++] = y;
    if (k == 2)
        classes_split_row(l);
    if (k >= 2) {
        classes_all_others(l, l->scratch[0]);
        svs_alsvm_add_row(l->m, l->scratch[0], NULL); /* reserved: cannot fail */
    }
    return k;
}

void svi_targets(const svs_learner *l, int label, double target, double *t) {
    const int rows = svi_rows(l), positive = rows == 1; /* one row: the second class */
    for (int k = 0; k < rows; k++)
        t[k] = label == (positive ? 1 : k) ? 1 : -1;
    if (l->o.task == SVS_REGRESS)
        t[0] = target;
}

svs_code svi_learner_meet_class(svs_learner *l, svs_value y, svs_error *err) {
    if (svi_class_find(l, y) >= 0)
        return SVS_OK;
    svs_code code = svi_class_reserve(l, y, err);
    if (code == SVS_OK) {
        svi_class_add(l, y);
        l->version++;
    }
    return code;
}
