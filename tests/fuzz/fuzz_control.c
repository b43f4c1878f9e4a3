/* Any bytes as control requests (each behind two bytes of its length): every one gets one complete reply, and
 * the engine learns on. The first byte chooses its kind. */
#include "fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    struct fuzz_engine f;
    fuzz_engine_open(&f, (unsigned)input_take(&in, 1));
    fuzz_go_on(&f, 0, 24);
    for (int i = 0; i < 16 && input_left(&in) > 0; i++) {
        size_t length = (size_t)input_take(&in, 2), left = input_left(&in);
        length = length < left ? length : left;
        must(svi_control_handle(&f.control, in.at, length, FUZZ_NOW + 12, &f.reply) == SVS_OK);
        (void)reply_is_ok(&f.reply);
        fuzz_refit(&f);
        in.at += length;
    }
    fuzz_go_on(&f, 24, 40);
    fuzz_engine_close(&f);
    return 0;
}
