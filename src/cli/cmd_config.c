/* config: the effective settings, as a file that the program reads back, and the memory they need.
 *
 * Settings of flags and of the file enter; text leaves. `show` writes the effective settings, those of a kept
 * state included, and the memory of the process with them for some numbers of features. `check` reports
 * contradictions, how a data file would be interpreted, and large memory. `default` writes the settings
 * without any file or flag.
 *
 * The main difficulty is to answer as a start would, without starting: the state is only read, and rows of a
 * file are learned in a stream that is thrown away. `show` prints contradictions as a comment, so that its
 * output is a valid file of settings in any case. For the same reason all figures of memory are comments.
 *
 * In order of reading: the kept settings, memory, then the three verbs. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/human.h"
#include "base/machine_memory.h"
#include "cli/command.h"
#include "data/reader.h"
#include "fleet/fleet.h"
#include "state/recovery.h"
#include "store/layout.h"
#include "config/settings_record.h"
#include "server/server.h"
#include "svmstream/svmstream.h"

#define MUCH (256 * SVI_MIB) /* memory that each sample goes through, from which `check` warns */

#define ROWS_READ 1000 /* of a data file that is checked */

/* Fills the settings that are not given from the state in state.dir, as a start would. An absent or empty
 * state changes nothing. The state is recovered whole: whether its model can take the new settings depends on
 * what it holds. */
static svs_code config_merge_kept(struct svi_settings *s, svs_error *err) {
    const struct svi_recovery_options o = {.until = UINT64_MAX};
    struct svi_state_dir f;
    if (!s->state_dir[0] || access(s->state_dir, F_OK) != 0)
        return SVS_OK;
    /* Not for writing: a command that shows settings must not change a state. */
    svs_code code = svi_layout_open(&f, s->state_dir, false, err);
    if (code != SVS_OK)
        return code;
    struct svi_recovery *r = svi_recovery_new(&f, &o, err);
    code = r ? svi_settings_merge(s, &r->settings, err) : err->code == SVS_EMPTY ? SVS_OK : err->code;
    /* After the merge, as rows not given have the kept values now. */
    if (r && code == SVS_OK)
        code = svi_engine_configurable(svi_stream_root(r->stream), s, err);
    svi_recovery_free(&r);
    svi_state_dir_close(&f);
    return code;
}

/* A regression has no classes, so its lines leave that column out. */
static void config_memory_line(const struct svi_settings *s, int d, int classes, FILE *to) {
    const double process = svi_server_memory(s, d, classes), engine = process - svi_server_process_memory(d);
    if (s->task == SVS_REGRESS)
        fprintf(to, "#   %5d features             engine %10.2f MiB, process %10.2f MiB\n", d,
                engine / SVI_MIB, process / SVI_MIB);
    else
        fprintf(to, "#   %5d features, %4d classes engine %7.2f MiB, process %10.2f MiB\n", d, classes,
                engine / SVI_MIB, process / SVI_MIB);
}

/* Writes a line, after `lead`, with the memory of the keys of a stream; nothing for a stream without keys. */
static void config_write_keys(const struct svi_settings *s, const char *lead, FILE *to) {
    const int d = svi_keys_features(s);
    struct svi_keys_memory m;
    if (!svi_settings_keyed(s))
        return;
    /* The classes of later keys are unknown here: the figure is for two. */
    svi_keys_memory(s, d, 2, &m);
    fprintf(
        to, "%seach key with %d features and a full window takes %s %.1f KiB; keys.memory %lld, %.2f GiB%s",
        lead, d, s->method == SVI_METHOD_AUTO ? "at most" : "about", m.each / SVI_KIB,
        (long long)s->keys_memory,
        (s->keys_memory > 0 ? (double)(s->keys_memory < s->keys_max ? s->keys_memory : s->keys_max) * m.each
                            : m.share) /
            SVI_GIB,
        s->keys_memory > 0 ? "\n" : "");
    if (s->keys_memory == 0)
        fprintf(to, " (half of what %s): %lld keys\n", m.of, (long long)m.most);
}

/* Memory for the named features, or without names for some common numbers of features up to the limit. */
static void config_write_memory(const struct svi_settings *s, FILE *to) {
    const int named = svi_settings_feature_count(s), last = named > 0 ? named : (int)s->max_features;
    fprintf(to, "# Maximum memory (of the engine, and of the process; full queues of peers add to it):\n");
    for (const int *common = (const int[]){10, 54, 100, 0}; *common && named == 0; common++)
        if (*common < last)
            config_memory_line(s, *common, 2, to);
    config_memory_line(s, last, 2, to);
    /* Memory grows with the classes that a stream meets: the last line is the limit. */
    if (s->task == SVS_CLASSIFY)
        config_memory_line(s, last, (int)s->max_classes, to);
    config_write_keys(s, "#   ", to);
}

/* True, with a text, when the keys that may be in memory need more than the machine has. With keys.memory 0
 * the number follows from the machine, so this is about a number that was given. */
static bool config_keys_warning(const struct svi_settings *s, char *text, size_t size) {
    struct svi_keys_memory m;
    if (!svi_settings_keyed(s))
        return false;
    svi_keys_memory(s, svi_keys_features(s), 2, &m);
    const double all = (double)(m.most < s->keys_max ? m.most : s->keys_max) * m.each;
    if (!(m.machine > 0 && all > m.machine))
        return false;
    snprintf(text, size,
             "keys.memory %lld keeps %.1f GiB of keys in memory, and %s %.1f GiB: set keys.memory to at most "
             "%.0f; the other keys are on disk",
             (long long)s->keys_memory, all / SVI_GIB, m.of, m.machine / SVI_GIB, m.machine / m.each);
    return true;
}

/* Errors do not end it: the settings are shown so that the contradiction can be found in them. The exit
 * status is 0 for the same reason. */
static int cmd_config_show(const struct cli_args *a) {
    struct svi_settings s = a->settings;
    svs_error err;
    svs_code code = config_merge_kept(&s, &err);
    if (code == SVS_OK)
        code = svi_settings_check(&s, &err);
    printf("# svmstream %s: effective settings; this is a file for --config\n", svs_version());
    svi_settings_write(&s, stdout);
    config_write_memory(&s, stdout);
    if (code != SVS_OK)
        printf("# %s: %s\n",
               code == SVS_SETTING ? "These settings contradict each other"
                                   : "Without the settings of the kept state, which cannot be read",
               err.text);
    return CLI_OK;
}

/* "8.0 GiB", or "8.0 MiB" of less. */
static const char *config_size(char out[32], double bytes) {
    snprintf(out, 32, "%.1f %s", bytes / (bytes < SVI_GIB ? SVI_MIB : SVI_GIB),
             bytes < SVI_GIB ? "MiB" : "GiB");
    return out;
}

/* A warning only: limits are often set high, and cost nothing until a stream uses them. It is about two
 * figures: the process against the machine, and the d x d matrix, which is read with each sample. */
static void warn_of_memory(const struct cli_args *a, const struct svi_settings *s) {
    const int named = svi_settings_feature_count(s), d = named > 0 ? named : (int)s->max_features;
    const double memory = svi_server_memory(s, d, 2), each = 8.0 * d * d;
    const struct svi_machine_memory machine = svi_machine_memory();
    char takes[32], has[32], through[32], limit[96] = "";
    if (a->quiet || (each < MUCH && !(machine.bytes > 0 && memory > machine.bytes)))
        return;
    if (machine.bytes > 0)
        snprintf(limit, sizeof limit, " (%s %s)", machine.of, config_size(has, machine.bytes));
    cli_fail(a,
             "warning: with all the features that %s allows (%d) the process takes %s%s, and every sample "
             "reads %s of it; `config show` prints the memory for fewer",
             named > 0 ? "features" : "max.features", d, config_size(takes, memory), limit,
             config_size(through, each));
}

static void warn_of_keys(const struct cli_args *a, const struct svi_settings *s) {
    char text[SVS_ERROR_TEXT];
    if (!a->quiet && config_keys_warning(s, text, sizeof text))
        cli_fail(a, "warning: %s", text);
}

/* The events of the temporary stream have no reader. */
static void config_sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

/* Learns the first rows of a file in a temporary engine. It fails when the settings name columns that the
 * file does not have: only an engine that saw rows knows which names stayed unknown. */
static svs_code config_take_rows(svi_reader *r, const struct svi_settings *s, svs_error *err) {
    char strangers[SVS_ERROR_TEXT];
    struct svi_message m;
    svs_error why = {0};
    enum svi_read what = SVI_READ_ROW;
    svi_stream *stream = svi_stream_new(s, 0, config_sink, NULL, err);
    if (!stream)
        return err->code;
    /* Rows are read into the engine's own shape, so the names of the file become its columns. */
    svi_reader_shape(r, &svi_engine_schema(svi_stream_root(stream))->shape);
    /* Rows that cannot be read are passed over: they are not a fault of the settings. */
    for (int i = 0; i < ROWS_READ && (what == SVI_READ_ROW || what == SVI_READ_BAD); i++) {
        const double now = svi_wall_clock();
        if ((what = svi_reader_row(r, &m, &why)) == SVI_READ_ROW)
            svi_stream_message(stream, &m, NULL, 0, now, NULL);
    }
    /* `why` may hold the reason of a bad row before: only a failure of the file counts. */
    svs_code code = what == SVI_READ_FAIL ? svi_fail(err, why.code, "%s", why.text) : SVS_OK;
    if (code == SVS_OK && svi_stream_strangers(stream, strangers, sizeof strangers))
        code = svi_fail(err, SVS_UNKNOWN_COLUMN, "%s", strangers);
    svi_stream_free(&stream);
    return code;
}

/* A file shows the task if none is given, and the temporary stream needs it. The task stays in *s, so that
 * the warnings after this are about it, too. */
static svs_code config_check_file(const struct cli_args *a, struct svi_settings *s, const char *path,
                                  svs_error *err) {
    struct svi_reader_options o = svi_settings_reader(s);
    o.task_follows = true;
    svi_reader *r = svi_reader_open(path, &o, NULL, err);
    svs_code code = r ? svi_reader_settle(r, err) : err->code;
    if (code == SVS_OK && !o.task_given)
        s->task = (int)svi_reader_task(r);
    if (code == SVS_OK && svi_reader_note(r) && !a->quiet)
        puts(svi_reader_note(r));
    if (code == SVS_OK)
        code = config_take_rows(r, s, err);
    svi_reader_close(&r);
    return code;
}

/* Kept settings enter first, since contradictions may be with those. Warnings follow when nothing is wrong,
 * and do not change the exit status. */
static int cmd_config_check(const struct cli_args *a) {
    struct svi_settings s = a->settings;
    svs_error err;
    if (config_merge_kept(&s, &err) != SVS_OK || svi_settings_check(&s, &err) != SVS_OK ||
        svi_settings_check_security(&s, &err) != SVS_OK)
        return cli_fail(a, "%s", err.text);
    if (a->positional_count > 1 && config_check_file(a, &s, a->positional[1], &err) != SVS_OK)
        return cli_fail(a, "%s", err.text);
    warn_of_memory(a, &s);
    warn_of_keys(a, &s);
    if (!a->quiet) {
        config_write_keys(&s, "", stdout);
        puts("ok");
    }
    return CLI_OK;
}

/* Given settings would be ignored in silence, so they are refused. */
static int cmd_config_default(const struct cli_args *a) {
    struct svi_settings s;
    for (int i = 0; i < svi_settings_count; i++)
        if (a->flagged[i] || a->config)
            return cli_usage(a, "`config default` prints the defaults and takes no settings: use `config "
                                "show` with flags or --config");
    svi_settings_default(&s);
    printf("# svmstream %s: default settings; this is a file for --config\n", svs_version());
    svi_settings_write(&s, stdout);
    return CLI_OK;
}

static const struct cli_verb verbs[] = {{"show", cmd_config_show, "", NULL},
                                        {"check", cmd_config_check, "[FILE]", NULL},
                                        {"default", cmd_config_default, "", NULL},
                                        {NULL, NULL, NULL, NULL}};

static const char help[] =
    "show      prints the effective settings as a YAML map for --config, and the memory they need;\n"
    "          flags override the file of --config, which overrides the state in state.dir and the\n"
    "          defaults\n"
    "check     checks that the settings do not contradict each other or the state in state.dir; with\n"
    "          FILE also that the columns of limits and context are among those of its first 1000\n"
    "          rows; exit status 0 or 1\n"
    "default   prints all settings with their defaults\n"
    "\n"
    "Examples:\n"
    "  svmstream config default > svmstream.yaml\n"
    "  svmstream config show --config svmstream.yaml --window 5000\n"
    "  svmstream config check --limits temperature:5..90 plant.csv";

const struct cli_command cli_config = {.name = "config",
                                       .text = "show or check the settings",
                                       .usage = "[show|check [FILE]|default]",
                                       .help = help,
                                       .verbs = verbs,
                                       .unchecked = true,
                                       .run = cmd_config_show};
