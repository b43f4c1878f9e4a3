#include "cli/object.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "wire/fields.h"
#include "wire/json.h"

struct svi_item cli_item(struct cli_object o) {
    struct svi_item item = {.type = SVI_NIL};
    if (o.at)
        svi_item_read(o.at, &item);
    return item;
}

struct cli_object cli_key(struct cli_object map, const char *key) {
    const struct svi_item item = cli_item(map);
    const uint8_t *at = item.body;
    for (uint32_t i = 0; item.type == SVI_MAP && i < item.length; i++) {
        struct cli_object value = {at, at};
        struct svi_item name;
        svi_item_read(at, &name);
        svi_walk(&value.at, map.end, SVI_WALK_MAX); /* past the name, then past its value */
        value.end = value.at;
        svi_walk(&value.end, map.end, SVI_WALK_MAX);
        if (svi_item_is(&name, key))
            return value;
        at = value.end;
    }
    return (struct cli_object){NULL, NULL};
}

char *cli_scalar(struct cli_object o, char *out, size_t size) {
    const struct svi_item item = cli_item(o);
    if (item.type == SVI_BOOL)
        snprintf(out, size, "%s", item.i ? "true" : "false");
    else if (item.type == SVI_INT)
        snprintf(out, size, "%" PRId64, item.i);
    else if (item.type == SVI_HUGE_INT)
        snprintf(out, size, "%" PRIu64, (uint64_t)item.i);
    else if (item.type == SVI_REAL)
        snprintf(out, size, "%.4g", item.r);
    else if (item.type == SVI_STRING || item.type == SVI_BIN)
        svi_escape(out, size, (const char *)item.body, item.length);
    else
        snprintf(out, size, "-");
    return out;
}

char *cli_key_text(struct cli_object map, const char *key, char *out, size_t size) {
    return cli_scalar(cli_key(map, key), out, size);
}

svs_code cli_show_json(const void *bytes, size_t length, svs_error *err) {
    struct svi_bytes line = {0};
    svs_code code = svi_json_msgpack(&line, bytes, length, err);
    if (code == SVS_OK)
        printf("%.*s\n", (int)line.size, (const char *)line.data);
    svi_bytes_clear(&line);
    return code;
}
