#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_state.h"

/* W_j = w_j / deviation_j, b = w_0 - sum W_j mean_j. */
svs_code svs_learner_model(svs_learner *l, svs_model *m, svs_error *err) {
    (void)err;
    int rows = svi_rows(l);
    for (int k = 0; k < rows; k++) {
        const double *w = svs_alsvm_weights(l->m, k);
        double *raw = l->W + (size_t)k * (size_t)l->d, b = w[0];
        for (int j = 0; j < l->d; j++) {
            raw[j] = w[1 + j] * l->scaler.inverse[j];
            b -= raw[j] * l->scaler.mean[j];
        }
        l->b[k] = b;
    }
    *m = (svs_model){.version = l->version,
                     .method = l->o.rule == SVS_FALSVM ? "falsvm" : "alsvm",
                     .task = l->o.task,
                     .d = l->d,
                     .rows = rows,
                     .class_count = l->class_count,
                     .W = l->W,
                     .b = l->b,
                     .classes = l->classes,
                     .C = l->o.C,
                     .window = l->o.window,
                     .learned = l->health.learned,
                     .serves = true};
    return SVS_OK;
}

void svs_learner_health(const svs_learner *l, svs_health *h) {
    *h = l->health;
    h->held = l->window.live;
    h->waiting = l->waiting.live;
}

double svs_learner_memory(const svs_options *o, int d, int classes) {
    double n = d + 1, rows = classes < 3 ? 1 : classes;
    double waiting = o->labels_ttl > 0 ? svi_ring_memory(o->labels_max, (int)(d + 2 * rows)) : 0;
    return svi_ring_memory((double)o->window, d) + waiting + svi_alsvm_memory(d + 1, (int)rows, o->isa) +
           svi_gram_memory(d + 1, classes) + 8 * (n * n + 2 * rows * n + 12 * n);
}
