/* arrays.h: the arrays of an object, described once.
 *
 * An object whose arrays share dimensions (features, series, classes, samples) has a table of them: offset of
 * the pointer in the struct, name in the archive, axes, and the value of an unused entry. Allocation, growth,
 * clearing of a column, the archive and the size in bytes follow from that table, so an array is declared
 * only twice: in the struct and here.
 *
 *     enum { FEATURES, BLOCKS, DIMS };
 *     static const struct svi_array arrays[] = {
 *         SVI_ARRAY(struct tails, maxima, "maxima", SVI_AXIS(FEATURES), SVI_AXIS(BLOCKS)),
 *         SVI_ARRAY(struct tails, now, "now", SVI_AXIS(FEATURES)),
 *         SVI_ARRAY(struct tails, out, NULL, SVI_AXIS(FEATURES)), // scratch: no name, not archived
 *     };
 *     static const struct svi_arrays tails_arrays = SVI_ARRAYS(arrays, "the tails of the sensors");
 *
 *     const int32_t dims[DIMS] = {d, 64};
 *     svi_arrays_alloc(&tails_arrays, t, dims, err);
 *
 * SHAPE. Axes are listed from the outermost to the innermost. Each is a dimension, a constant length, or the
 * concatenation of two (SVI_AXIS_SUM). SVI_AXIS_TRIANGLE must be the only axis: the lower triangle of a
 * symmetric matrix, row by row.
 *
 * MEMORY. All arrays of an object lie in one block, in the order of the table, each aligned to its entries
 * (so tables put larger entries first), or to a cache line where kernels read them (SVI_ARRAYS_ALIGNED). The
 * block begins at the first array that has entries. An array without entries is NULL. Dimensions are >= 0 and
 * small enough that the products fit into an int64_t; the caller checks dimensions from outside.
 *
 * One object is used by one thread at a time. */
#ifndef SVI_ARRAYS_H
#define SVI_ARRAYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/archive.h"
#include "svmstream/error.h"

#define SVI_ARRAY_AXES 4

/* A length: n > 0 is the constant n, -1 - i is dimension i, 0 is no part. */
struct svi_axis {
    int16_t first, second; /* the length of the axis is their sum */
    bool triangle;
};

#define SVI_DIM(i) ((int16_t)(-1 - (i)))
#define SVI_AXIS(i)                                                                                          \
    { SVI_DIM(i), 0, false }
#define SVI_AXIS_LENGTH(n)                                                                                   \
    { (n), 0, false }
#define SVI_AXIS_SUM(i, j)                                                                                   \
    { SVI_DIM(i), SVI_DIM(j), false }
#define SVI_AXIS_PLUS(i, n)                                                                                  \
    { SVI_DIM(i), (n), false }
#define SVI_AXIS_TRIANGLE(i)                                                                                 \
    { SVI_DIM(i), 0, true }

/* What loading an array from an archive checks. */
enum svi_array_check {
    SVI_ARRAY_FINITE = 0, /* doubles and floats: neither NaN nor infinite; integers and bytes: any */
    SVI_ARRAY_KNOWN,      /* doubles: may be NaN, which means missing */
    SVI_ARRAY_NUMBER,     /* doubles: may be infinite, but not NaN */
    SVI_ARRAY_ANY,        /* doubles: any bits */
    SVI_ARRAY_LOWEST,     /* floats: may be -INFINITY, which means no value yet */
    SVI_ARRAY_COUNT       /* integers: >= 0, and small enough to go on counting */
};

struct svi_array {
    const char *name; /* in the archive; NULL: not archived (derived from others, or scratch) */
    uint16_t offset;  /* of the pointer in the struct */
    uint8_t type;     /* enum svi_archive_type */
    uint8_t size;     /* bytes of an entry */
    uint8_t check;    /* enum svi_array_check */
    double empty;     /* value of an unused entry */
    struct svi_axis axis[SVI_ARRAY_AXES];
};

struct svi_arrays {
    const struct svi_array *at;
    int count;
    const char *what; /* in "no memory for ..." */
    bool aligned;     /* each array begins at a cache line, of 64 bytes */
};

/* The type of the entries that a member points to. Arrays of other types must have no name: they cannot be
 * archived. */
#define SVI_ARRAY_TYPE(object, member)                                                                       \
    _Generic(((object *)0)->member,                                                                            \
        double *: SVI_ARCHIVE_DOUBLES,                                                                       \
        float *: SVI_ARCHIVE_FLOATS,                                                                         \
        int64_t *: SVI_ARCHIVE_INT64,                                                                        \
        uint64_t *: SVI_ARCHIVE_INT64,                                                                       \
        int32_t *: SVI_ARCHIVE_INT32,                                                                        \
        uint8_t *: SVI_ARCHIVE_BYTES,                                                                        \
        default: SVI_ARCHIVE_BYTES)

/* A row of the table: struct, member, name, then its axes. The second form adds the check and the value of an
 * unused entry. */
#define SVI_ARRAY(object, member, called, ...)                                                               \
    SVI_ARRAY_WITH(object, member, called, SVI_ARRAY_FINITE, 0, __VA_ARGS__)
#define SVI_ARRAY_WITH(object, member, called, held_to, unused, ...)                                         \
    {                                                                                                        \
        .name = (called), .offset = offsetof(object, member), .type = SVI_ARRAY_TYPE(object, member),        \
        .size = sizeof *((object *)0)->member, .check = (held_to), .empty = (unused), .axis = {              \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define SVI_ARRAYS(table, called)                                                                            \
    { (table), (int)(sizeof(table) / sizeof *(table)), (called), false }
#define SVI_ARRAYS_ALIGNED(table, called)                                                                    \
    { (table), (int)(sizeof(table) / sizeof *(table)), (called), true }

/* A row whose member points to structs, each of several entries of one type without padding. */
#define SVI_ARRAY_STRUCTS(object, member, entry, called, held_to, ...)                                       \
    {                                                                                                        \
        .name = (called), .offset = offsetof(object, member),                                                \
        .type = SVI_ARRAY_TYPE(                                                                              \
            struct { entry *at; }, at),                                                                      \
        .size = sizeof(entry), .check = (held_to), .axis = {                                                 \
            __VA_ARGS__,                                                                                     \
            SVI_AXIS_LENGTH(sizeof *((object *)0)->member / sizeof(entry))                                   \
        }                                                                                                    \
    }

/* memmove for arrays that may be empty, and then NULL: memmove itself must not get NULL. */
static inline void svi_array_copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0)
        memmove(to, from, bytes);
}

/* Size of the block in bytes. */
size_t svi_arrays_bytes(const struct svi_arrays *a, const int32_t *dims);

/* Points the arrays of the object into `block` of svi_arrays_bytes, aligned to 64 if the table is
 * SVI_ARRAYS_ALIGNED, else as doubles are. Its content is unchanged; the block's owner frees it. */
void svi_arrays_place(const struct svi_arrays *a, void *object, void *block, const int32_t *dims);

/* Allocates the block with all entries empty and sets the pointers in the struct, whatever they were.
 * SVS_NO_MEMORY: they are NULL. */
svs_code svi_arrays_alloc(const struct svi_arrays *a, void *object, const int32_t *dims, svs_error *err);

/* Frees the block and sets the pointers to NULL. Does nothing to a zeroed object. */
void svi_arrays_free(const struct svi_arrays *a, void *object);

/* Replaces the block of dimensions `from` by one of dimensions `to`: entries keep their indices, new ones are
 * empty. Does nothing when all lengths are equal. SVS_NO_MEMORY: unchanged. */
svs_code svi_arrays_resize(const struct svi_arrays *a, void *object, const int32_t *from, const int32_t *to,
                           svs_error *err);

/* Copies the entries that both have, by their indices, into another object with allocated arrays. */
void svi_arrays_copy(const struct svi_arrays *a, void *to, const int32_t *to_dims, const void *from,
                     const int32_t *from_dims);

/* Points the arrays of `view`, an object of the same struct, into those of `object`, from this index of the
 * outermost axis on. The view owns nothing. */
void svi_arrays_view(const struct svi_arrays *a, void *view, const void *object, const int32_t *dims,
                     int64_t index);

/* Sets all entries with this index in this dimension to empty, on every axis of that dimension. */
void svi_arrays_forget(const struct svi_arrays *a, void *object, const int32_t *dims, int dim, int32_t index);

/* Archives the named arrays, one field each, in the order of the table: of each the part that the dimensions
 * `used` span, so that an archive does not depend on the capacity `dims`. Loading needs allocated arrays and
 * leaves the unused rest of them unchanged. */
void svi_arrays_archive(struct svi_archive *archive, const struct svi_arrays *a, void *object,
                        const int32_t *dims, const int32_t *used);

#endif
