/* arrays.h: the arrays of an object, described once.
 *
 * An object whose arrays go by common dimensions (features, series, classes, samples) has a table of them:
 * where the pointer stands in the struct, what the array is called in the archive, its axes, and what an
 * entry is that has never been used. Allocation, growth, a column that starts again, the archive and the
 * bytes follow from that table, so that an array is written down twice: in the struct and here.
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
 * SHAPE. Axes go from the outermost to the innermost. Each is a dimension, a constant length, or two of them
 * one behind the other (SVI_AXIS_SUM). SVI_AXIS_TRIANGLE stands alone: the lower triangle of a symmetric
 * matrix, row by row.
 *
 * MEMORY. All arrays of an object lie in one block, in the order of the table, each aligned to its entries
 * (so tables put larger entries first), or to a cache line where kernels read them (SVI_ARRAYS_ALIGNED); the
 * block begins at the first array that has entries. An array without entries is NULL. Dimensions are >= 0 and
 * small enough that the products fit into an int64_t; the caller checks what comes from outside.
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

/* A length: n > 0 is n itself, -1 - i is dimension i, 0 is none. */
struct svi_axis {
    int16_t first, second; /* the axis is as long as both together */
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

/* What an archive holds an array to. */
enum svi_array_check {
    SVI_ARRAY_FINITE = 0, /* doubles and floats: neither NaN nor infinite; integers and bytes: any */
    SVI_ARRAY_KNOWN,      /* doubles: may be NaN, where something is missing */
    SVI_ARRAY_NUMBER,     /* doubles: may be infinite, but not NaN */
    SVI_ARRAY_ANY,        /* doubles: any bits */
    SVI_ARRAY_LOWEST,     /* floats: may be -INFINITY, for nothing */
    SVI_ARRAY_COUNT       /* integers: >= 0, and far enough from the largest to count on */
};

struct svi_array {
    const char *name; /* in the archive; NULL: made from the others, or scratch */
    uint16_t offset;  /* of the pointer in the struct */
    uint8_t type;     /* enum svi_archive_type */
    uint8_t size;     /* bytes of an entry */
    uint8_t check;    /* enum svi_array_check */
    double empty;     /* an entry that has never been used */
    struct svi_axis axis[SVI_ARRAY_AXES];
};

struct svi_arrays {
    const struct svi_array *at;
    int count;
    const char *what; /* in "no memory for ..." */
    bool aligned;     /* each array begins at a cache line, of 64 bytes */
};

/* The type of the entries that a member points to. Others than these have no name: they are not archived. */
#define SVI_ARRAY_TYPE(object, member)                                                                       \
    _Generic(((object *)0)->member,                                                                            \
        double *: SVI_ARCHIVE_DOUBLES,                                                                       \
        float *: SVI_ARCHIVE_FLOATS,                                                                         \
        int64_t *: SVI_ARCHIVE_INT64,                                                                        \
        uint64_t *: SVI_ARCHIVE_INT64,                                                                       \
        int32_t *: SVI_ARCHIVE_INT32,                                                                        \
        uint8_t *: SVI_ARCHIVE_BYTES,                                                                        \
        default: SVI_ARCHIVE_BYTES)

/* A row of the table: struct, member, name, then its axes. The second form says more. */
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

/* A row whose member points to structs, each a number of entries of one type without gaps. */
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

/* memcpy and memmove of an array that may have no entries, and is NULL then. */
static inline void svi_array_copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0)
        memmove(to, from, bytes);
}

/* Bytes of the block. */
size_t svi_arrays_bytes(const struct svi_arrays *a, const int32_t *dims);

/* The arrays lie in `block`, svi_arrays_bytes of them, aligned to 64 if the table is SVI_ARRAYS_ALIGNED, else
 * as doubles are. What is in it stays, and its owner frees it. */
void svi_arrays_place(const struct svi_arrays *a, void *object, void *block, const int32_t *dims);

/* A new block; all entries are empty. The pointers in the struct are set; they need not be valid before.
 * SVS_NO_MEMORY: they are NULL. */
svs_code svi_arrays_alloc(const struct svi_arrays *a, void *object, const int32_t *dims, svs_error *err);

/* Frees the block and sets the pointers to NULL. Fine on an object of zeros. */
void svi_arrays_free(const struct svi_arrays *a, void *object);

/* The block goes from dimensions `from` to `to`: entries with the same indices stay, others are empty. Where
 * the dimensions are the same nothing is done. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_arrays_resize(const struct svi_arrays *a, void *object, const int32_t *from, const int32_t *to,
                           svs_error *err);

/* The same into another object, whose arrays are there. */
void svi_arrays_copy(const struct svi_arrays *a, void *to, const int32_t *to_dims, const void *from,
                     const int32_t *from_dims);

/* `view`, an object of the same kind: its arrays are those of `object` from this index of the outermost axis
 * on. */
void svi_arrays_view(const struct svi_arrays *a, void *view, const void *object, const int32_t *dims,
                     int64_t index);

/* All entries that have this index in this dimension are empty again, in every axis that the dimension has.
 */
void svi_arrays_forget(const struct svi_arrays *a, void *object, const int32_t *dims, int dim, int32_t index);

/* The arrays that have a name, one field each, in the order of the table: of each the part that `used`
 * dimensions leave, so that an archive does not depend on how much room there is. Loading goes into arrays
 * that are there, and leaves the rest of them as it is. */
void svi_arrays_archive(struct svi_archive *archive, const struct svi_arrays *a, void *object,
                        const int32_t *dims, const int32_t *used);

#endif
