#include "server/addresses.h"

#include <stdio.h>
#include <string.h>

/* The address with `*` in the place of a host that stands for every interface. */
static const char *addresses_dial(const char *address, char *out, size_t size) {
    static const char *const every[] = {"tcp://0.0.0.0:", "tcp://[::]:", "tcp://*:"};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        const size_t length = strlen(every[i]);
        if (strncmp(address, every[i], length) != 0)
            continue;
        snprintf(out, size, "tcp://*:%s", address + length);
        return out;
    }
    return address;
}

static void addresses_put(struct svi_pack *p, const char *key, const char *address, const char *mode) {
    char text[SVI_TEXT_MAX];
    svi_put_map(p, key, 2);
    svi_pack_key(p, "address");
    if (address)
        svi_pack_text(p, addresses_dial(address, text, sizeof text));
    else
        svi_pack_nil(p);
    svi_put_text(p, "mode", mode);
}

void svi_put_addresses(struct svi_pack *p, const struct svi_settings *s) {
    const struct svi_intake_mode in = svi_settings_intake(s);
    svi_pack_key(p, "addresses");
    const struct svi_open_map map = svi_pack_open(p);
    if (in.mode != SVI_IN_STDIN)
        addresses_put(p, "in", in.binds ? s->in : NULL, svi_settings_word("in.mode", (int)in.mode));
    if (svi_settings_binds(s, "out", s->out))
        addresses_put(p, "out", s->out, "pub");
    if (svi_settings_binds(s, "ctl", s->ctl))
        addresses_put(p, "ctl", s->ctl, "router");
    svi_pack_close(p, map);
    svi_put_bool(p, "curve", strcmp(s->curve, "off") != 0);
}
