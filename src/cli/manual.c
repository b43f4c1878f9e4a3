/* The man page (roff, man macros), from the tables. */
#include <string.h>

#include "cli/help.h"
#include "cli/options.h"
#include "svmstream/svmstream.h"

/* Text as roff takes it: backslashes and dashes escaped, no line begins with a control character. */
static void write_roff(FILE *to, const char *text) {
    bool begin = true;
    for (; *text; text++) {
        if (begin && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
        begin = *text == '\n';
    }
}

static void write_tagged(FILE *to, const char *tag, const char *text) {
    fputs(".TP\n.B ", to);
    write_roff(to, tag);
    fputc('\n', to);
    write_roff(to, text);
    fputc('\n', to);
}

static void write_options(FILE *to, const struct cli_option *options) {
    char left[96], text[512];
    for (int i = 0; options && options[i].name; i++) {
        cli_option_left(&options[i], left, sizeof left);
        cli_describe_option(&options[i], text, sizeof text);
        write_tagged(to, left, text);
    }
}

static void write_command(FILE *to, const struct cli_command *c) {
    fputs(".SS ", to);
    write_roff(to, c->name);
    fputs("\n.B svmstream ", to);
    write_roff(to, c->name);
    fputs("\n", to);
    if (c->usage && c->usage[0]) {
        fputs(".I ", to);
        write_roff(to, c->usage);
        fputc('\n', to);
    }
    fputs(".PP\n", to);
    write_roff(to, c->text);
    fputs("\n", to);
    if (c->help) {
        fputs(".PP\n.nf\n", to);
        write_roff(to, c->help);
        fputs("\n.fi\n", to);
    }
    write_options(to, c->options);
}

static void write_settings(FILE *to) {
    int count;
    char left[128], text[512];
    const struct svi_setting *table = svi_settings_table(&count);
    fputs(".SH SETTINGS\nEach is a flag\n.BI \\-\\- \"key value\"\nor a line\n.I key: value\n"
          "of the YAML file named by\n.BR \\-\\-config .\n",
          to);
    for (int i = 0; i < count; i++) {
        snprintf(left, sizeof left, "%s %s", table[i].key, cli_argument_name(&table[i]));
        cli_describe_setting(&table[i], text, sizeof text);
        write_tagged(to, left, text);
    }
}

void cli_write_man(FILE *to) {
    int count;
    const struct cli_command *const *commands = cli_commands(&count);
    fprintf(to, ".TH SVMSTREAM 1 \"\" \"svmstream %s\" \"User Commands\"\n", svs_version());
    fputs(".SH NAME\nsvmstream \\- an always current linear SVM of a stream\n"
          ".SH SYNOPSIS\n.B svmstream\n.I COMMAND\n[\\fIoptions\\fR]\n"
          ".SH DESCRIPTION\nSamples come in over ZeroMQ or standard input; each is scored, then learned "
          "exactly, "
          "while the samples\nthat leave the window are exactly removed. Models, scores and stats are "
          "published.\n"
          ".SH COMMANDS\n",
          to);
    for (int i = 0; i < count; i++)
        if (!commands[i]->hidden)
            write_command(to, commands[i]);
    fputs(".SH OPTIONS OF EVERY COMMAND\n", to);
    write_options(to, cli_common_options());
    write_settings(to);
    fputs(".SH EXIT STATUS\n0 when all went well, 1 when something failed, 2 for a wrong command line.\n",
          to);
}
