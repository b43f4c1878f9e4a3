#include "engine/origin.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

void svi_origin_read(const struct svi_frame *f, struct svi_origin *o) {
    struct svi_item map, key;
    const uint8_t *at = svi_item_read(f->at, &map);
    *o = (struct svi_origin){{0}, {0}};
    for (uint32_t i = 0; map.type == SVI_MAP && i < map.length; i++) {
        const uint8_t *value = svi_item_read(at, &key);
        bool text = key.type == SVI_STRING;
        if (!text)
            svi_walk(&at, f->end, SVI_DEPTH_MAX);
        at = text ? value : at;
        if (text && key.length == 3 && memcmp(key.body, "src", 3) == 0)
            svi_item_read(at, &o->src);
        else if (text && key.length == 1 && key.body[0] == 'n')
            svi_item_read(at, &o->n);
        svi_walk(&at, f->end, SVI_DEPTH_MAX);
    }
}

void svi_origin_find(const void *bytes, size_t length, struct svi_origin *o) {
    struct svi_frame f;
    svs_error ignored;
    *o = (struct svi_origin){{0}, {0}};
    if (svi_frame_open(&f, bytes, length, &ignored) == SVS_OK && f.left > 0)
        svi_origin_read(&f, o);
}

svs_code svi_origin_name(const struct svi_origin *o, svs_error *err) {
    const char *name = (const char *)o->src.body;
    if (o->src.type == SVI_STRING && o->src.length >= 1 && o->src.length <= SVS_NAME_MAX &&
        !memchr(name, 0, o->src.length) && svi_utf8_valid(name, o->src.length))
        return SVS_OK;
    return svi_fail(err, SVS_NO_SOURCE, "src must be a name of 1 to %d bytes of UTF-8", SVS_NAME_MAX);
}

svs_code svi_origin_number(const struct svi_origin *o, int64_t *number, svs_error *err) {
    const struct svi_item *n = &o->n;
    double real;
    *number = n->type == SVI_INT ? n->i : -1;
    if (n->type == SVI_REAL && svi_item_number(n, &real) && real == trunc(real) && real >= 0 && real < 0x1p53)
        *number = (int64_t)real;
    return *number >= 0 ? SVS_OK : svi_fail(err, SVS_NO_SOURCE, "n must be a whole number from 0");
}
