/* Classes: labels and their indices in order of first sight, rows of W, and the space that a new class needs.
 *
 * Two classes are one row, positive = the second; from three on each class has its row. What can fail is in
 * svi_class_reserve, so that svi_class_add cannot. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_held.h"
#include "learner/learner_internal.h"
#include "learner/owned_model.h"

/* Streams repeat labels: the class of the last sample is tried first. */
int svi_class_find(svs_learner *l, svs_value y) {
    const int found = svi_class_index(l->classes, l->class_count, y, l->last_class);
    l->last_class = found < 0 ? l->last_class : found;
    return found;
}

/* The table and the names are not scratch: the learner keeps them while it is out. The name of a new class
 * is allocated before the class exists, and svi_class_insert takes it over. */
svs_code svi_class_table_reserve(svs_learner *l, svs_value y, svs_error *err) {
    if (l->class_count == l->class_capacity) {
        const int most = l->o.max_classes,
                  capacity = l->class_capacity > most / 2 ? most : 2 * l->class_capacity;
        svs_code code = svi_learner_store_reserve(l, 0, 0, capacity, l->shared, err);
        if (code != SVS_OK)
            return code;
    }
    if (y.kind == SVS_STR && !l->next_name && !(l->next_name = svi_alloc(SVS_NAME_MAX)))
        return svi_fail_memory(err, "the name of a class");
    return SVS_OK;
}

svs_code svi_class_reserve_parts(svs_learner *l, int count, svs_error *err) {
    const int rows = svi_rows_of(count);
    svs_code code = svi_learner_reserve(l, l->feature_capacity, rows, count < 2 ? 2 : count, err);
    /* A waiting sample's scores stand behind its row, one for each row of W; more rows need wider slots. */
    if (code == SVS_OK && l->waiting.stride < l->feature_capacity + rows) /* scores are kept after the row */
        code =
            svi_ring_restride(&l->waiting, l->feature_capacity + 2 * rows, l->waiting.stride, 0, 0, 0, err);
    return code == SVS_OK ? svi_gram_grow(l->gram, count < 2 ? 2 : count, err) : code;
}

svs_code svi_class_reserve(svs_learner *l, svs_value y, svs_error *err) {
    int count = l->class_count + 1;
    if (count > l->o.max_classes) {
        char text[SVS_NAME_MAX + 1];
        return svi_fail(err, SVS_LIMIT, "label %s would be class number %d, but max.classes is %d",
                        svs_value_text(y, text, sizeof text), count, l->o.max_classes);
    }
    SVI_TRY(svi_class_table_reserve(l, y, err));
    SVI_TRY(svi_prior_reserve(l, y, err));
    return svi_class_reserve_parts(l, count, err);
}

/* The right-hand side of a class that no sample has: t = -1 everywhere, so r = - sum s z over all that is in
 * (ALGORITHMS 1: a class that appears late starts as w = P r, exactly). */
static void classes_all_others(svs_learner *l, double *r) {
    int n = l->d + 1;
    memset(r, 0, (size_t)n * sizeof *r);
    if (l->o.window == 0) {
        for (int j = 0; j < n; j++)
            r[j] = -svi_gram_total(l->gram, j);
        return;
    }
    struct svi_learned row;
    for (int32_t i = 0; svi_next_row(l, &i, &row);)
        for (int j = 0; j < n; j++)
            r[j] -= row.s * row.z[j];
}

/* Two classes are one row, positive = classes[1]. With the third each class has its row: -f, f, and a new
 * one. The targets of the first two are those of before with their sign, so both rows are exact without a
 * solve. */
static void classes_split_row(svs_learner *l) {
    int n = l->d + 1;
    /* The row is added first, with weights 0: its place must exist before it can be set. */
    double *w = l->scratch[0];
    memset(w, 0, (size_t)n * sizeof *w);
    svs_alsvm_add_row(l->m, w, NULL);
    memcpy(w, svs_alsvm_weights(l->m, 0), (size_t)n * sizeof *w);
    svs_alsvm_set_weights(l->m, 1, w);
    for (int j = 0; j < n; j++)
        w[j] = -w[j];
    svs_alsvm_set_weights(l->m, 0, w);
}

void svi_class_forget(svs_value *y) {
    if (y->kind == SVS_STR)
        svi_free((void *)(uintptr_t)y->as.s);
    *y = svs_none();
}

int svi_class_insert(svs_learner *l, svs_value y) {
    if (y.kind == SVS_STR) {
        y.as.s = memcpy(l->next_name, y.as.s, y.length);
        l->next_name = NULL;
    }
    l->classes[l->class_count] = y;
    l->targets_in[l->class_count] = 0;
    return l->class_count++;
}

/* The table first: svi_rows counts its classes, and what follows adds rows until W has as many. */
int svi_class_add(svs_learner *l, svs_value y) {
    const int k = svi_class_insert(l, y);
    if (k == 2)
        classes_split_row(l);
    if (k >= 2) {
        svi_refine_new_rows(l);
        classes_all_others(l, l->scratch[0]);
        svs_alsvm_add_row(l->m, l->scratch[0], NULL); /* reserved: cannot fail */
    }
    svi_prior_follow(l); /* it may have samples of that class */
    return k;
}

svs_code svi_learner_meet_class(svs_learner *l, svs_value y, svs_error *err) {
    if (svi_class_find(l, y) >= 0)
        return SVS_OK;
    svi_claim(l);
    SVI_TRY(svi_class_reserve(l, y, err));
    svi_class_add(l, y);
    l->version++;
    return SVS_OK;
}
