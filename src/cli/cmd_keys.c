/* keys: CURVE keys, and the file of those that are let in. */
#include <string.h>

#include "base/fail.h"
#include "cli/command.h"
#include "engine/allow.h"

/* Where keys new and keys show work: what was named, or the settings' key file. */
static const char *key_file(const struct cli_args *a) {
    const char *set = svi_keys_path(&a->settings);
    return a->positional_count > 1 ? a->positional[1] : set ? set : SVI_KEY_FILE;
}

static int make(const struct cli_args *a) {
    char key[SVI_KEY_LENGTH + 1];
    svs_error err;
    const char *path = key_file(a);
    if (svi_keys_new(path, key, &err) != SVS_OK)
        return cli_error(a, &err);
    puts(key);
    if (!a->quiet)
        fprintf(stderr, "%s is secret; %s" SVI_KEY_PUBLIC " holds the public key above, to be given away\n",
                path, path);
    return CLI_OK;
}

static int show(const struct cli_args *a) {
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

static int allow(const struct cli_args *a) {
    struct svi_client client = {.key = ""};
    svs_error err;
    const char *name = cli_value(a, "name"), *roles = cli_value(a, "role");
    if (a->positional_count < 2 || !name || !roles)
        return cli_usage(a, "something is missing: svmstream keys allow PUBKEY --name NAME --role ROLES");
    if (svi_client_check(name, roles, &err) != SVS_OK)
        return cli_usage(a, "%s", err.text);
    snprintf(client.name, sizeof client.name, "%s", name);
    snprintf(client.roles, sizeof client.roles, "%s", roles);
    if (svi_key_resolve(a->positional[1], client.key, &err) != SVS_OK ||
        svi_allow_add(a->settings.curve_allow, &client, &err) != SVS_OK)
        return cli_error(a, &err);
    if (!a->quiet)
        fprintf(stderr, "%s may %s, by %s\n", client.name, client.roles, a->settings.curve_allow);
    return CLI_OK;
}

/* A name, a key or the file of one. */
static int revoke(const struct cli_args *a) {
    struct svi_client taken;
    char key[SVI_KEY_LENGTH + 1];
    svs_error err;
    if (a->positional_count < 2)
        return cli_usage(a, "something is missing: svmstream keys revoke NAME|PUBKEY");
    const char *who = a->positional[1];
    svs_code code = svi_allow_remove(a->settings.curve_allow, who, &taken, &err);
    if (code == SVS_UNKNOWN_ID && svi_key_resolve(who, key, &(svs_error){SVS_OK, ""}) == SVS_OK)
        code = svi_allow_remove(a->settings.curve_allow, key, &taken, &err);
    if (code != SVS_OK)
        return cli_error(a, &err);
    if (!a->quiet)
        fprintf(stderr, "%s may no more, by %s\n", taken.name, a->settings.curve_allow);
    return CLI_OK;
}

static int list(const struct cli_args *a) {
    struct svi_clients all = {0};
    svs_error err;
    if (svi_clients_load(&all, a->settings.curve_allow, &err) != SVS_OK)
        return cli_error(a, &err);
    for (int i = 0; i < all.count; i++)
        printf("%-16s %-24s %s\n", all.client[i].name, all.client[i].roles, all.client[i].key);
    svi_clients_clear(&all);
    return CLI_OK;
}

static int run(const struct cli_args *a) {
    static const struct {
        const char *word;
        int (*run)(const struct cli_args *a);
        int words;
    } actions[] = {
        {"new", make, 2}, {"show", show, 2}, {"allow", allow, 2}, {"revoke", revoke, 2}, {"list", list, 1}};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(a->positional[0], actions[i].word) == 0)
            return a->positional_count > actions[i].words
                       ? cli_usage(a, "unexpected argument '%.40s'", a->positional[actions[i].words])
                       : actions[i].run(a);
    return cli_usage(a, "nothing to do for '%.40s'", a->positional[0]);
}

static const struct cli_option options[] = {
    {"name", 0, "NAME", NULL, "with allow: what the client is called, letters, digits, _ and -"},
    {"role", 0, "ROLES", NULL,
     "with allow: ingest, ingest:STREAM, source:NAME, subscribe, control; several with commas between them"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_keys = {
    .name = "keys",
    .text = "make CURVE keys, and say who is let in",
    .usage = "new [FILE] | show [FILE] | allow PUBKEY | revoke NAME|PUBKEY | list",
    .help =
        "new       makes a pair of keys: FILE (svmstream.key in the present folder) holds the secret and "
        "is for\n"
        "          its owner alone, FILE.pub the public key; prints the public key; replaces nothing\n"
        "show      prints the public key of a file\n"
        "allow     lists a client in the file `curve.allow` (svmstream.allow in the present folder), or "
        "changes\n"
        "          its name and roles; PUBKEY is a public key or its .pub file\n"
        "revoke    takes a client out; a process that runs cuts it off within half a second\n"
        "list      who is let in: name, roles, key\n"
        "\n"
        "With source:NAME (once or more, a * at the end stands for anything) the samples of a client must "
        "name one\n"
        "of these as src; without it they may name any.\n"
        "\n"
        "  svmstream keys new server.key\n"
        "  svmstream keys allow pump1.key.pub --name pump1 --role ingest:pump1,source:pump1-*\n"
        "  svmstream run --in tcp://*:5555 --stream pump1 --curve server.key\n"
        "  svmstream feed --in tcp://server:5555 --curve pump1.key --curve.server server.key.pub log.csv",
    .keys = "curve curve.allow",
    .options = options,
    .positional_min = 1,
    .positional_max = 2,
    .words = "new show allow revoke list",
    .run = run};
