/* curve: CURVE keys, and the file of the clients that are admitted. */
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "net/acl.h"

/* The file of `new` and `show`: the positional, or the key file of the settings, or the default name. */
static const char *curve_key_file(const struct cli_args *a) {
    const char *set = svi_keys_path(&a->settings);
    return a->positional_count > 1 ? a->positional[1] : set ? set : SVI_KEY_FILE;
}

static int cmd_curve_make(const struct cli_args *a) {
    char key[SVI_KEY_LENGTH + 1];
    svs_error err;
    const char *path = curve_key_file(a);
    if (svi_keys_new(path, key, &err) != SVS_OK)
        return cli_error(a, &err);
    puts(key);
    if (!a->quiet)
        fprintf(stderr, "%s is secret; %s" SVI_KEY_PUBLIC " holds the public key above, which clients need\n",
                path, path);
    return CLI_OK;
}

static int cmd_curve_show(const struct cli_args *a) {
    char key[SVI_KEY_LENGTH + 1];
    struct svi_identity id;
    svs_error err;
    const char *path = curve_key_file(a);
    if (svi_keys_read(path, &id, &err) == SVS_OK)
        memcpy(key, id.public_key, sizeof key);
    else if (svi_key_resolve(path, key, &(svs_error){SVS_OK, ""}) != SVS_OK)
        return cli_error(a, &err);
    svi_identity_wipe(&id);
    puts(key);
    return CLI_OK;
}

static int cmd_curve_allow(const struct cli_args *a) {
    struct svi_client client = {.key = ""};
    svs_error err;
    const char *name = cli_value(a, "name"), *roles = cli_value(a, "role");
    if (!name || !roles)
        return cli_usage(a,
                         "missing option: --name NAME or --role ROLES (svmstream curve allow PUBKEY --name "
                         "NAME --role ROLES)");
    if (svi_acl_client_check(name, roles, &err) != SVS_OK)
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

/* Accepts a name, a key or a key file; names come first, since a name may also be that of a file. */
static int cmd_curve_revoke(const struct cli_args *a) {
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
        fprintf(stderr, "removed %s from %s\n", removed.name, a->settings.curve_allow);
    return CLI_OK;
}

static int cmd_curve_list(const struct cli_args *a) {
    struct svi_acl all = {0};
    svs_error err;
    if (svi_acl_load(&all, a->settings.curve_allow, &err) != SVS_OK)
        return cli_error(a, &err);
    for (int i = 0; i < all.count; i++)
        printf("%-16s %-24s %s\n", all.client[i].name, all.client[i].roles, all.client[i].key);
    svi_acl_clear(&all);
    return CLI_OK;
}

static const struct cli_verb verbs[] = {{"new", cmd_curve_make, "[FILE]", ""},
                                        {"show", cmd_curve_show, "[FILE]", ""},
                                        {"allow", cmd_curve_allow, "PUBKEY", "name role"},
                                        {"revoke", cmd_curve_revoke, "NAME|PUBKEY", ""},
                                        {"list", cmd_curve_list, "", ""},
                                        {NULL, NULL, NULL, NULL}};

static const struct cli_option options[] = {
    CLI_OPTION("name", 0, "NAME", NULL, "with allow: name of the client (1 to 64 letters, digits, _ and -)"),
    CLI_OPTION("role", 0, "ROLES", NULL, "with allow: " SVI_ROLES_TEXT "; several with commas between them"),
    CLI_END};

const struct cli_command cli_curve = {
    .name = "curve",
    .text = "create CURVE keys, and admit or revoke clients",
    .usage = "new [FILE] | show [FILE] | allow PUBKEY | revoke NAME|PUBKEY | list",
    .help =
        "new       creates a key pair and prints the public key; FILE (default: svmstream.key in the\n"
        "          current directory) has the secret key and is readable by its owner only, FILE.pub has\n"
        "          the public key; never replaces a file\n"
        "show      prints the public key of a file\n"
        "allow     adds a client to the file `curve.allow` (svmstream.allow in the current directory), or\n"
        "          changes its name and roles; PUBKEY is a public key or its .pub file\n"
        "revoke    removes a client; a running process disconnects it within half a second\n"
        "list      prints the clients: name, roles, key\n"
        "\n"
        "source:NAME (once or more; a * at the end matches anything) restricts a client: its samples must\n"
        "name one of these as src. Without it they may name any.\n"
        "\n"
        "Examples:\n"
        "  svmstream curve new server.key\n"
        "  svmstream curve allow pump1.key.pub --name pump1 --role ingest:pump1,source:pump1-*\n"
        "  svmstream run --in tcp://*:5555 --stream pump1 --curve server.key\n"
        "  svmstream feed --in tcp://server:5555 --curve pump1.key --curve.server server.key.pub log.csv",
    .keys = "curve curve.allow",
    .options = options,
    .verbs = verbs};
