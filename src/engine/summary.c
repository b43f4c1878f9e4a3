#include "engine/summary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double figure(const struct svi_figure *f, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0)
            return f[i].type == SVI_COUNT ? (double)f[i].as.count : f[i].as.number;
    return NAN;
}

void svi_summary_write(FILE *to, svi_engine *e, const struct svi_settings *s, bool file, double now) {
    const struct svi_figure *f;
    const char *name = s->task == SVS_REGRESS ? "rmse" : "accuracy";
    if (!to)
        return;
    const int count = svi_engine_figures(e, now, &f);
    const double quality = figure(f, count, name), suppressed = figure(f, count, "alerts_suppressed");
    fprintf(to, "seen %" PRId64 "\nrefused %" PRId64 "\n", svi_engine_seen(e), svi_engine_errors(e));
    if (s->novelty)
        fprintf(to, "alerts %.0f\n", figure(f, count, "alerts"));
    if (suppressed > 0 && file && !s->ts[0]) /* a file goes by in no time */
        fprintf(
            to,
            "%.0f more were kept back by alert.cooldown, which goes by the clock without a column of times: "
            "name it with --ts\n",
            suppressed);
    if (!isnan(quality))
        fprintf(to, "%s %.3f\n", name, quality);
    fflush(to);
}
