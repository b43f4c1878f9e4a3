/* The detectors of rows: the p-value of novelty as a reason for an alert, of one row (ROW) and accumulated
 * over many (LASTING, lasting.h).
 *
 * Both p-values are valid for exchangeable rows. Rows of a machine are not exchangeable: each morning differs
 * a little from all before, and small p-values come in runs. Each measure, as -log10 p, is therefore divided
 * by its normal size at that time of day (deviations.h) and compared with the largest of its own past in
 * blocks of rows (block_tails.h). Reported is how often such an episode begins, but never more than the
 * p-value says. LASTING is silent until its past is as long as a machine takes to show what is normal: a day,
 * or SLOW rows, and ten times the length of its runs. */
#include <math.h>

#include "alerts/block_tails.h"
#include "alerts/context.h"
#include "alerts/deviations.h"
#include "alerts/evidence.h"
#include "alerts/lasting.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "novelty/detector.h"

#define MIN_SURPRISE 1.0  /* no smaller surprise is reported */
#define WARM         64   /* rows before anything is reported by the past */
#define REFRESH      64   /* rows after which the normal size at a time of day is computed again */
#define GREATEST     300  /* largest -log10 p: beyond any p */
#define RUNS         10   /* lengths of a run (lasting.h, tau) that LASTING needs */
#define MIN_SCALE    0.3f /* smallest normal size; on exchangeable rows that of -log10 p is 0.6 */

enum { ROW, LASTING, SERIES };

struct row_detectors {
    struct svi_lasting lasting;
    struct svi_pace pace;
    struct svi_deviations deviations; /* of two series */
    struct svi_block_tails tails;
};

static void row_detectors_free(void *state) {
    struct row_detectors *r = state;
    svi_deviations_clear(&r->deviations);
    svi_block_tails_clear(&r->tails);
    svi_free(r);
}

/* Two series need so little that all capacity is taken with the first row. */
static svs_code row_detectors_reserve(void **state, const struct svi_detector_shape *shape, svs_error *err) {
    (void)shape;
    if (*state)
        return SVS_OK;
    struct row_detectors *r = svi_alloc_plain(sizeof *r);
    if (!r)
        return svi_fail_memory(err, "the detectors of rows");
    *r = (struct row_detectors){0};
    svi_lasting_init(&r->lasting);
    svi_pace_init(&r->pace);
    if (svi_deviations_init(&r->deviations, SERIES, 1, SVI_CONTEXT_BINS, err) != SVS_OK ||
        svi_block_tails_init(&r->tails, SERIES, 1, false, MIN_SURPRISE, err) != SVS_OK) {
        row_detectors_free(r);
        return SVS_NO_MEMORY;
    }
    *state = r;
    return SVS_OK;
}

static double row_detectors_bytes(const struct svi_detector_shape *shape) {
    (void)shape;
    return (double)sizeof(struct row_detectors) + svi_deviations_memory(SERIES, 1, SVI_CONTEXT_BINS) +
           svi_block_tails_memory(SERIES, 1, false);
}

static int row_detectors_size(const void *state) {
    (void)state;
    return 1;
}

static void row_detectors_assess(void *state, const struct svi_detector_sample *sample,
                                 struct svi_evidence *evidence) {
    static const enum svi_alert_detector detector[SERIES] = {SVI_DETECTOR_ROW, SVI_DETECTOR_LASTING};
    struct row_detectors *r = state;
    const struct svi_judgement *j = sample->row;
    const struct svi_moment *m = sample->moment;
    const struct svi_lasting_rank rank = {j->above, j->p, j->scores, j->calibrates, j->disturbed};
    float u[SERIES];
    if (m->bin != r->deviations.bin || r->pace.rows % REFRESH == 0)
        svi_deviations_turn_to(&r->deviations, m->bin);
    /* LASTING includes the row at hand: it reports the evidence up to and with it. A row under a mute does
     * not count, or what lasts would go on after the mute. */
    if (!sample->unlearned)
        svi_lasting_add(&r->lasting, &rank);
    const bool fast = svi_pace_is_fast(&r->pace, m->time), day = svi_pace_knows_a_day(&r->pace, m->time);
    const bool early = !(day || fast) || (double)r->pace.rows < RUNS * r->lasting.tau;
    const bool alone = !day && r->pace.rows < SVI_BLOCKS * SVI_BLOCK_MIN_ROWS; /* too few blocks to compare */
    /* `extreme` extends p beyond the ranks: otherwise no surprise could exceed log10 of the number
     * of scores. */
    const float v[SERIES] = {(float)fmin(-log10(j->extreme), GREATEST),
                             (float)svi_lasting_surprise(&r->lasting)};
    for (int i = 0; i < SERIES; i++) {
        u[i] = r->pace.rows < WARM ? 0 : v[i] / fmaxf(r->deviations.now[i], MIN_SCALE);
        /* The smaller of both: a long past of small p-values lowers the surprise, and never raises it. */
        const double episode = svi_block_tails_surprise(&r->tails, i, u[i], 0);
        evidence[detector[i]].surprise = i != LASTING ? fmin(v[i], episode)
                                         : early      ? 0
                                         : alone      ? v[i]
                                                      : fmin(v[i], episode);
    }
    evidence[SVI_DETECTOR_LASTING].over = svi_lasting_over(&r->lasting);
    evidence[SVI_DETECTOR_LASTING].since = evidence[SVI_DETECTOR_LASTING].over;
    if (sample->unlearned)
        return;
    /* The row is learned last: no row is assessed by a past that contains it. */
    svi_block_tails_add(&r->tails, u);
    svi_deviations_learn(&r->deviations, m->bin, v,
                         (float)fmax(1 / (double)(r->pace.rows + 1), 1 / r->pace.memory));
    /* The memory is measured again when the number of rows has doubled; blocks follow it. */
    if (svi_pace_row(&r->pace, m->time))
        r->tails.longest = svi_pace_block(&r->pace);
}

static void row_detectors_archive(struct svi_archive *a, void *state) {
    struct row_detectors *r = state;
    svi_lasting_archive(a, &r->lasting);
    svi_pace_archive(a, &r->pace);
    svi_deviations_archive(a, &r->deviations);
    svi_block_tails_archive(a, &r->tails);
}

const struct svi_detector_engine svi_row_detectors = {.first = SVI_DETECTOR_ROW,
                                                      .of_rows = true,
                                                      .kept_as = "row judges",
                                                      .max_size = 1,
                                                      .reserve = row_detectors_reserve,
                                                      .size = row_detectors_size,
                                                      .assess = row_detectors_assess,
                                                      .archive = row_detectors_archive,
                                                      .drop = row_detectors_free,
                                                      .bytes = row_detectors_bytes};
