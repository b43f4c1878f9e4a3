/* preview_options.h: options of the commands that preview alerts on past rows, `eval` and `replay`. */
#ifndef SVI_PREVIEW_OPTIONS_H
#define SVI_PREVIEW_OPTIONS_H

#include "cli/command.h"
#include "report/preview.h"

/* Rows of the table of options. The commands define --json and --plot themselves. */
#define CLI_PREVIEW_OPTIONS                                                                                     \
    CLI_SWITCH("alerts", 0, "print the alerts that would have been reported, and when"),                     \
        CLI_OPTION(                                                                                          \
            "incidents", 0, "CSV", NULL,                                                                     \
            "with --alerts: marked faults, columns start,end,name (end and name may be empty): which "       \
            "are found, how soon, and how many alerts are false"),                                           \
        CLI_NUMBER("tolerance", 0, "SECONDS", NULL, 0, 1e9,                                                  \
                   "with --incidents: an alert this long before or after an incident still belongs to it; "  \
                   "in rows if the file has no times"),                                                      \
        CLI_OPTION("budgets", 0, "LIST", NULL,                                                               \
                   "with --alerts: a table over these alert budgets, each in a separate run; default with "          \
                   "--incidents " SVI_PREVIEW_BUDGETS "; none omits the table")

/* CLI_USAGE, with a message, when the options contradict each other or lack --alerts; else CLI_OK. */
int cli_preview_check(const struct cli_args *a);

/* Runs all passes and prints everything. `checked`: settings to check the budgets with, NULL = none; `once`:
 * the rows can be read only once; row_seconds: as in svi_preview_options. Returns an exit code. */
int cli_preview(const struct cli_args *a, const struct svi_settings *checked, bool once, double row_seconds,
                svi_preview_pass *pass, void *user, struct svi_progress *progress);

#endif
