#include "cli/feed_columns.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/object.h"
#include "client/request.h"
#include "wire/columns.h"
#include "wire/fields.h"

#define ASK_SECONDS 1.0

/* The names in their order; NULL: no memory. The caller frees the array. */
static const char **feed_columns_names(const struct svi_shape *shape, int count) {
    const char **names = svi_alloc_array((size_t)count, sizeof *names);
    for (int j = 0; names && j < count; j++)
        names[j] = svs_features_name(shape->names, j);
    return names;
}

svs_code feed_columns_tell(svs_outbox *box, const struct svi_shape *shape, const struct svi_message *row,
                           int *named, svs_error *err) {
    const int count = svs_features_count(shape->names);
    if (row->kind != SVI_DENSE || count != row->d || count == *named)
        return SVS_OK;
    const char **names = feed_columns_names(shape, count);
    svs_code code = names ? svs_outbox_columns(box, names, count, err) : svi_fail_memory(err, "the columns");
    svi_free(names);
    *named = code == SVS_OK ? count : *named;
    return code;
}

/* Would a sample of zeros in these columns be scored? */
static svs_code feed_columns_request(const struct svi_shape *shape, struct svi_bytes *request) {
    const int count = svs_features_count(shape->names);
    const char **names = feed_columns_names(shape, count);
    struct svi_pack p;
    if (!names)
        return SVS_NO_MEMORY;
    svi_pack_begin(&p, request);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "score");
    svi_pack_key(&p, "sample");
    svi_pack_map(&p, 2);
    svi_columns_pack(&p, names, count);
    svi_pack_key(&p, "x");
    svi_pack_array(&p, (size_t)count);
    for (int j = 0; j < count; j++)
        svi_pack_int(&p, 0);
    svi_free(names);
    return svi_pack_end(&p);
}

svs_code feed_columns_ask(const struct svi_settings *s, const struct svi_shape *shape, svs_error *err) {
    struct svi_bytes request = {0}, reply = {0};
    char text[SVS_ERROR_TEXT];
    svs_code code = SVS_OK;
    if (svi_settings_chosen(s, "in") && !svi_settings_chosen(s, "ctl"))
        return SVS_OK;
    if (feed_columns_request(shape, &request) != SVS_OK)
        code = svi_fail_memory(err, "the columns");
    else if (client_ask(s, &(struct client_question){.request = &request, .timeout = ASK_SECONDS}, &reply,
                        NULL) == SVS_OK &&
             svi_msgpack_check(reply.data, reply.size, SVI_DEPTH_MAX, NULL) == SVS_OK) {
        const struct cli_object map = {(const uint8_t *)reply.data, (const uint8_t *)reply.data + reply.size};
        const struct svi_item name = cli_item(cli_key(map, "code"));
        if (svi_item_is(&name, svs_code_name(SVS_OTHER_COLUMNS)))
            code = svi_fail(err, SVS_OTHER_COLUMNS, "%s", cli_key_text(map, "error", text, sizeof text));
    }
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return code;
}
