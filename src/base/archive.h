/* archive.h: the state of an object as named fields, written and read back by the same function.
 *
 * Each module that holds state of the stream has one function `svi_X_archive(a, x)` that names its fields in
 * order. Saving copies them out; loading copies them in, bit for bit, and checks names, lengths and ranges:
 * bytes are not trusted, even with a valid checksum. Whatever follows from other fields (hash chains,
 * factors, scratch) is not archived but rebuilt, where that gives the same bits.
 *
 *     svi_archive_int(a, "count", &r->count, 0, r->max);
 *     if (svi_archive_loading(a) && !reserve(r)) ...
 *     svi_archive_doubles(a, "rows", r->rows, (int64_t)r->count * r->stride);
 *
 * Failures stick: after the first one nothing more is read or written, fields keep their values, and one
 * check at the end is enough (svi_archive_ok). A loaded count is valid only while svi_archive_ok. An object
 * whose loading failed may be inconsistent: it can only be freed.
 *
 * struct svi_archive_form implements the byte format (wire/archive_file.h: msgpack). It consists of function
 * pointers because modules below the wire use this header. */
#ifndef SVI_ARCHIVE_H
#define SVI_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/value.h"

/* Upper bound of loaded counts, so that they can go on counting and sums of a few stay in range. */
#define SVI_COUNT_MAX (INT64_MAX / 8)

struct svi_archive;

/* The type of a block's elements; their size is that of the C type. */
enum svi_archive_type {
    SVI_ARCHIVE_BYTES = 0,
    SVI_ARCHIVE_DOUBLES,
    SVI_ARCHIVE_INT32,
    SVI_ARCHIVE_INT64,
    SVI_ARCHIVE_FLOATS
};

extern const uint8_t svi_archive_size[]; /* bytes of an element, by its type */

struct svi_archive_form {
    /* Each reads into or writes from *v, or fails through svi_archive_fail. */
    void (*integer)(struct svi_archive *a, const char *name, int64_t *v);
    void (*real)(struct svi_archive *a, const char *name, double *v);
    void (*block)(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                  int64_t count);
    int64_t (*left)(const struct svi_archive *a);
};

struct svi_archive {
    const struct svi_archive_form *form;
    bool loading;
    const char *section; /* "learner": for error texts */
    svs_error *err;      /* never NULL; code SVS_OK until something fails */
};

static inline bool svi_archive_loading(const struct svi_archive *a) {
    return a->loading;
}

static inline bool svi_archive_ok(const struct svi_archive *a) {
    return a->err->code == SVS_OK;
}

/* Records a failure; the first one stays. Returns its code. `text`: what is wrong, without the section's
 * name.
 */
svs_code svi_archive_fail(struct svi_archive *a, svs_code code, const char *text);

/* Loading: fails with SVS_DAMAGED when the condition is false; `what`: "a label is beyond the classes".
 * Saving: no check. Returns svi_archive_ok. */
bool svi_archive_check(struct svi_archive *a, bool holds, const char *what);

/* Loading: unread bytes; never allocate for a count that they cannot hold. Saving: INT64_MAX. */
int64_t svi_archive_left(const struct svi_archive *a);

/* Writes the name of one of several fields, "w 3", into `text` of SVI_KEY_MAX bytes and returns it. */
#define SVI_KEY_MAX 32
const char *svi_archive_key(char *text, const char *name, int k);

/* Scalars; low and high, inclusive, are checked when loading. */
void svi_archive_bool(struct svi_archive *a, const char *name, bool *v);
void svi_archive_int(struct svi_archive *a, const char *name, int *v, int low, int high);
void svi_archive_int64(struct svi_archive *a, const char *name, int64_t *v, int64_t low, int64_t high);
void svi_archive_uint64(struct svi_archive *a, const char *name, uint64_t *v); /* all 64 bits */
void svi_archive_double(struct svi_archive *a, const char *name, double *v);   /* any bits: NAN, infinities */

/* Blocks of `count` elements; loading requires exactly that many. count 0: v may be NULL. */
void svi_archive_doubles(struct svi_archive *a, const char *name, double *v, int64_t count);
void svi_archive_ints(struct svi_archive *a, const char *name, int32_t *v, int64_t count, int32_t low,
                      int32_t high);
void svi_archive_int64s(struct svi_archive *a, const char *name, int64_t *v, int64_t count, int64_t low,
                        int64_t high);
/* Single precision; loading checks that all are finite. */
void svi_archive_floats(struct svi_archive *a, const char *name, float *v, int64_t count);
void svi_archive_bytes(struct svi_archive *a, const char *name, void *v, int64_t count);

/* A NUL-terminated text in a buffer of `size` bytes; loading terminates it. */
void svi_archive_text(struct svi_archive *a, const char *name, char *v, size_t size);

/* An id or a class: none, an integer, a real or a string. A string is read into `scratch` (SVS_NAME_MAX
 * bytes), to which v then points; NULL: a string is refused. */
void svi_archive_value(struct svi_archive *a, const char *name, svs_value *v, char *scratch);

/* Doubles that must be finite: loading checks it. */
void svi_archive_finite(struct svi_archive *a, const char *name, double *v, int64_t count);

/* The same, but a value may be NaN, which means missing. */
void svi_archive_known(struct svi_archive *a, const char *name, double *v, int64_t count);

#endif
