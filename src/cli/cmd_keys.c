/* keys: the stream keys of a running process. */
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/object.h"
#include "client/request.h"
#include "report/key_report.h"

static int cmd_keys_run(const struct cli_args *a) {
    struct svi_settings s = a->settings;
    struct svi_bytes request = {0}, reply = {0};
    svs_error err = {0};
    const struct client_keys wanted = {.sort = cli_value(a, "sort"),
                                       .like = cli_value(a, "like"),
                                       .prefix = cli_value(a, "prefix"),
                                       .limit = cli_integer(a, "limit"),
                                       .rows = cli_integer(a, "rows"),
                                       .silent = cli_has(a, "silent") ? cli_number(a, "silent") : 0,
                                       .open = cli_has(a, "open")};
    svs_code code = a->positional_count > 0 ? svi_settings_set(&s, "ctl", a->positional[0], &err) : SVS_OK;
    if (code == SVS_OK && client_keys_request(&wanted, &request) != SVS_OK)
        code = svi_fail_memory(&err, "the request");
    if (code == SVS_OK)
        code = client_ask(
            &s, &(struct client_question){&request, cli_number(a, "timeout"), false, cli_waiting, (void *)a, 0},
            &reply, &err);
    if (code == SVS_OK)
        code = svi_key_report(cli_has(a, "json") ? NULL : stdout, reply.data, reply.data + reply.size, &err);
    if (code == SVS_OK && cli_has(a, "json"))
        code = cli_show_json(reply.data, reply.size, &err);
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return cli_end(a, code, &err);
}

static const struct cli_option options[] = {
    CLI_OPTION("sort", 0, "quality|age|rows|alerts|name", NULL,
               "sort by quality (default: the error exceeds that of \"the same as before\" by the most, with "
               "97.5 % confidence), longest silence, most rows, most open alerts, or name"),
    CLI_INTEGER("limit", 'n', "N", "100", 0, 10000, "list at most N keys"),
    CLI_OPTION("like", 0, "TEXT", NULL, "list only keys with this in their name"),
    CLI_OPTION("prefix", 0, "TEXT", NULL, "list only keys whose name begins with this"),
    CLI_SWITCH("open", 0, "list only keys with an open alert"),
    CLI_NUMBER("silent", 0, "SECONDS", NULL, 0, 1e9, "list only keys without a row for this long"),
    CLI_INTEGER("rows", 0, "N", "0", 0, CLI_UNLIMITED, "list only keys with at least N rows"),
    CLI_SWITCH("json", 0, "print the reply as one JSON object"),
    CLI_NUMBER("timeout", 0, "SECONDS", "10", 0.001, 1e6, "give up after this long without a reply"),
    CLI_END};

const struct cli_command cli_keys = {
    .name = "keys",
    .text = "list the stream keys of a running process",
    .usage = "[ENDPOINT]",
    .help =
        "Lists the keys of a stream that was started with --key, the worst first: rows, time since the\n"
        "last one, quality over the window, and alerts. ENDPOINT is the address `ctl` of the process. For\n"
        "one key, use `svmstream ctl status key=NAME` or `svmstream watch --key NAME`.\n"
        "\n"
        "Examples:\n"
        "  svmstream keys --open\n"
        "  svmstream keys tcp://127.0.0.1:5557 --prefix press- --sort age -n 10",
    .keys = "ctl curve curve.server",
    .options = options,
    .run = cmd_keys_run};
