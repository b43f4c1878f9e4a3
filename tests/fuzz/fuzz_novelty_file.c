/* Any bytes as a file of a one-class model: refused, or a model that scores, explains and is written. The
 * checksum is put right first, or the search would end there. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "svmstream/novelty.h"
#include "formats/novelty_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TAIL 9 /* "\xa3crc\xce" and four bytes */

static void mend(uint8_t *bytes, size_t size) {
    if (size < TAIL || memcmp(bytes + size - TAIL,
                              "\xa3"
                              "crc\xce",
                              5) != 0)
        return;
    const uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)(size - TAIL));
    for (int i = 0; i < 4; i++)
        bytes[size - 4 + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
}

static void use(svs_novelty_model *m) {
    char out[64];
    double novelty, *x = calloc((size_t)m->d, sizeof *x), *adds = calloc((size_t)m->d, sizeof *adds);
    const svs_rows row = {.n = 1, .d = m->d, .dense = x, .stride = m->d};
    snprintf(out, sizeof out, "/tmp/fuzz_novelty_file_%d", getpid());
    if (svs_novelty_score(m, &row, 0, 1, &novelty, NULL, NULL) == SVS_WRONG_DIMENSION)
        abort();
    svs_novelty_explain(m, x, adds, NULL);
    if (svi_novelty_file_write(m, out, NULL) == SVS_OK) {
        svs_novelty_model *again = svi_novelty_file_read(out, NULL);
        if (!again)
            abort();
        svs_novelty_free(&again);
        unlink(out);
    }
    free(x);
    free(adds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size + 1);
    memcpy(bytes, data, size);
    mend(bytes, size);
    svs_novelty_model *m = svi_novelty_file_decode(bytes, size, NULL);
    free(bytes); /* the model must not look back */
    if (m)
        use(m);
    svs_novelty_free(&m);
    return 0;
}
