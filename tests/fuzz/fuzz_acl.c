/* Any bytes as an allow file: refused with a text, or clients in order, each with roles that are known. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/acl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check(const struct svi_acl *c) {
    svs_error err;
    for (int i = 0; i < c->count; i++) {
        const struct svi_client *one = &c->client[i];
        must(svi_key_check(one->key, &err) == SVS_OK &&
             svi_acl_client_check(one->name, one->roles, &err) == SVS_OK);
        must(svi_acl_find(c, one->key) == one);
        must(i == 0 || strcmp(c->client[i - 1].key, one->key) < 0);
        for (int r = 0; r < SVI_ROLE_COUNT; r++)
            (void)svi_acl_client_may(one, (enum svi_role)r, "pump1");
        must(!svi_acl_client_may_send_as(one, "", 0) ||
             svi_acl_client_may_send_as(one, "pump1", 5)); /* bound, or free */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct svi_acl c = {0};
    svs_error err = {SVS_OK, ""};
    svs_code code = svi_acl_parse(&c, "fuzz", (const char *)data, size, &err);
    must(code == SVS_OK || (c.count == 0 && err.text[0] && strlen(err.text) < sizeof err.text));
    check(&c);
    svi_acl_clear(&c);
    return 0;
}
