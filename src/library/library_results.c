/* Results of rows, from the score events of the stream: copied, not encoded. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "library/library_internal.h"

const svs_evidence svi_library_no_evidence = {
    .novelty = NAN, .p = NAN, .surprise = NAN, .anomaly = NAN, .alarm = NAN};

svs_code svi_library_reserve(svs_stream *s, svs_error *err) {
    struct svi_library_results *r = &s->results;
    r->values = svi_alloc_array((size_t)r->capacity, 2 * sizeof *r->values);
    return r->values ? SVS_OK : svi_fail_memory(err, "the results of a row");
}

/* ---- a block */

static void library_clear_values(double *to, int64_t from, int64_t count) {
    for (int64_t i = 0; to && i < count; i++)
        to[from + i] = NAN;
}

void svi_library_clear_row(const svs_results *to, int64_t i) {
    if (to->predicted)
        to->predicted[i] = -1;
    library_clear_values(to->value, i, 1);
    library_clear_values(to->scores, i * to->rows, to->rows);
    library_clear_values(to->proba, i * to->classes, to->classes);
    library_clear_values(to->low, i, 1);
    library_clear_values(to->high, i, 1);
    library_clear_values(to->novelty, i, 1);
    library_clear_values(to->p, i, 1);
    library_clear_values(to->anomaly, i, 1);
}

static void library_put_values(double *to, int64_t i, int width, const double *from, int count) {
    if (to && from)
        memcpy(to + i * width, from, (size_t)(count < width ? count : width) * sizeof *to);
}

static void library_put_value(double *to, int64_t i, double value) {
    if (to)
        to[i] = value;
}

void svi_library_put_row(const svs_results *to, int64_t i, const svs_prediction *p, const svs_evidence *f) {
    if (to->predicted)
        to->predicted[i] = p->predicted;
    library_put_value(to->value, i, p->y.kind == SVS_REAL ? p->y.as.r : NAN);
    library_put_values(to->scores, i, to->rows, p->scores, p->rows);
    library_put_values(to->proba, i, to->classes, p->proba, p->class_count);
    library_put_value(to->low, i, p->ranged ? p->low : NAN);
    library_put_value(to->high, i, p->ranged ? p->high : NAN);
    library_put_value(to->novelty, i, f->known ? f->novelty : NAN);
    library_put_value(to->p, i, f->known ? f->p : NAN);
    library_put_value(to->anomaly, i, f->anomaly);
}

/* ---- events */

/* Views of the event, which last as long as it does. */
static void library_read_score(const struct svi_event *event, svs_prediction *p, svs_evidence *f) {
    *p = (svs_prediction){.y = event->as.score.yhat,
                          .predicted = event->as.score.classes ? event->as.score.predicted : -1,
                          .rows = event->as.score.rows,
                          .scores = event->as.score.rows > 0 ? event->as.score.scores : NULL,
                          .class_count = event->as.score.classes ? event->as.score.class_count : 0,
                          .version = event->as.score.version};
    if (event->as.score.proba_count > 0) {
        p->class_count = event->as.score.proba_count;
        p->proba = event->as.score.proba;
    }
    if (event->as.score.interval) {
        p->ranged = true;
        p->low = event->as.score.interval[0];
        p->high = event->as.score.interval[1];
    }
    *f = svi_library_no_evidence;
    if (!event->as.score.judged)
        return;
    f->known = true;
    f->novelty = event->as.score.novelty;
    f->p = event->as.score.p;
    f->surprise = event->as.score.surprise;
    f->anomaly = event->as.score.anomaly;
    f->alarm = event->as.score.alarm;
}

static void library_keep_label(struct svi_library_results *r) {
    svs_value *y = &r->at_hand.y;
    if (y->kind == SVS_STR)
        y->as.s = memcpy(r->label, y->as.s, y->length);
}

/* What follows the event may change the learner's buffers, so all is copied. */
static void library_keep(struct svi_library_results *r) {
    svs_prediction *p = &r->at_hand;
    double *proba = r->values + r->capacity;
    library_keep_label(r);
    if (p->scores) {
        p->rows = p->rows < r->capacity ? p->rows : r->capacity;
        p->scores = memcpy(r->values, p->scores, (size_t)p->rows * sizeof *proba);
    }
    if (p->proba) {
        p->class_count = p->class_count < r->capacity ? p->class_count : r->capacity;
        p->proba = memcpy(proba, p->proba, (size_t)p->class_count * sizeof *proba);
    }
}

/* Alerts are taken from those that the stream keeps (library_alerts.c); refusals are returned by the calls.
 */
void svi_library_sink(void *user, const struct svi_event *event) {
    svs_stream *s = user;
    struct svi_library_results *r = &s->results;
    svs_prediction p;
    svs_evidence f;
    if (event->topic != SVI_TOPIC_SCORE)
        return;
    r->scored = true;
    if (r->block) {
        library_read_score(event, &p, &f);
        svi_library_put_row(r->block, event->as.score.mark, &p, &f);
    } else if (r->wanted) {
        library_read_score(event, &r->at_hand, &r->evidence);
        library_keep(r);
    }
}

void svi_library_scored(svs_stream *s, const struct svi_scored *scored) {
    struct svi_library_results *r = &s->results;
    r->at_hand = (svs_prediction){.y = scored->yhat,
                                  .predicted = scored->predicted,
                                  .rows = scored->rows,
                                  .scores = scored->rows > 0 ? scored->scores : NULL,
                                  .class_count = scored->classed ? scored->class_count : 0,
                                  .version = scored->version};
    library_keep_label(r);
    if (scored->proba_count > 0) {
        r->at_hand.class_count = scored->proba_count;
        r->at_hand.proba = scored->proba;
    }
    if (scored->ranged) {
        r->at_hand.ranged = true;
        r->at_hand.low = scored->interval[0];
        r->at_hand.high = scored->interval[1];
    }
    r->evidence = svi_library_no_evidence;
    if (scored->judged) {
        r->evidence.known = true;
        r->evidence.novelty = scored->novelty;
        r->evidence.p = scored->p;
    }
}
