/* merge: one exact model of many processes, from the sums that each publishes of its window. */
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "formats/model_file.h"
#include "server/merger.h"

/* With --model a file, else one line of JSON where the records are from standard input. */
static svs_code merge_write(void *user, const svs_model *model, svs_error *err) {
    const struct cli_args *a = user;
    svs_model copy = *model;
    const struct svi_machine machine = {.linear = &copy};
    if (cli_has(a, "model"))
        return svi_machine_write(&machine, cli_value(a, "model"), SVI_FORMAT_OWN, err);
    return svs_model_write_json(model, stdout, err);
}

static int cmd_merge_run(const struct cli_args *a) {
    const bool rows = strcmp(a->positional[0], "-") == 0;
    svs_error err;
    for (int i = 0; i < a->positional_count; i++) {
        if (a->positional_count > 1 && strcmp(a->positional[i], "-") == 0)
            return cli_usage(
                a, "- (records on standard input) cannot be combined with addresses: give one or the other");
        if (strlen(a->positional[i]) >= sizeof a->settings.in)
            return cli_usage(a, "address %d is too long: at most %zu bytes are allowed", i + 1,
                             sizeof a->settings.in - 1);
        if (!rows && strcmp(a->positional[i], a->settings.out) == 0)
            return cli_usage(
                a, "%s is an input of the merge and cannot also be its `out`: set --out to another address",
                a->positional[i]);
    }
    const struct svi_merger_hooks hooks = {.addresses = a->positional,
                                           .count = a->positional_count,
                                           .has_C = cli_given(a, "C"),
                                           .has_scale = cli_given(a, "scale"),
                                           .dropped = cli_has(a, "drop") ? cli_value(a, "drop") : NULL,
                                           .log = a->quiet || rows ? NULL : stderr,
                                           .errors = stderr,
                                           .end = a->quiet ? NULL : stderr,
                                           .done = rows || cli_has(a, "model") ? merge_write : NULL,
                                           .user = (void *)a};
    return cli_end(a, svi_merger_run(&a->settings, &hooks, &err), &err);
}

static const struct cli_option options[] = {
    CLI_OPTION("model", 0, "FILE", NULL, "at the end, write the model to this file, for `svmstream predict`"),
    CLI_OPTION("drop", 0, "PART,...", NULL, "leave these parts out from the beginning, as `ctl drop` does"),
    CLI_END};

const struct cli_command cli_merge = {
    .name = "merge",
    .text = "make one exact model from the windows of many processes",
    .usage = "ADDRESS...",
    .help =
        "Subscribes to the sums that other processes publish (svmstream run --publish.sums SECONDS) at\n"
        "their addresses `out`. Publishes the model of all their samples together, as a `model.` event\n"
        "with method merged: the model that one process would have that held all the windows. Features\n"
        "and classes are joined by name. Records may be lost, repeated and late; the newest of each part\n"
        "counts.\n"
        "\n"
        "C and scale are those of the parts. If the parts differ, give --C and --scale. A part whose\n"
        "columns do not fit is left out and reported. `svmstream ctl` (with the address of this ctl)\n"
        "takes status, stats, model, parts, publish, drop part=NAME, restore part=NAME and stop.\n"
        "\n"
        "With CURVE, curve.server is the public key of all addresses, or one key for each, in their order\n"
        "and separated by commas.\n"
        "\n"
        "With - records are read from standard input, as msgpack maps one after another. At the end of\n"
        "the input the model is printed as a line of JSON, or written to the file of --model. The last\n"
        "line on standard error reports how many of the parts and rows are in the model. Without a model\n"
        "the exit code is 1.\n"
        "\n"
        "Examples:\n"
        "  svmstream merge tcp://host1:5556 tcp://host2:5556 --out tcp://127.0.0.1:6556 --ctl "
        "tcp://127.0.0.1:6557\n"
        "  svmstream ctl drop part=line-7 --ctl tcp://127.0.0.1:6557    # subtracts it, exactly\n"
        "  svmstream-redis sums | svmstream merge - --model all.model",
    .keys = "out ctl stream C scale publish.seconds merge.stale merge.memory max.message max.features "
            "max.classes max.connections "
            "curve curve.allow curve.server insecure",
    .options = options,
    .unchecked = true,
    .run = cmd_merge_run};
