/* Any bytes as acknowledged input (each message behind two bytes of its length): every one gets one complete
 * reply, also when it is declined unseen, and what only asks changes nothing. The first byte chooses the kind
 * of the engine. */
#include "fuzz/target.h"

#include "state/recovery.h"
#include "support/apply.h"

static void fingerprint(struct fuzz_engine *f, char *hash) {
    must(svi_stream_hash(f->stream, hash, NULL) == SVS_OK);
}

static void one(struct fuzz_engine *f, const uint8_t *bytes, size_t length) {
    static const svs_error full = {SVS_DISK_FULL, "no room"};
    struct svi_envelope env;
    svi_envelope_read(&env, bytes, length);
    const bool asks = env.hello;
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    fingerprint(f, before);
    must(svi_router_decline(&f->control, &env, &full, &f->reply) == SVS_OK);
    must(!reply_is_ok(&f->reply));
    fingerprint(f, after);
    must(strcmp(before, after) == 0);
    must(route_bytes(&f->control, bytes, length, FUZZ_NOW + 12, &f->reply) == SVS_OK);
    (void)reply_is_ok(&f->reply);
    fingerprint(f, after);
    must(!asks || strcmp(before, after) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    struct fuzz_engine f;
    const unsigned kind = (unsigned)input_take(&in, 1);
    fuzz_engine_open(&f, kind);
    if (kind < 128) /* else the first message finds an empty engine */
        fuzz_go_on(&f, 0, 12);
    for (int i = 0; i < 16 && input_left(&in) > 0; i++) {
        size_t length = (size_t)input_take(&in, 2), left = input_left(&in);
        length = length < left ? length : left;
        one(&f, in.at, length);
        in.at += length;
    }
    fuzz_go_on(&f, 12, 24);
    fuzz_engine_close(&f);
    return 0;
}
