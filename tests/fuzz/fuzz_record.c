/* Any bytes as records of a journal that were written by nobody: kind, arrival clock and payload of each.
 * What is refused is refused with a text; what is repeated leaves an engine that learns on and that is the
 * same when all is repeated again. */
#include "fuzz/target.h"

#include "state/write_ahead.h"
#include "state/load_record.h"
#include "state/recovery.h"
#include "store/checkpoint_file.h"

static double clock_of(uint64_t bits) {
    double now;
    memcpy(&now, &bits, sizeof now);
    return now;
}

/* The engine as it is, as a state to which it goes back, with some bytes that are others. */
static void load_image(struct fuzz_engine *f, const struct svi_record *r, struct svi_bytes *out) {
    struct svi_checkpoint c = {0};
    struct svi_load l = {.reason = "back"};
    svs_error err;
    struct input in = {r->payload, r->payload + r->size};
    must(svi_stream_save(f->stream, &c, &err) == SVS_OK && (l.then = svi_stream_then(f->stream, &c, &err)));
    must(svi_load_pack(&l, out, &err) == SVS_OK);
    while (input_left(&in) > 2) {
        const size_t at = (size_t)input_take(&in, 2) * 7;
        out->data[at % out->size] ^= (uint8_t)input_take(&in, 1);
    }
    svi_load_clear(&l);
    svi_checkpoint_clear(&c);
}

/* A record: kind, what of the clock, two bytes of length, payload. */
static void repeat_all(struct fuzz_engine *f, struct input in, char *hash) {
    svi_stream_mute(f->stream, true);
    fuzz_go_on(f, 0, 16);
    for (uint64_t number = 0; number < 24 && input_left(&in) > 0; number++) {
        svs_error err = {SVS_OK, ""};
        struct svi_record r = {.number = number, .kind = (int)input_take(&in, 1) % (SVI_RECORD_KINDS + 1)};
        const uint64_t clock = input_take(&in, 1);
        r.now = clock == 255 ? clock_of(input_take(&in, 8)) : FUZZ_NOW + (double)clock;
        r.size = (size_t)input_take(&in, 2);
        r.size = r.size < input_left(&in) ? r.size : input_left(&in);
        r.payload = in.at;
        struct svi_bytes image = {0};
        if (r.kind == SVI_RECORD_LOAD && number % 2 == 0) {
            load_image(f, &r, &image);
            in.at += r.size;
            r = (struct svi_record){
                .number = number, .kind = r.kind, .now = r.now, .payload = image.data, .size = image.size};
        }
        svs_code code =
            svi_record_apply(&f->stream, f->control.settings, &r, NULL, &err); /* a start may raise a limit */
        f->control.stream = f->stream;
        must(code == SVS_OK || (err.text[0] && strlen(err.text) < sizeof err.text && err.code == code));
        in.at += image.data ? 0 : r.size;
        svi_bytes_clear(&image);
    }
    svi_stream_mute(f->stream, false);
    svi_engine_refit_restart(svi_stream_root(f->stream));
    fuzz_go_on(f, 16, 32);
    must(svi_stream_hash(f->stream, hash, NULL) == SVS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    const unsigned kind = (unsigned)input_take(&in, 1);
    char hash[2][SVI_HASH_TEXT];
    for (int k = 0; k < 2; k++) {
        struct fuzz_engine f;
        fuzz_engine_open(&f, kind);
        repeat_all(&f, in, hash[k]);
        fuzz_engine_close(&f);
    }
    must(strcmp(hash[0], hash[1]) == 0);
    return 0;
}
