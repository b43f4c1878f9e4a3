/* run: the stream processor. */
#include <string.h>

#include "cli/options.h"
#include "net/acl.h"
#include "server/server.h"

/* Checks keys before the server starts: a start that fails for a missing key must not create a state, which
 * would keep its settings. */
static svs_code check_keys(const struct svi_settings *s, svs_error *err) {
    struct svi_identity id;
    struct svi_acl acl = {0};
    svs_code code = svi_settings_check_security(s, err);
    if (code != SVS_OK || strcmp(s->in, "-") == 0)
        return code;
    code = svi_identity_load(s, false, &id, err);
    if (code == SVS_OK && id.on)
        code = svi_acl_load(&acl, s->curve_allow, err);
    svi_acl_clear(&acl);
    svi_identity_wipe(&id);
    return code;
}

static svs_code read_again(const void *args, struct svi_settings *s, svs_error *err) {
    return cli_settings_again(args, s, err);
}

static int cmd_run_run(const struct cli_args *a) {
    const struct svi_server_hooks hooks = {.scores = stdout,
                                           .refused = stderr,
                                           .log = a->quiet ? NULL : stderr,
                                           .every = cli_integer(a, "every"),
                                           .errors = stderr,
                                           .read_again = read_again,
                                           .args = a};
    svs_error err;
    const char *format = a->settings.in_format;
    if (strcmp(a->settings.in, "-") != 0 && strcmp(format, "auto") != 0 && strcmp(format, "msgpack") != 0)
        return cli_usage(a,
                         "in.format %s applies to standard input only: set in to -, or send the file to the "
                         "socket with `svmstream feed`",
                         format);
    if (strcmp(a->settings.in, "-") != 0 && cli_has(a, "every"))
        return cli_usage(a, "--every applies to standard input only: set in to -, or use `svmstream watch "
                            "stats` or `svmstream ctl status`");
    svs_code code = check_keys(&a->settings, &err);
    return cli_end(a, code == SVS_OK ? svi_server_run(&a->settings, &hooks, &err) : code, &err);
}

static const struct cli_option options[] = {
    CLI_INTEGER("every", 0, "N", "0", 0, CLI_UNLIMITED,
                "with --in -: a line of figures after every N rows, 0 = at rows 1, 2, 4, 8, ..."),
    CLI_END};

const struct cli_command cli_run = {
    .name = "run",
    .text = "learn from a stream; publish models, scores, alerts and stats",
    .usage = "",
    .unexpected = "read a file with `svmstream run --in - < FILE`, or send it with `svmstream feed`",
    .help =
        "Reads samples at `in`, publishes at `out` and answers requests at `ctl`. SIGINT, SIGTERM or\n"
        "`svmstream ctl stop` ends it, after everything received is learned and published. Standard error\n"
        "shows the bound addresses. A port of * selects a free one.\n"
        "\n"
        "SIGHUP reads the file of --config, the allow file and the key file again. Settings that may\n"
        "change while the process runs take effect. The others are listed, because they need a restart.\n"
        "\n"
        "--in - reads samples from standard input and writes scores to standard output as JSON lines. It\n"
        "opens no socket unless you give --out or --ctl. Standard error shows progress at rows 1, 2, 4,\n"
        "8, ... and on a terminal every second, or every N rows with --every N.\n"
        "\n"
        "An address that other machines can reach needs CURVE (`svmstream curve new`, `svmstream curve\n"
        "allow` and --curve on) or --insecure.\n"
        "\n"
        "Examples:\n"
        "  svmstream run\n"
        "  svmstream run --in ipc:///run/samples --in.mode router --window 5000 --C 10\n"
        "  svmstream run --in tcp://*:7000 --curve server.key\n"
        "  svmstream run --in - --key machine < plant.csv        # a model for each machine\n"
        "  svmstream run --in - --label class < examples.csv",
    .options = options,
    .run = cmd_run_run};
