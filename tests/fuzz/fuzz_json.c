/* Any bytes as a message in JSON: what comes of it is one complete object of msgpack within its bounds, the
 * same each time, which the decoder takes or refuses; or there is an error and nothing is left. The first
 * byte chooses the settings, the second how much is in the buffer already. */
#include "fuzz/target.h"

#include "support/schema.h"
#include "wire/decode.h"
#include "wire/json.h"
#include "wire/json_message.h"

static const struct svi_json_input inputs[] = {
    {0},
    {.columns = {.label = "y",
                 .id = "id",
                 .ts = "ts",
                 .weight = "w",
                 .key = "k",
                 .ignore = "a,b",
                 .categories = "c"}},
    {.columns =
         {.label = "x", .id = "x", .ignore = ",", .categories = ", a", .numbers = "b", .missing = "mill"}},
};

static void decode_all(const struct svi_bytes *message, size_t from) {
    struct svi_envelope env;
    struct svi_message m;
    struct svi_schema schema;
    svs_error err;
    must(schema_open(&schema, 32, NULL, &err) == SVS_OK);
    if (svi_envelope_read(&env, message->data + from, message->size - from) == SVS_OK)
        while (env.left > 0) {
            (void)svi_envelope_next(&env, &schema, &m, &err);
            svi_schema_restore(&schema);
        }
    svi_schema_clear(&schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    const struct svi_json_input *settings = &inputs[data[0] % (sizeof inputs / sizeof *inputs)];
    const size_t before = data[1];
    const void *text = data + 2;
    struct svi_bytes out[2] = {{0}, {0}}, shown = {0};
    svs_code code[2];
    svs_error err;
    size -= 2;
    for (int i = 0; i < 2; i++) {
        struct svi_json_input in = *settings;
        must(svi_bytes_reserve(&out[i], before + 1) == SVS_OK);
        memset(out[i].data, 0xc1, before);
        out[i].size = before;
        code[i] = svi_json_message(&in, text, size, &out[i], &err);
        must(strlen(in.time) <= SVS_NAME_MAX);
        svi_json_input_clear(&in);
    }
    must(code[0] == code[1] && out[0].size == out[1].size);
    must(memcmp(out[0].data, out[1].data, out[0].size) == 0);
    must(code[0] == SVS_OK ? out[0].size > before : out[0].size == before);
    must(code[0] == SVS_OK || (err.code == code[0] && err.text[0]));
    if (code[0] == SVS_OK) {
        const size_t length = out[0].size - before;
        must(length <= SVI_JSON_GROWTH * size);
        must(svi_json_msgpack(&shown, out[0].data + before, length, &err) == SVS_OK);
        decode_all(&out[0], before);
    }
    svi_bytes_clear(&shown);
    svi_bytes_clear(&out[0]);
    svi_bytes_clear(&out[1]);
    return 0;
}
