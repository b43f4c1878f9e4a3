/* Any bytes as the body of a request of svmstream-http, in each form: what comes of it is one array of JSON,
 * or whole msgpack elements, and it can be cut at its rows into messages that are whole again, with no row
 * lost; or there is an error. The first byte chooses the form, the second how the rows are cut. */
#include "fuzz/target.h"

#include "../../adapters/http/sample_rows.h"
#include "data/json_in.h"
#include "data/number.h"

/* The part as an array of JSON of its own: valid, with as many elements as it states. */
static void check_json(const struct http_rows_part *part) {
    struct svi_bytes text = {0};
    static const char zeros[SVI_NUMBER_PAD + 1];
    svs_error err;
    int64_t count = 0;
    must(svi_bytes_append(&text, "[", 1) == SVS_OK &&
         svi_bytes_append(&text, part->at, part->size) == SVS_OK &&
         svi_bytes_append(&text, "]", 1) == SVS_OK && svi_bytes_append(&text, zeros, sizeof zeros) == SVS_OK);
    const char *array = (const char *)text.data;
    must(svi_json_check_value((struct svi_span){array, array + part->size + 2}, SVI_JSON_DEPTH, &err) ==
         SVS_OK);
    for (const char *row = svi_json_first(array); row; row = svi_json_next(svi_json_skip(row)))
        count++;
    must(count == part->count);
    svi_bytes_clear(&text);
}

static void check_msgpack(const struct http_rows_part *part) {
    const uint8_t *at = part->at, *const end = part->at + part->size;
    for (int64_t i = 0; i < part->count; i++)
        must(svi_walk(&at, end, SVI_DEPTH_MAX) == SVS_OK);
    must(at == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_rows rows = {0};
    struct http_rows_part part;
    char src[SVS_NAME_MAX + 1];
    int64_t n, taken = 0;
    svs_error err;
    if (size < 2)
        return 0;
    if (http_rows_read(&rows, (enum http_rows_form)(data[0] % 4), data + 2, size - 2, &err) == SVS_OK) {
        const size_t bytes = data[1] % 2 ? SIZE_MAX : data[1];
        const int64_t most = data[1] % 3 ? 65000 : 1 + data[1] % 5;
        must(http_rows_source(&rows, src, &n, &err) != SVS_OK || (n >= -1 && strlen(src) <= SVS_NAME_MAX));
        for (; http_rows_take(&rows, bytes, most, &part); taken += part.count) {
            must(part.count > 0 && part.count <= most && part.first == taken);
            if (rows.json)
                check_json(&part);
            else
                check_msgpack(&part);
        }
        must(taken == rows.count);
    } else {
        must(err.code != SVS_OK && err.text[0]);
    }
    http_rows_clear(&rows);
    return 0;
}
