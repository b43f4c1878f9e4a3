/* A pass of the preview is a recovery whose events go to the alert log: the same code as after a restart,
 * with other settings if wanted. The state directory is only read. */
#include "report/replay_preview.h"

#include "base/fail.h"
#include "store/layout.h"

static void replay_preview_sink(void *user, const struct svi_event *event) {
    svi_alert_log_take(((struct svi_replay_preview *)user)->log, event);
}

static void replay_preview_again(void *user) {
    svi_alert_log_reset(((struct svi_replay_preview *)user)->log);
}

static void replay_preview_turn(void *user) {
    struct svi_replay_preview *l = user;
    svi_progress_show(&l->progress, l->log->rows, 0, 0, l->budget);
}

/* Checks the given settings. From a checkpoint only settings that `ctl config` can change may differ: the
 * rest is already part of the checkpoint's state. */
static svs_code replay_preview_allowed(const struct svi_replay_preview *l, svs_error *err) {
    for (const struct svi_setting *row = svi_settings_table; row->key && !l->whole; row++)
        if (svi_settings_given(l->given, row) && row->change != SVI_CHANGE_START &&
            !svi_change_any_time(row->change))
            return svi_fail(
                err, SVS_SETTING,
                "%s can only be tried from the first record, which the journal no longer has (journal.keep "
                "all keeps it): leave out %s, or give --from-start for an empty model at the oldest record",
                row->key, row->key);
    return SVS_OK;
}

svs_code svi_replay_preview_open(struct svi_replay_preview *l, const char *path, svs_error *err) {
    svs_code code = svi_layout_open(&l->dir, path, false, err);
    if (code != SVS_OK)
        return code;
    code = svi_recovery_whole(&l->dir, &l->whole, err);
    /* From the start any setting can be tried, since nothing was built with the old ones. */
    l->whole = l->whole || l->from_start;
    if (code == SVS_OK)
        code = replay_preview_allowed(l, err);
    if (code != SVS_OK)
        svi_replay_preview_close(l);
    return code;
}

void svi_replay_preview_close(struct svi_replay_preview *l) {
    svi_progress_end(&l->progress);
    svi_state_dir_close(&l->dir);
}

svs_code svi_replay_preview_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err) {
    struct svi_replay_preview *l = user;
    const bool others = budget || l->what_if;
    struct svi_settings with;
    struct svi_recovery r = {0};
    struct svi_recovery_options o = {.accept_loss = l->given->accept_loss,
                                     .from = l->whole ? SVI_FROM_START : SVI_FROM_OLDEST,
                                     .until = l->until,
                                     .one_thread = l->given->threads == 1,
                                     .with = others ? &with : NULL,
                                     /* the log counts rows by their scores */
                                     .score_all = true,
                                     .again = replay_preview_again,
                                     .turn = replay_preview_turn,
                                     .log = l->quiet || budget || log->silent ? NULL : stderr};
    svi_progress_begin(&l->progress, l->quiet || log->silent);
    l->log = log;
    l->budget = budget;
    /* The first pass without changed settings replays the journal as it was recorded. */
    svs_code code = others ? l->with(l, budget, &with, err) : SVS_OK;
    if (code == SVS_OK)
        code = svi_recover(&l->dir, &o, replay_preview_sink, l, &r, err);
    if (code == SVS_OK && !r.stream)
        code = svi_fail(err, SVS_EMPTY, "no state is kept in %.150s", l->dir.path);
    if (code == SVS_OK) {
        /* Alerts still with the novelty thread belong to this pass. */
        svi_stream_settle(r.stream);
        svi_preview_end_pass(log, r.stream);
    }
    svi_stream_free(&r.stream);
    return code;
}
