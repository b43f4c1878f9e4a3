/* The bash completion, from the tables. */
#include <string.h>

#include "cli/options.h"

static void write_option_names(FILE *to, const struct cli_option *options) {
    for (int i = 0; options && options[i].name; i++)
        fprintf(to, " --%s", options[i].name);
}

static void write_words(FILE *to, const char *words, char separator) {
    for (; *words; words++)
        fputc(*words == separator ? ' ' : *words, to);
}

/* What may follow a flag: the words of a choice, file names, or nothing. */
static void write_values(FILE *to) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    fputs("    case $prev in\n    -f|--config) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", to);
    for (int i = 0; i < count; i++) {
        if (!table[i].choices || table[i].type == SVI_SET_ADDRESS)
            continue;
        fprintf(to, "    --%s) COMPREPLY=($(compgen -W '", table[i].key);
        write_words(to, table[i].choices, '|');
        fputs("' -- \"$cur\")); return ;;\n", to);
    }
    fputs("    --scores) COMPREPLY=($(compgen -W 'all none' -- \"$cur\")); return ;;\n    esac\n", to);
}

static void write_command(FILE *to, const struct cli_command *c) {
    fprintf(to, "    %s)\n        flags=\"$common", c->name);
    write_option_names(to, c->options);
    fputs("\"\n        words='", to);
    write_words(to, c->words ? c->words : "", ' ');
    fputs("' ;;\n", to);
}

static void write_names(FILE *to) {
    int count;
    const struct cli_command *const *commands = cli_commands(&count);
    for (int i = 0; i < count; i++)
        if (!commands[i]->hidden)
            fprintf(to, "%s%s", i > 0 ? " " : "", commands[i]->name);
}

void cli_write_completion(FILE *to) {
    int commands_count, rows;
    const struct cli_command *const *commands = cli_commands(&commands_count);
    const struct svi_setting *table = svi_settings_table(&rows);
    fputs("# bash completion for svmstream\n_svmstream() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags words=''\n"
          "    local common='",
          to);
    write_option_names(to, cli_common_options());
    for (int i = 0; i < rows; i++)
        fprintf(to, " --%s", table[i].key);
    fputs("'\n    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '",
          to);
    write_names(to);
    fputs(" --help --version' -- \"$cur\"))\n        return\n    fi\n", to);
    write_values(to);
    fputs("    case ${COMP_WORDS[1]} in\n", to);
    for (int i = 0; i < commands_count; i++)
        if (!commands[i]->hidden)
            write_command(to, commands[i]);
    fputs("    *) return ;;\n    esac\n"
          "    if [ \"${cur:0:1}\" = - ]; then\n        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
          "    elif [ -n \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    else\n        COMPREPLY=($(compgen -f -- \"$cur\"))\n    fi\n}\ncomplete -F _svmstream "
          "svmstream\n",
          to);
}
