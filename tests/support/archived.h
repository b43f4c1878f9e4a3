/* archived.h: an object's archive as bytes, and back. */
#ifndef TEST_SUPPORT_ARCHIVED_H
#define TEST_SUPPORT_ARCHIVED_H

#include <stdlib.h>
#include <string.h>

#include "wire/archive_file.h"

typedef void archived_by(struct svi_archive *a, void *object);

/* Replaces what is in *out. */
static inline svs_code archived_save(archived_by *archive, void *object, struct svi_bytes *out,
                                     svs_error *err) {
    struct svi_archive_out to;
    out->size = 0;
    svi_archive_out_begin(&to, out, "test", err);
    archive(&to.archive, object);
    return svi_archive_out_end(&to);
}

/* From a block of exactly that size, so that a sanitizer sees every byte that is read behind it. */
static inline svs_code archived_load(archived_by *archive, void *object, const void *bytes, size_t size,
                                     svs_error *err) {
    struct svi_archive_in from;
    void *exact = malloc(size ? size : 1);
    memcpy(exact, bytes, size);
    svi_archive_in_begin(&from, exact, size, "test", err);
    if (svi_archive_ok(&from.archive))
        archive(&from.archive, object);
    svs_code code = svi_archive_in_end(&from);
    free(exact);
    return code;
}

static inline bool archived_same(const struct svi_bytes *a, const struct svi_bytes *b) {
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

#endif
