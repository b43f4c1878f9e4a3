/* The arrays of an object, by their table (arrays.h).
 *
 * Every operation is one walk over the axes of an array. A position on an axis of two parts is an index in
 * the first part, or the length of the first part plus an index in the second. So when either part grows, an
 * entry keeps its indices, not its position. The walk works on bytes; the type of an entry matters only where
 * it is filled or archived.
 *
 * In order of reading: shapes (lengths, strides, alignment), the block (allocation, placing), growth and
 * copies, clearing of one index, the archive. A new block is complete before the old one is freed, so a
 * failure leaves the object unchanged. */
#include "base/arrays.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define LINE      64              /* bytes of a cache line */
#define PIECE     4096            /* bytes that are compared with zero at once: a page */
#define COUNT_MAX (INT64_MAX / 8) /* of an archived count */

static void **arrays_pointer(const struct svi_array *r, void *object) {
    return (void **)((char *)object + r->offset);
}

/* ---- shapes */

static size_t axis_part(int16_t length, const int32_t *dims) {
    return length < 0 ? (size_t)dims[-1 - length] : (size_t)length;
}

static size_t axis_length(const struct svi_axis *axis, const int32_t *dims) {
    const size_t n = axis_part(axis->first, dims) + axis_part(axis->second, dims);
    return axis->triangle ? n * (n + 1) / 2 : n;
}

static bool axis_ends(const struct svi_array *r, int axis) {
    return axis == SVI_ARRAY_AXES || r->axis[axis].first == 0;
}

/* Bytes from one index to the next on the axis before this one: the product of the lengths from this axis on,
 * times the size of an entry. Axis 0 gives the bytes of the whole array. */
static size_t array_stride(const struct svi_array *r, int axis, const int32_t *dims) {
    size_t bytes = r->size;
    for (; !axis_ends(r, axis); axis++)
        bytes *= axis_length(&r->axis[axis], dims);
    return bytes;
}

/* The offset of array i in the block, given that the arrays before it end at `at`. */
static size_t arrays_aligned(const struct svi_arrays *a, int i, size_t at) {
    /* A struct of 24 bytes needs the alignment of 8: the largest power of two that divides its size. */
    const size_t size = a->at[i].size, unit = a->aligned ? LINE : size & (~size + 1);
    return (at + unit - 1) / unit * unit;
}

size_t svi_arrays_bytes(const struct svi_arrays *a, const int32_t *dims) {
    size_t bytes = 0;
    for (int i = 0; i < a->count; i++)
        bytes = arrays_aligned(a, i, bytes) + array_stride(&a->at[i], 0, dims);
    return bytes;
}

/* ---- the block */

void svi_arrays_place(const struct svi_arrays *a, void *object, void *block, const int32_t *dims) {
    size_t at = 0;
    assert(!a->aligned || (uintptr_t)block % LINE == 0);
    for (int i = 0; i < a->count; i++) {
        const size_t bytes = array_stride(&a->at[i], 0, dims);
        at = arrays_aligned(a, i, at);
        *arrays_pointer(&a->at[i], object) = block && bytes > 0 ? (char *)block + at : NULL;
        at += bytes;
    }
}

/* Sets entries to empty. is_zero: the memory is new and zero, and must not be touched without need, or its
 * pages would be used. Integers are filled byte by byte: those of several bytes can be empty at
 * 0 or -1 only. */
static void array_fill(const struct svi_array *r, void *array, size_t count, bool is_zero) {
    double *const doubles = array;
    float *const floats = array;
    if (r->empty == 0 && is_zero)
        return;
    if (r->empty == 0)
        memset(array, 0, count * r->size);
    else if (r->type == SVI_ARCHIVE_DOUBLES)
        for (size_t i = 0; i < count; i++)
            doubles[i] = r->empty;
    else if (r->type == SVI_ARCHIVE_FLOATS)
        for (size_t i = 0; i < count; i++)
            floats[i] = (float)r->empty;
    else
        memset(array, (int)r->empty, count * r->size);
}

/* A new block with all entries empty; NULL when no array has entries (*bytes is 0), or memory is out. */
static char *arrays_block(const struct svi_arrays *a, const int32_t *dims, size_t *bytes) {
    *bytes = svi_arrays_bytes(a, dims);
    char *block = *bytes == 0 ? NULL : a->aligned ? svi_alloc(*bytes) : svi_alloc_plain(*bytes);
    size_t at = 0;
    for (int i = 0; block && i < a->count; i++) {
        const size_t size = array_stride(&a->at[i], 0, dims);
        at = arrays_aligned(a, i, at);
        array_fill(&a->at[i], block + at, size / a->at[i].size, true);
        at += size;
    }
    return block;
}

svs_code svi_arrays_alloc(const struct svi_arrays *a, void *object, const int32_t *dims, svs_error *err) {
    size_t bytes;
    char *block = arrays_block(a, dims, &bytes);
    svi_arrays_place(a, object, block, dims);
    return block || bytes == 0 ? SVS_OK : svi_fail_memory(err, a->what);
}

/* The block begins at the first array that has entries. */
static void *arrays_begin(const struct svi_arrays *a, void *object) {
    for (int i = 0; i < a->count; i++)
        if (*arrays_pointer(&a->at[i], object))
            return *arrays_pointer(&a->at[i], object);
    return NULL;
}

void svi_arrays_free(const struct svi_arrays *a, void *object) {
    svi_free(arrays_begin(a, object));
    for (int i = 0; i < a->count; i++)
        *arrays_pointer(&a->at[i], object) = NULL;
}

/* ---- growth */

/* zeros: the target is new and zero. Pieces of zeros are then skipped, so that the pages of a large, mostly
 * empty array stay unused. */
static void array_copy_bytes(bool zeros, char *to, const char *from, size_t size) {
    static const char nothing[PIECE];
    for (size_t at = 0, n; at < size; at += n) {
        n = zeros && size - at > PIECE ? PIECE : size - at;
        if (n < PIECE || memcmp(from + at, nothing, PIECE) != 0)
            memcpy(to + at, from + at, n);
    }
}

/* Copies the entries that both shapes have, on the axes from this one on. Each part of an axis is copied for
 * itself, as its offset may differ. fresh: the target is a new block. */
static void array_copy(const struct svi_array *r, int axis, char *to, const int32_t *to_dims,
                       const char *from, const int32_t *from_dims, bool fresh) {
    const struct svi_axis *x = &r->axis[axis];
    const size_t wide = array_stride(r, axis + 1, to_dims), narrow = array_stride(r, axis + 1, from_dims);
    const int16_t part[] = {x->first, x->second};
    for (int p = 0; p < 2; p++) {
        const size_t t = axis_part(part[p], to_dims), f = axis_part(part[p], from_dims);
        const size_t both = t < f ? t : f, count = x->triangle ? both * (both + 1) / 2 : both;
        if (axis_ends(r, axis + 1) && count > 0)
            array_copy_bytes(fresh && r->empty == 0, to, from, count * wide);
        for (size_t i = 0; !axis_ends(r, axis + 1) && i < count; i++)
            array_copy(r, axis + 1, to + i * wide, to_dims, from + i * narrow, from_dims, fresh);
        to += t * wide;
        from += f * narrow;
    }
}

void svi_arrays_copy(const struct svi_arrays *a, void *to, const int32_t *to_dims, const void *from,
                     const int32_t *from_dims) {
    for (int i = 0; i < a->count; i++) {
        const struct svi_array *r = &a->at[i];
        char *wide = *arrays_pointer(r, to);
        const char *narrow = *(void *const *)((const char *)from + r->offset);
        if (wide && narrow)
            array_copy(r, 0, wide, to_dims, narrow, from_dims, false);
    }
}

void svi_arrays_view(const struct svi_arrays *a, void *view, const void *object, const int32_t *dims,
                     int64_t index) {
    for (int i = 0; i < a->count; i++) {
        char *at = *(void *const *)((const char *)object + a->at[i].offset);
        *arrays_pointer(&a->at[i], view) = at ? at + (size_t)index * array_stride(&a->at[i], 1, dims) : NULL;
    }
}

/* Part by part, not by the sum: an axis of two parts may keep its length while its parts change. */
static bool arrays_alike(const struct svi_arrays *a, const int32_t *from, const int32_t *to) {
    bool alike = true;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; !axis_ends(&a->at[i], k); k++) {
            const struct svi_axis *x = &a->at[i].axis[k];
            alike = alike && axis_part(x->first, from) == axis_part(x->first, to) &&
                    axis_part(x->second, from) == axis_part(x->second, to);
        }
    return alike;
}

svs_code svi_arrays_resize(const struct svi_arrays *a, void *object, const int32_t *from, const int32_t *to,
                           svs_error *err) {
    size_t bytes;
    if (arrays_alike(a, from, to))
        return SVS_OK;
    char *block = arrays_block(a, to, &bytes), *old = arrays_begin(a, object);
    if (!block && bytes > 0)
        return svi_fail_memory(err, a->what);
    size_t at = 0;
    for (int i = 0; i < a->count; i++) {
        const struct svi_array *r = &a->at[i];
        const char *narrow = *arrays_pointer(r, object);
        const size_t size = array_stride(r, 0, to);
        at = arrays_aligned(a, i, at);
        if (narrow && size > 0)
            array_copy(r, 0, block + at, to, narrow, from, true);
        at += size;
    }
    svi_arrays_place(a, object, block, to);
    svi_free(old);
    return SVS_OK;
}

/* ---- a column starts again */

/* Row and column `index` of a triangle. */
static void triangle_forget(const struct svi_array *r, char *at, size_t n, size_t index) {
    const size_t size = r->size;
    for (size_t i = 0; i < n; i++) {
        const size_t row = i > index ? i : index, column = i > index ? index : i;
        array_fill(r, at + (row * (row + 1) / 2 + column) * size, 1, false);
    }
}

/* Sets the entries at position `place` of axis `of` to empty; `axis` is the one that this call walks. */
static void array_forget(const struct svi_array *r, int axis, char *at, const int32_t *dims, int of,
                         size_t place) {
    const size_t stride = array_stride(r, axis + 1, dims), length = axis_length(&r->axis[axis], dims);
    if (axis == of) {
        array_fill(r, at + place * stride, stride / r->size, false);
        return;
    }
    for (size_t i = 0; i < length; i++)
        array_forget(r, axis + 1, at + i * stride, dims, of, place);
}

void svi_arrays_forget(const struct svi_arrays *a, void *object, const int32_t *dims, int dim,
                       int32_t index) {
    for (int i = 0; i < a->count; i++) {
        const struct svi_array *r = &a->at[i];
        char *at = *arrays_pointer(r, object);
        for (int k = 0; at && !axis_ends(r, k); k++) {
            const struct svi_axis *x = &r->axis[k];
            if (x->first == SVI_DIM(dim) && x->triangle)
                triangle_forget(r, at, (size_t)dims[dim], (size_t)index);
            else if (x->first == SVI_DIM(dim))
                array_forget(r, 0, at, dims, k, (size_t)index);
            if (x->second == SVI_DIM(dim))
                array_forget(r, 0, at, dims, k, axis_part(x->first, dims) + (size_t)index);
        }
    }
}

/* ---- the archive */

/* Floats of an archive must be finite: -INFINITY is stored as the lowest float. */
static void floats_replace(float *v, int64_t count, float from, float to) {
    for (int64_t i = 0; i < count; i++)
        v[i] = v[i] == from ? to : v[i];
}

static void numbers_archive(struct svi_archive *a, const char *name, double *v, int64_t count) {
    bool good = true;
    svi_archive_doubles(a, name, v, count);
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++)
        good &= !isnan(v[i]);
    svi_archive_check(a, good, "a value is NaN");
}

static void array_archive(struct svi_archive *a, const struct svi_array *r, void *v, int64_t count) {
    const bool lowest = r->check == SVI_ARRAY_LOWEST;
    switch ((enum svi_archive_type)r->type) {
    case SVI_ARCHIVE_DOUBLES:
        (r->check == SVI_ARRAY_FINITE   ? svi_archive_finite
         : r->check == SVI_ARRAY_KNOWN  ? svi_archive_known
         : r->check == SVI_ARRAY_NUMBER ? numbers_archive
                                        : svi_archive_doubles)(a, r->name, v, count);
        break;
    case SVI_ARCHIVE_FLOATS:
        /* In place, and back afterwards: when saving, too, v is the object's own array. */
        if (lowest)
            floats_replace(v, count, -INFINITY, -FLT_MAX);
        svi_archive_floats(a, r->name, v, count);
        if (lowest)
            floats_replace(v, count, -FLT_MAX, -INFINITY);
        break;
    case SVI_ARCHIVE_INT32:
        svi_archive_ints(a, r->name, v, count, r->check == SVI_ARRAY_COUNT ? 0 : INT32_MIN, INT32_MAX);
        break;
    case SVI_ARCHIVE_INT64:
        svi_archive_int64s(a, r->name, v, count, r->check == SVI_ARRAY_COUNT ? 0 : INT64_MIN,
                           r->check == SVI_ARRAY_COUNT ? COUNT_MAX : INT64_MAX);
        break;
    case SVI_ARCHIVE_BYTES:
        svi_archive_bytes(a, r->name, v, count);
        break;
    }
}

void svi_arrays_archive(struct svi_archive *archive, const struct svi_arrays *a, void *object,
                        const int32_t *dims, const int32_t *used) {
    for (int i = 0; i < a->count && svi_archive_ok(archive); i++) {
        const struct svi_array *r = &a->at[i];
        const size_t bytes = array_stride(r, 0, used);
        void *array = *arrays_pointer(r, object);
        if (!r->name)
            continue;
        /* The used entries are the beginning of the array, unless an inner axis has spare capacity: then they
         * go through a compact copy. */
        const bool apart = bytes > 0 && array_stride(r, 1, used) != array_stride(r, 1, dims);
        void *part = apart ? svi_alloc_plain(bytes) : array;
        if (apart && !part) {
            svi_archive_fail(archive, SVS_NO_MEMORY, "no memory for an array");
            return;
        }
        if (apart) /* when loading, too: a field that fails must not clear the array */
            array_copy(r, 0, part, used, array, dims, false);
        array_archive(archive, r, part, (int64_t)(bytes / r->size));
        if (apart && svi_archive_loading(archive))
            array_copy(r, 0, array, dims, part, used, false);
        if (apart)
            svi_free(part);
    }
}
