/* config: the effective settings, as a file that the program reads back, and the memory they lead to. */
#include <string.h>

#include "cli/baseline.h"
#include "cli/command.h"
#include "engine/engine.h"
#include "svmstream/svmstream.h"

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

static int show(const struct cli_args *a) {
    svs_error err;
    printf("# svmstream %s: effective settings; this is a file for --config\n", svs_version());
    svi_settings_write(&a->settings, stdout);
    write_memory(&a->settings, stdout);
    if (svi_settings_check(&a->settings, &err) != SVS_OK)
        printf("# They contradict each other: %s\n", err.text);
    return CLI_OK;
}

static int check(const struct cli_args *a) {
    svs_error err;
    if (svi_settings_check(&a->settings, &err) != SVS_OK ||
        svi_settings_check_security(&a->settings, &err) != SVS_OK)
        return cli_fail(a, "%s", err.text);
    if (!a->quiet)
        puts("ok");
    return CLI_OK;
}

static int show_default(const struct cli_args *a) {
    struct svi_settings s;
    (void)a;
    svi_settings_default(&s);
    printf("# svmstream %s: default settings; this is a file for --config\n", svs_version());
    svi_settings_write(&s, stdout);
    return CLI_OK;
}

static int run(const struct cli_args *a) {
    static const struct {
        const char *word;
        int (*run)(const struct cli_args *a);
    } actions[] = {{"show", show}, {"check", check}, {"default", show_default}};
    const char *word = a->positional_count > 0 ? a->positional[0] : "show";
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(word, actions[i].word) == 0)
            return actions[i].run(a);
    return cli_usage(a, "nothing to do for '%s'", word);
}

static const char help[] =
    "show      the effective settings (defaults, then the file of --config, then flags) as a YAML map that\n"
    "          --config reads back, and how much memory they lead to\n"
    "check     do they contradict each other? exit status 0 or 1, and which ones\n"
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
