#include "token_command.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "http_log.h"
#include "tokens.h"

static int http_token_command_usage(const char *what, const char *word) {
    http_log("%s%s; usage: svmstream-http token --name NAME --role ROLES [--tokens FILE], with ROLES "
             "of " HTTP_ROLES_TEXT "; or token --revoke NAME --tokens FILE",
             what, word);
    return 2;
}

/* Prints the new token, alone on standard output so that a script can take it. */
static svs_code http_token_command_make(const char *name, const char *roles, const char *file,
                                        svs_error *err) {
    char text[HTTP_TOKEN_BYTES], line[HTTP_TOKEN_LINE];
    svs_code code = http_tokens_make(name, roles, text, line, err);
    if (code == SVS_OK && file)
        code = http_tokens_append(file, line, err);
    if (code == SVS_OK) {
        if (!file)
            fprintf(stderr, "its line of the tokens file: %s", line);
        puts(text);
        if (fflush(stdout) != 0)
            code = svi_fail(err, SVS_IO, "cannot write the token to standard output");
    }
    explicit_bzero(text, sizeof text);
    return code;
}

static svs_code http_token_command_revoke(const char *name, const char *file, svs_error *err) {
    SVI_TRY(http_tokens_remove(file, name, err));
    http_log("removed %s from %s; send SIGHUP to a running svmstream-http to read the file", name, file);
    return SVS_OK;
}

int http_token_command_run(int argc, char *const *argv) {
    const char *name = NULL, *roles = NULL, *file = NULL, *revoked = NULL;
    const struct {
        const char *option;
        const char **value;
    } known[] = {{"--name", &name}, {"--role", &roles}, {"--tokens", &file}, {"--revoke", &revoked}};
    svs_error err;
    for (int i = 1; i < argc; i++) {
        const size_t length = strcspn(argv[i], "=");
        const char **value = NULL;
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            if (strlen(known[k].option) == length && memcmp(known[k].option, argv[i], length) == 0)
                value = known[k].value;
        if (!value)
            return http_token_command_usage("not an option of token: ", argv[i]);
        if (!argv[i][length] && i + 1 == argc)
            return http_token_command_usage("a value is missing after ", argv[i]);
        *value = argv[i][length] ? argv[i] + length + 1 : argv[i + 1];
        i += !argv[i][length];
    }
    if (revoked && (name || roles))
        return http_token_command_usage("--revoke", " takes neither --name nor --role");
    if (revoked ? !file : !name || !roles)
        return http_token_command_usage(revoked ? "--tokens" : name ? "--role" : "--name", " is missing");
    const svs_code code = revoked ? http_token_command_revoke(revoked, file, &err)
                                  : http_token_command_make(name, roles, file, &err);
    if (code != SVS_OK)
        http_log("%s", err.text);
    return code == SVS_OK ? 0 : code == SVS_INVALID ? 2 : 1;
}
