/* Novelty and alerts as they are kept. */
#include "engine/sentry.h"
#include "novelty/archive.h"

/* The detector and the last samples, of d features. */
static void archive_columns(struct svi_archive *a, struct svi_sentry *s) {
    int d = s->rows.d;
    svi_archive_int(a, "features", &d, 0, SVI_SENTRY_COLUMNS / s->lags);
    if (!svi_archive_ok(a) || d == 0)
        return;
    if (svi_archive_loading(a) && svi_sentry_build(s, d, a->err) != SVS_OK)
        return;
    svi_lags_archive(a, &s->rows.history);
    svi_detector_archive(a, s->detector);
}

void svi_sentry_archive(struct svi_archive *a, struct svi_sentry *s) {
    bool asked = s->lags > 0; /* the setting novelty is not none */
    svi_archive_bool(a, "asked", &asked);
    if (!svi_archive_check(a, asked == (s->lags > 0), "the setting novelty was another") || !asked)
        return;
    svi_archive_bool(a, "on", &s->on);
    svi_archive_text(a, "reason", s->reason, sizeof s->reason);
    svi_archive_int64(a, "refused", &s->refused, 0, INT64_MAX / 4);
    svi_alert_archive(a, &s->alert);
    if (svi_archive_ok(a) && s->on)
        archive_columns(a, s);
}
