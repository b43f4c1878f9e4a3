/* keys: the keys of a running stream; and CURVE keys, and the allow file. */
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/object.h"
#include "client/request.h"
#include "net/acl.h"
#include "report/key_report.h"

/* ---- the keys of a stream */

static int cmd_keys_run(const struct cli_args *a) {
    struct svi_settings s = a->settings;
    struct svi_bytes request = {0}, reply = {0};
    svs_error err = {0};
    if (cli_has(a, "name") || cli_has(a, "role"))
        return cli_usage(a, "--name and --role belong to allow");
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
            &s, &(struct client_question){&request, cli_number(a, "timeout"), false, cli_waiting, (void *)a},
            &reply, &err);
    if (code == SVS_OK)
        code = svi_key_report(cli_has(a, "json") ? NULL : stdout, reply.data, reply.data + reply.size, &err);
    if (code == SVS_OK && cli_has(a, "json"))
        code = cli_show_json(reply.data, reply.size, &err);
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return cli_end(a, code, &err);
}

/* ---- CURVE */

/* The file of keys new and keys show: the one that was named, or the settings' key file. */
static const char *key_file(const struct cli_args *a) {
    const char *set = svi_keys_path(&a->settings);
    return a->positional_count > 1 ? a->positional[1] : set ? set : SVI_KEY_FILE;
}

static int cmd_keys_make(const struct cli_args *a) {
    char key[SVI_KEY_LENGTH + 1];
    svs_error err;
    const char *path = key_file(a);
    if (svi_keys_new(path, key, &err) != SVS_OK)
        return cli_error(a, &err);
    puts(key);
    if (!a->quiet)
        fprintf(stderr, "%s is secret; %s" SVI_KEY_PUBLIC " holds the public key above, which clients need\n",
                path, path);
    return CLI_OK;
}

static int cmd_keys_show(const struct cli_args *a) {
    char key[SVI_KEY_LENGTH + 1];
    struct svi_identity id;
    svs_error err;
    const char *path = key_file(a);
    if (svi_keys_read(path, &id, &err) == SVS_OK)
        memcpy(key, id.public_key, sizeof key);
    else if (svi_key_resolve(path, key, &(svs_error){SVS_OK, ""}) != SVS_OK)
        return cli_error(a, &err);
    svi_identity_wipe(&id);
    puts(key);
    return CLI_OK;
}

static int cmd_keys_allow(const struct cli_args *a) {
    struct svi_client client = {.key = ""};
    svs_error err;
    const char *name = cli_value(a, "name"), *roles = cli_value(a, "role");
    if (!name || !roles)
        return cli_usage(a, "missing option: --name NAME or --role ROLES (svmstream keys allow PUBKEY --name "
                            "NAME --role ROLES)");
    if (svi_client_check(name, roles, &err) != SVS_OK)
        return cli_usage(a, "%s", err.text);
    snprintf(client.name, sizeof client.name, "%s", name);
    snprintf(client.roles, sizeof client.roles, "%s", roles);
    if (svi_key_resolve(a->positional[1], client.key, &err) != SVS_OK ||
        svi_acl_add(a->settings.curve_allow, &client, &err) != SVS_OK)
        return cli_error(a, &err);
    if (!a->quiet)
        fprintf(stderr, "%s has the roles %s in %s\n", client.name, client.roles, a->settings.curve_allow);
    return CLI_OK;
}

/* A name, a key or the file of one. */
static int cmd_keys_revoke(const struct cli_args *a) {
    struct svi_client removed;
    char key[SVI_KEY_LENGTH + 1];
    svs_error err;
    const char *name_or_key = a->positional[1];
    svs_code code = svi_acl_remove(a->settings.curve_allow, name_or_key, &removed, &err);
    if (code == SVS_UNKNOWN_ID && svi_key_resolve(name_or_key, key, &(svs_error){SVS_OK, ""}) == SVS_OK)
        code = svi_acl_remove(a->settings.curve_allow, key, &removed, &err);
    if (code != SVS_OK)
        return cli_error(a, &err);
    if (!a->quiet)
        fprintf(stderr, "%s was removed from %s\n", removed.name, a->settings.curve_allow);
    return CLI_OK;
}

static int cmd_keys_list(const struct cli_args *a) {
    struct svi_acl all = {0};
    svs_error err;
    if (svi_acl_load(&all, a->settings.curve_allow, &err) != SVS_OK)
        return cli_error(a, &err);
    for (int i = 0; i < all.count; i++)
        printf("%-16s %-24s %s\n", all.client[i].name, all.client[i].roles, all.client[i].key);
    svi_acl_clear(&all);
    return CLI_OK;
}

static const struct cli_verb verbs[] = {{"new", cmd_keys_make, "[FILE]", ""},
                                        {"show", cmd_keys_show, "[FILE]", ""},
                                        {"allow", cmd_keys_allow, "PUBKEY", "name role"},
                                        {"revoke", cmd_keys_revoke, "NAME|PUBKEY", ""},
                                        {"list", cmd_keys_list, "", ""},
                                        {NULL, NULL, NULL, NULL}};

static const struct cli_option options[] = {
    CLI_OPTION(
        "sort", 0, "quality|age|rows|alerts|name", NULL,
        "what comes first: the worst quality (as it is without this): the error that is above that of \"the "
        "same as before\" by the most, with 97.5 % confidence; the longest silence, the most "
        "rows, the most open alerts, or the name"),
    CLI_INTEGER("limit", 'n', "N", "100", 0, 10000, "at most N keys"),
    CLI_OPTION("like", 0, "TEXT", NULL, "keys with this in their name"),
    CLI_OPTION("prefix", 0, "TEXT", NULL, "keys whose name begins with this"),
    CLI_SWITCH("open", 0, "keys with an alert that is open"),
    CLI_NUMBER("silent", 0, "SECONDS", NULL, 0, 1e9, "keys that had no row for this long"),
    CLI_INTEGER("rows", 0, "N", "0", 0, CLI_UNLIMITED, "keys with at least N rows"),
    CLI_SWITCH("json", 0, "the reply as one JSON object"),
    CLI_NUMBER("timeout", 0, "SECONDS", "10", 0.001, 1e6, "give up when no answer comes for this long"),
    CLI_OPTION("name", 0, "NAME", NULL, "with allow: name of the client (letters, digits, _ and -)"),
    CLI_OPTION("role", 0, "ROLES", NULL, "with allow: " SVI_ROLES_TEXT "; several with commas between them"),
    CLI_END};

const struct cli_command cli_keys = {
    .name = "keys",
    .text = "list the keys of a running stream; make CURVE keys and manage the allow file",
    .usage = "[ENDPOINT] | new [FILE] | show [FILE] | allow PUBKEY | revoke NAME|PUBKEY | list",
    .bare = "[ENDPOINT]",
    .help =
        "Without an action it lists the keys of a stream that was started with --key, the worst first: "
        "rows,\n"
        "how long the last one was ago, quality over the window, and alerts. ENDPOINT is the address `ctl` "
        "of\n"
        "the process. More of one key: svmstream ctl status key=NAME, svmstream watch --key NAME.\n"
        "\n"
        "The actions are about CURVE keys:\n"
        "\n"
        "new       creates a pair of keys: FILE (default: svmstream.key in the current directory) with the\n"
        "          secret key, readable by its owner only, and FILE.pub with the public key; prints the "
        "public\n"
        "          key; never replaces a file\n"
        "show      prints the public key of a file\n"
        "allow     adds a client to the file `curve.allow` (svmstream.allow in the current directory), or\n"
        "          changes its name and roles; PUBKEY is a public key or its .pub file\n"
        "revoke    removes a client; a running process disconnects it within half a second\n"
        "list      prints the clients: name, roles, key\n"
        "\n"
        "With source:NAME (once or more; a * at the end matches anything) the samples of a client must name\n"
        "one of these as src; without it they may name any.\n"
        "\n"
        "  svmstream keys --open\n"
        "  svmstream keys tcp://127.0.0.1:5557 --prefix press- --sort age -n 10\n"
        "  svmstream keys new server.key\n"
        "  svmstream keys allow pump1.key.pub --name pump1 --role ingest:pump1,source:pump1-*\n"
        "  svmstream run --in tcp://*:5555 --stream pump1 --curve server.key\n"
        "  svmstream feed --in tcp://server:5555 --curve pump1.key --curve.server server.key.pub log.csv",
    .keys = "ctl curve curve.server curve.allow",
    .options = options,
    .verbs = verbs,
    .run = cmd_keys_run};
