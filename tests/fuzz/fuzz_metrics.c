/* Any bytes as the status of a stream: what /metrics makes of it is valid in both formats. The first byte
 * chooses: the bytes are a status themselves, or pieces of a status whose form is right: names, codes and
 * classes, each ended by a byte 0xfe, and numbers. */
#include "fuzz/target.h"

#include "../../adapters/http/figures.h"
#include "support/exposition_check.h"

/* The next piece; its length in *length. */
static const char *piece_take(struct input *in, size_t *length) {
    const uint8_t *from = in->at;
    while (in->at < in->end && *in->at != 0xfe)
        in->at++;
    *length = (size_t)(in->at - from);
    in->at += in->at < in->end;
    return (const char *)from;
}

static void piece_pack(struct svi_pack *p, struct input *in, const char *prefix) {
    char text[300];
    size_t length, before = strlen(prefix);
    const char *piece = piece_take(in, &length);
    length = length > 256 ? 256 : length;
    memcpy(text, prefix, before);
    memcpy(text + before, piece, length);
    svi_pack_name(p, text, before + length);
}

static void text_pack(struct svi_pack *p, struct input *in) {
    size_t length;
    const char *piece = piece_take(in, &length);
    svi_pack_string(p, piece, length > 300 ? 300 : length);
}

static void number_pack(struct svi_pack *p, struct input *in) {
    const uint64_t bits = input_take(in, 4);
    if (bits % 5 == 0)
        svi_pack_nil(p);
    else
        svi_pack_real(p, bits % 5 == 1 ? (double)(int32_t)bits : (double)(bits >> 3) * 1e-3);
}

static void status_build(struct input *in, struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    const int codes = (int)(input_take(in, 1) % 8), classes = (int)(input_take(in, 1) % 40);
    for (int i = 0; i < codes; i++) {
        piece_pack(&p, in, i % 2 ? "refused." : "");
        number_pack(&p, in);
    }
    svi_pack_key(&p, "serving");
    text_pack(&p, in);
    svi_put_array(&p, "by_class", (size_t)classes);
    for (int i = 0; i < classes; i++) {
        const struct svi_open_map class = svi_pack_open(&p);
        svi_pack_key(&p, "class");
        text_pack(&p, in);
        svi_pack_key(&p, "support");
        number_pack(&p, in);
        svi_pack_close(&p, class);
    }
    svi_pack_close(&p, map);
    must(svi_pack_end(&p) == SVS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct http_figures figures;
    struct input in = {data, data + size};
    struct svi_bytes status = {0}, text = {0};
    struct exposition_check check;
    struct http_exposition x;
    char name[80];
    size_t length;
    const bool built = input_take(&in, 1) % 2;
    const char *piece = piece_take(&in, &length);
    snprintf(name, sizeof name, "%.*s", (int)(length > 64 ? 64 : length), piece);
    if (built)
        status_build(&in, &status);
    else
        must(svi_bytes_append(&status, in.at, input_left(&in)) == SVS_OK);
    const bool good = http_figures_read(&figures, status.data, status.size);
    must(good || !built);
    const struct http_shown shown[] = {
        {.stream = name, .up = good, .age = 1, .figures = good ? &figures : NULL},
        {.stream = "this name is longer than a stream of the fuzzer may have, so it is not the other",
         .up = good,
         .age = 1,
         .figures = good ? &figures : NULL}};
    for (int open = 0; open < 2; open++) {
        http_exposition_begin(&x, open, &text);
        http_figures_write(&x, shown, 2);
        must(http_exposition_end(&x) == SVS_OK);
        if (!exposition_check(&check, open, (const char *)text.data, text.size))
            fprintf(stderr, "%s\n", check.why);
        must(!check.why[0]);
    }
    svi_bytes_clear(&status);
    svi_bytes_clear(&text);
    return 0;
}
