/* Two fingerprints close the report: of the published model and of the whole state. Equal fingerprints mean
 * equal bytes, which is how a replay is compared with the original run. */
#include "report/replay_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* Figures that a stream may lack are skipped, so one list serves all kinds of streams. */
static void replay_report_figures(svi_stream *stream) {
    static const char *const shown[] = {"learned", "held",        "model_version", "accuracy",
                                        "kappa",   "auc",         "rmse",          "mae",
                                        "r2",      "refits",      "alerts",        "refused",
                                        "keys",    "keys_alerts", "keys_accuracy", "keys_rmse"};
    const struct svi_figure *all;
    const int count = svi_stream_figures(stream, NULL, 0, &all);
    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++) {
        const struct svi_figure *f = svi_figure_find(all, count, shown[k]);
        if (f && f->type == SVI_COUNT)
            printf("%-16s %" PRId64 "\n", f->name, f->as.count);
        else if (f && !isnan(f->as.number))
            printf("%-16s %.6g\n", f->name, f->as.number);
    }
}

/* Hashes (XXH3) the weights and classes of the model in their published encoding, like a section of a
 * checkpoint. */
static svs_code replay_report_hash(svi_stream *stream, char *hash, svs_error *err) {
    svs_model m;
    const struct svi_figure *quality;
    int count;
    struct svi_checkpoint c = {.sections = 1, .section = {{.name = "model", .hashed = true}}};
    svs_code code = svi_engine_model(svi_stream_root(stream), &m, &quality, &count, err);
    if (code == SVS_OK)
        code = svi_model_encode(&m, NULL, 0, &c.bodies);
    c.section[0].size = c.bodies.size;
    if (code == SVS_OK) {
        svi_checkpoint_hash(&c);
        svi_hash_text(c.hash, hash);
    }
    svi_checkpoint_clear(&c);
    return code;
}

svs_code svi_replay_report(const struct svi_recovery *r, svs_error *err) {
    char hash[SVI_HASH_TEXT];
    const char *stream = svi_stream_settings(r->stream)->stream;
    char shown[4 * SVS_NAME_MAX + 8];
    printf("%-16s %s\n", "stream", svi_escape(shown, sizeof shown, stream, strlen(stream)));
    printf("%-16s %" PRIu64 "\n", "epoch", r->epoch);
    printf("%-16s %" PRIu64 "\n", "from record", r->first);
    printf("%-16s %" PRIu64 "\n", "repeated", r->found.records);
    printf("%-16s %" PRId64 "\n", "seen", svi_stream_seen(r->stream));
    replay_report_figures(r->stream);
    SVI_TRY(replay_report_hash(r->stream, hash, err));
    printf("%-16s %s\n", "model", hash);
    SVI_TRY(svi_stream_hash(r->stream, hash, err));
    printf("%-16s %s\n", "state", hash);
    return SVS_OK;
}
