/* Help, man page and bash completion, all generated from the tables of commands, options and
 * settings. So an option is described once, and no text can fall out of date.
 *
 * Help and man page consist of the same entries (an option or a setting with its sentence) in two
 * forms. Two functions print an entry: write_entry in two columns, write_tagged as roff. Two
 * others, write_options and write_settings, walk the tables and take one of these as argument. Read
 * the four first, as everything else puts headings around them. In order of reading: entries, help,
 * the man page, the completion, the commands.
 *
 * `svmstream help` is for people. The hidden commands at the end print what `make install` installs. They are
 * commands of the program itself, so that an installed page always belongs to the installed binary. */
#include "cli/help.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/manual.h"
#include "svmstream/svmstream.h"

#define WIDTH       100
#define INDENT      28
#define ENTRY_LEFT  160 /* bytes of the name of an option or setting, with its value */
#define ENTRY_TEXT  512
#define NAMES_MAX   64  /* commands and topics */
#define MENTIONS    5   /* pages that are named for a word */
#define PAGE_NARROW 40  /* narrower terminals get 80 columns, as does output that is not a terminal */
#define PAGE_WIDE   110 /* longer lines are hard to read */

typedef void entry_writer(FILE *to, const char *left, const char *text);

/* ---- entries */

/* `left` in the left column, then `text` wrapped between words in the right one. A `left` that is too long
 * gets a line of its own. */
static void write_entry(FILE *to, const char *left, const char *text) {
    /* The result of fprintf counts bytes, which are columns here: names of options are ASCII. */
    int column = fprintf(to, "  %s", left);
    if (column >= INDENT) {
        fputc('\n', to);
        column = 0;
    }
    fprintf(to, "%*s", INDENT - column, "");
    column = INDENT;
    for (size_t length; text[0] != '\0'; text += length) {
        text += strspn(text, " ");
        length = strcspn(text, " ");
        /* A word that is wider than the column still gets printed, alone on its line. */
        if (column > INDENT && column + 1 + (int)length > WIDTH) {
            fprintf(to, "\n%*s", INDENT, "");
            column = INDENT;
        }
        column += fprintf(to, "%s%.*s", column > INDENT ? " " : "", (int)length, text);
    }
    fputc('\n', to);
}

/* Text from the tables may have characters that roff would interpret; `before` and `after` are roff. */
static void write_roff(FILE *to, const char *before, const char *text, const char *after) {
    fputs(before, to);
    svi_manual_roff(to, text, strlen(text));
    fputs(after, to);
}

static void write_tagged(FILE *to, const char *left, const char *text) {
    write_roff(to, ".TP\n.B ", left, "\n");
    write_roff(to, "", text, "\n");
}

/* The sentence, with range and default in parentheses where there are any. */
static void describe_entry(char *out, size_t size, const char *text, const char *range, const char *value) {
    const bool more = range[0] || value[0];
    snprintf(out, size, "%s%s%s%s%s%s%s", text, more ? " (" : "", range, range[0] ? "; " : "",
             value[0] ? "default " : "", value, more ? ")" : "");
}

static void write_options(FILE *to, const struct cli_option *options, entry_writer *entry) {
    for (const struct cli_option *o = options; o && o->name; o++) {
        char left[ENTRY_LEFT], text[ENTRY_TEXT], letter[] = "-x, ";
        /* Used only where the option has a letter; otherwise the text would contain a NUL. */
        letter[1] = o->letter;
        snprintf(left, sizeof left, "%s--%s%s%s", o->letter ? letter : "", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        describe_entry(text, sizeof text, o->text, "", o->value ? o->value : "");
        entry(to, left, text);
    }
}

/* The name of a setting's value: its words ("pull|router|sub") or its kind ("N"). */
static const char *argument_name(const struct svi_setting *row, char *out, size_t size) {
    static const char *const names[] = {
        [SVI_SET_TEXT] = "TEXT",   [SVI_SET_NAME] = "NAME", [SVI_SET_ADDRESS] = "ADDRESS",
        [SVI_SET_CHOICE] = "WORD", [SVI_SET_INTEGER] = "N", [SVI_SET_NUMBER] = "NUMBER",
        [SVI_SET_BYTES] = "BYTES",
    };
    /* An address may also be one of a few words, but listing these would hide that it is an address. */
    if (!row->words || row->type == SVI_SET_ADDRESS)
        return names[row->type];
    svi_settings_words(row, "|", out, size);
    /* A number with words, as auto, takes either. */
    if (row->type == SVI_SET_INTEGER)
        strncat(out, "|N", size - strlen(out) - 1);
    return out;
}

/* Sentence, range and default of each setting that the command lists (NULL: of all settings). */
static void write_settings(FILE *to, const struct cli_command *command, const char *dashes,
                           entry_writer *entry) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        char left[ENTRY_LEFT], text[ENTRY_TEXT], words[96];
        char range[96] = "";
        if (command && !cli_lists(command, row))
            continue;
        snprintf(left, sizeof left, "%s%s %s", dashes, row->key, argument_name(row, words, sizeof words));
        /* Equal bounds mean that the table has no range for this setting. */
        if (row->low != row->high)
            svi_settings_range(row, range, sizeof range);
        /* The default name of a stream is the word "default", which is left out here. */
        describe_entry(text, sizeof text, row->text, range, strcmp(row->value, "default") ? row->value : "");
        entry(to, left, text);
    }
}

/* ---- help */

void cli_write_help(FILE *to, const struct cli_command *command) {
    fprintf(to, "Usage: svmstream %s%s%s [options]\n\n%s\n", command->name, command->usage[0] ? " " : "",
            command->usage, command->text);
    if (command->help)
        fprintf(to, "\n%s\n", command->help);
    fputs("\nOptions:\n", to);
    write_options(to, command->options, write_entry);
    write_options(to, cli_common_options, write_entry);
    /* NULL lists all settings, "" none: such a command has no section for them. */
    if (command->keys && !command->keys[0])
        return;
    fputs("\nSettings (a flag here, or a line `key: value` in the file of --config):\n", to);
    write_settings(to, command, "--", write_entry);
}

/* The pages by task, or those of the reference. */
static void write_topics(FILE *to, bool task, const char *heading) {
    fputs(heading, to);
    for (const struct svi_manual_page *p = svi_manual_pages; p->topic; p++) {
        char text[128];
        int length;
        if (p->task != task)
            continue;
        /* The summary lies inside the page, so it has a length and no NUL. */
        const char *summary = svi_manual_summary(p, &length);
        snprintf(text, sizeof text, "%.*s", length, summary);
        write_entry(to, p->topic, text);
    }
}

void cli_write_overview(FILE *to, const struct cli_command *const *all) {
    fputs("Usage: svmstream COMMAND [options]\n\nLearn from a stream as it runs: samples in; models, scores, "
          "alerts and stats out.\n\nCommands:\n",
          to);
    for (const struct cli_command *const *c = all; *c; c++)
        if (!(*c)->hidden)
            write_entry(to, (*c)->name, (*c)->text);
    write_topics(to, true, "\nTasks (svmstream help TOPIC):\n");
    write_topics(to, false, "\nReference (svmstream help TOPIC):\n");
    fputs("\nOptions of every command:\n", to);
    write_options(to, cli_common_options, write_entry);
    write_entry(to, "--KEY VALUE", "any setting; `svmstream config default` lists them");
    fputs("\n`svmstream COMMAND --help` lists the options of a command. Exit status: 0 ok, 1 failed, 2 wrong "
          "usage.\n",
          to);
}

/* Collects the names of the listed commands (none when `all` is NULL) and then of the topics; ends in NULL.
 * Returns the number of commands. */
static int list_names(const struct cli_command *const *all, const char *names[NAMES_MAX + 1]) {
    int count = 0, commands;
    for (const struct cli_command *const *c = all; c && *c; c++)
        if (!(*c)->hidden)
            names[count++] = (*c)->name;
    /* The commands precede the topics, so one list serves both: its first `commands` names are the commands.
     */
    commands = count;
    for (const struct svi_manual_page *p = svi_manual_pages; p->topic && count < NAMES_MAX; p++)
        names[count++] = p->topic;
    names[count] = NULL;
    return commands;
}

/* Names pages of the manual that contain the word: the first ones, since a common word is in most. */
static void write_mentions(const char *word) {
    int count = 0;
    for (const struct svi_manual_page *p = svi_manual_pages; p->topic && count < MENTIONS; p++)
        if (strlen(word) >= 3 && strcasestr(p->text, word))
            fprintf(stderr, "%s%s", count++ ? ", " : "; these pages mention it: ", p->topic);
}

int cli_unknown(const struct cli_command *const *all, const char *what, const char *name) {
    const char *names[NAMES_MAX + 1];
    char shown[80];
    const int commands = list_names(all, names);
    /* Where a command is expected, the nearest topic would be wrong advice. */
    if (strcmp(what, "command") == 0)
        names[commands] = NULL;
    const char *nearest = svi_nearest(name, names);
    fprintf(stderr, "svmstream: unknown %s '%s'", what, svi_escape(shown, sizeof shown, name, strlen(name)));
    if (nearest && (strcasecmp(name, nearest) == 0 ||
                    2 * svi_edit_distance(name, nearest, NAMES_MAX) <= (int)strlen(name)))
        fprintf(stderr, ", the nearest known one is '%s'", nearest);
    else
        write_mentions(name);
    fprintf(stderr, "\nsee `svmstream help`\n");
    return CLI_USAGE;
}

static int page_width(bool terminal) {
    struct winsize size;
    /* A page in a pipe or a file must not depend on the window in which it was made. */
    if (!terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < PAGE_NARROW)
        return 80;
    return size.ws_col > PAGE_WIDE ? PAGE_WIDE : size.ws_col;
}

/* `svmstream help [TOPIC|COMMAND]`. */
static int show_help(const struct cli_args *a) {
    const char *name = a->positional[0];
    const struct svi_manual_page *page = name ? svi_manual_find(name) : NULL;
    const struct cli_command *command = name ? cli_find(a->all, name) : NULL;
    const bool terminal = isatty(STDOUT_FILENO);
    if (name && !page && !command)
        return cli_unknown(a->all, "command or topic", name);
    /* A topic precedes a command of the same name: the page says more, and --help still lists the options. */
    if (page)
        svi_manual_write(page, terminal ? SVI_MANUAL_STYLED : SVI_MANUAL_TEXT, page_width(terminal), stdout);
    else if (command)
        cli_write_help(stdout, command);
    else
        cli_write_overview(stdout, a->all);
    return CLI_OK;
}

/* ---- the man page of the program */

static void write_man_command(FILE *to, const struct cli_command *c) {
    write_roff(to, ".SS ", c->name, "\n");
    write_roff(to, ".B svmstream ", c->name, "\n");
    if (c->usage[0])
        write_roff(to, ".I ", c->usage, "\n");
    write_roff(to, ".PP\n", c->text, "\n");
    /* Help texts have examples whose line ends matter, so they are not filled. */
    if (c->help)
        write_roff(to, ".PP\n.nf\n", c->help, "\n.fi\n");
    write_options(to, c->options, write_tagged);
}

void cli_write_man(FILE *to, const struct cli_command *const *all) {
    fprintf(to, ".TH SVMSTREAM 1 \"\" \"svmstream %s\" \"User Commands\"\n", svs_version());
    fputs(".SH NAME\nsvmstream \\- an always current linear SVM of a stream\n"
          ".SH SYNOPSIS\n.B svmstream\n.I COMMAND\n[\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\nSamples come in over ZeroMQ or standard input; each is scored, then learned "
          "exactly, "
          "while the samples\nthat leave the window are exactly removed. Models, scores and stats are "
          "published.\n"
          ".SH COMMANDS\n",
          to);
    /* Common options and settings have sections of their own below, rather than one in each command. */
    for (const struct cli_command *const *c = all; *c; c++)
        if (!(*c)->hidden)
            write_man_command(to, *c);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", to);
    write_options(to, cli_common_options, write_tagged);
    fputs(".SH SETTINGS\nEach is a flag\n.BI \\-\\- \"key value\"\nor a line\n.I key: value\n"
          "of the YAML file named by\n.BR \\-\\-config .\n",
          to);
    write_settings(to, NULL, "", write_tagged);
    fputs(".SH EXIT STATUS\n0 when all went well, 1 when something failed, 2 for a wrong command line.\n",
          to);
}

/* ---- the bash completion */

static void write_option_names(FILE *to, const struct cli_option *options) {
    for (int i = 0; options && options[i].name; i++)
        fprintf(to, " --%s", options[i].name);
}

/* The words that may follow a flag: those of a choice, or file names. */
static void write_values(FILE *to) {
    char words[128];
    /* An address is not completed to words: any text may follow. */
    fputs("    case $prev in\n    -f|--config) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", to);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (row->words && row->type != SVI_SET_ADDRESS)
            fprintf(to, "    --%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", row->key,
                    svi_settings_words(row, " ", words, sizeof words));
    fputs("    esac\n", to);
}

static void write_names(FILE *to, const char *const *names, int count) {
    for (int i = 0; names[i] && i < count; i++)
        fprintf(to, "%s ", names[i]);
}

/* Ends the list of a command's words. After the word `config` there are settings, completed up to their =. */
static void write_words(FILE *to, const struct cli_command *c) {
    /* The caller has opened the quote of the list, which ends here. */
    for (int i = 0; c->word && c->word(false, i); i++)
        fprintf(to, "%s ", c->word(false, i));
    fputs("'", to);
    if (!c->word || !c->word(true, 0))
        return;
    /* The words of the second place must not be offered in the third. Only there settings are, without a
     * blank after their =. */
    fputs("\n        if [ \"$COMP_CWORD\" -gt 2 ]; then\n            words=''\n"
          "            if [ \"${COMP_WORDS[2]}\" = config ]; then\n"
          "                compopt -o nospace 2>/dev/null\n                words='",
          to);
    for (int i = 0; c->word(true, i); i++)
        fprintf(to, "%s= ", c->word(true, i));
    fputs("'\n            fi\n        fi", to);
}

void cli_write_completion(FILE *to, const struct cli_command *const *all) {
    const char *names[NAMES_MAX + 1];
    /* The script decides in this order: the first word, a topic of help, the value of a flag, then the words
     * and flags of the command. Each case returns, so an earlier one wins. */
    const int commands = list_names(all, names);
    fputs("# bash completion for svmstream\n_svmstream() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags words=''\n"
          "    local common='",
          to);
    /* Every command takes every setting, so they are listed once for all. */
    write_option_names(to, cli_common_options);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        fprintf(to, " --%s", row->key);
    fputs("'\n    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '",
          to);
    write_names(to, names, commands);
    fputs("help --help --version' -- \"$cur\"))\n        return\n    fi\n"
          "    if [ \"${COMP_WORDS[1]}\" = help ]; then\n        COMPREPLY=($(compgen -W '",
          to);
    write_names(to, names, NAMES_MAX);
    fputs("' -- \"$cur\"))\n        return\n    fi\n", to);
    write_values(to);
    fputs("    case ${COMP_WORDS[1]} in\n", to);
    for (const struct cli_command *const *c = all; *c; c++) {
        if ((*c)->hidden)
            continue;
        fprintf(to, "    %s)\n        flags=\"$common", (*c)->name);
        write_option_names(to, (*c)->options);
        /* Double quotes above, as $common is to be expanded; single ones here, as words are literal. */
        fputs("\"\n        words='", to);
        for (const struct cli_verb *v = (*c)->verbs; v && v->name; v++)
            fprintf(to, "%s ", v->name);
        write_words(to, *c);
        fputs(" ;;\n", to);
    }
    /* Without words of its own a command takes files. */
    fputs("    *) return ;;\n    esac\n"
          "    if [ \"${cur:0:1}\" = - ]; then\n        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
          "    elif [ -n \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\ncomplete -F _svmstream "
          "svmstream\n",
          to);
}

/* ---- what `make install` asks for */

static int print_page(const struct cli_args *a, enum svi_manual_form form) {
    const struct svi_manual_page *page = svi_manual_find(a->positional[0]);
    if (!page)
        return cli_unknown(NULL, "topic", a->positional[0]);
    svi_manual_write(page, form, 0, stdout);
    return CLI_OK;
}

static int print_man(const struct cli_args *a) {
    if (a->positional_count > 0)
        return print_page(a, SVI_MANUAL_ROFF);
    cli_write_man(stdout, a->all);
    return CLI_OK;
}

static int print_markdown(const struct cli_args *a) {
    return print_page(a, SVI_MANUAL_MARKDOWN);
}

static int print_completion(const struct cli_args *a) {
    cli_write_completion(stdout, a->all);
    return CLI_OK;
}

/* No settings, not in the overview, and no checks of settings. */
#define HIDDEN .keys = "", .hidden = true, .unchecked = true

const struct cli_command cli_help = {.name = "help",
                                     .text = "show a topic of the manual, or the options of a command",
                                     .usage = "[TOPIC|COMMAND]",
                                     .run = show_help,
                                     HIDDEN};

const struct cli_command cli_help_man = {.name = "help-man",
                                         .text = "print the man page of the program or of a topic (roff)",
                                         .usage = "[TOPIC]",
                                         .run = print_man,
                                         HIDDEN};

const struct cli_command cli_help_markdown = {.name = "help-markdown",
                                              .text = "print the page of a topic as Markdown",
                                              .usage = "TOPIC",
                                              .run = print_markdown,
                                              HIDDEN};

const struct cli_command cli_help_completion = {.name = "help-completion",
                                                .text = "print the bash completion",
                                                .usage = "",
                                                .run = print_completion,
                                                HIDDEN};
