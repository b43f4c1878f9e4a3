/* The same figures twice: as lines for people, the main one last, and as a map for programs. */
#include "report/quality_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "report/class_report.h"
#include "wire/pack.h"

static const char *const classify[] = {"accuracy",
                                       "balanced_accuracy",
                                       "gmean",
                                       "accuracy_majority",
                                       "accuracy_no_change",
                                       "kappa",
                                       "kappa_t",
                                       "f1",
                                       "auc",
                                       "ap",
                                       "logloss",
                                       "brier",
                                       "ece",
                                       NULL};
static const char *const regress[] = {"rmse", "rmse_no_change", "rmse_mean",      "mae",
                                      "r2",   "coverage",       "interval_width", NULL};

void svi_quality_report_print_head(const struct svi_quality_report *r, FILE *to) {
    fprintf(to, "%-18s %" PRId64 "\n%-18s %" PRId64 "\n%-18s %.3f\n%-18s %.0f\n", "rows", r->rows, "refused",
            svi_stream_refused(r->stream), "seconds", r->seconds, "rows/s",
            r->seconds > 0 ? (double)r->rows / r->seconds : 0);
}

void svi_quality_report_put_head(const struct svi_quality_report *r, struct svi_pack *p) {
    const struct svi_figure *f;
    const int count = svi_stream_figures(r->stream, NULL, r->now, &f);
    svi_put_int(p, "rows", r->rows);
    svi_put_real(p, "seconds", round(r->seconds * 1e6) / 1e6);
    for (int i = 0; i < count; i++)
        svi_put_figure(p, &f[i]);
}

/* The main figure comes last. The classes are read before the figures: both are views of the engine's
 * buffers, and reading the figures invalidates the classes. */
void svi_quality_report_print(const struct svi_quality_report *r, FILE *to) {
    const struct svi_figure *f;
    const char *const *names = svi_stream_settings(r->stream)->task == SVS_REGRESS ? regress : classify;
    struct svi_class_table classes;
    svi_quality_report_print_head(r, to);
    svi_engine_class_table(svi_stream_root(r->stream), false, &classes);
    svi_class_report_write(to, &classes, classes.count == 2 ? 1 : -1);
    const int count = svi_stream_figures(r->stream, NULL, r->now, &f);
    const double alarms = svi_figure_value(f, count, "quality_alerts");
    if (alarms > 0)
        fprintf(to, "%-18s %.0f\n", "quality_alerts", alarms);
    for (int i = 1; names[i]; i++)
        if (!isnan(svi_figure_value(f, count, names[i])))
            fprintf(to, "%-18s %.4f\n", names[i], svi_figure_value(f, count, names[i]));
    if (!isnan(svi_figure_value(f, count, names[0])))
        fprintf(to, "%s %.3f\n", names[0], svi_figure_value(f, count, names[0]));
}

svs_code svi_quality_report_pack(const struct svi_quality_report *r, struct svi_bytes *out, svs_error *err) {
    struct svi_class_table classes;
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_quality_report_put_head(r, &p);
    /* after the figures, which would invalidate it */
    svi_engine_class_table(svi_stream_root(r->stream), true, &classes);
    svi_put_class_table(&p, &classes);
    svi_pack_close(&p, map);
    return svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the result");
}
