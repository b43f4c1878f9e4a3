/* The help texts, all from the tables of commands, options and settings. */
#include "cli/help.h"

#include <string.h>

#include "cli/options.h"

#define WIDTH  100
#define INDENT 28

/* `left` in the left column, then `text` broken between words in the right one. */
static void write_entry(FILE *to, const char *left, const char *text) {
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
        if (column > INDENT && column + 1 + (int)length > WIDTH) {
            fprintf(to, "\n%*s", INDENT, "");
            column = INDENT;
        }
        column += fprintf(to, "%s%.*s", column > INDENT ? " " : "", (int)length, text);
    }
    fputc('\n', to);
}

const char *cli_argument_name(const struct svi_setting *row) {
    static const char *const names[] = {
        [SVI_SET_TEXT] = "TEXT",   [SVI_SET_NAME] = "NAME",         [SVI_SET_ADDRESS] = "ADDRESS",
        [SVI_SET_CHOICE] = "WORD", [SVI_SET_INTEGER] = "N",         [SVI_SET_NUMBER] = "NUMBER",
        [SVI_SET_BYTES] = "BYTES", [SVI_SET_SCORES] = "all|none|N",
    };
    return row->choices && row->type != SVI_SET_ADDRESS ? row->choices : names[row->type];
}

static bool in_list(const char *list, const char *key) {
    for (size_t length; *list; list += length) {
        list += strspn(list, " ");
        length = strcspn(list, " ");
        bool group = length > 0 && list[length - 1] == '.';
        if (length > 0 && strncmp(list, key, length) == 0 && (group || key[length] == '\0'))
            return true;
    }
    return false;
}

bool cli_lists(const struct cli_command *command, const struct svi_setting *row) {
    return !command->keys || in_list(command->keys, row->key);
}

void cli_describe_setting(const struct svi_setting *row, char *out, size_t size) {
    char range[96];
    const char *value = row->value[0] ? row->value : "empty";
    const char *unit = row->unit[0] ? " " : "";
    bool bounded = row->low != row->high;
    if (bounded)
        snprintf(out, size, "%s (%s; default %s)", row->text, svi_settings_range(row, range, sizeof range),
                 value);
    else
        snprintf(out, size, "%s (default %s%s%s)", row->text, value, unit, row->unit);
}

void cli_describe_option(const struct cli_option *option, char *out, size_t size) {
    if (option->value && option->value[0])
        snprintf(out, size, "%s (default %s)", option->text, option->value);
    else
        snprintf(out, size, "%s", option->text);
}

void cli_option_left(const struct cli_option *option, char *out, size_t size) {
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(out, size, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
}

static void write_options(FILE *to, const struct cli_option *options) {
    char left[96], text[512];
    for (int i = 0; options && options[i].name; i++) {
        cli_option_left(&options[i], left, sizeof left);
        cli_describe_option(&options[i], text, sizeof text);
        write_entry(to, left, text);
    }
}

static void write_settings(FILE *to, const struct cli_command *command) {
    int count;
    char left[128], text[512];
    const struct svi_setting *table = svi_settings_table(&count);
    if (command->keys && command->keys[0] == '\0')
        return;
    fputs("\nSettings (a flag here, or a line `key: value` in the file of --config):\n", to);
    for (int i = 0; i < count; i++) {
        if (!cli_lists(command, &table[i]))
            continue;
        snprintf(left, sizeof left, "--%s %s", table[i].key, cli_argument_name(&table[i]));
        cli_describe_setting(&table[i], text, sizeof text);
        write_entry(to, left, text);
    }
}

void cli_write_help(FILE *to, const struct cli_command *command) {
    const char *usage = command->usage ? command->usage : "";
    fprintf(to, "Usage: svmstream %s%s%s [options]\n\n%s\n", command->name, usage[0] ? " " : "", usage,
            command->text);
    if (command->help)
        fprintf(to, "\n%s%s", command->help, command->help[strlen(command->help) - 1] == '\n' ? "" : "\n");
    fputs("\nOptions:\n", to);
    write_options(to, command->options);
    write_options(to, cli_common_options());
    write_settings(to, command);
}

void cli_write_overview(FILE *to) {
    int count;
    const struct cli_command *const *commands = cli_commands(&count);
    fputs(
        "Usage: svmstream COMMAND [options]\n\n"
        "An always current linear SVM of a stream: samples in, models, scores and stats out.\n\nCommands:\n",
        to);
    for (int i = 0; i < count; i++)
        if (!commands[i]->hidden)
            write_entry(to, commands[i]->name, commands[i]->text);
    fputs("\nOptions of every command:\n", to);
    write_options(to, cli_common_options());
    write_entry(to, "--KEY VALUE", "any setting, as listed by `svmstream config default`");
    fputs("\nsvmstream COMMAND --help tells more. Exit status: 0 ok, 1 failed, 2 wrong usage.\n", to);
}
