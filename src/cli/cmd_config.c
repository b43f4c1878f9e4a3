/* config: the effective settings, as a file that the program reads back, and the memory they lead to. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/baseline.h"
#include "cli/command.h"
#include "engine/recovery.h"
#include "engine/settings_kept.h"
#include "svmstream/svmstream.h"

static void ignore(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

#define MIB (1024.0 * 1024.0)

static int count_names(const char *names) {
    int count = names[0] ? 1 : 0;
    for (; *names; names++)
        count += *names == ',';
    return count;
}

static void write_memory_line(const struct svi_settings *s, int d, int classes, double base, FILE *to) {
    double engine = svi_engine_memory(s, d, classes);
    if (s->task == SVS_REGRESS)
        fprintf(to, "#   %5d features             engine %10.2f MiB, process %10.2f MiB\n", d, engine / MIB,
                (engine + base) / MIB);
    else
        fprintf(to, "#   %5d features, %4d classes engine %7.2f MiB, process %10.2f MiB\n", d, classes,
                engine / MIB, (engine + base) / MIB);
}

/* The features that are fixed by name; else some usual numbers of them, up to the limit. */
static void write_memory(const struct svi_settings *s, FILE *to) {
    static const int usual[] = {10, 54, 100};
    double base = cli_baseline();
    int fixed = count_names(s->features);
    int most = (int)s->max_features, classes = (int)s->max_classes;
    fprintf(to, "# Memory at most (process: %.2f MiB, measured for an idle `run`, and the engine):\n",
            base / MIB);
    if (fixed > 0) {
        write_memory_line(s, fixed, 2, base, to);
        if (s->task == SVS_CLASSIFY)
            write_memory_line(s, fixed, classes, base, to);
        return;
    }
    for (int i = 0; i < 3; i++)
        if (usual[i] < most)
            write_memory_line(s, usual[i], 2, base, to);
    write_memory_line(s, most, 2, base, to);
    if (s->task == SVS_CLASSIFY)
        write_memory_line(s, most, classes, base, to);
}

/* The settings of the state that is kept in state.dir, if one is: they hold where none is given. */
static svs_code add_kept(struct svi_settings *s, svs_error *err) {
    const struct svi_recovery_options o = {.until = UINT64_MAX, .silent = true};
    struct svi_folder f;
    if (!s->state_dir[0] || access(s->state_dir, F_OK) != 0)
        return SVS_OK;
    struct svi_recovery *r = svi_alloc(sizeof *r);
    svs_code code =
        r ? svi_folder_open(&f, s->state_dir, false, err) : svi_fail_memory(err, "the kept settings");
    if (code == SVS_OK) {
        code = svi_recover(&f, &o, ignore, NULL, r, err);
        if (code == SVS_OK && r->engine)
            code = svi_settings_merge(s, &r->settings, err);
        svi_engine_free(&r->engine);
        svi_folder_close(&f);
    }
    svi_free(r);
    return code;
}

static int show(const struct cli_args *a, struct svi_settings *s) {
    (void)a;
    svs_error err;
    svs_code code = add_kept(s, &err);
    if (code == SVS_OK)
        code = svi_settings_check(s, &err);
    printf("# svmstream %s: effective settings; this is a file for --config\n", svs_version());
    svi_settings_write(s, stdout);
    write_memory(s, stdout);
    if (code != SVS_OK)
        printf("# %s: %s\n", code == SVS_SETTING ? "They contradict each other" : "NOT with the kept ones",
               err.text);
    return CLI_OK;
}

static int check(const struct cli_args *a, struct svi_settings *s) {
    svs_error err;
    if (add_kept(s, &err) != SVS_OK || svi_settings_check(s, &err) != SVS_OK ||
        svi_settings_check_security(s, &err) != SVS_OK)
        return cli_fail(a, "%s", err.text);
    if (!a->quiet)
        puts("ok");
    return CLI_OK;
}

static int show_default(const struct cli_args *a, struct svi_settings *s) {
    (void)a;
    svi_settings_default(s);
    printf("# svmstream %s: default settings; this is a file for --config\n", svs_version());
    svi_settings_write(s, stdout);
    return CLI_OK;
}

static int run(const struct cli_args *a) {
    static const struct {
        const char *word;
        int (*run)(const struct cli_args *a, struct svi_settings *s);
    } actions[] = {{"show", show}, {"check", check}, {"default", show_default}};
    const char *word = a->positional_count > 0 ? a->positional[0] : "show";
    struct svi_settings s = a->settings;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(word, actions[i].word) == 0)
            return actions[i].run(a, &s);
    return cli_usage(a, "nothing to do for '%s'", word);
}

static const char help[] =
    "show      the effective settings (defaults, then those kept in state.dir, then the file of --config, "
    "then\n"
    "          flags) as a YAML map that --config reads back, and how much memory they lead to\n"
    "check     do they contradict each other, or the kept ones? exit status 0 or 1, and which ones\n"
    "default   all settings with their defaults\n"
    "\n"
    "Examples:\n"
    "  svmstream config default > svmstream.yaml\n"
    "  svmstream config show --config svmstream.yaml --window 5000\n";

const struct cli_command cli_config = {.name = "config",
                                       .text = "show, check or explain the settings",
                                       .usage = "[show|check|default]",
                                       .help = help,
                                       .positional_max = 1,
                                       .words = "show check default",
                                       .unchecked = true,
                                       .run = run};
