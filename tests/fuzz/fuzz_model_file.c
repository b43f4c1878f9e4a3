/* Any bytes as a model file (ours, LIBLINEAR's, LIBSVM's): refused, or a model that can be scored and
 * written. The checksum of ours is put right first, or the search would end there. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "formats/model_file.h"

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

/* Scoring takes 8 bytes a column by its contract, and LIBSVM's files may name column 1e8. */
#define COLUMNS_MAX 1000000

static void score_zero(const struct svi_machine *m) {
    const double zero[1] = {0};
    const svs_rows x = {.n = 1, .d = 1, .dense = zero, .stride = 1};
    if (m->kernel && m->kernel->support.d <= COLUMNS_MAX) {
        double *work = calloc((size_t)m->kernel->support.n + (size_t)m->kernel->support.d, sizeof *work);
        double *scores = calloc((size_t)m->kernel->rows + 1, sizeof *scores);
        svs_kernel_scores(m->kernel, &x, 0, work, scores);
        if (svs_kernel_predict(m->kernel, scores) >= m->kernel->class_count)
            abort();
        free(work);
        free(scores);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64], out[64];
    struct svi_machine m;
    uint8_t *bytes = malloc(size + 1);
    int fd = memfd_create("model", MFD_CLOEXEC);
    memcpy(bytes, data, size);
    mend(bytes, size);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    free(bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    snprintf(out, sizeof out, "/tmp/fuzz_model_file_%d", getpid());
    if (svi_machine_read(&m, path, NULL) == SVS_OK) {
        score_zero(&m);
        for (int format = 0; format < 3; format++)
            svi_machine_write(&m, out, (enum svi_model_format)format, NULL);
        unlink(out);
        svi_machine_clear(&m);
    }
    close(fd);
    return 0;
}
