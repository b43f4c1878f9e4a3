#include "engine/metrics.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/metrics_state.h"

#define LOSS_MAX  34.538776394910684 /* -log(1e-15) */
#define CLASS_MAX (UINT16_MAX - 1)

static void free_counts(struct svi_counts *c) {
    svi_free(c->of);
    svi_free(c->rank);
}

void svi_metrics_free(svi_metrics **m) {
    if (!*m)
        return;
    free_counts(&(*m)->all);
    free_counts(&(*m)->recent);
    svi_free((*m)->judged);
    svi_free((*m)->losses);
    svi_free((*m)->errors);
    svi_free(*m);
    *m = NULL;
}

static svs_code new_counts(struct svi_counts *c, int max_classes) {
    c->of = svi_alloc_array((size_t)max_classes + 1, sizeof *c->of);
    c->rank = svi_alloc(sizeof *c->rank);
    return c->of && c->rank ? SVS_OK : SVS_NO_MEMORY;
}

static svs_code new_parts(svi_metrics *m, svs_error *err) {
    size_t window = (size_t)m->window;
    if (m->task == SVS_REGRESS) {
        m->errors = svi_alloc_array(window, sizeof *m->errors);
        return m->errors ? SVS_OK : svi_fail_memory(err, "the window of errors");
    }
    m->judged = svi_alloc_array(window, sizeof *m->judged);
    m->losses = svi_alloc_array(window, sizeof *m->losses);
    if (!m->judged || !m->losses || new_counts(&m->all, m->max_classes) != SVS_OK ||
        new_counts(&m->recent, m->max_classes) != SVS_OK)
        return svi_fail_memory(err, "the counts of the prequential quality");
    return SVS_OK;
}

svi_metrics *svi_metrics_new(svs_task task, int64_t window, int max_classes, svs_error *err) {
    if (window < 1 || max_classes < 1 || max_classes > CLASS_MAX) {
        svi_fail(err, SVS_INVALID,
                 "quality needs a window of 1 sample or more and 1 to %d classes, not %lld and %d", CLASS_MAX,
                 (long long)window, max_classes);
        return NULL;
    }
    svi_metrics *m = svi_alloc(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "the prequential quality");
        return NULL;
    }
    m->task = task;
    m->window = window;
    m->max_classes = max_classes;
    m->last = -1;
    if (new_parts(m, err) != SVS_OK)
        svi_metrics_free(&m);
    return m;
}

static void clear_counts(struct svi_counts *c, int max_classes) {
    struct svi_counts kept = {.of = c->of, .rank = c->rank};
    for (int k = 0; c->of && k <= max_classes; k++)
        c->of[k] = (struct svi_class_count){0};
    if (c->rank)
        memset(c->rank, 0, sizeof *c->rank);
    *c = kept;
}

void svi_metrics_reset(svi_metrics *m) {
    clear_counts(&m->all, m->max_classes);
    clear_counts(&m->recent, m->max_classes);
    m->classes = 0;
    m->last = -1;
    m->slot = m->filled = 0;
    m->loss = m->absolute = m->square = (struct svi_sum){0};
    m->fresh_loss = 0;
    m->truth = (struct svi_spread){0};
    m->fresh = (struct svi_errors){0};
}

/* Every sample of a round has its slot: turns what they hold into suffix sums, see tally.h. */
static void wrap(svi_metrics *m) {
    m->slot = 0;
    m->fresh_loss = 0;
    m->fresh = (struct svi_errors){0};
    for (int64_t i = m->window - 1; m->losses && i-- > 0;)
        m->losses[i] += m->losses[i + 1];
    for (int64_t i = m->window - 1; m->errors && i-- > 0;) {
        m->errors[i].absolute += m->errors[i + 1].absolute;
        m->errors[i].square += m->errors[i + 1].square;
        svi_spread_merge(&m->errors[i].truth, m->errors[i + 1].truth);
    }
}

static inline void advance(svi_metrics *m) {
    m->filled += m->filled < m->window;
    if (++m->slot == m->window)
        wrap(m);
}

/* -log p(truth) for p proportional to exp(score). */
static double softmax_loss(int truth, const double *scores, int rows) {
    double top = scores[0], sum = 0;
    for (int k = 1; k < rows; k++)
        top = scores[k] > top ? scores[k] : top;
    for (int k = 0; k < rows; k++)
        sum += exp(scores[k] - top);
    return log(sum) + top - scores[truth];
}

/* One row tells class 1 from class 0, whether or not both were known already; a class that no row stands for
 * had no probability. */
static double loss_of(int truth, const double *scores, int rows, int class_count) {
    double loss = LOSS_MAX;
    if (rows == 1 && truth <= 1)
        loss = log(1 + exp((2 - 4 * truth) * scores[0]));
    else if (rows > 1 && truth < class_count && truth < rows)
        loss = softmax_loss(truth, scores, rows);
    return loss < LOSS_MAX ? loss : LOSS_MAX; /* NaN too becomes the worst */
}

void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows,
                       int class_count) {
    if (truth < 0 || truth >= m->max_classes || m->task != SVS_CLASSIFY)
        return;
    int none = m->max_classes;
    bool ranks = rows == 1 && truth <= 1;
    struct svi_judged j = {.truth = (uint16_t)truth,
                           .predicted = (uint16_t)(predicted < 0 || predicted > none ? none : predicted),
                           .bin = ranks ? (uint16_t)svi_rank_bin(scores[0]) : SVI_NO_BIN,
                           .same = truth == m->last};
    double loss = loss_of(truth, scores, rows, class_count);
    m->last = truth;
    m->classes = truth >= m->classes ? truth + 1 : m->classes;
    if (m->filled == m->window)
        svi_counts_add(&m->recent, m->judged[m->slot], -1);
    if (ranks)
        m->all.rank->touched[j.bin / SVI_RANK_BLOCK] = m->recent.rank->touched[j.bin / SVI_RANK_BLOCK] = 1;
    svi_counts_add(&m->all, j, 1);
    svi_counts_add(&m->recent, j, 1);
    svi_sum_add(&m->loss, loss);
    m->fresh_loss += loss;
    m->judged[m->slot] = j;
    m->losses[m->slot] = loss;
    advance(m);
}

void svi_metrics_value(svi_metrics *m, double truth, double predicted) {
    if (m->task != SVS_REGRESS)
        return;
    double error = truth - predicted;
    struct svi_errors e = {fabs(error), error * error, {1, truth, 0}};
    svi_sum_add(&m->absolute, e.absolute);
    svi_sum_add(&m->square, e.square);
    svi_spread_merge(&m->truth, e.truth);
    m->fresh.absolute += e.absolute;
    m->fresh.square += e.square;
    svi_spread_merge(&m->fresh.truth, e.truth);
    m->errors[m->slot] = e;
    advance(m);
}

/* (observed - by chance) / (1 - by chance) */
static double beyond_chance(double observed, double chance) {
    return chance < 1 ? (observed - chance) / (1 - chance) : NAN;
}

static double kappa(const struct svi_counts *c, int classes) {
    double agreement = 0, n = (double)c->n;
    for (int k = 0; k < classes; k++)
        agreement += (double)c->of[k].truth / n * ((double)c->of[k].predicted / n);
    return beyond_chance((double)c->hits / n, agreement);
}

static double macro_f1(const struct svi_counts *c, int classes) {
    double sum = 0;
    int met = 0;
    for (int k = 0; k < classes; k++) {
        int64_t both = c->of[k].truth + c->of[k].predicted;
        met += both > 0;
        sum += both > 0 ? 2.0 * (double)c->of[k].hits / (double)both : 0;
    }
    return sum / met;
}

/* The order of the figures, with and without ".w". */
enum { ACCURACY, KAPPA, KAPPA_T, F1, AUC, LOGLOSS, CLASS_FIGURES };
static const char *const class_names[][CLASS_FIGURES] = {
    {"accuracy", "kappa", "kappa_t", "f1", "auc", "logloss"},
    {"accuracy.w", "kappa.w", "kappa_t.w", "f1.w", "auc.w", "logloss.w"}};

enum { MAE, RMSE, R2, VALUE_FIGURES };
static const char *const value_names[][VALUE_FIGURES] = {{"mae", "rmse", "r2"}, {"mae.w", "rmse.w", "r2.w"}};

static void class_figures(const struct svi_counts *c, double loss, int classes, double *value) {
    double n = (double)c->n; /* 0: every figure comes out as NAN */
    value[ACCURACY] = (double)c->hits / n;
    value[KAPPA] = c->n > 0 ? kappa(c, classes) : NAN;
    value[KAPPA_T] = c->n > 0 ? beyond_chance((double)c->hits / n, (double)c->same / n) : NAN;
    value[F1] = macro_f1(c, classes);
    value[AUC] = classes <= 2 ? svi_rank_area(c->rank) : NAN;
    value[LOGLOSS] = loss / n;
}

static void value_figures(double absolute, double square, const struct svi_spread *truth, double *value) {
    value[MAE] = absolute / truth->n;
    value[RMSE] = sqrt(square / truth->n);
    value[R2] = truth->squares > 0 ? 1 - square / truth->squares : NAN;
}

static void recent_errors(const svi_metrics *m, struct svi_errors *e) {
    *e = m->fresh;
    if (m->filled < m->window)
        return;
    const struct svi_errors *old = &m->errors[m->slot];
    e->absolute += old->absolute;
    e->square += old->square;
    svi_spread_merge(&e->truth, old->truth);
}

int svi_metrics_figures(const svi_metrics *m, struct svi_figure *out) {
    double value[2][CLASS_FIGURES];
    bool regress = m->task == SVS_REGRESS;
    int each = regress ? VALUE_FIGURES : CLASS_FIGURES, filled = 0;
    if (regress) {
        struct svi_errors recent;
        recent_errors(m, &recent);
        value_figures(m->absolute.sum, m->square.sum, &m->truth, value[0]);
        value_figures(recent.absolute, recent.square, &recent.truth, value[1]);
    } else {
        double recent = m->fresh_loss + (m->filled == m->window ? m->losses[m->slot] : 0);
        class_figures(&m->all, m->loss.sum, m->classes, value[0]);
        class_figures(&m->recent, recent, m->classes, value[1]);
    }
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < each; i++)
            out[filled++] = (struct svi_figure){.name = regress ? value_names[w][i] : class_names[w][i],
                                                .type = SVI_NUMBER,
                                                .as.number = value[w][i]};
    return filled;
}

double svi_metrics_memory(svs_task task, int64_t window, int max_classes) {
    double bytes = sizeof(svi_metrics);
    if (task == SVS_REGRESS)
        return bytes + (double)window * sizeof(struct svi_errors);
    bytes += (double)window * (sizeof(struct svi_judged) + sizeof(double));
    return bytes + 2 * ((max_classes + 1.0) * sizeof(struct svi_class_count) + sizeof(struct svi_rank));
}
