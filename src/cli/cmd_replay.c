/* replay: the journal of a kept state once more, as it was or with other settings. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/command.h"
#include "engine/recovery.h"
#include "engine/settings_kept.h"
#include "wire/json.h"

static void ignore(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

/* Was a setting given that shapes what the engine does? */
static bool asks_what_if(const struct cli_args *a) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    for (int i = 0; i < count; i++)
        if (a->settings.given[i] && svi_settings_nature(&table[i]) != SVI_NATURE_OUTSIDE)
            return true;
    return false;
}

/* The kept settings with the given ones in their place. */
static svs_code overlay(const struct cli_args *a, const struct svi_folder *f, struct svi_settings *s,
                        svs_error *err) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    svs_code code = svi_recovery_settings(f, s, err);
    for (int i = 0; i < count && code == SVS_OK; i++)
        if (a->settings.given[i])
            memcpy((char *)s + table[i].offset, (const char *)&a->settings + table[i].offset, table[i].size);
    return code == SVS_OK ? svi_settings_check(s, err) : code;
}

static void print_number(const char *name, double value) {
    if (!isnan(value))
        printf("%-16s %.6g\n", name, value);
}

static void print_figures(svi_engine *e) {
    static const char *const shown[] = {"learned", "held",   "model_version", "accuracy",
                                        "kappa",   "auc",    "rmse",          "mae",
                                        "r2",      "refits", "alerts",        "refused"};
    const struct svi_figure *f;
    const int count = svi_engine_figures(e, 0, &f);
    for (size_t k = 0; k < sizeof shown / sizeof shown[0]; k++)
        for (int i = 0; i < count; i++) {
            if (strcmp(f[i].name, shown[k]) != 0)
                continue;
            if (f[i].type == SVI_COUNT)
                printf("%-16s %" PRId64 "\n", f[i].name, f[i].as.count);
            else
                print_number(f[i].name, f[i].as.number);
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

static svs_code report(const struct svi_recovery *r, svs_error *err) {
    char hash[SVI_HASH_TEXT];
    printf("%-16s %s\n", "stream", svi_engine_settings(r->engine)->stream);
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

static svs_code replay(const struct cli_args *a, struct svi_recovery *r, struct svi_settings *with,
                       svs_error *err) {
    struct svi_folder f = {.fd = -1, .lock = -1};
    const bool what_if = asks_what_if(a);
    int64_t until;
    struct svi_recovery_options o = {.accept_loss = a->settings.accept_loss,
                                     .from = what_if || cli_has(a, "from-start") ? SVI_FROM_START
                                                                                 : SVI_FROM_OLDEST,
                                     .until = UINT64_MAX,
                                     .silent = true,
                                     .log = a->quiet ? NULL : stderr};
    if (cli_has(a, "until") && !cli_integer(a, "until", 0, INT64_MAX, &until))
        return SVS_SETTING;
    if (cli_has(a, "until"))
        o.until = (uint64_t)until;
    svs_code code = svi_folder_open(&f, a->positional[0], false, err);
    if (code == SVS_OK && what_if) {
        code = overlay(a, &f, with, err);
        o.with = with;
    }
    if (code == SVS_OK)
        code = svi_recover(&f, &o, ignore, NULL, r, err);
    if (code == SVS_OK && r->checkpointed && o.until < r->first) {
        svi_engine_free(&r->engine);
        code = svi_fail(err, SVS_SETTING,
                        "--until %" PRIu64 " lies before the oldest checkpoint, which has %" PRIu64
                        " records: give --from-start too",
                        o.until, r->first);
    }
    svi_folder_close(&f);
    return code;
}

static int run(const struct cli_args *a) {
    svs_error err = {0};
    struct svi_recovery *r = svi_alloc(sizeof *r);
    struct svi_settings *with = svi_alloc(sizeof *with);
    if (!r || !with)
        return cli_fail(a, "no memory");
    svs_code code = replay(a, r, with, &err);
    if (code == SVS_OK && !r->engine)
        return cli_fail(a, "no state is kept in %s", a->positional[0]);
    if (code == SVS_OK && r->first > 0 && !r->checkpointed && !a->quiet)
        fprintf(stderr,
                "svmstream replay: the journal begins at record %" PRIu64
                ", what was before is not in it (--journal.keep all keeps it)\n",
                r->first);
    if (code == SVS_OK)
        code = report(r, &err);
    svi_engine_free(&r->engine);
    svi_free(r);
    svi_free(with);
    return code == SVS_OK ? CLI_OK : err.text[0] ? cli_error(a, &err) : CLI_USAGE;
}

static const struct cli_option options[] = {
    {"from-start", 0, NULL, NULL,
     "begin with an empty model at the first record there is, not at a checkpoint"},
    {"until", 0, "N", NULL, "leave out records from this number on"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_replay = {
    .name = "replay",
    .text = "run the journal of a kept state again: an audit, or a what-if with other settings",
    .usage = "FOLDER",
    .help =
        "Begins at the oldest checkpoint that is kept, repeats what the journal has and prints what came of "
        "it, with\n"
        "the fingerprints of model and state: those of the process that wrote the journal. Changes nothing "
        "there.\n"
        "\n"
        "With settings that shape the model it begins at the first record there is instead, with an empty "
        "model and\n"
        "these settings in place of the kept ones. --journal.keep all keeps all records for that.\n"
        "\n"
        "  svmstream replay /var/lib/pump1\n"
        "  svmstream replay --C 10 --window 5000 /var/lib/pump1",
    .options = options,
    .positional_min = 1,
    .positional_max = 1,
    .unchecked = true,
    .run = run};
