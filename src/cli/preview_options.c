#include "cli/preview_options.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/object.h"
#include "report/plot.h"

int cli_preview_check(const struct cli_args *a) {
    static const char *const without[] = {"incidents", "budgets"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (cli_has(a, without[i]) && !cli_has(a, "alerts"))
            return cli_usage(a, "--%s applies to alerts: give --alerts too", without[i]);
    if (cli_has(a, "tolerance") && !cli_has(a, "incidents"))
        return cli_usage(a, "--tolerance applies to marked incidents: give --incidents too");
    if (cli_has(a, "plot") && !svi_plot_takes(cli_value(a, "plot")))
        return cli_usage(a, "--plot: '%s' does not end in .svg or .png", cli_value(a, "plot"));
    return CLI_OK;
}

int cli_preview(const struct cli_args *a, const struct svi_settings *checked, bool once, double row_seconds,
                svi_preview_pass *pass, void *user, struct svi_progress *progress) {
    const struct svi_preview_options o = {.incidents = cli_value(a, "incidents"),
                                          .tolerance =
                                              cli_has(a, "tolerance") ? cli_number(a, "tolerance") : NAN,
                                          .budgets = cli_value(a, "budgets"),
                                          .plot = cli_value(a, "plot"),
                                          .row_seconds = row_seconds,
                                          .json = cli_has(a, "json"),
                                          .quiet = a->quiet,
                                          .once = once};
    svs_error err;
    struct svi_preview *l = svi_alloc(sizeof *l);
    svs_code code = l ? svi_preview_begin(l, &o, checked, &err) : svi_fail_memory(&err, "the alerts");
    if (code == SVS_OK && once && o.incidents && !o.budgets && !a->quiet)
        fprintf(stderr, "the table of budgets was skipped: it needs the rows again, and standard input can "
                        "be read only once\n");
    if (code == SVS_OK)
        code = svi_preview_run(l, pass, user, progress, &err);
    if (code == SVS_OK && o.json)
        code = cli_show_json(l->json.data, l->json.size, &err);
    if (l)
        svi_preview_clear(l);
    svi_free(l);
    return cli_end(a, code, &err);
}
