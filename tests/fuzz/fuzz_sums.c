/* Any bytes as a sums record: refused with a text, or a record that is encoded and comes back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "merge/sums.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct svi_sums r = {0}, again = {0};
    struct svi_bytes one = {0}, two = {0};
    svs_error err = {0};
    if (svi_sums_decode(&r, data, size, &err) != SVS_OK) {
        if (!err.text[0] || r.text || r.sums.block)
            abort();
        return 0;
    }
    if (svi_sums_encode(&r, &one) != SVS_OK || svi_sums_decode(&again, one.data, one.size, &err) != SVS_OK ||
        svi_sums_encode(&again, &two) != SVS_OK || one.size != two.size ||
        memcmp(one.data, two.data, one.size) != 0)
        abort();
    svi_bytes_clear(&one);
    svi_bytes_clear(&two);
    svi_sums_clear(&r);
    svi_sums_clear(&again);
    return 0;
}
