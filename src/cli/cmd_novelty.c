/* svmstream novelty: one-class models of files. */
#include <string.h>

#include "base/fail.h"
#include "cli/novelty.h"

static const struct {
    const char *name;
    int (*run)(const struct cli_args *a);
    int most; /* words, its own name included */
    const char *options;
} verbs[] = {
    {"train", cli_novelty_train, 3, " degree normals-only "},
    {"score", cli_novelty_score, 4, " json top fourier plot threshold "},
    {"show", cli_novelty_show, 2, " json "},
};

static int check(const struct cli_args *a, int verb) {
    char padded[40], shown[80];
    if (a->positional_count > verbs[verb].most) {
        const char *first = a->positional[verbs[verb].most];
        return cli_usage(a, "unexpected argument '%s'",
                         svi_escape(shown, sizeof shown, first, strlen(first)));
    }
    for (int i = 0; a->command->options[i].name; i++) {
        snprintf(padded, sizeof padded, " %s ", a->command->options[i].name);
        if (a->value[i] && !strstr(verbs[verb].options, padded))
            return cli_usage(a, "--%s is no option of `novelty %s`", a->command->options[i].name,
                             verbs[verb].name);
    }
    if (verbs[verb].run == cli_novelty_score && a->positional_count < 3)
        return cli_usage(a, "score needs a model: svmstream novelty score FILE MODEL [OUTPUT]");
    return CLI_OK;
}

static int run(const struct cli_args *a) {
    int verb = 0;
    while (strcmp(verbs[verb].name, a->positional[0]) != 0)
        verb++; /* the frame knows that it is one of them */
    const int usage = check(a, verb);
    return usage == CLI_OK ? verbs[verb].run(a) : usage;
}

static const struct cli_option options[] = {
    {"degree", 'd', "N", "3", "train: of the polynomial kernel"},
    {"normals-only", 0, NULL, NULL, "train: leave out rows whose label is not 0"},
    {"json", 0, NULL, NULL, "score, show: JSON, for scores a line each"},
    {"top", 'n', "N", "0", "score: name the N features that contribute most"},
    {"fourier", 0, "N", "0", "score: by N random Fourier features, cheap for large models; 0 is exact"},
    {"plot", 0, "FILE", NULL, "score: draw feed and scores into FILE.svg or FILE.png (needs gnuplot)"},
    {"threshold", 0, "P", NULL, "score: the plot marks rows of a novelty above P, by default theta"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_novelty = {
    .name = "novelty",
    .text = "train a one-class model of what is normal, and score how new rows are",
    .usage = "train FILE [MODEL] | score FILE MODEL [OUTPUT] | show MODEL",
    .help =
        "train learns the region in which the rows of FILE lie (FOSVM, a one-class SVM by active sets) and "
        "prints the\n"
        "certificate of every member: the smallest membership of the fitted rows, the violation of the "
        "optimality\n"
        "conditions, the rows left outside. MODEL is FILE.novelty in the working directory by default; - is "
        "standard output.\n"
        "score writes a line a row: novelty (0 inside, 1 far away), membership (1 - novelty), surprise (-log "
        "membership),\n"
        "and, where the file has labels (0 normal, else anomalous), AUC and average precision. Labels are "
        "never learned;\n"
        "without --normals-only they are passed over.\n"
        "\n"
        "  svmstream novelty train --ts t --label is_anomaly --novelty.lags 6 machine.csv machine.novelty\n"
        "  svmstream novelty score --ts t --label is_anomaly machine.csv machine.novelty scores.csv\n"
        "  svmstream novelty score --ts t --label is_anomaly --plot machine.svg machine.csv machine.novelty\n"
        "  svmstream novelty show machine.novelty",
    .keys = "novelty novelty.kernel novelty.gamma novelty.theta novelty.epsilon novelty.m novelty.max "
            "novelty.lags novelty.differences "
            "novelty.trim label ts features scale in.format max.features seed",
    .options = options,
    .positional_min = 2,
    .positional_max = 4,
    .words = "train score show",
    .unchecked = true,
    .run = run};
