#include "cli/object.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "wire/json.h"

char *cli_scalar(struct svi_view o, char *out, size_t size) {
    const struct svi_item item = svi_view_item(o);
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

char *cli_key_text(struct svi_view map, const char *key, char *out, size_t size) {
    return cli_scalar(svi_view_key(map, key), out, size);
}

svs_code cli_show_json(const void *bytes, size_t length, svs_error *err) {
    struct svi_bytes line = {0};
    svs_code code = svi_json_msgpack(&line, bytes, length, err);
    if (code == SVS_OK)
        printf("%.*s\n", (int)line.size, (const char *)line.data);
    svi_bytes_clear(&line);
    return code;
}
