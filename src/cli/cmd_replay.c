/* replay: the journal of a kept state applied again, as it was or with other settings. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "state/recovery.h"
#include "config/settings_record.h"

/* Was a setting given that shapes what the engine does? */
static bool asks_what_if(const struct cli_args *a) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (svi_settings_given(&a->settings, row) && row->change != SVI_CHANGE_START)
            return true;
    return false;
}

/* The kept settings with the given ones in their place. */
static svs_code cmd_replay_overlay(const struct cli_args *a, const struct svi_state_dir *f,
                                   struct svi_settings *s, svs_error *err) {
    svs_code code = svi_recovery_settings(f, s, err);
    for (const struct svi_setting *row = svi_settings_table; row->key && code == SVS_OK; row++)
        if (svi_settings_given(&a->settings, row))
            memcpy(svi_settings_field(s, row), svi_settings_field(&a->settings, row), row->size);
    if (a->settled && s->method == SVI_METHOD_AUTO) /* what auto does not use would change nothing */
        s->method = SVI_METHOD_ALSVM;
    return code == SVS_OK ? svi_settings_check(s, err) : code;
}

static void print_figures(svi_engine *e) {
    static const char *const shown[] = {"learned", "held",   "model_version", "accuracy",
                                        "kappa",   "auc",    "rmse",          "mae",
                                        "r2",      "refits", "alerts",        "refused"};
    const struct svi_figure *all;
    const int count = svi_engine_figures(e, 0, &all);
    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++) {
        const struct svi_figure *f = svi_figure_find(all, count, shown[k]);
        if (f && f->type == SVI_COUNT)
            printf("%-16s %" PRId64 "\n", f->name, f->as.count);
        else if (f && !isnan(f->as.number))
            printf("%-16s %.6g\n", f->name, f->as.number);
    }
}

/* XXH3 of the model's weights and classes as they are published. */
static svs_code model_hash(svi_engine *e, char *hash, svs_error *err) {
    svs_model m;
    const struct svi_figure *quality;
    int count;
    struct svi_checkpoint c = {.sections = 1, .section = {{.name = "model", .hashed = true}}};
    svs_code code = svi_engine_model(e, &m, &quality, &count, err);
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

static svs_code cmd_replay_report(const struct svi_recovery *r, svs_error *err) {
    char hash[SVI_HASH_TEXT];
    const char *stream = svi_engine_settings(r->engine)->stream;
    char shown[4 * SVS_NAME_MAX + 8];
    printf("%-16s %s\n", "stream", svi_escape(shown, sizeof shown, stream, strlen(stream)));
    printf("%-16s %" PRIu64 "\n", "epoch", r->epoch);
    printf("%-16s %" PRIu64 "\n", "from record", r->first);
    printf("%-16s %" PRIu64 "\n", "repeated", r->found.records);
    printf("%-16s %" PRId64 "\n", "seen", svi_engine_seen(r->engine));
    print_figures(r->engine);
    svs_code code = model_hash(r->engine, hash, err);
    if (code == SVS_OK)
        printf("%-16s %s\n", "model", hash);
    if (code == SVS_OK)
        code = svi_engine_hash(r->engine, hash, err);
    if (code == SVS_OK)
        printf("%-16s %s\n", "state", hash);
    return code;
}

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
    if (svi_state_dir_open(&f, a->positional[0], false, err) != SVS_OK)
        return err->code;
    svs_code code = what_if ? cmd_replay_overlay(a, &f, &with, err) : SVS_OK;
    if (code == SVS_OK && !(*r = svi_recovery_new(&f, &o, err)))
        code = err->code;
    svi_state_dir_close(&f);
    if (code == SVS_OK && (*r)->checkpointed && until < (*r)->first)
        code = svi_fail(err, SVS_SETTING,
                        "--until %" PRIu64 " is before the checkpoint that it starts from, which has %" PRIu64
                        " records: give --from-start too",
                        until, (*r)->first);
    return code;
}

static int cmd_replay_run(const struct cli_args *a) {
    svs_error err;
    struct svi_recovery *r = NULL;
    const int64_t until = cli_has(a, "until") ? cli_integer(a, "until") : INT64_MAX;
    svs_code code = cmd_replay_recover(a, (uint64_t)until, &r, &err);
    if (code == SVS_OK && r->first > 0 && !r->checkpointed && !a->quiet)
        cli_fail(a,
                 "the journal begins at record %" PRIu64
                 "; earlier records were removed (--journal.keep all keeps them)",
                 r->first);
    if (code == SVS_OK)
        code = cmd_replay_report(r, &err);
    svi_recovery_free(&r);
    return cli_end(a, code, &err);
}

static const struct cli_option options[] = {
    CLI_SWITCH("from-start", 0, "start from an empty model at the first record, not from a checkpoint"),
    CLI_INTEGER("until", 0, "N", NULL, 0, CLI_UNLIMITED, "stop before record N"), CLI_END};

const struct cli_command cli_replay = {
    .name = "replay",
    .text = "apply the journal of a kept state again: an audit, or a what-if with other settings",
    .usage = "DIRECTORY",
    .help =
        "Starts from the newest checkpoint but one, applies the journal again and prints the result with "
        "the\n"
        "fingerprints of model and state, which are those of the process that wrote the journal. Changes\n"
        "nothing there.\n"
        "\n"
        "With settings that shape the model it starts at the first record instead, with an empty model and\n"
        "these settings in place of the kept ones. --journal.keep all keeps all records for that.\n"
        "\n"
        "  svmstream replay /var/lib/pump1\n"
        "  svmstream replay --C 10 --window 5000 /var/lib/pump1",
    .keys = "accept-loss stream task method C window window.seconds forget scale class.weight features "
            "categories numbers "
            "ignore "
            "unscaled categories.max hash calendar zone columns.new missing refit refit. "
            "serve drift. novelty novelty. alert. publish. scores labels. ts.ahead max.features max.classes "
            "max.sources sources.idle threads seed",
    .options = options,
    .unchecked = true,
    .run = cmd_replay_run};
