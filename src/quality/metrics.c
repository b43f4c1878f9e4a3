/* The prequential quality: counts for classes and sums for values, over the whole stream and over the window,
 * which is a ring of scored samples.
 *
 * Windowed counts are integers, so a sample that leaves is simply subtracted. Windowed sums of doubles are
 * never subtracted from and so never drift. The ring is filled from the front again and again. Samples since
 * the last wrap are summed in `fresh`. The rest of the round before is read from suffix sums, which the wrap
 * made in place: slot i then holds the sum over i .. end, and is overwritten only when sample i leaves. An
 * outlier therefore leaves no rounding error, and a sample costs two additions on average. Means and squared
 * deviations merge in the same way (svi_moments_merge).
 *
 * Read the structs first, then the samples (svi_metrics_class, svi_metrics_value), the figures, and the
 * archive. The archive recounts integers but stores sums, whose last bits depend on the order of terms. */
#include "quality/metrics.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/fetch.h"
#include "base/statistics.h"
#include "quality/auc.h"
#include "base/stat_ring.h"

#define CLASS_MAX (UINT16_MAX - 1)
#define NO_BIN    UINT16_MAX      /* the sample's score has no rank */
#define COUNT_MAX (INT64_MAX / 8) /* largest count accepted from an archive */
#define BLOCKS    (SVI_AUC_BINS / SVI_AUC_BLOCK)

/* A sum that carries its rounding error along (Kahan); for terms of one sign. */
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
    struct svi_class_count *of; /* capacity + 1: [0] is "nothing was predicted", then the classes */
    struct svi_auc *ranks;      /* NULL: not kept */
};

/* What is needed to remove a sample from the window's counts. Classes count from 1; 0 is no prediction. */
struct outcome {
    uint16_t truth, predicted, bin, same;
};

/* Errors of a stretch of a regression. */
struct errors {
    double absolute, square; /* sums */
    struct svi_moments truth;
};

struct svi_metrics {
    svs_task task;
    int max_classes, capacity; /* classes at most; classes with counts now */
    int classes;               /* seen so far */
    int last;                  /* label of the sample before, -1: none */
    struct svi_stat_ring ring;
    struct counts all, recent;
    struct outcome *judged; /* ring */
    int late, late_truth;   /* bin and class of the newest sample, whose rank is counted with the next one */
    struct sum absolute, square;
    struct svi_moments truth;
    struct errors fresh;
    struct errors *errors; /* ring */
    int64_t began;         /* resets; not archived */
};

/* Branch-free: whether a sample is a hit is hard to predict. */
static inline void metrics_insert(struct counts *c, struct outcome j) {
    const bool hit = j.predicted == j.truth;
    c->n++;
    c->hits += hit;
    c->same += j.same;
    c->of[j.truth].support++;
    c->of[j.truth].hits += hit;
    c->of[j.predicted].predicted++;
}

/* `j` replaces `old` in the counts of the full window, whose size n stays. */
static inline void metrics_replace(struct counts *c, struct outcome j, const struct outcome *old) {
    const bool hit = j.predicted == j.truth, was = old->predicted == old->truth;
    c->hits += (int64_t)hit - was;
    c->same += (int64_t)j.same - old->same;
    c->of[old->truth].support--;
    c->of[old->truth].hits -= was;
    c->of[old->predicted].predicted--;
    c->of[j.truth].support++;
    c->of[j.truth].hits += hit;
    c->of[j.predicted].predicted++;
}

static inline void metrics_rank(struct svi_auc *r, struct outcome j) {
    r->count[j.bin][j.truth - 1]++;
    r->touched[j.bin / SVI_AUC_BLOCK] = 1;
}

/* Counts the rank that was deferred; needed before ranks are read, archived or copied. */
static inline void metrics_settle(svi_metrics *m) {
    if (m->late == NO_BIN)
        return;
    const int bin = m->late, truth = m->late_truth;
    m->all.ranks->count[bin][truth]++;
    m->recent.ranks->count[bin][truth]++;
    m->all.ranks->touched[bin / SVI_AUC_BLOCK] = m->recent.ranks->touched[bin / SVI_AUC_BLOCK] = 1;
    m->late = NO_BIN;
}

static inline void metrics_fetch_rank(const struct svi_auc *r, int bin) {
    if (bin != NO_BIN)
        __builtin_prefetch(r->count[bin], 1);
}

/* Ranks are scattered over about 100 kB, and counting one at once would wait for memory. A sample's rank is
 * therefore counted with the next sample; meanwhile its bins, and those of the sample that leaves next, are
 * prefetched. Called before the ring advances. old: the sample that leaves, NULL: none. */
static inline void metrics_exchange_ranks(svi_metrics *m, int bin, int truth, const struct outcome *old) {
    metrics_settle(m);
    if (old && old->bin != NO_BIN)
        m->recent.ranks->count[old->bin][old->truth - 1]--;
    if (old)
        metrics_fetch_rank(m->recent.ranks, (m->ring.slot + 1 < m->ring.window ? old + 1 : m->judged)->bin);
    /* The next sample to leave is in the slot after this one, or in the first slot at the end of the ring. */
    m->late = bin;
    m->late_truth = truth;
    metrics_fetch_rank(m->all.ranks, bin);
    metrics_fetch_rank(m->recent.ranks, bin);
}

/* ---- arrays */

enum { JUDGED, ERRORS, CLASSES, RANKS, DIMS };

#define OWNER struct svi_metrics

static const struct svi_array arrays[] = {
    SVI_ARRAY_STRUCTS(OWNER, all.of, int64_t, "counts", SVI_ARRAY_COUNT, SVI_AXIS(CLASSES)),
    SVI_ARRAY_STRUCTS(OWNER, recent.of, int64_t, NULL, SVI_ARRAY_COUNT, SVI_AXIS(CLASSES)),
    SVI_ARRAY_STRUCTS(OWNER, all.ranks, int64_t, NULL, SVI_ARRAY_COUNT, SVI_AXIS(RANKS)),
    SVI_ARRAY_STRUCTS(OWNER, recent.ranks, int64_t, NULL, SVI_ARRAY_COUNT, SVI_AXIS(RANKS)),
    SVI_ARRAY_STRUCTS(OWNER, errors, double, "errors", SVI_ARRAY_ANY, SVI_AXIS(ERRORS)),
    SVI_ARRAY_STRUCTS(OWNER, judged, uint8_t, "judged", SVI_ARRAY_ANY, SVI_AXIS(JUDGED)),
};
static const struct svi_arrays metrics_arrays = SVI_ARRAYS(arrays, "the prequential quality");

struct metrics_dims {
    int32_t of[DIMS];
};

/* A regression has the ring of errors alone, a classification the rest; counts have one row more, for
 * "none". */
static struct metrics_dims metrics_dims(const struct svi_metrics_options *o, int capacity) {
    const int32_t window = (int32_t)o->window;
    return o->task == SVS_REGRESS
               ? (struct metrics_dims){{[ERRORS] = window}}
               : (struct metrics_dims){{[JUDGED] = window, [CLASSES] = capacity + 1, [RANKS] = o->ranks}};
}

static struct svi_metrics_options metrics_options(const svi_metrics *m) {
    return (struct svi_metrics_options){
        .task = m->task, .window = m->ring.window, .max_classes = m->max_classes, .ranks = m->all.ranks};
}

static int metrics_capacity(const struct svi_metrics_options *o, int classes) {
    return classes < 2 && o->max_classes > 2 ? 2 : classes < o->max_classes ? classes : o->max_classes;
}

/* Class numbers and the bin are stored in 16 bits each, which limits max_classes. */
svi_metrics *svi_metrics_new(const struct svi_metrics_options *o, svs_error *err) {
    if (o->window < 1 || o->window > INT32_MAX || o->max_classes < 1 || o->max_classes > CLASS_MAX) {
        svi_fail(err, SVS_INVALID,
                 "quality needs a window of 1 sample or more and 1 to %d classes, not %lld and %d", CLASS_MAX,
                 (long long)o->window, o->max_classes);
        return NULL;
    }
    const int capacity = metrics_capacity(o, o->grows ? 2 : o->max_classes);
    const struct metrics_dims dims = metrics_dims(o, capacity);
    svi_metrics *m = svi_new_plain(sizeof *m, metrics_arrays.what, err);
    if (!m)
        return NULL;
    m->task = o->task;
    m->ring.window = o->window;
    m->max_classes = o->max_classes;
    m->capacity = capacity;
    m->last = -1;
    m->late = NO_BIN;
    if (svi_arrays_alloc(&metrics_arrays, m, dims.of, err) != SVS_OK)
        svi_metrics_free(&m);
    return m;
}

void svi_metrics_free(svi_metrics **m) {
    if (*m)
        svi_arrays_free(&metrics_arrays, *m);
    svi_free(*m);
    *m = NULL;
}

/* Only the counts of classes grow: the ring holds class numbers and does not depend on the capacity. */
svs_code svi_metrics_reserve(svi_metrics *m, int classes, svs_error *err) {
    const struct svi_metrics_options o = metrics_options(m);
    const int capacity = metrics_capacity(&o, classes);
    if (capacity <= m->capacity)
        return SVS_OK;
    const struct metrics_dims from = metrics_dims(&o, m->capacity), to = metrics_dims(&o, capacity);
    const svs_code code = svi_arrays_resize(&metrics_arrays, m, from.of, to.of, err);
    m->capacity = code == SVS_OK ? capacity : m->capacity;
    return code;
}

double svi_metrics_memory(const struct svi_metrics_options *o, int classes) {
    const struct metrics_dims dims =
        metrics_dims(o, metrics_capacity(o, o->grows ? classes : o->max_classes));
    return (double)sizeof(svi_metrics) + (double)svi_arrays_bytes(&metrics_arrays, dims.of);
}

void svi_metrics_fetch(const svi_metrics *m) {
    svi_fetch(m, sizeof *m);
}

void svi_metrics_fetch_parts(const svi_metrics *m) {
    /* Two more than the classes seen: [0] is "nothing", and the sample may bring a new class. */
    const size_t counted = (size_t)(m->classes < m->capacity ? m->classes + 2 : m->capacity + 1);
    if (!m->judged)
        return;
    svi_fetch(m->all.of, counted * sizeof *m->all.of);
    svi_fetch(m->recent.of, counted * sizeof *m->recent.of);
    svi_fetch(m->judged + m->ring.slot, sizeof *m->judged);
}

static void metrics_clear_counts(struct counts *c, int capacity) {
    if (c->of)
        memset(c->of, 0, ((size_t)capacity + 1) * sizeof *c->of);
    if (c->ranks)
        memset(c->ranks, 0, sizeof *c->ranks);
    c->n = c->hits = c->same = 0;
}

void svi_metrics_reset(svi_metrics *m) {
    metrics_clear_counts(&m->all, m->capacity);
    metrics_clear_counts(&m->recent, m->capacity);
    m->classes = 0;
    m->last = -1;
    m->late = NO_BIN;
    svi_stat_ring_reset(&m->ring);
    m->absolute = m->square = (struct sum){0};
    m->truth = (struct svi_moments){0};
    m->fresh = (struct errors){0};
    m->began++;
}

static void metrics_copy_counts(struct counts *c, const struct counts *of, int capacity) {
    if (c->of)
        memcpy(c->of, of->of, ((size_t)capacity + 1) * sizeof *c->of);
    if (c->ranks)
        *c->ranks = *of->ranks;
    c->n = of->n;
    c->hits = of->hits;
    c->same = of->same;
}

/* Totals are copied rather than moved, because `of` may have another capacity. Its deferred rank belongs to
 * the totals and is counted first. */
void svi_metrics_take_over(svi_metrics *m, svi_metrics *of) {
    metrics_settle(of);
    metrics_copy_counts(&m->all, &of->all, m->capacity < of->capacity ? m->capacity : of->capacity);
    m->classes = of->classes;
    m->last = of->last;
    m->absolute = of->absolute;
    m->square = of->square;
    m->truth = of->truth;
    m->began = of->began;
}

static void metrics_merge_errors(struct errors *a, const struct errors *b) {
    a->absolute += b->absolute;
    a->square += b->square;
    svi_moments_merge(&a->truth, b->truth);
}

/* All slots of a round are filled: what they hold becomes suffix sums, see above. */
static void metrics_wrap(svi_metrics *m) {
    m->fresh = (struct errors){0};
    for (int64_t i = m->ring.window - 1; m->errors && i-- > 0;)
        metrics_merge_errors(&m->errors[i], &m->errors[i + 1]);
}

/* One sample: its record is made first, then counted in totals and window, then stored in place of the
 * oldest. */
void svi_metrics_class(svi_metrics *m, int truth, int predicted, const double *scores, int rows) {
    if (truth < 0 || truth >= m->capacity || m->task != SVS_CLASSIFY)
        return;
    const bool none = predicted < 0 || predicted >= m->capacity;
    bool ranks = rows == 1 && truth <= 1;
    struct outcome j = {.truth = (uint16_t)(truth + 1),
                        .predicted = (uint16_t)(none ? 0 : predicted + 1),
                        .bin = ranks ? (uint16_t)svi_auc_bin(scores[0]) : NO_BIN,
                        .same = truth == m->last};
    struct outcome *place = &m->judged[m->ring.slot];
    const struct outcome *old = svi_stat_ring_full(&m->ring) ? place : NULL;
    m->last = truth;
    m->classes = truth >= m->classes ? truth + 1 : m->classes;
    if (m->all.ranks)
        metrics_exchange_ranks(m, j.bin, truth, old);
    metrics_insert(&m->all, j);
    if (old)
        metrics_replace(&m->recent, j, old);
    else
        metrics_insert(&m->recent, j);
    /* Last, because `old` points to this slot. */
    *place = j;
    if (svi_stat_ring_advance(&m->ring))
        metrics_wrap(m);
}

void svi_metrics_value(svi_metrics *m, double truth, double predicted) {
    if (m->task != SVS_REGRESS)
        return;
    /* {1, truth, 0} are the moments of one value; merging them adds it. */
    double error = truth - predicted;
    struct errors e = {fabs(error), error * error, {1, truth, 0}};
    metrics_sum_add(&m->absolute, e.absolute);
    metrics_sum_add(&m->square, e.square);
    svi_moments_merge(&m->truth, e.truth);
    metrics_merge_errors(&m->fresh, &e);
    m->errors[m->ring.slot] = e;
    if (svi_stat_ring_advance(&m->ring))
        metrics_wrap(m);
}

/* Kappa: (observed - chance) / (1 - chance). NAN where chance alone is perfect. */
static double metrics_beyond_chance(double observed, double chance) {
    return chance < 1 ? (observed - chance) / (1 - chance) : NAN;
}

/* Chance agreement: the product of the marginal shares of labels and predictions, summed over classes. */
static double metrics_kappa(const struct counts *c, int classes) {
    double agreement = 0, n = (double)c->n;
    for (int k = 1; k <= classes; k++)
        agreement += (double)c->of[k].support / n * ((double)c->of[k].predicted / n);
    return metrics_beyond_chance((double)c->hits / n, agreement);
}

/* The mean F1 over classes that occurred as label or prediction; 0 / 0 = NAN before the first. */
static double metrics_macro_f1(const struct counts *c, int classes) {
    double sum = 0;
    int met = 0;
    for (int k = 1; k <= classes; k++) {
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

/* An area from the ranks of the totals or of the window. Where ranks are not kept, those of the window are
 * counted from its ring; those of the totals are unknown. NAN without memory for that. */
static double metrics_area(const svi_metrics *m, const struct counts *c,
                           double (*area)(const struct svi_auc *)) {
    if (m->classes > 2 || (!c->ranks && c == &m->all))
        return NAN;
    if (c->ranks)
        return area(c->ranks);
    /* Only streams without ranks come here, and only when a report is requested: 224 kB, for as long as it
     * takes. */
    struct svi_auc *ranks = svi_alloc(sizeof *ranks);
    for (int64_t i = 0; ranks && i < m->ring.filled; i++) {
        const struct outcome j = m->judged[i];
        if (j.bin == NO_BIN)
            continue;
        metrics_rank(ranks, j);
    }
    const double found = ranks ? area(ranks) : NAN;
    svi_free(ranks);
    return found;
}

static void metrics_class_figures(const svi_metrics *m, const struct counts *c, double *value) {
    const int classes = m->classes;
    double n = (double)c->n; /* 0: every figure comes out as NAN */
    value[ACCURACY] = (double)c->hits / n;
    value[KAPPA] = c->n > 0 ? metrics_kappa(c, classes) : NAN;
    value[KAPPA_T] = c->n > 0 ? metrics_beyond_chance((double)c->hits / n, (double)c->same / n) : NAN;
    value[F1] = metrics_macro_f1(c, classes);
    value[AUC] = metrics_area(m, c, svi_auc_area);
    value[LOGLOSS] = NAN; /* svi_quality_stage_figures puts it here */
}

static void metrics_value_figures(double absolute, double square, const struct svi_moments *truth,
                                  double *value) {
    value[MAE] = absolute / truth->n;
    value[RMSE] = sqrt(square / truth->n);
    value[R2] = truth->squares > 0 ? 1 - square / truth->squares : NAN;
}

/* The errors of the window: those since the wrap, and the suffix sum that begins at the oldest sample, which
 * is in the slot written next. While the ring is not full, all are fresh. */
static struct errors metrics_recent_errors(const svi_metrics *m) {
    struct errors recent = m->fresh;
    if (svi_stat_ring_full(&m->ring))
        metrics_merge_errors(&recent, &m->errors[m->ring.slot]);
    return recent;
}

double svi_metrics_windowed(const svi_metrics *m) {
    if (m->task != SVS_REGRESS)
        return m->recent.n > 0 ? (double)m->recent.hits / (double)m->recent.n : NAN;
    const struct errors recent = metrics_recent_errors(m);
    return recent.truth.n > 0 ? sqrt(recent.square / recent.truth.n) : NAN;
}

/* Totals first, then the window, in the fixed order of the names: the order is that of the published
 * figures. */
int svi_metrics_figures(svi_metrics *m, struct svi_figure *out) {
    double value[2][CLASS_FIGURES];
    bool regress = m->task == SVS_REGRESS;
    int each = regress ? VALUE_FIGURES : CLASS_FIGURES, filled = 0;
    if (regress) {
        const struct errors recent = metrics_recent_errors(m);
        metrics_value_figures(m->absolute.sum, m->square.sum, &m->truth, value[0]);
        metrics_value_figures(recent.absolute, recent.square, &recent.truth, value[1]);
    } else {
        metrics_settle(m);
        metrics_class_figures(m, &m->all, value[0]);
        metrics_class_figures(m, &m->recent, value[1]);
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
    const struct svi_class_count none = {0};
    for (int k = 0; k < classes && m->task == SVS_CLASSIFY; k++) {
        all[k] = k < m->capacity ? m->all.of[k + 1] : none;
        window[k] = k < m->capacity ? m->recent.of[k + 1] : none;
    }
}

void svi_metrics_confusion(const svi_metrics *m, int classes, int64_t *out) {
    memset(out, 0, (size_t)classes * (size_t)classes * sizeof *out);
    for (int64_t i = 0; m->judged && i < m->ring.filled; i++) {
        const struct outcome j = m->judged[i];
        if (j.truth <= classes && j.predicted >= 1 && j.predicted <= classes)
            out[(size_t)(j.truth - 1) * (size_t)classes + j.predicted - 1]++;
    }
}

struct svi_metrics_more svi_metrics_more(svi_metrics *m, bool window) {
    const struct counts *c = window ? &m->recent : &m->all;
    metrics_settle(m);
    if (m->task != SVS_CLASSIFY)
        return (struct svi_metrics_more){NAN, NAN};
    return (struct svi_metrics_more){.same = (double)c->same / (double)c->n,
                                     .ap = metrics_area(m, c, svi_auc_precision)};
}

/* ---- archive */

_Static_assert(sizeof(struct outcome) == 4 * sizeof(uint16_t), "a ring of them is bytes without gaps");
_Static_assert(sizeof(struct errors) == 5 * sizeof(double), "a ring of them is doubles");

/* A struct of doubles, as an array of them. */
_Static_assert(sizeof(struct sum) == 2 * sizeof(double), "a sum is doubles");
_Static_assert(sizeof(struct svi_moments) == 3 * sizeof(double), "moments are doubles");
_Static_assert(sizeof(struct svi_class_count) == 3 * sizeof(int64_t),
               "the counts of a class are whole numbers");

/* The number of counts to archive: "nothing" and the classes up to the last one that occurred. */
static int metrics_counted(const svi_metrics *m) {
    int n = m->capacity;
    while (n > 0 && m->all.of[n].support == 0 && m->all.of[n].predicted == 0)
        n--;
    return n + 1;
}

/* Archives the blocks of bins that hold a count. Loading checks that at most `n` samples have a rank. */
static void metrics_archive_rank(struct svi_archive *a, struct svi_auc *r, int64_t n) {
    uint8_t used[BLOCKS] = {0};
    for (int bin = 0; bin < SVI_AUC_BINS; bin++)
        used[bin / SVI_AUC_BLOCK] |= r->count[bin][0] != 0 || r->count[bin][1] != 0;
    /* Scores of a stream fill few blocks; the flags say which ones follow. */
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

/* Can this record have been written by svi_metrics_class? Its numbers index arrays when it is counted. */
static bool metrics_plausible(const struct outcome *j, int capacity) {
    const bool ranks = j->bin < SVI_AUC_BINS && j->truth <= 2;
    return j->truth >= 1 && j->truth <= capacity && j->predicted <= capacity && j->same <= 1 &&
           (j->bin == NO_BIN || ranks);
}

/* Counts the window again from its samples, which may be damaged. */
static void metrics_recount(struct svi_archive *a, svi_metrics *m) {
    for (int64_t i = 0; i < m->ring.filled; i++) {
        const struct outcome j = m->judged[i];
        if (!svi_archive_check(a, metrics_plausible(&j, m->capacity),
                               "a sample has a class beyond the last one"))
            return;
        metrics_insert(&m->recent, j);
        if (j.bin != NO_BIN && m->recent.ranks)
            metrics_rank(m->recent.ranks, j);
    }
}

static void metrics_archive_classes(struct svi_archive *a, svi_metrics *m) {
    svi_archive_int(a, "classes", &m->classes, 0, m->max_classes);
    svi_archive_int(a, "last class", &m->last, -1, m->max_classes - 1);
    svi_archive_int64(a, "samples", &m->all.n, 0, COUNT_MAX);
    svi_archive_int64(a, "hits", &m->all.hits, 0, COUNT_MAX);
    svi_archive_int64(a, "same as before", &m->all.same, 0, COUNT_MAX);
    if (m->all.ranks)
        metrics_archive_rank(a, m->all.ranks, m->all.n);
}

static void metrics_archive_values(struct svi_archive *a, svi_metrics *m) {
    svi_archive_doubles(a, "absolute", (double *)&m->absolute, 2);
    svi_archive_doubles(a, "square", (double *)&m->square, 2);
    svi_archive_doubles(a, "truth", (double *)&m->truth, 3);
    svi_archive_doubles(a, "fresh errors", (double *)&m->fresh, 5);
}

void svi_metrics_archive(struct svi_archive *a, svi_metrics *m) {
    /* The deferred rank has no place in the archive. */
    metrics_settle(m);
    if (svi_archive_loading(a))
        svi_metrics_reset(m);
    if (!svi_stat_ring_archive(a, &m->ring))
        return;
    const int32_t filled = (int32_t)m->ring.filled;
    /* Loading: classes are read first, so that capacity for their counts can be reserved before the arrays
     * are read. */
    int counted = m->task == SVS_REGRESS ? 0 : metrics_counted(m);
    (m->task == SVS_REGRESS ? metrics_archive_values : metrics_archive_classes)(a, m);
    svi_archive_int(a, "counted", &counted, m->judged ? 1 : 0, m->judged ? m->max_classes + 1 : 0);
    if (!svi_archive_check(a, m->classes < counted || !m->judged, "a class was not counted") ||
        (m->judged && svi_metrics_reserve(m, counted - 1, a->err) != SVS_OK))
        return;
    const struct svi_metrics_options made = metrics_options(m);
    const struct metrics_dims dims = metrics_dims(&made, m->capacity);
    const struct metrics_dims used = {
        {[JUDGED] = m->judged ? filled : 0, [ERRORS] = m->errors ? filled : 0, [CLASSES] = counted}};
    svi_arrays_archive(a, &metrics_arrays, m, dims.of, used.of);
    if (svi_archive_loading(a) && svi_archive_ok(a) && m->judged)
        metrics_recount(a, m);
}
