#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_state.h"

int svi_class_find(svs_learner *l, svs_value y) {
    if (l->last_class < l->class_count && svs_value_equal(l->classes[l->last_class], y))
        return l->last_class;
    for (int k = 0; k < l->class_count; k++)
        if (svs_value_equal(l->classes[k], y))
            return l->last_class = k;
    return -1;
}

int svi_rows(const svs_learner *l) {
    return l->class_count < 3 ? 1 : l->class_count;
}

static bool grow_array(double **array, size_t old, size_t count) {
    double *more = svi_realloc(*array, old * sizeof(double), count * sizeof(double));
    if (more)
        *array = more;
    return more;
}

svs_code svi_room_for_rows(svs_learner *l, int rows, svs_error *err) {
    if (rows <= l->class_room)
        return SVS_OK;
    size_t old = (size_t)l->class_room, room = 2 * (size_t)rows, width = (size_t)l->feature_room + 1;
    if (!grow_array(&l->scores, old, room) || !grow_array(&l->target[0], old, room) ||
        !grow_array(&l->target[1], old, room) || !grow_array(&l->b, old, room) ||
        !grow_array(&l->W, old * width, room * width))
        return svi_fail_memory(err, "the scores of a new class");
    l->class_room = (int)room;
    return SVS_OK;
}

/* Waiting samples keep their scores behind their row. */
static svs_code grow_waiting(svs_learner *l, int rows, svs_error *err) {
    int stride = l->feature_room + rows;
    if (l->waiting.stride >= stride)
        return SVS_OK;
    return svi_ring_restride(&l->waiting, l->feature_room + 2 * rows, l->waiting.stride, 0, 0, 0, err);
}

svs_code svi_class_names(svs_learner *l, svs_value y, svs_error *err) {
    if (y.kind != SVS_STR || l->class_names)
        return SVS_OK;
    l->class_names = svi_alloc_array((size_t)l->o.max_classes, SVS_NAME_MAX);
    return l->class_names ? SVS_OK : svi_fail_memory(err, "the names of the classes");
}

svs_code svi_class_room(svs_learner *l, int count, svs_error *err) {
    int rows = count < 3 ? 1 : count;
    svs_code code = svi_room_for_rows(l, rows, err);
    if (code == SVS_OK)
        code = grow_waiting(l, rows, err);
    if (code == SVS_OK)
        code = svi_gram_grow(&l->gram, l->gram.n, count < 2 ? 2 : count, err);
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
static void all_others(svs_learner *l, double *r) {
    int n = l->d + 1;
    memset(r, 0, (size_t)n * sizeof *r);
    if (l->o.window == 0) {
        for (int j = 0; j < n; j++)
            r[j] = -l->gram.sums[j];
        return;
    }
    double *z = l->scratch[1];
    for (int32_t i = 0; i < l->window.count; i++) {
        const struct svi_slot *s = &l->window.slots[svi_ring_at(&l->window, i)];
        if (!s->live || !s->learned)
            continue;
        svi_scaler_apply(&l->scaler, svi_ring_row(&l->window, svi_ring_at(&l->window, i)), z);
        double weight = svi_hat(l, s->weight, s->order);
        for (int j = 0; j < n; j++)
            r[j] -= weight * z[j];
    }
}

static void add_row(svs_learner *l) {
    all_others(l, l->scratch[0]);
    svs_alsvm_add_row(l->m, l->scratch[0], NULL); /* reserved: cannot fail */
}

/* Two classes are one row, positive = classes[1]; the third makes them three: -f, f and a new one. */
static void split_rows(svs_learner *l) {
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
    if (y.kind == SVS_STR) {
        char *name = l->class_names + (size_t)k * SVS_NAME_MAX;
        memcpy(name, y.as.s, y.length);
        y.as.s = name;
    }
    l->classes[k] = y;
    l->class_count++;
    if (l->class_count == 3)
        split_rows(l);
    if (l->class_count >= 3)
        add_row(l);
    return k;
}

int svi_predicted(const svs_learner *l, const double *scores) {
    if (l->o.task == SVS_REGRESS || l->class_count == 0)
        return -1;
    if (l->class_count < 3)
        return l->class_count == 2 && scores[0] > 0;
    int best = 0;
    for (int k = 1; k < l->class_count; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}

void svi_targets(const svs_learner *l, int label, double target, double *t) {
    if (l->o.task == SVS_REGRESS) {
        t[0] = target;
        return;
    }
    if (l->class_count < 3) {
        t[0] = label == 1 ? 1 : -1;
        return;
    }
    for (int k = 0; k < l->class_count; k++)
        t[k] = k == label ? 1 : -1;
}
