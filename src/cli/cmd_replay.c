/* replay: the journal of a kept state applied again, as it was or with other settings. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "cli/preview_options.h"
#include "report/replay_preview.h"
#include "report/replay_report.h"
#include "state/recovery.h"
#include "store/layout.h"
#include "config/settings_record.h"

/* True when a setting was given that changes what the engine computes: the replay is a what-if. */
static bool asks_what_if(const struct cli_args *a) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (svi_settings_given(&a->settings, row) && row->change != SVI_CHANGE_START)
            return true;
    return false;
}

/* The kept settings, overridden by the given ones, and by `budget` unless it is NULL. */
static svs_code cmd_replay_overlay(const struct cli_args *a, const struct svi_state_dir *f,
                                   const char *budget, struct svi_settings *s, svs_error *err) {
    svs_code code = svi_recovery_settings(f, s, err);
    for (const struct svi_setting *row = svi_settings_table; row->key && code == SVS_OK; row++)
        if (svi_settings_given(&a->settings, row))
            memcpy(svi_settings_field(s, row), svi_settings_field(&a->settings, row), row->size);
    if (code == SVS_OK && budget)
        code = svi_settings_set(s, "alert.budget", budget, err);
    if (a->settled && s->method == SVI_METHOD_AUTO) /* method auto would ignore the given setting */
        s->method = SVI_METHOD_ALSVM;
    return code == SVS_OK ? svi_settings_check(s, err) : code;
}

/* A what-if starts from an empty model: a checkpoint holds a model that other settings have made. */
static svs_code cmd_replay_recover(const struct cli_args *a, uint64_t until, struct svi_recovery **r,
                                   svs_error *err) {
    const bool what_if = asks_what_if(a);
    struct svi_state_dir f;
    struct svi_settings with;
    struct svi_recovery_options o = {.accept_loss = a->settings.accept_loss,
                                     .from = what_if || cli_has(a, "from-start") ? SVI_FROM_START
                                                                                 : SVI_FROM_OLDEST,
                                     .until = until,
                                     .one_thread = a->settings.threads == 1,
                                     .with = what_if ? &with : NULL,
                                     .log = a->quiet ? NULL : stderr};
    if (svi_layout_open(&f, a->positional[0], false, err) != SVS_OK)
        return err->code;
    svs_code code = what_if ? cmd_replay_overlay(a, &f, NULL, &with, err) : SVS_OK;
    if (code == SVS_OK && !(*r = svi_recovery_new(&f, &o, err)))
        code = err->code;
    svi_state_dir_close(&f);
    if (code == SVS_OK && (*r)->checkpointed && until < (*r)->first)
        code = svi_fail(err, SVS_SETTING,
                        "--until %" PRIu64 ", but the replay starts from a checkpoint with %" PRIu64
                        " records: give --from-start too, or a larger --until",
                        until, (*r)->first);
    return code;
}

/* ---- the alerts that would have been */

static svs_code replay_alerts_with(void *user, const char *budget, struct svi_settings *s, svs_error *err) {
    const struct svi_replay_preview *l = user;
    return cmd_replay_overlay(l->user, &l->dir, budget, s, err);
}

static int cmd_replay_alerts(const struct cli_args *a) {
    struct svi_replay_preview l = {.given = &a->settings,
                                   .what_if = asks_what_if(a),
                                   .from_start = cli_has(a, "from-start"),
                                   .until =
                                       cli_has(a, "until") ? (uint64_t)cli_integer(a, "until") : INT64_MAX,
                                   .quiet = a->quiet,
                                   .with = replay_alerts_with,
                                   .user = a};
    svs_error err;
    if (svi_replay_preview_open(&l, a->positional[0], &err) != SVS_OK)
        return cli_error(a, &err);
    const int result = cli_preview(a, NULL, false, NAN, svi_replay_preview_pass, &l, &l.progress);
    svi_replay_preview_close(&l);
    return result;
}

static int cmd_replay_run(const struct cli_args *a) {
    svs_error err;
    struct svi_recovery *r = NULL;
    const int64_t until = cli_has(a, "until") ? cli_integer(a, "until") : INT64_MAX;
    if (cli_preview_check(a) != CLI_OK)
        return CLI_USAGE;
    for (const char *const *name = (const char *const[]){"json", "plot", NULL}; *name; name++)
        if (cli_has(a, *name) && !cli_has(a, "alerts"))
            return cli_usage(a, "--%s applies to alerts: give --alerts too", *name);
    if (cli_has(a, "alerts"))
        return cmd_replay_alerts(a);
    svs_code code = cmd_replay_recover(a, (uint64_t)until, &r, &err);
    if (code == SVS_OK && r->first > 0 && !r->checkpointed && !a->quiet)
        cli_fail(a,
                 "the journal begins at record %" PRIu64
                 "; earlier records were removed (--journal.keep all keeps them)",
                 r->first);
    if (code == SVS_OK)
        code = svi_replay_report(r, &err);
    svi_recovery_free(&r);
    return cli_end(a, code, &err);
}

static const struct cli_option options[] = {
    CLI_SWITCH("from-start", 0, "start from an empty model at the first record, not from a checkpoint"),
    CLI_INTEGER("until", 0, "N", NULL, 0, CLI_UNLIMITED, "stop before record N"),
    CLI_PREVIEW_OPTIONS,
    CLI_SWITCH("json", 0, "with --alerts: print the result as one JSON object"),
    CLI_OPTION(
        "plot", 0, "FILE", NULL,
        "with --alerts: draw the features that alerts name, with the alerts, what was expected and the "
        "incidents; with keys those of the worst ones (.svg or .png; needs gnuplot)"),
    CLI_END};

const struct cli_command cli_replay = {
    .name = "replay",
    .text = "apply the journal of a kept state again: an audit, or a what-if with other settings",
    .usage = "DIRECTORY",
    .help =
        "Starts from the second newest checkpoint, applies the journal again and prints the result. The\n"
        "fingerprints of model and state equal those of the process that wrote the journal. Nothing in\n"
        "the directory changes.\n"
        "\n"
        "With settings that shape the model, the replay starts at the first record with an empty model,\n"
        "and these settings replace the kept ones. --journal.keep all keeps all records for that.\n"
        "\n"
        "--alerts prints the alerts that were reported, and when. With settings of alerts (alert.*,\n"
        "novelty.*, limits, context) it prints those that would have been reported. It starts at the\n"
        "first record. If the journal no longer has it, it starts at the oldest checkpoint that the\n"
        "journal continues, and you can try only settings that may change at any time. A trial omits the\n"
        "changes that `ctl config` and restarts made on the way.\n"
        "\n"
        "Examples:\n"
        "  svmstream replay /var/lib/pump1\n"
        "  svmstream replay --C 10 --window 5000 /var/lib/pump1\n"
        "  svmstream replay --alerts --alert.budget 1/week --incidents faults.csv /var/lib/pump1",
    .keys = "accept-loss stream task method auto.budget C window window.seconds forget scale class.weight "
            "features "
            "categories numbers ignore unscaled categories.max hash calendar zone columns.new missing "
            "outlier refit "
            "refit. serve drift. novelty novelty. alert. limits context publish. scores labels. ts.ahead "
            "max.features max.classes max.sources sources.idle key.prior key.shared threads seed",
    .options = options,
    .unchecked = true,
    .run = cmd_replay_run};
