/* The reader of command lines.
 *
 * A flag is searched among the options of the command, then the common ones, then the settings. One walk over
 * the line collects the value of each flag and the positional arguments. Settings are set only afterwards:
 * the file of --config first, wherever its flag is, then the flags, which override it; then the settings that
 * imply others are settled.
 *
 * In order of reading: flags, positional arguments, cli_parse. cli_settings_again repeats the last part of
 * cli_parse for a running process whose file may have changed. */
#include "cli/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

enum { COMMON_CONFIG, COMMON_HELP, COMMON_QUIET, COMMON_VERSION, COMMON_COUNT };

const struct cli_option cli_common_options[] = {
    CLI_OPTION("config", 'f', "FILE", NULL,
               "read settings from a YAML file of `key: value` lines; flags override it"),
    CLI_SWITCH("help", 'h', "show this help"),
    CLI_SWITCH("quiet", 'q', "print errors only"),
    CLI_SWITCH("version", 0, "show the version"),
    CLI_END,
};

/* The unread rest of a command line, and the values found so far. */
struct command_line {
    struct cli_args *a;
    int left;
    char *const *at;
    const char *key_word; /* the word after --key that was taken as its value; NULL: none was */
    const char *common[COMMON_COUNT], *setting[SVI_SETTING_MAX]; /* values by row; NULL = not given */
};

static const char setting_key[] = "key"; /* --key without a value means --key key */

enum flag_kind { FLAG_ALONE, FLAG_VALUE, FLAG_YES_NO, FLAG_0_1, FLAG_KEY };

/* True when the list, words separated by spaces, contains the word. "in." contains every word in.*. */
static bool list_holds(const char *list, const char *word) {
    for (size_t length; *list; list += length) {
        list += strspn(list, " ");
        length = strcspn(list, " ");
        bool group = length > 0 && list[length - 1] == '.';
        if (length > 0 && strncmp(list, word, length) == 0 && (group || word[length] == '\0'))
            return true;
    }
    return false;
}

bool cli_lists(const struct cli_command *command, const struct svi_setting *row) {
    return !command->keys || list_holds(command->keys, row->key);
}

/* ---- flags */

/* The row of a flag, given without its dashes; -1: it is not among these. */
static int find_option(const struct cli_option *options, const char *name, bool letter) {
    for (int i = 0; options && options[i].name; i++)
        if (letter ? name[0] != '\0' && name[0] == options[i].letter && name[1] == '\0'
                   : strcmp(options[i].name, name) == 0)
            return i;
    return -1;
}

static int add_names(const struct cli_option *options, const char **names, int count) {
    for (int i = 0; options && options[i].name; i++)
        names[count++] = options[i].name;
    return count;
}

static svs_code unknown_flag(const struct cli_args *a, const char *flag, const char *name, svs_error *err) {
    const char *names[SVI_SETTING_MAX + CLI_OPTION_MAX + COMMON_COUNT + 1];
    char shown[80];
    int count = add_names(cli_common_options, names, add_names(a->command->options, names, 0));
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (cli_lists(a->command, row))
            names[count++] = row->key;
    names[count] = NULL;
    svi_escape(shown, sizeof shown, flag, strlen(flag));
    /* An option of another command is a better hint than a similar name. */
    const bool mine = find_option(a->command->options, name, false) >= 0;
    for (const struct cli_command *const *c = a->all; *c && !mine; c++)
        if (find_option((*c)->options, name, false) >= 0)
            return svi_fail(err, SVS_SETTING, "unknown option %s: it belongs to `svmstream %s`", shown,
                            (*c)->name);
    const char *nearest = svi_nearest(name, names);
    return svi_fail(err, SVS_SETTING, "unknown option %s%s%s", shown,
                    nearest ? ", the nearest known one is --" : "", nearest ? nearest : "");
}

/* The value of a flag: the text after `=`, or the next word, which may be "-" or "-5" but no long flag. Flags
 * with an optional value take the next word only if it can be one (yes/no, 0/1, or for --key no flag). */
static svs_code take_value(struct command_line *l, const char *flag, const char *inside, enum flag_kind kind,
                           const char **value, svs_error *err) {
    const char *next = l->left > 0 ? l->at[0] : "--";
    if (kind == FLAG_ALONE && inside)
        return svi_fail(err, SVS_SETTING, "%.*s takes no value", (int)(inside - 1 - flag), flag);
    if (kind == FLAG_VALUE && !inside && strncmp(next, "--", 2) == 0)
        return svi_fail(err, SVS_SETTING, "%s needs a value (%s VALUE)", flag, flag);
    const bool answered = kind == FLAG_KEY   ? next[0] != '-'
                          : kind == FLAG_0_1 ? strcmp(next, "0") == 0 || strcmp(next, "1") == 0
                                             : strcmp(next, "yes") == 0 || strcmp(next, "no") == 0;
    const bool follows = !inside && (kind == FLAG_VALUE || (kind >= FLAG_YES_NO && answered));
    const char *given = inside                ? inside
                        : follows             ? next
                        : kind == FLAG_YES_NO ? "yes"
                        : kind == FLAG_KEY    ? setting_key
                                              : "";
    *value = kind == FLAG_0_1 && strcmp(given, "0") == 0 ? NULL : given;
    l->key_word = follows && kind == FLAG_KEY ? next : l->key_word;
    l->at += follows;
    l->left -= follows;
    return SVS_OK;
}

/* The option that accepts -wLABEL VALUE, LIBLINEAR's form of `-w LABEL:VALUE`, or -1. */
static int find_pair_option(const struct cli_option *options, const char *begin) {
    for (int i = 0; begin[0] && begin[1] && options && options[i].name; i++)
        if (begin[0] == options[i].letter && options[i].argument && strchr(options[i].argument, ':'))
            return i;
    return -1;
}

/* Appends the pair to the earlier ones. They collect in a->pairs, to which the option's value then points; a
 * list from -w itself is copied there first. */
static svs_code take_pair(struct command_line *l, const char *flag, int row, svs_error *err) {
    char *all = l->a->pairs;
    const char *value = "", *before = l->a->value[row];
    if (take_value(l, flag, NULL, FLAG_VALUE, &value, err) != SVS_OK)
        return err->code;
    if (before && before != all)
        snprintf(all, sizeof l->a->pairs, "%s", before);
    const size_t at = strlen(all), capacity = sizeof l->a->pairs - at;
    const int n = snprintf(all + at, capacity, "%s%s:%s", at > 0 ? "," : "", flag + 2, value);
    l->a->value[row] = all;
    return (size_t)n < capacity ? SVS_OK
                                : svi_fail(err, SVS_SETTING, "the values of -%c are too long", flag[1]);
}

static enum flag_kind kind_of_option(const struct cli_option *o) {
    return !o->argument ? FLAG_ALONE : strcmp(o->argument, CLI_0_1) == 0 ? FLAG_0_1 : FLAG_VALUE;
}

static svs_code take_flag(struct command_line *l, const char *flag, svs_error *err) {
    const struct cli_option *own = l->a->command->options;
    const bool letter = flag[1] != '-';
    const char *begin = flag + (letter ? 1 : 2), *equals = letter ? NULL : strchr(begin, '=');
    const char *inside = equals ? equals + 1 : NULL;
    char name[128]; /* no known name is longer, so a truncated one stays unknown */
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - begin) : (int)sizeof name - 1, begin);
    int row = find_option(own, name, letter);
    if (row >= 0)
        return take_value(l, flag, inside, kind_of_option(&own[row]), &l->a->value[row], err);
    if (letter && (row = find_pair_option(own, begin)) >= 0)
        return take_pair(l, flag, row, err);
    row = find_option(cli_common_options, name, letter);
    if (row >= 0)
        return take_value(l, flag, inside, row == COMMON_CONFIG ? FLAG_VALUE : FLAG_ALONE, &l->common[row],
                          err);
    const struct svi_setting *setting = letter ? NULL : svi_settings_row(name);
    if (!setting)
        return unknown_flag(l->a, flag, name, err);
    if (!cli_lists(l->a->command, setting))
        return svi_fail(err, SVS_SETTING, "--%s has no effect on `svmstream %s`: leave it out", name,
                        l->a->command->name);
    const bool key = strcmp(name, setting_key) == 0;
    return take_value(l, flag, inside,
                      key                            ? FLAG_KEY
                      : svi_settings_switch(setting) ? FLAG_YES_NO
                                                     : FLAG_VALUE,
                      &l->setting[setting - svi_settings_table], err);
}

/* Reads all words, or up to --help or --version. "-" alone is a positional: standard input. */
static svs_code walk_line(struct command_line *l, svs_error *err) {
    struct cli_args *a = l->a;
    svs_code code = SVS_OK;
    bool ended = false; /* `--` was seen */
    while (code == SVS_OK && l->left > 0 && !l->common[COMMON_HELP] && !l->common[COMMON_VERSION]) {
        const char *word = *l->at++;
        l->left--;
        if (ended || word[0] != '-' || word[1] == '\0')
            a->positional[a->positional_count++] = word;
        else if (strcmp(word, "--") == 0)
            ended = true;
        else
            code = take_flag(l, word, err);
    }
    a->positional[a->positional_count] = NULL;
    a->config = l->common[COMMON_CONFIG];
    a->help = l->common[COMMON_HELP] != NULL;
    a->quiet = l->common[COMMON_QUIET] != NULL;
    a->version = l->common[COMMON_VERSION] != NULL;
    return code;
}

/* Checks the values of the command's options: numbers against their range, words against their list. strspn
 * excludes forms that strtod accepts but no option means: "inf", "nan", hexadecimal, leading blanks. */
static svs_code check_option_values(const struct cli_args *a, svs_error *err) {
    for (int i = 0; a->command->options && a->command->options[i].name; i++) {
        const struct cli_option *o = &a->command->options[i];
        const char *value = a->value[i];
        char *end = "";
        if (value && o->low < o->high) {
            errno = 0;
            const double x = o->integer ? (double)strtoll(value, &end, 10) : strtod(value, &end);
            const size_t plain = strspn(value, o->integer ? "0123456789+-" : "0123456789+-.eE");
            if (!value[0] || value[plain] || *end || errno != 0 || x < o->low || x > o->high)
                return svi_fail(err, SVS_SETTING, "--%s: '%s' is not a %snumber from %.15g to %.15g", o->name,
                                value, o->integer ? "whole " : "", o->low, o->high);
        } else if (value && o->argument && strchr(o->argument, '|') && strcmp(o->argument, CLI_0_1) != 0 &&
                   cli_word_place(o->argument, value) < 0) {
            return svi_fail(err, SVS_SETTING, "--%s: '%s' is not an allowed value (%s)", o->name, value,
                            o->argument);
        }
    }
    return SVS_OK;
}

/* ---- positional arguments */

/* Sets a->verb by the first positional, which must be one of the verbs. */
static svs_code check_verb(struct cli_args *a, svs_error *err) {
    const char *names[CLI_OPTION_MAX + 1];
    char shown[64];
    int count = 0;
    for (const struct cli_verb *v = a->command->verbs; v->name; v++) {
        names[count++] = v->name;
        if (strcmp(v->name, a->positional[0]) == 0)
            a->verb = v;
    }
    names[count] = NULL;
    const char *nearest = a->verb ? NULL : svi_nearest(a->positional[0], names);
    svi_escape(shown, sizeof shown, a->positional[0], strlen(a->positional[0]));
    if (!a->verb)
        return svi_fail(err, SVS_SETTING, "unknown action '%s', the nearest known one is '%s'", shown,
                        nearest ? nearest : names[0]);
    for (int i = 0; a->verb->options && a->command->options[i].name; i++)
        if (a->value[i] && !list_holds(a->verb->options, a->command->options[i].name))
            return svi_fail(err, SVS_SETTING, "--%s is not an option of `%s %s`", a->command->options[i].name,
                            a->command->name, a->verb->name);
    return SVS_OK;
}

/* Checks the number of positionals against the usage: FILE is required, [FILE] optional, FILE... repeatable.
 */
static svs_code check_positionals(struct cli_args *a, svs_error *err) {
    const struct cli_command *c = a->command;
    char shown[64];
    int capacity = 0;
    if (c->verbs && a->positional_count > 0)
        SVI_TRY(check_verb(a, err));
    const int first = a->verb ? 1 : 0, given = a->positional_count - first;
    const char *usage = a->verb ? a->verb->usage : c->usage;
    for (const char *word = usage; *word && capacity <= given; capacity++) {
        const size_t length = strcspn(word, " ");
        if (word[0] != '[' && capacity == given)
            return svi_fail(err, SVS_SETTING, "missing argument: %.*s (svmstream %s%s%s %s)",
                            c->verbs && !a->verb ? 6 : (int)strcspn(word, " ."),
                            c->verbs && !a->verb ? "ACTION" : word, c->name, a->verb ? " " : "",
                            a->verb ? a->verb->name : "", usage);
        if (memmem(word, length, "...", 3))
            return SVS_OK;
        word += length + (word[length] != '\0');
    }
    if (given <= capacity)
        return SVS_OK;
    const char *extra = a->positional[first + capacity];
    return svi_fail(err, SVS_SETTING, "unexpected argument '%s'%s%s",
                    svi_escape(shown, sizeof shown, extra, strlen(extra)), c->unexpected ? ": " : "",
                    c->unexpected ? c->unexpected : "");
}

/* Explains a missing FILE after `--key FILE`, where --key has taken it as the name of a column. */
static svs_code explain_key_word(const char *word, svs_error *err) {
    const svs_error before = *err;
    return svi_fail(err, before.code, "%.200s: --key took '%.60s' as the name of a column", before.text,
                    word);
}

svs_code cli_parse(struct cli_args *a, const struct cli_command *command,
                   const struct cli_command *const *all, int count, char *const *argv,
                   const char **positional, bool *in_file, svs_error *err) {
    struct command_line l = {.a = a, .left = count, .at = argv};
    memset(a, 0, sizeof *a);
    a->command = command;
    a->all = all;
    a->positional = positional;
    svi_settings_default(&a->settings);
    *in_file = false;
    svs_code code = walk_line(&l, err);
    /* --help and --version must work on a line that is incomplete or wrong. */
    if (code != SVS_OK || a->help || a->version)
        return code;
    code = check_positionals(a, err);
    if (code != SVS_OK && l.key_word && a->positional_count == 0)
        code = explain_key_word(l.key_word, err);
    if (code == SVS_OK)
        code = check_option_values(a, err);
    if (code == SVS_OK && a->config) {
        code = svi_settings_load(&a->settings, a->config, err);
        *in_file = code != SVS_OK;
    }
    /* In the order of the table, not of the line: the result does not depend on the order of flags. */
    for (int i = 0; i < svi_settings_count && code == SVS_OK; i++)
        if ((a->flagged[i] = l.setting[i] != NULL))
            code = svi_settings_set(&a->settings, svi_settings_table[i].key, l.setting[i], err);
    if (code == SVS_OK)
        a->settled = svi_settings_settle_method(&a->settings);
    if (code == SVS_OK)
        code = svi_settings_settle_alerts(&a->settings, &a->no_budget, err);
    return code;
}

svs_code cli_settings_again(const struct cli_args *a, struct svi_settings *s, svs_error *err) {
    const char *by; /* unused: the budget of the start is kept below */
    svi_settings_default(s);
    svs_code code = a->config ? svi_settings_load(s, a->config, err) : SVS_OK;
    /* Flags still count as given, because that decides how open settings are settled
     * (svi_settings_settle_method). */
    for (int i = 0; i < svi_settings_count && code == SVS_OK; i++) {
        const struct svi_setting *row = &svi_settings_table[i];
        if (!a->flagged[i])
            continue;
        memcpy(svi_settings_field(s, row), svi_settings_field(&a->settings, row), row->size);
        s->given[i] = a->settings.given[i];
    }
    /* A method that a setting implied at the start stays even without that setting: another method would end
     * the model. */
    if (a->settled && !svi_settings_given(s, svi_settings_row("method")))
        s->method = SVI_METHOD_ALSVM;
    if (svi_settings_keyed(s))
        svi_settings_settle_method(s);
    if (code == SVS_OK)
        code = svi_settings_settle_alerts(s, &by, err);
    if (a->no_budget)
        strcpy(s->alert_budget, "none");
    return code;
}
