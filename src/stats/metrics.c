/* The prequential quality: counts for classes, sums for values, once over all of the stream and once over the
 * window, which is a ring of what was judged.
 *
 * Whole numbers over the window are exact, so a sample that leaves is simply taken out of them. Windowed sums
 * of doubles never subtract, and so never drift: the ring is filled from the front again and again. What came
 * since the last wrap is summed as it comes (`fresh`); what is left of the round before is read from suffix
 * sums, which the wrap made in place: slot i then holds the sum over i .. end, and is only overwritten when
 * sample i leaves. So an outlier leaves no rounding error behind, and a sample costs two additions on
 * average. Means and squared deviations merge likewise (svi_moments_merge).
 *
 * Read the structs first, then the samples (svi_metrics_class, svi_metrics_value), the figures, and the
 * archive, which recounts whole numbers and keeps sums: the order of their terms is in their last bits. */
#include "stats/metrics.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fetch.h"
#include "base/statistics.h"
#include "stats/auc.h"

#define LOSS_MAX  34.538776394910684 /* -log(1e-15) */
#define CLASS_MAX (UINT16_MAX - 1)
#define NO_BIN    UINT16_MAX      /* the score of this sample has no rank */
#define COUNT_MAX (INT64_MAX / 8) /* of an archived count */
#define BLOCKS    (SVI_AUC_BINS / SVI_AUC_BLOCK)

/* A sum with its rounding error carried along (Kahan); for terms of one sign. */
struct sum {
    double sum, lost;
};

static inline void metrics_sum_add(struct sum *s, double value) {
    double corrected = value - s->lost;
    double sum = s->sum + corrected;
    s->lost = (sum - s->sum) - corrected;
    s->sum = sum;
}

/* Exact counts of one stretch of the stream: all of it, or the window. */
struct counts {
    int64_t n, hits, same;      /* same: the label was that of the sample before */
    struct svi_class_count *of; /* max_classes, and one more for "nothing was predicted" */
    struct svi_auc *ranks;
};

/* What is needed to take a sample out of the counts of the window. */
struct judged {
    uint16_t truth, predicted, bin, same;
};

/* Errors of a stretch of a regression. */
struct errors {
    double absolute, square; /* sums */
    struct svi_moments truth;
};

struct svi_metrics {
    svs_task task;
    bool lossless; /* logloss is left out */
    int max_classes;
    int classes;    /* seen so far */
    int last;       /* label of the sample before, -1 at first */
    int64_t window; /* samples in the ring at most */
    int64_t slot;   /* of the ring that is written next */
    int64_t filled; /* slots in use */
    struct counts all, recent;
    struct sum loss;       /* all */
    double fresh_loss;     /* of the slots before `slot` */
    struct judged *judged; /* ring */
    double *losses;        /* ring; from `slot` on suffix sums, see above */
    struct sum absolute, square;
    struct svi_moments truth;
    struct errors fresh;
    struct errors *errors; /* ring */
    int64_t began;         /* no part of what is archived */
};

/* direction: 1 puts the sample in, -1 takes it out. No branch on what is hard to predict: a hit or not. */
static inline void metrics_count(struct counts *c, struct judged j, int direction) {
    int hit = j.predicted == j.truth ? direction : 0;
    c->n += direction;
    c->hits += hit;
    c->same += j.same * direction;
    c->of[j.truth].support += direction;
    c->of[j.truth].hits += hit;
    c->of[j.predicted].predicted += direction;
    if (j.bin != NO_BIN && c->ranks)
        c->ranks->count[j.bin][j.truth] += direction;
}

void svi_metrics_free(svi_metrics **pm) {
    svi_metrics *m = *pm;
    if (!m)
        return;
    void *const all[] = {m->all.of, m->all.ranks, m->recent.of, m->recent.ranks,
                         m->judged, m->losses,    m->errors,    m};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        svi_free(all[i]);
    *pm = NULL;
}

static svs_code metrics_new_parts(svi_metrics *m, bool lean, svs_error *err) {
    const size_t window = (size_t)m->window, classes = (size_t)m->max_classes + 1;
    if (m->task == SVS_REGRESS) {
        m->errors = svi_alloc_array(window, sizeof *m->errors);
        return m->errors ? SVS_OK : svi_fail_memory(err, "the window of errors");
    }
    m->judged = svi_alloc_plain_array(window, sizeof *m->judged);
    m->all.of = svi_alloc_plain_array(classes, sizeof *m->all.of);
    m->recent.of = svi_alloc_plain_array(classes, sizeof *m->recent.of);
    m->lossless = lean;
    if (!lean) {
        m->losses = svi_alloc_array(window, sizeof *m->losses);
        m->all.ranks = svi_alloc(sizeof *m->all.ranks);
        m->recent.ranks = svi_alloc(sizeof *m->recent.ranks);
    }
    const bool more = lean || (m->all.ranks && m->recent.ranks && m->losses);
    return m->judged && m->all.of && m->recent.of && more ? SVS_OK
                                                          : svi_fail_memory(err, "the prequential counts");
}

static svi_metrics *metrics_make(svs_task task, int64_t window, int max_classes, bool lean, svs_error *err) {
    if (window < 1 || max_classes < 1 || max_classes > CLASS_MAX) {
        svi_fail(err, SVS_INVALID,
                 "quality needs a window of 1 sample or more and 1 to %d classes, not %lld and %d", CLASS_MAX,
                 (long long)window, max_classes);
        return NULL;
    }
    svi_metrics *m = svi_alloc_plain(sizeof *m);
    if (!m) {
        svi_fail_memory(err, "the prequential quality");
        return NULL;
    }
    m->task = task;
    m->window = window;
    m->max_classes = max_classes;
    m->last = -1;
    if (metrics_new_parts(m, lean, err) != SVS_OK)
        svi_metrics_free(&m);
    return m;
}

svi_metrics *svi_metrics_new(svs_task task, int64_t window, int max_classes, svs_error *err) {
    return metrics_make(task, window, max_classes, false, err);
}

svi_metrics *svi_metrics_new_lean(svs_task task, int64_t window, int max_classes, svs_error *err) {
    return metrics_make(task, window, max_classes, true, err);
}

static void metrics_clear_counts(struct counts *c, int max_classes) {
    if (c->of)
        memset(c->of, 0, ((size_t)max_classes + 1) * sizeof *c->of);
    if (c->ranks)
        memset(c->ranks, 0, sizeof *c->ranks);
    c->n = c->hits = c->same = 0;
}

void svi_metrics_fetch(const svi_metrics *m) {
    svi_fetch(m, sizeof *m);
}

void svi_metrics_fetch_parts(const svi_metrics *m) {
    const size_t classes = (size_t)(m->classes < m->max_classes ? m->classes + 1 : m->max_classes);
    if (m->all.of)
        svi_fetch(m->all.of, classes * sizeof *m->all.of);
    if (m->recent.of)
        svi_fetch(m->recent.of, classes * sizeof *m->recent.of);
    if (m->judged)
        svi_fetch(m->judged + m->slot, sizeof *m->judged);
}

void svi_metrics_reset(svi_metrics *m) {
    metrics_clear_counts(&m->all, m->max_classes);
    metrics_clear_counts(&m->recent, m->max_classes);
    m->classes = 0;
    m->last = -1;
    m->slot = m->filled = 0;
    m->loss = m->absolute = m->square = (struct sum){0};
    m->fresh_loss = 0;
    m->truth = (struct svi_moments){0};
    m->fresh = (struct errors){0};
    m->began++;
}

void svi_metrics_take_over(svi_metrics *m, svi_metrics *of) {
    const struct counts empty = m->all;
    m->all = of->all;
    of->all = empty;
    m->classes = of->classes;
    m->last = of->last;
    m->loss = of->loss;
    m->absolute = of->absolute;
    m->square = of->square;
    m->truth = of->truth;
    m->began = of->began;
    svi_metrics_reset(of);
}

void svi_metrics_leave_loss(svi_metrics *m, bool left_out) {
    m->lossless = left_out;
}

static void metrics_merge_errors(struct errors *a, const struct errors *b) {
    a->absolute += b->absolute;
    a->square += b->square;
    svi_moments_merge(&a->truth, b->truth);
}

/* All slots of a round are filled: what they hold becomes suffix sums, see above. */
static void metrics_wrap(svi_metrics *m) {
    m->slot = 0;
    m->fresh_loss = 0;
    m->fresh = (struct errors){0};
    for (int64_t i = m->window - 1; m->losses && i-- > 0;)
        m->losses[i] += m->losses[i + 1];
    for (int64_t i = m->window - 1; m->errors && i-- > 0;)
        metrics_merge_errors(&m->errors[i], &m->errors[i + 1]);
}

static inline void metrics_advance(svi_metrics *m) {
    m->filled += m->filled < m->window;
    if (++m->slot == m->window)
        metrics_wrap(m);
}

/* -log p(truth) for p proportional to exp(score). */
static double metrics_softmax_loss(int truth, const double *scores, int rows) {
    double top = scores[0], sum = 0;
    for (int k = 1; k < rows; k++)
        top = scores[k] > top ? scores[k] : top;
    for (int k = 0; k < rows; k++)
        sum += exp(scores[k] - top);
    return log(sum) + top - scores[truth];
}

/* One row separates class 1 from class 0, whether or not both were known already; a class without a row had
 * no probability. */
static double metrics_loss(int truth, const double *scores, int rows, int class_count) {
    double loss = LOSS_MAX;
    if (rows == 1 && truth <= 1)
        loss = log(1 + exp((2 - 4 * truth) * scores[0]));
    else if (rows > 1 && truth < class_count && truth < rows)
        loss = metrics_softmax_loss(truth, scores, rows);
    return loss < LOSS_MAX ? loss : LOSS_MAX; /* NaN too becomes the worst */
}

void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows,
                       int class_count) {
    if (truth < 0 || truth >= m->max_classes || m->task != SVS_CLASSIFY)
        return;
    int none = m->max_classes;
    bool ranks = rows == 1 && truth <= 1;
    struct judged j = {.truth = (uint16_t)truth,
                       .predicted = (uint16_t)(predicted < 0 || predicted > none ? none : predicted),
                       .bin = ranks ? (uint16_t)svi_auc_bin(scores[0]) : NO_BIN,
                       .same = truth == m->last};
    const double loss = m->lossless ? 0 : metrics_loss(truth, scores, rows, class_count);
    m->last = truth;
    m->classes = truth >= m->classes ? truth + 1 : m->classes;
    if (m->filled == m->window)
        metrics_count(&m->recent, m->judged[m->slot], -1);
    if (ranks && m->all.ranks)
        m->all.ranks->touched[j.bin / SVI_AUC_BLOCK] = m->recent.ranks->touched[j.bin / SVI_AUC_BLOCK] = 1;
    metrics_count(&m->all, j, 1);
    metrics_count(&m->recent, j, 1);
    metrics_sum_add(&m->loss, loss);
    m->fresh_loss += loss;
    m->judged[m->slot] = j;
    if (m->losses)
        m->losses[m->slot] = loss;
    metrics_advance(m);
}

void svi_metrics_value(svi_metrics *m, double truth, double predicted) {
    if (m->task != SVS_REGRESS)
        return;
    double error = truth - predicted;
    struct errors e = {fabs(error), error * error, {1, truth, 0}};
    metrics_sum_add(&m->absolute, e.absolute);
    metrics_sum_add(&m->square, e.square);
    svi_moments_merge(&m->truth, e.truth);
    metrics_merge_errors(&m->fresh, &e);
    m->errors[m->slot] = e;
    metrics_advance(m);
}

/* (observed - by chance) / (1 - by chance) */
static double metrics_beyond_chance(double observed, double chance) {
    return chance < 1 ? (observed - chance) / (1 - chance) : NAN;
}

static double metrics_kappa(const struct counts *c, int classes) {
    double agreement = 0, n = (double)c->n;
    for (int k = 0; k < classes; k++)
        agreement += (double)c->of[k].support / n * ((double)c->of[k].predicted / n);
    return metrics_beyond_chance((double)c->hits / n, agreement);
}

static double metrics_macro_f1(const struct counts *c, int classes) {
    double sum = 0;
    int met = 0;
    for (int k = 0; k < classes; k++) {
        int64_t both = c->of[k].support + c->of[k].predicted;
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

/* An area by the ranks of all or of the window. Lean metrics have those of the window alone, in its ring. */
static double metrics_area(const svi_metrics *m, const struct counts *c,
                           double (*area)(const struct svi_auc *)) {
    if (m->classes > 2 || (!c->ranks && c == &m->all))
        return NAN;
    if (c->ranks)
        return area(c->ranks);
    struct svi_auc *ranks = svi_alloc(sizeof *ranks);
    for (int64_t i = 0; ranks && i < m->filled; i++) {
        const struct judged j = m->judged[i];
        if (j.bin == NO_BIN)
            continue;
        ranks->count[j.bin][j.truth]++;
        ranks->touched[j.bin / SVI_AUC_BLOCK] = 1;
    }
    const double found = ranks ? area(ranks) : NAN;
    svi_free(ranks);
    return found;
}

static void metrics_class_figures(const svi_metrics *m, const struct counts *c, double loss, double *value) {
    const int classes = m->classes;
    double n = (double)c->n; /* 0: every figure comes out as NAN */
    value[ACCURACY] = (double)c->hits / n;
    value[KAPPA] = c->n > 0 ? metrics_kappa(c, classes) : NAN;
    value[KAPPA_T] = c->n > 0 ? metrics_beyond_chance((double)c->hits / n, (double)c->same / n) : NAN;
    value[F1] = metrics_macro_f1(c, classes);
    value[AUC] = metrics_area(m, c, svi_auc_area);
    value[LOGLOSS] = m->lossless ? NAN : loss / n;
}

static void metrics_value_figures(double absolute, double square, const struct svi_moments *truth,
                                  double *value) {
    value[MAE] = absolute / truth->n;
    value[RMSE] = sqrt(square / truth->n);
    value[R2] = truth->squares > 0 ? 1 - square / truth->squares : NAN;
}

/* The errors of the window of a regression. */
static struct errors metrics_recent_errors(const svi_metrics *m) {
    struct errors recent = m->fresh;
    if (m->filled == m->window)
        metrics_merge_errors(&recent, &m->errors[m->slot]);
    return recent;
}

double svi_metrics_windowed(const svi_metrics *m) {
    if (m->task != SVS_REGRESS)
        return m->recent.n > 0 ? (double)m->recent.hits / (double)m->recent.n : NAN;
    const struct errors recent = metrics_recent_errors(m);
    return recent.truth.n > 0 ? sqrt(recent.square / recent.truth.n) : NAN;
}

int svi_metrics_figures(const svi_metrics *m, struct svi_figure *out) {
    double value[2][CLASS_FIGURES];
    bool regress = m->task == SVS_REGRESS;
    int each = regress ? VALUE_FIGURES : CLASS_FIGURES, filled = 0;
    if (regress) {
        const struct errors recent = metrics_recent_errors(m);
        metrics_value_figures(m->absolute.sum, m->square.sum, &m->truth, value[0]);
        metrics_value_figures(recent.absolute, recent.square, &recent.truth, value[1]);
    } else {
        double recent = m->fresh_loss + (m->losses && m->filled == m->window ? m->losses[m->slot] : 0);
        metrics_class_figures(m, &m->all, m->loss.sum, value[0]);
        metrics_class_figures(m, &m->recent, recent, value[1]);
    }
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < each; i++)
            out[filled++] = (struct svi_figure){.name = regress ? value_names[w][i] : class_names[w][i],
                                                .type = SVI_NUMBER,
                                                .as.number = value[w][i]};
    return filled;
}

struct svi_metrics_sums svi_metrics_sums(const svi_metrics *m) {
    const bool regress = m->task == SVS_REGRESS;
    return (struct svi_metrics_sums){.judged = regress ? (int64_t)m->truth.n : m->all.n,
                                     .right = m->all.hits,
                                     .began = m->began,
                                     .squares = m->square.sum};
}

void svi_metrics_class_counts(const svi_metrics *m, int classes, struct svi_class_count *all,
                              struct svi_class_count *window) {
    const size_t size = (size_t)(classes < m->max_classes ? classes : m->max_classes) * sizeof *all;
    if (m->task != SVS_CLASSIFY)
        return;
    memcpy(all, m->all.of, size);
    memcpy(window, m->recent.of, size);
}

void svi_metrics_confusion(const svi_metrics *m, int classes, int64_t *out) {
    memset(out, 0, (size_t)classes * (size_t)classes * sizeof *out);
    for (int64_t i = 0; m->judged && i < m->filled; i++) {
        const struct judged j = m->judged[i];
        if (j.truth < classes && j.predicted < classes)
            out[(size_t)j.truth * (size_t)classes + j.predicted]++;
    }
}

struct svi_metrics_more svi_metrics_more(const svi_metrics *m, bool window) {
    const struct counts *c = window ? &m->recent : &m->all;
    if (m->task != SVS_CLASSIFY)
        return (struct svi_metrics_more){NAN, NAN};
    return (struct svi_metrics_more){.same = (double)c->same / (double)c->n,
                                     .ap = metrics_area(m, c, svi_auc_precision)};
}

double svi_metrics_memory(svs_task task, int64_t window, int max_classes, bool lean) {
    double bytes = sizeof(svi_metrics);
    if (task == SVS_REGRESS)
        return bytes + (double)window * sizeof(struct errors);
    bytes += (double)window * (sizeof(struct judged) + (lean ? 0 : sizeof(double)));
    return bytes +
           2 * ((max_classes + 1.0) * sizeof(struct svi_class_count) + (lean ? 0 : sizeof(struct svi_auc)));
}

/* ---- archive */

_Static_assert(sizeof(struct judged) == 4 * sizeof(uint16_t), "a ring of them is bytes without gaps");
_Static_assert(sizeof(struct errors) == 5 * sizeof(double), "a ring of them is doubles");

/* A struct of doubles, as an array of them. */
_Static_assert(sizeof(struct sum) == 2 * sizeof(double), "a sum is doubles");
_Static_assert(sizeof(struct svi_moments) == 3 * sizeof(double), "moments are doubles");
_Static_assert(sizeof(struct svi_class_count) == 3 * sizeof(int64_t),
               "the counts of a class are whole numbers");

/* The classes that were counted: the others take no room. */
static int metrics_classes_counted(const struct counts *c, int max_classes) {
    int n = max_classes;
    while (n > 0 && c->of[n - 1].support == 0 && c->of[n - 1].predicted == 0)
        n--;
    return n;
}

static void metrics_archive_counts(struct svi_archive *a, struct counts *c, int max_classes) {
    int n = metrics_classes_counted(c, max_classes);
    svi_archive_int(a, "counted classes", &n, 0, max_classes);
    for (int k = 0; k < n && svi_archive_ok(a); k++) {
        char name[SVI_KEY_MAX];
        svi_archive_int64s(a, svi_archive_key(name, "class", k), (int64_t *)&c->of[k], 3, 0, COUNT_MAX);
    }
    svi_archive_int64(a, "nothing predicted", &c->of[max_classes].predicted, 0, COUNT_MAX);
}

/* At most `n` samples have a rank. */
static void metrics_archive_rank(struct svi_archive *a, struct svi_auc *r, int64_t n) {
    uint8_t used[BLOCKS] = {0};
    for (int bin = 0; bin < SVI_AUC_BINS; bin++)
        used[bin / SVI_AUC_BLOCK] |= r->count[bin][0] != 0 || r->count[bin][1] != 0;
    svi_archive_bytes(a, "ranks", used, BLOCKS);
    for (int block = 0; block < BLOCKS && svi_archive_ok(a); block++) {
        char name[SVI_KEY_MAX];
        if (!used[block])
            continue;
        r->touched[block] = 1;
        int64_t *count = r->count[block * SVI_AUC_BLOCK];
        svi_archive_int64s(a, svi_archive_key(name, "ranks", block), count, 2 * SVI_AUC_BLOCK, 0, n);
        for (int i = 0; i < 2 * SVI_AUC_BLOCK && svi_archive_ok(a); i++)
            svi_archive_check(a, (n -= count[i]) >= 0, "more samples have a rank than there are");
    }
}

static bool metrics_plausible(const struct judged *j, int max_classes) {
    const bool ranks = j->bin < SVI_AUC_BINS && j->truth <= 1;
    return j->truth < max_classes && j->predicted <= max_classes && j->same <= 1 &&
           (j->bin == NO_BIN || ranks);
}

/* The counts of the window, from its samples. */
static void metrics_recount(struct svi_archive *a, svi_metrics *m) {
    for (int64_t i = 0; i < m->filled; i++) {
        const struct judged j = m->judged[i];
        if (!svi_archive_check(a, metrics_plausible(&j, m->max_classes),
                               "a sample has a class beyond the last one"))
            return;
        metrics_count(&m->recent, j, 1);
        if (j.bin != NO_BIN && m->recent.ranks)
            m->recent.ranks->touched[j.bin / SVI_AUC_BLOCK] = 1;
    }
}

static void metrics_archive_classes(struct svi_archive *a, svi_metrics *m) {
    svi_archive_int(a, "classes", &m->classes, 0, m->max_classes);
    svi_archive_int(a, "last class", &m->last, -1, m->max_classes - 1);
    svi_archive_int64(a, "samples", &m->all.n, 0, COUNT_MAX);
    svi_archive_int64(a, "hits", &m->all.hits, 0, COUNT_MAX);
    svi_archive_int64(a, "same as before", &m->all.same, 0, COUNT_MAX);
    metrics_archive_counts(a, &m->all, m->max_classes);
    if (m->all.ranks)
        metrics_archive_rank(a, m->all.ranks, m->all.n);
    svi_archive_doubles(a, "loss", (double *)&m->loss, 2);
    svi_archive_double(a, "fresh loss", &m->fresh_loss);
    svi_archive_bytes(a, "judged", m->judged, m->filled * (int64_t)sizeof *m->judged);
    if (m->losses)
        svi_archive_doubles(a, "losses", m->losses, m->filled);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        metrics_recount(a, m);
}

static void metrics_archive_values(struct svi_archive *a, svi_metrics *m) {
    svi_archive_doubles(a, "absolute", (double *)&m->absolute, 2);
    svi_archive_doubles(a, "square", (double *)&m->square, 2);
    svi_archive_doubles(a, "truth", (double *)&m->truth, 3);
    svi_archive_double(a, "fresh absolute", &m->fresh.absolute);
    svi_archive_double(a, "fresh square", &m->fresh.square);
    svi_archive_doubles(a, "fresh truth", (double *)&m->fresh.truth, 3);
    svi_archive_doubles(a, "errors", (double *)m->errors, 5 * m->filled);
}

void svi_metrics_archive(struct svi_archive *a, svi_metrics *m) {
    if (svi_archive_loading(a))
        svi_metrics_reset(m);
    /* The ring as it is stored: where a round ends decides which sums are made when. */
    svi_archive_int64(a, "filled", &m->filled, 0, m->window);
    svi_archive_int64(a, "slot", &m->slot, 0, m->window - 1);
    svi_archive_check(a, m->filled == m->window || m->slot == m->filled, "a ring has a hole");
    if (!svi_archive_ok(a))
        return;
    if (m->task == SVS_REGRESS)
        metrics_archive_values(a, m);
    else
        metrics_archive_classes(a, m);
}
