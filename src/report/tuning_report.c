/* Reads the reply into the library's structure and prints it; the advice depends only on whether the
 * difference exceeds twice its noise, as the process itself decided (`better`). */
#include "report/tuning_report.h"

#include <inttypes.h>
#include <math.h>

#include "wire/fields.h"
#include "wire/tuning.h"

/* The loss by which values of C are compared, for people: the share of wrong answers, or the root mean square
 * error. */
static double tuning_loss(const svs_tuning_row *row) {
    return isnan(row->wrong) ? sqrt(row->squared) : row->wrong;
}

static const char *tuning_measure(const svs_tuning *t) {
    return isnan(t->row[0].wrong) ? "rmse" : "wrong";
}

static void tuning_report_table(FILE *to, const svs_tuning *t) {
    fprintf(to, "%12s %10s %10s %10s %10s\n", "C", tuning_measure(t), "squared", "gain", "noise");
    for (int g = 0; g < t->count; g++) {
        const svs_tuning_row *row = &t->row[g];
        fprintf(to, "%12.9g %10.4g %10.4g %10.3g %10.3g%s%s\n", row->C, tuning_loss(row), row->squared,
                row->gain, row->noise, g == t->best ? "   best" : "", g == t->present ? "   now" : "");
    }
    fprintf(to, "%" PRId64 " samples, each left out once", t->samples);
    if (t->skipped > 0)
        fprintf(to, "; %" PRId64 " more were left out of this, as their weight determines their own score",
                t->skipped);
    fputc('\n', to);
}

/* Advice only beyond twice the noise: below that, chance decides which C is best. */
static void tuning_report_verdict(FILE *to, const svs_tuning *t) {
    const svs_tuning_row *now = &t->row[t->present], *best = &t->row[t->best];
    if (t->best == t->present)
        fprintf(to, "no other C is better than the current one\n");
    else if (t->better)
        fprintf(to,
                "C %.9g is better than C %.9g by more than twice the noise:\n  svmstream ctl config C=%.9g\n",
                best->C, now->C, best->C);
    else
        fprintf(to, "C %.9g is better than C %.9g by less than twice the noise: keep the current one\n",
                best->C, now->C);
}

void svi_tuning_report(FILE *to, const uint8_t *reply, const uint8_t *end) {
    svs_tuning t;
    if (svi_tuning_read(reply, end, &t, NULL) != SVS_OK)
        return;
    tuning_report_table(to, &t);
    tuning_report_verdict(to, &t);
}

struct tuning_part {
    const uint8_t *loo;
};

void svi_tuning_line(FILE *to, const uint8_t *model, const uint8_t *end) {
    static const struct svi_field fields[] = {SVI_FIELD_OPTIONAL(struct tuning_part, loo, ANY, 0, 0)};
    struct tuning_part part = {NULL};
    svs_tuning t;
    if (svi_fields_read("a model", SVI_FIELDS(fields), model, end, &part, NULL) != SVS_OK || !part.loo ||
        svi_tuning_read(part.loo, end, &t, NULL) != SVS_OK)
        return;
    const svs_tuning_row *now = &t.row[t.present], *best = &t.row[t.best];
    fprintf(to, "leave-one-out %s %.4g", tuning_measure(&t), tuning_loss(now));
    if (t.best != t.present)
        fprintf(to, "; with C %.9g %.4g, %s", best->C, tuning_loss(best),
                t.better ? "clearly less" : "within the noise");
    fputc('\n', to);
}
