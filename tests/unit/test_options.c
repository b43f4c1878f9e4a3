/* The command line: what cli_parse makes of it, what it refuses, and that the tables of all commands are
 * sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"
#include "config/settings_record.h"

static const struct cli_command *const commands[] = {CLI_COMMANDS(CLI_COMMAND_ROW) NULL};

static const struct cli_option sample_options[] = {
    CLI_INTEGER("rate", 'r', "N", "100", -5, 10, "samples per second"),
    CLI_NUMBER("share", 0, "X", "1", 0, 10, "a number"),
    CLI_INTEGER("count", 0, "N", "1", 0, 10, "a whole number"),
    CLI_OPTION("form", 0, "json|csv|text", "csv", "one of three words"),
    CLI_SWITCH("packed", 0, "send packed"),
    CLI_OPTION("to", 0, "FILE", NULL, "where to"),
    CLI_OPTION("weigh", 'w', "L:W,...", NULL, "pairs"),
    CLI_OPTION("better", 'b', CLI_0_1, NULL, "may be followed by 0 or 1"),
    CLI_END,
};

static const struct cli_command sample = {.name = "sample",
                                          .text = "a command for tests",
                                          .usage = "FILE [OTHER] [THIRD]",
                                          .options = sample_options};

static const struct cli_command repeated = {.name = "repeated", .text = "any number", .usage = "FILE..."};

static const struct cli_verb verbs[] = {{"show", NULL, "", "packed"},
                                        {"check", NULL, "[FILE]", NULL},
                                        {"default", NULL, "FILE [OTHER]", NULL},
                                        {NULL, NULL, NULL, NULL}};

static const struct cli_command worded = {.name = "worded",
                                          .text = "takes a word",
                                          .usage = "show | check [FILE] | default FILE [OTHER]",
                                          .options = sample_options,
                                          .verbs = verbs};

struct parsed {
    struct cli_args a;
    const char *positional[16];
    bool in_file;
    svs_error err;
    svs_code code;
};

#define LINE_MAX_WORDS 12

static struct parsed *parse(struct parsed *p, const struct cli_command *command, const char *const *words) {
    int count = 0;
    while (words[count])
        count++;
    assert_true(count <= LINE_MAX_WORDS);
    memset(p, 0x5a, sizeof *p);
    p->err.text[0] = '\0';
    p->code = cli_parse(&p->a, command, commands, count, (char *const *)(uintptr_t)words, p->positional,
                        &p->in_file, &p->err);
    return p;
}

#define PARSE(p, command, ...) parse(p, command, (const char *const[]){__VA_ARGS__, NULL})

static void is_ok(const struct parsed *p) {
    if (p->code != SVS_OK)
        fail_msg("%s", p->err.text);
}

static void says(const struct parsed *p, const char *text) {
    assert_int_equal(p->code, SVS_SETTING);
    assert_false(p->in_file);
    if (!strstr(p->err.text, text))
        fail_msg("'%s' does not say '%s'", p->err.text, text);
}

static void test_nothing_but_positionals(void **state) {
    struct parsed p;
    struct svi_settings s;
    (void)state;
    svi_settings_default(&s);
    is_ok(PARSE(&p, &sample, "a", "-", "b"));
    assert_false(p.a.help || p.a.version);
    assert_int_equal(p.a.positional_count, 3);
    assert_string_equal(p.a.positional[1], "-");
    assert_null(p.a.positional[3]);
    assert_memory_equal(&p.a.settings, &s, sizeof s);
    assert_false(p.a.quiet);
    assert_null(p.a.config);
    assert_false(cli_has(&p.a, "rate"));
    assert_string_equal(cli_value(&p.a, "rate"), "100");
    assert_null(cli_value(&p.a, "to"));
}

static void test_flags_in_both_spellings(void **state) {
    struct parsed p;
    (void)state;
    is_ok(
        PARSE(&p, &sample, "--window", "7", "--C=0.5", "x", "--in.mode=sub", "--in", "-", "--in.topic=a=b"));
    assert_int_equal(p.a.settings.window, 7);
    assert_true(p.a.settings.C == 0.5);
    assert_int_equal(p.a.settings.in_mode, SVI_IN_SUB);
    assert_string_equal(p.a.settings.in, "-");
    assert_string_equal(p.a.settings.in_topic, "a=b");
    assert_true(cli_given(&p.a, "window"));
    assert_false(cli_given(&p.a, "out"));
    is_ok(PARSE(&p, &sample, "x", "--in.topic=", "--window", "1", "--window", "2"));
    assert_int_equal(p.a.settings.window, 2);
    assert_true(cli_given(&p.a, "in.topic"));
}

static void test_every_setting_is_a_flag(void **state) {
    const struct svi_setting *table = svi_settings_table;
    (void)state;
    for (int i = 0; i < svi_settings_count; i++) {
        struct parsed p;
        char flag[64], joined[128];
        snprintf(flag, sizeof flag, "--%s", table[i].key);
        snprintf(joined, sizeof joined, "--%s=%s", table[i].key, table[i].value);
        is_ok(PARSE(&p, &sample, "x", flag, table[i].value));
        assert_true(cli_given(&p.a, table[i].key));
        is_ok(PARSE(&p, &sample, "x", joined));
        assert_true(cli_given(&p.a, table[i].key));
        if (!svi_settings_switch(&table[i]) && strcmp(table[i].key, "key") != 0)
            says(PARSE(&p, &sample, "x", flag), "needs a value");
    }
}

/* --key alone stands for its own name; a word after it that is no flag is its value. */
static void test_key_alone(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "x", "--key"));
    assert_string_equal(p.a.settings.key, "key");
    is_ok(PARSE(&p, &sample, "--key", "-q", "x"));
    assert_string_equal(p.a.settings.key, "key");
    is_ok(PARSE(&p, &sample, "--key", "machine", "x"));
    assert_string_equal(p.a.settings.key, "machine");
    says(PARSE(&p, &sample, "--key", "x"), "missing argument: FILE");
    says(PARSE(&p, &sample, "--key", "x"), "--key took 'x' as the name of a column");
}

/* Of each command: a setting is a flag if its help lists it, else it does nothing there and is refused; in a
 * file all of them may stand. */
static void test_useless_flags(void **state) {
    (void)state;
    for (const struct cli_command *const *c = commands; *c; c++)
        for (int i = 0; i < svi_settings_count; i++) {
            struct parsed p;
            char flag[128];
            const struct cli_option *own = (*c)->options;
            while (own && own->name && strcmp(own->name, svi_settings_table[i].key) != 0)
                own++;
            if (own && own->name) /* of the command, by the same name */
                continue;
            const char *first = (*c)->verbs ? (*c)->verbs->name : "x";
            snprintf(flag, sizeof flag, "--%s=%s", svi_settings_table[i].key, svi_settings_table[i].value);
            PARSE(&p, *c, flag, first, "x", "x");
            const bool refused = p.code == SVS_SETTING && strstr(p.err.text, " has no effect on `svmstream ");
            if (refused == cli_lists(*c, &svi_settings_table[i]))
                fail_msg("%s %s: %s", (*c)->name, flag, p.err.text);
        }
    struct parsed p;
    says(PARSE(&p, cli_find(commands, "train"), "--features", "a", "x"), "--features has no effect");
}

/* LIBLINEAR's spellings. */
static void test_pairs_and_0_or_1(void **state) {
    struct parsed p;
    char huge[1100];
    (void)state;
    is_ok(PARSE(&p, &sample, "-w1", "50", "x", "-w-1", "0.5"));
    assert_string_equal(cli_value(&p.a, "weigh"), "1:50,-1:0.5");
    is_ok(PARSE(&p, &sample, "-w", "a:2", "-wb", "3", "x"));
    assert_string_equal(cli_value(&p.a, "weigh"), "a:2,b:3");
    says(PARSE(&p, &sample, "x", "-w1"), "needs a value");
    memset(huge, '7', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    says(PARSE(&p, &sample, "x", "-w1", huge), "too long");
    is_ok(PARSE(&p, &sample, "-b", "1", "x"));
    assert_true(cli_has(&p.a, "better") && p.a.positional_count == 1);
    is_ok(PARSE(&p, &sample, "-b", "0", "x"));
    assert_true(!cli_has(&p.a, "better") && p.a.positional_count == 1);
    is_ok(PARSE(&p, &sample, "-b", "x"));
    assert_true(cli_has(&p.a, "better") && p.a.positional_count == 1);
    is_ok(PARSE(&p, &sample, "x", "--better=1"));
    assert_true(cli_has(&p.a, "better"));
}

static void test_a_switch_alone_is_yes(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "--insecure", "x"));
    assert_int_equal(p.a.settings.insecure, 1);
    assert_string_equal(p.a.positional[0], "x");
    is_ok(PARSE(&p, &sample, "x", "--insecure", "--window", "5"));
    assert_int_equal(p.a.settings.insecure, 1);
    is_ok(PARSE(&p, &sample, "x", "--insecure"));
    assert_int_equal(p.a.settings.insecure, 1);
    is_ok(PARSE(&p, &sample, "--insecure", "no", "x"));
    assert_int_equal(p.a.settings.insecure, 0);
    is_ok(PARSE(&p, &sample, "--insecure=yes", "x"));
    assert_int_equal(p.a.settings.insecure, 1);
    says(PARSE(&p, &sample, "--insecure=maybe", "x"), "no, yes");
}

static void test_options_of_the_command(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "x", "-r", "5", "--packed", "-q", "--share", "5"));
    assert_true(cli_has(&p.a, "packed"));
    assert_true(p.a.quiet);
    assert_true(cli_number(&p.a, "share") == 5);
    assert_int_equal(cli_integer(&p.a, "rate"), 5);
    is_ok(PARSE(&p, &sample, "x", "--rate=-3", "--to", "-"));
    assert_int_equal(cli_integer(&p.a, "rate"), -3);
    assert_true(cli_number(&p.a, "share") == 1);
    assert_string_equal(cli_value(&p.a, "to"), "-");
    says(PARSE(&p, &sample, "x", "--packed=1"), "takes no value");
    says(PARSE(&p, &sample, "x", "--rate"), "needs a value");
    says(PARSE(&p, &sample, "x", "--rate", "--packed"), "needs a value");
}

static void test_bad_numbers_of_options(void **state) {
    static const char *const bad[] = {"", "x", "5x", "nan", "inf", "0x5", "11", "-1", " 5", "1e99"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct parsed p;
        says(PARSE(&p, &sample, "x", "--share", bad[i]), "is not a number from 0 to 10");
        says(PARSE(&p, &sample, "x", "--count", bad[i]), "is not a whole number from 0 to 10");
    }
}

static void test_words_of_options(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "x"));
    assert_int_equal(cli_word(&p.a, "form"), 1);
    is_ok(PARSE(&p, &sample, "x", "--form", "text"));
    assert_int_equal(cli_word(&p.a, "form"), 2);
    says(PARSE(&p, &sample, "x", "--form", "jso"), "--form: 'jso' is not an allowed value (json|csv|text)");
    says(PARSE(&p, &sample, "x", "--form", ""), "is not an allowed value");
}

static void test_double_dash_ends_the_options(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "--window", "5", "--", "--window", "-x"));
    assert_int_equal(p.a.positional_count, 2);
    assert_string_equal(p.a.positional[0], "--window");
    is_ok(PARSE(&p, &sample, "--", "--"));
    assert_string_equal(p.a.positional[0], "--");
}

static void test_unknown_flags(void **state) {
    struct parsed p;
    char huge[3000];
    (void)state;
    says(PARSE(&p, &sample, "x", "--windw", "5"),
         "unknown option --windw, the nearest known one is --window");
    says(PARSE(&p, &sample, "x", "--paked"), "--packed");
    says(PARSE(&p, &sample, "x", "--confg=a"), "--config");
    says(PARSE(&p, &sample, "x", "--mode", "sub"), "--in.mode");
    says(PARSE(&p, &sample, "x", "--window=x=5"), "'x=5' is not a whole number");
    says(PARSE(&p, &sample, "x", "-z"), "unknown option -z");
    says(PARSE(&p, &sample, "x", "-rate"), "unknown option -rate, the nearest known one is --rate");
    memset(huge, 'x', sizeof huge - 1);
    memcpy(huge, "--", 2);
    huge[sizeof huge - 1] = '\0';
    says(PARSE(&p, &sample, huge), "unknown option --xxx");
    says(PARSE(&p, &sample, "x", "--a\x1b[0m"), "\\x1b");
}

static void test_bad_values(void **state) {
    struct parsed p;
    (void)state;
    says(PARSE(&p, &sample, "x", "--window", "abc"), "window: 'abc' is not a whole number (0 to");
    says(PARSE(&p, &sample, "x", "--in.mode=push"), "pull, router, sub");
    says(PARSE(&p, &sample, "x", "--window", "-5"), "out of range");
}

static void test_number_of_positionals(void **state) {
    struct parsed p;
    (void)state;
    says(PARSE(&p, &sample, "--packed"), "missing argument: FILE (svmstream sample FILE [OTHER] [THIRD])");
    says(PARSE(&p, &sample, "1", "2", "3", "4"), "unexpected argument '4'");
    is_ok(PARSE(&p, &repeated, "1", "2", "3", "4"));
    assert_int_equal(p.a.positional_count, 4);
    says(PARSE(&p, &repeated, "-q"), "missing argument: FILE (svmstream repeated FILE...)");
    is_ok(PARSE(&p, &worded, "check"));
    assert_ptr_equal(p.a.verb, &verbs[1]);
    is_ok(PARSE(&p, &worded, "default", "anything"));
    says(PARSE(&p, &worded, "default"), "missing argument: FILE (svmstream worded default FILE [OTHER])");
    says(PARSE(&p, &worded, "check", "1", "2"), "unexpected argument '2'");
    says(PARSE(&p, &worded, "shw"), "unknown action 'shw', the nearest known one is 'show'");
    says(PARSE(&p, &worded, "-q"), "missing argument: ACTION");
    is_ok(PARSE(&p, &worded, "show", "--packed"));
    says(PARSE(&p, &worded, "show", "--rate", "1"), "--rate is not an option of `worded show`");
}

static void test_help_and_version_come_first(void **state) {
    struct parsed p;
    (void)state;
    is_ok(PARSE(&p, &sample, "--help"));
    assert_true(p.a.help && !p.a.version);
    is_ok(PARSE(&p, &sample, "--window", "abc", "-h", "--bogus"));
    assert_true(p.a.help && !p.a.version);
    is_ok(PARSE(&p, &sample, "-f", "/nowhere", "--version"));
    assert_true(p.a.version && !p.a.help);
}

static void write_file(char *path, size_t size, const char *text) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, size, "%s/options-XXXXXX", folder ? folder : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void test_flags_win_over_the_file(void **state) {
    struct parsed p;
    char path[512];
    (void)state;
    write_file(path, sizeof path, "window: 50\nC: 2\n");
    is_ok(PARSE(&p, &sample, "--window", "7", "x", "--config", path));
    assert_int_equal(p.a.settings.window, 7);
    assert_true(p.a.settings.C == 2);
    assert_true(cli_given(&p.a, "C"));
    assert_string_equal(p.a.config, path);
    is_ok(PARSE(&p, &sample, "-f", path, "x", "--window=8"));
    assert_int_equal(p.a.settings.window, 8);
    unlink(path);
}

static void test_faults_of_the_file(void **state) {
    struct parsed p;
    char path[512];
    (void)state;
    write_file(path, sizeof path, "windw: 50\n");
    PARSE(&p, &sample, "-f", path, "x");
    assert_int_equal(p.code, SVS_SETTING);
    assert_true(p.in_file);
    assert_non_null(strstr(p.err.text, "'window'"));
    unlink(path);
    PARSE(&p, &sample, "-f", path, "x");
    assert_int_equal(p.code, SVS_IO);
    assert_true(p.in_file);
}

static void check_options(const struct cli_command *c) {
    const struct cli_option *all = cli_common_options;
    int count = 0;
    for (; c->options && c->options[count].name; count++) {
        const struct cli_option *o = &c->options[count];
        assert_true(!svi_settings_row(o->name) || !cli_lists(c, svi_settings_row(o->name)));
        assert_true(o->text && o->text[0] && (o->argument || !o->value));
        assert_true(strlen(o->name) < 64);
        for (int k = 0; all[k].name; k++)
            assert_true(strcmp(all[k].name, o->name) != 0 && (!o->letter || all[k].letter != o->letter));
    }
    assert_true(count <= CLI_OPTION_MAX);
}

static void test_commands_are_well_formed(void **state) {
    const struct cli_command *const *all = commands;
    (void)state;
    for (int i = 0; all[i]; i++) {
        assert_true(all[i]->name && all[i]->text && all[i]->text[0] && all[i]->usage);
        assert_ptr_equal(cli_find(commands, all[i]->name), all[i]);
        assert_true(all[i]->run || (all[i]->verbs && all[i]->usage[0] != '['));
        for (const struct cli_verb *v = all[i]->verbs; v && v->name; v++)
            assert_true(v->usage && v->run);
        check_options(all[i]);
    }
    assert_null(cli_find(commands, "bogus"));
    assert_non_null(cli_find(commands, "run"));
}

/* A key in the list of a command's help that is none would leave a hole there. */
static void test_listed_keys_exist(void **state) {
    const int rows = svi_settings_count;
    const struct cli_command *const *all = commands;
    const struct svi_setting *table = svi_settings_table;
    (void)state;
    for (int i = 0; all[i]; i++) {
        char copy[1024], *rest = copy;
        snprintf(copy, sizeof copy, "%s", all[i]->keys ? all[i]->keys : "");
        for (char *word; (word = strsep(&rest, " "));) {
            const struct cli_command one = {.keys = word};
            int listed = 0;
            for (int k = 0; k < rows; k++)
                listed += cli_lists(&one, &table[k]);
            if (word[0] && listed == 0)
                fail_msg("%s lists '%s', which is no setting", all[i]->name, word);
        }
    }
}

static char *written(void (*write)(FILE *, const struct cli_command *const *)) {
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    write(to, commands);
    fclose(to);
    return text;
}

static void test_everything_is_in_man_page_and_completion(void **state) {
    const int rows = svi_settings_count;
    const struct cli_command *const *all = commands;
    const struct svi_setting *table = svi_settings_table;
    char *man = written(cli_write_man), *completion = written(cli_write_completion);
    char *overview = written(cli_write_overview), text[128];
    (void)state;
    for (int i = 0; i < rows; i++) {
        const char *dash = strchr(table[i].key, '-'); /* roff wants it escaped */
        const int before = dash ? (int)(dash - table[i].key) : (int)strlen(table[i].key);
        snprintf(text, sizeof text, "\n.B %.*s%s%s ", before, table[i].key, dash ? "\\" : "",
                 dash ? dash : "");
        assert_non_null(strstr(man, text));
        snprintf(text, sizeof text, " --%s", table[i].key);
        assert_non_null(strstr(completion, text));
    }
    for (int i = 0; all[i]; i++) {
        snprintf(text, sizeof text, "\n  %s ", all[i]->name);
        assert_int_equal(strstr(overview, text) != NULL, !all[i]->hidden);
        snprintf(text, sizeof text, "\n    %s)", all[i]->name);
        assert_int_equal(strstr(completion, text) != NULL, !all[i]->hidden);
        snprintf(text, sizeof text, "\n.B svmstream %s\n", all[i]->name);
        assert_int_equal(strstr(man, text) != NULL, !all[i]->hidden);
    }
    free(man);
    free(completion);
    free(overview);
}

static void test_nearest(void **state) {
    static const char *const words[] = {"in", "window", "C", "publish.every", "labels.max", NULL};
    static const char *const none[] = {NULL};
    (void)state;
    assert_string_equal(svi_nearest("window", words), "window");
    assert_string_equal(svi_nearest("widnow", words), "window");
    assert_string_equal(svi_nearest("c", words), "C");
    assert_string_equal(svi_nearest("publish", words), "publish.every");
    assert_string_equal(svi_nearest("max", words), "labels.max");
    assert_string_equal(svi_nearest("publsh.evry", words), "publish.every");
    assert_null(svi_nearest("x", none));
}

/* ---- settings read again */

/* A value of the row that is not its default, as text; false: there is none to be tried. */
static bool other_value(const struct svi_setting *row, char *out, size_t size) {
    struct svi_settings s;
    const char *const texts[] = {"1/day", "a", "tcp://127.0.0.1:7777", "a:0..1", "60", NULL};
    svi_settings_default(&s);
    for (const struct svi_word *w = row->words; w && w->word; w++)
        if (snprintf(out, size, "%s", w->word) > 0 && svi_settings_set(&s, row->key, out, NULL) == SVS_OK &&
            !svi_settings_is_default(&s, row))
            return true;
    for (int i = 0; i < 5; i++) {
        if (row->type == SVI_SET_INTEGER || row->type == SVI_SET_NUMBER || row->type == SVI_SET_BYTES)
            snprintf(out, size, "%.17g",
                     row->low + (row->high - row->low < 100 ? (row->high - row->low) / 2 : 7 + i));
        else
            snprintf(out, size, "%s", texts[i]);
        if (svi_settings_set(&s, row->key, out, NULL) == SVS_OK && !svi_settings_is_default(&s, row))
            return true;
    }
    return false;
}

static void write_setting(const char *path, const char *key, const char *value) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    if (key)
        fprintf(f, "%s: \"%s\"\n", key, value);
    fclose(f);
}

/* Each setting by a flag, by a file, by both, beside settings that others are settled by: read again nothing
 * is another one. */
static void settings_read_again_are_the_same(void **state) {
    (void)state;
    static const char *const beside[][5] = {{NULL},
                                            {"--key", "k", NULL},
                                            {"--key", "k", "--method", "none", NULL},
                                            {"--key", "k", "--method", "auto", NULL},
                                            {"--in", "-", NULL},
                                            {"--alert.p", "0.01", NULL},
                                            {"--window", "77", NULL}};
    char path[] = "/tmp/svmstream-again-XXXXXX", flag[160], value[64];
    struct parsed *p = malloc(sizeof *p);
    struct svi_settings again;
    int tried = 0;
    assert_true(close(mkstemp(path)) == 0);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        for (size_t i = 0; i < sizeof beside / sizeof beside[0] && other_value(row, value, sizeof value); i++)
            for (int how = 0; how < 4; how++) { /* bit 0: by a flag, bit 1: by the file */
                const char *words[LINE_MAX_WORDS] = {"--config", path};
                int n = 2;
                svs_error err = {0};
                for (int j = 0; beside[i][j]; j++)
                    words[n++] = beside[i][j];
                snprintf(flag, sizeof flag, "--%s=%s", row->key, value);
                if (how & 1)
                    words[n++] = flag;
                words[n] = NULL;
                write_setting(path, how & 2 ? row->key : NULL, value);
                if (parse(p, &cli_run, words)->code != SVS_OK)
                    continue; /* given twice, or not beside the others */
                tried++;
                if (cli_settings_again(&p->a, &again, &err) != SVS_OK)
                    fail_msg("%s = %s, %d: %s", row->key, value, how, err.text);
                for (const struct svi_setting *r = svi_settings_table; r->key; r++)
                    if (svi_settings_differ(&p->a.settings, &again, r))
                        fail_msg("%s = %s (%d, beside %zu): another %s", row->key, value, how, i, r->key);
            }
    assert_true(tried > 1500);
    unlink(path);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_but_positionals),
        cmocka_unit_test(test_flags_in_both_spellings),
        cmocka_unit_test(test_every_setting_is_a_flag),
        cmocka_unit_test(test_key_alone),
        cmocka_unit_test(test_useless_flags),
        cmocka_unit_test(test_pairs_and_0_or_1),
        cmocka_unit_test(test_a_switch_alone_is_yes),
        cmocka_unit_test(test_options_of_the_command),
        cmocka_unit_test(test_bad_numbers_of_options),
        cmocka_unit_test(test_words_of_options),
        cmocka_unit_test(test_double_dash_ends_the_options),
        cmocka_unit_test(test_unknown_flags),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_number_of_positionals),
        cmocka_unit_test(test_help_and_version_come_first),
        cmocka_unit_test(test_flags_win_over_the_file),
        cmocka_unit_test(test_faults_of_the_file),
        cmocka_unit_test(test_commands_are_well_formed),
        cmocka_unit_test(test_listed_keys_exist),
        cmocka_unit_test(test_everything_is_in_man_page_and_completion),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(settings_read_again_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
