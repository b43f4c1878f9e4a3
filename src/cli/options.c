#include "cli/options.h"

#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"

static const struct cli_option common[] = {
    {"config", 'f', "FILE", NULL, "read settings from a YAML file of `key: value` lines; flags win over it"},
    {"help", 'h', NULL, NULL, "show this help"},
    {"quiet", 'q', NULL, NULL, "say nothing but errors"},
    {"version", 0, NULL, NULL, "show the version"},
    {NULL, 0, NULL, NULL, NULL},
};
enum { COMMON_CONFIG, COMMON_HELP, COMMON_QUIET, COMMON_VERSION };

const struct cli_option *cli_common_options(void) {
    return common;
}

/* The words of a command line, one flag with its value or one positional at a time. */
struct words {
    const struct cli_command *command;
    int left;
    char *const *at;
    bool ended; /* `--` was seen */
};

struct word {
    enum { WORD_POSITIONAL, WORD_SETTING, WORD_OPTION, WORD_COMMON } kind;
    int row;           /* of the command's or of the common options */
    const char *key;   /* of a setting */
    const char *value; /* of the flag, or the positional itself */
};

/* The row of a flag as typed, without its dashes; -1 = none of these. */
static int find_option(const struct cli_option *options, const char *name, bool letter) {
    for (int i = 0; options && options[i].name; i++) {
        bool same = letter ? name[0] != '\0' && name[0] == options[i].letter && name[1] == '\0'
                           : strcmp(options[i].name, name) == 0;
        if (same)
            return i;
    }
    return -1;
}

#define NAMES_MAX (SVI_SETTING_MAX + CLI_OPTION_MAX + 8)

static int add_names(const struct cli_option *options, const char **names, int count) {
    for (int i = 0; options && options[i].name; i++)
        names[count++] = options[i].name;
    return count;
}

/* The command that has such an option; NULL = none. */
static const char *owner_of(const char *name) {
    int count;
    const struct cli_command *const *commands = cli_commands(&count);
    for (int i = 0; i < count; i++)
        if (find_option(commands[i]->options, name, false) >= 0)
            return commands[i]->name;
    return NULL;
}

static svs_code unknown_flag(const struct words *w, const char *flag, const char *name, svs_error *err) {
    const char *names[NAMES_MAX + 1];
    char shown[80];
    int rows;
    const struct svi_setting *table = svi_settings_table(&rows);
    int count = add_names(common, names, add_names(w->command->options, names, 0));
    for (int i = 0; i < rows; i++)
        names[count++] = table[i].key;
    names[count] = NULL;
    const char *nearest = svi_nearest(name, names);
    const char *owner = find_option(w->command->options, name, false) < 0 ? owner_of(name) : NULL;
    svi_escape(shown, sizeof shown, flag, strlen(flag));
    if (owner)
        return svi_fail(err, SVS_SETTING, "unknown option %s: it is one of `svmstream %s`", shown, owner);
    if (!nearest)
        return svi_fail(err, SVS_SETTING, "unknown option %s", shown);
    return svi_fail(err, SVS_SETTING, "unknown option %s, the nearest known one is --%s", shown, nearest);
}

/* What the name of a flag stands for: *takes tells whether it has a value. */
static bool identify(const struct words *w, const char *name, bool letter, struct word *out, bool *takes) {
    out->row = find_option(w->command->options, name, letter);
    out->kind = WORD_OPTION;
    if (out->row >= 0) {
        *takes = w->command->options[out->row].argument != NULL;
        return true;
    }
    out->row = find_option(common, name, letter);
    out->kind = WORD_COMMON;
    if (out->row >= 0) {
        *takes = common[out->row].argument != NULL;
        return true;
    }
    const struct svi_setting *setting = letter ? NULL : svi_settings_row(name);
    out->kind = WORD_SETTING;
    out->key = setting ? setting->key : NULL;
    *takes = true;
    return setting != NULL;
}

/* A setting that is no or yes: its flag alone is yes. */
static void take_switch(struct words *w, const char *inside, struct word *out) {
    bool said = w->left > 0 && (strcmp(w->at[0], "yes") == 0 || strcmp(w->at[0], "no") == 0);
    out->value = inside ? inside : said ? w->at[0] : "yes";
    if (!inside && said) {
        w->at++;
        w->left--;
    }
}

/* The value behind a flag: what follows `=`, or the next word, which may be "-" or "-5" but no long flag. */
static svs_code take_value(struct words *w, const char *flag, const char *inside, struct word *out,
                           svs_error *err) {
    out->value = inside;
    if (inside)
        return SVS_OK;
    if (w->left == 0 || strncmp(w->at[0], "--", 2) == 0)
        return svi_fail(err, SVS_SETTING, "%s needs a value (%s VALUE)", flag, flag);
    out->value = w->at[0];
    w->at++;
    w->left--;
    return SVS_OK;
}

static svs_code read_flag(struct words *w, const char *flag, struct word *out, svs_error *err) {
    char name[128];
    bool letter = flag[1] != '-', takes;
    const char *begin = flag + (letter ? 1 : 2);
    const char *equals = letter ? NULL : strchr(begin, '=');
    size_t length = equals ? (size_t)(equals - begin) : strlen(begin);
    if (length >= sizeof name)
        length = sizeof name - 1; /* no name is that long, so it stays unknown */
    memcpy(name, begin, length);
    name[length] = '\0';
    if (!identify(w, name, letter, out, &takes))
        return unknown_flag(w, flag, name, err);
    if (out->kind == WORD_SETTING && svi_settings_switch(svi_settings_row(out->key))) {
        take_switch(w, equals ? equals + 1 : NULL, out);
        return SVS_OK;
    }
    if (takes)
        return take_value(w, flag, equals ? equals + 1 : NULL, out, err);
    out->value = "";
    if (equals)
        return svi_fail(err, SVS_SETTING, "--%s takes no value", name);
    return SVS_OK;
}

static svs_code next_word(struct words *w, struct word *out, svs_error *err) {
    const char *text = w->at[0];
    w->at++;
    w->left--;
    if (!w->ended && text[0] == '-' && text[1] != '\0')
        return read_flag(w, text, out, err);
    out->kind = WORD_POSITIONAL;
    out->value = text;
    return SVS_OK;
}

/* Steps over `--`. Is there another word? */
static bool more(struct words *w) {
    if (!w->ended && w->left > 0 && strcmp(w->at[0], "--") == 0) {
        w->ended = true;
        w->at++;
        w->left--;
    }
    return w->left > 0;
}

static void take_common(struct cli_args *a, const struct word *word, enum cli_wish *wish) {
    if (word->row == COMMON_CONFIG)
        a->config = word->value;
    else if (word->row == COMMON_QUIET)
        a->quiet = true;
    else
        *wish = word->row == COMMON_HELP ? CLI_HELP : CLI_VERSION;
}

/* First walk: everything but settings, so that the file is known before a flag overrides it. */
static svs_code walk_options(struct cli_args *a, struct words w, enum cli_wish *wish, svs_error *err) {
    while (*wish == CLI_RUN && more(&w)) {
        struct word word;
        svs_code code = next_word(&w, &word, err);
        if (code != SVS_OK)
            return code;
        if (word.kind == WORD_COMMON)
            take_common(a, &word, wish);
        else if (word.kind == WORD_OPTION)
            a->value[word.row] = word.value;
        else if (word.kind == WORD_POSITIONAL)
            a->positional[a->positional_count++] = word.value;
    }
    a->positional[a->positional_count] = NULL;
    return SVS_OK;
}

static svs_code walk_settings(struct cli_args *a, struct words w, svs_error *err) {
    while (more(&w)) {
        struct word word;
        svs_code code = next_word(&w, &word, err);
        if (code == SVS_OK && word.kind == WORD_SETTING)
            code = svi_settings_set(&a->settings, word.key, word.value, err);
        if (code != SVS_OK)
            return code;
    }
    return SVS_OK;
}

#define WORDS_MAX 16

/* The first positional must be one of command->words. */
static svs_code check_word(const struct cli_args *a, svs_error *err) {
    char copy[256], shown[64];
    const char *words[WORDS_MAX + 1];
    int count = 0;
    char *rest = copy;
    snprintf(copy, sizeof copy, "%s", a->command->words);
    for (char *word; count < WORDS_MAX && (word = strsep(&rest, " "));)
        words[count++] = word;
    words[count] = NULL;
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], a->positional[0]) == 0)
            return SVS_OK;
    const char *nearest = svi_nearest(a->positional[0], words);
    svi_escape(shown, sizeof shown, a->positional[0], strlen(a->positional[0]));
    return svi_fail(err, SVS_SETTING, "unknown word '%s', the nearest known one is '%s'", shown,
                    nearest ? nearest : words[0]);
}

static svs_code check_positionals(const struct cli_args *a, svs_error *err) {
    const struct cli_command *c = a->command;
    char shown[64];
    if (a->positional_count < c->positional_min)
        return svi_fail(err, SVS_SETTING, "something is missing: svmstream %s %s", c->name, c->usage);
    if (c->positional_max >= 0 && a->positional_count > c->positional_max) {
        const char *first = a->positional[c->positional_max];
        return svi_fail(err, SVS_SETTING, "unexpected argument '%s'",
                        svi_escape(shown, sizeof shown, first, strlen(first)));
    }
    return c->words && a->positional_count > 0 ? check_word(a, err) : SVS_OK;
}

svs_code cli_parse(struct cli_args *a, const struct cli_command *command, int count, char *const *argv,
                   const char **positional, enum cli_wish *wish, enum cli_fault *fault, svs_error *err) {
    const struct words words = {.command = command, .left = count, .at = argv};
    memset(a, 0, sizeof *a);
    a->command = command;
    a->positional = positional;
    svi_settings_default(&a->settings);
    *wish = CLI_RUN;
    *fault = CLI_FAULT_LINE;
    svs_code code = walk_options(a, words, wish, err);
    if (code != SVS_OK || *wish != CLI_RUN)
        return code;
    code = check_positionals(a, err);
    if (code != SVS_OK)
        return code;
    if (a->config && (code = svi_settings_load(&a->settings, a->config, err)) != SVS_OK) {
        *fault = CLI_FAULT_FILE;
        return code;
    }
    return walk_settings(a, words, err);
}
