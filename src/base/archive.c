#include "base/archive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

const uint8_t svi_archive_size[] = {[SVI_ARCHIVE_BYTES] = 1,
                                    [SVI_ARCHIVE_DOUBLES] = sizeof(double),
                                    [SVI_ARCHIVE_INT32] = sizeof(int32_t),
                                    [SVI_ARCHIVE_INT64] = sizeof(int64_t),
                                    [SVI_ARCHIVE_FLOATS] = sizeof(float)};

svs_code svi_archive_fail(struct svi_archive *a, svs_code code, const char *text) {
    if (svi_archive_ok(a))
        svi_fail(a->err, code, "section %s: %s", a->section, text);
    return a->err->code;
}

bool svi_archive_check(struct svi_archive *a, bool holds, const char *what) {
    if (a->loading && !holds)
        svi_archive_fail(a, SVS_DAMAGED, what);
    return svi_archive_ok(a);
}

int64_t svi_archive_left(const struct svi_archive *a) {
    return a->loading ? a->form->left(a) : INT64_MAX;
}

const char *svi_archive_key(char *text, const char *name, int k) {
    char digits[12]; /* by hand: snprintf was a measurable part of the cost of a small state */
    size_t count = 0;
    for (unsigned left = (unsigned)k; left > 0 || count == 0; left /= 10)
        digits[count++] = (char)('0' + left % 10);
    size_t length = strnlen(name, SVI_KEY_MAX - 2 - count);
    memcpy(text, name, length);
    text[length++] = ' ';
    while (count > 0)
        text[length++] = digits[--count];
    text[length] = '\0';
    return text;
}

static void out_of_range(struct svi_archive *a, const char *name) {
    char text[96];
    snprintf(text, sizeof text, "the field %s is out of range", name);
    svi_archive_fail(a, SVS_DAMAGED, text);
}

/* Reads into a copy: a value outside its range must not reach the object. */
void svi_archive_int64(struct svi_archive *a, const char *name, int64_t *v, int64_t low, int64_t high) {
    int64_t read = *v;
    if (!svi_archive_ok(a))
        return;
    a->form->integer(a, name, &read);
    if (!a->loading || !svi_archive_ok(a))
        return;
    if (read < low || read > high)
        out_of_range(a, name);
    else
        *v = read;
}

void svi_archive_int(struct svi_archive *a, const char *name, int *v, int low, int high) {
    int64_t wide = *v;
    svi_archive_int64(a, name, &wide, low, high);
    *v = (int)wide;
}

void svi_archive_bool(struct svi_archive *a, const char *name, bool *v) {
    int64_t wide = *v;
    svi_archive_int64(a, name, &wide, 0, 1);
    *v = wide != 0;
}

void svi_archive_uint64(struct svi_archive *a, const char *name, uint64_t *v) {
    int64_t bits;
    memcpy(&bits, v, sizeof bits);
    svi_archive_int64(a, name, &bits, INT64_MIN, INT64_MAX);
    memcpy(v, &bits, sizeof bits);
}

void svi_archive_double(struct svi_archive *a, const char *name, double *v) {
    if (svi_archive_ok(a))
        a->form->real(a, name, v);
}

static void archive_block(struct svi_archive *a, const char *name, enum svi_archive_type type, void *v,
                          int64_t count) {
    if (svi_archive_ok(a))
        a->form->block(a, name, type, v, count);
}

void svi_archive_doubles(struct svi_archive *a, const char *name, double *v, int64_t count) {
    archive_block(a, name, SVI_ARCHIVE_DOUBLES, v, count);
}

void svi_archive_finite(struct svi_archive *a, const char *name, double *v, int64_t count) {
    archive_block(a, name, SVI_ARCHIVE_DOUBLES, v, count);
    for (int64_t i = 0; a->loading && svi_archive_ok(a) && i < count; i++)
        if (!isfinite(v[i]))
            out_of_range(a, name);
}

void svi_archive_known(struct svi_archive *a, const char *name, double *v, int64_t count) {
    archive_block(a, name, SVI_ARCHIVE_DOUBLES, v, count);
    for (int64_t i = 0; a->loading && svi_archive_ok(a) && i < count; i++)
        if (isinf(v[i]))
            out_of_range(a, name);
}

void svi_archive_ints(struct svi_archive *a, const char *name, int32_t *v, int64_t count, int32_t low,
                      int32_t high) {
    archive_block(a, name, SVI_ARCHIVE_INT32, v, count);
    for (int64_t i = 0; a->loading && svi_archive_ok(a) && i < count; i++)
        if (v[i] < low || v[i] > high)
            out_of_range(a, name);
}

void svi_archive_int64s(struct svi_archive *a, const char *name, int64_t *v, int64_t count, int64_t low,
                        int64_t high) {
    archive_block(a, name, SVI_ARCHIVE_INT64, v, count);
    for (int64_t i = 0; a->loading && svi_archive_ok(a) && i < count; i++)
        if (v[i] < low || v[i] > high)
            out_of_range(a, name);
}

void svi_archive_floats(struct svi_archive *a, const char *name, float *v, int64_t count) {
    archive_block(a, name, SVI_ARCHIVE_FLOATS, v, count);
    for (int64_t i = 0; a->loading && svi_archive_ok(a) && i < count; i++)
        if (!isfinite(v[i]))
            out_of_range(a, name);
}

void svi_archive_bytes(struct svi_archive *a, const char *name, void *v, int64_t count) {
    archive_block(a, name, SVI_ARCHIVE_BYTES, v, count);
}

/* The length comes first, so that loading checks it against the buffer before it reads a byte of the text. */
void svi_archive_text(struct svi_archive *a, const char *name, char *v, size_t size) {
    int64_t length = (int64_t)strnlen(v, size - 1);
    char key[64];
    snprintf(key, sizeof key, "%s length", name);
    svi_archive_int64(a, key, &length, 0, (int64_t)size - 1);
    if (!svi_archive_ok(a))
        return;
    svi_archive_bytes(a, name, v, length);
    if (!a->loading || !svi_archive_ok(a))
        return;
    v[length] = '\0';
    if (memchr(v, 0, (size_t)length))
        out_of_range(a, name);
}

void svi_archive_value(struct svi_archive *a, const char *name, svs_value *v, char *scratch) {
    char key[64];
    int kind = v->kind, length = (int)v->length;
    snprintf(key, sizeof key, "%s kind", name);
    svi_archive_int(a, key, &kind, SVS_NONE, scratch ? SVS_STR : SVS_REAL);
    if (!svi_archive_ok(a))
        return;
    v->kind = (uint8_t)kind;
    if (kind == SVS_INT)
        svi_archive_int64(a, name, &v->as.i, INT64_MIN, INT64_MAX);
    else if (kind == SVS_REAL)
        svi_archive_double(a, name, &v->as.r);
    if (kind != SVS_STR)
        return;
    snprintf(key, sizeof key, "%s length", name);
    svi_archive_int(a, key, &length, 0, SVS_NAME_MAX);
    if (!svi_archive_ok(a))
        return;
    char *bytes = a->loading ? scratch : (char *)v->as.s; /* saving does not write to it */
    svi_archive_bytes(a, name, bytes, length);
    v->length = (uint32_t)length;
    v->as.s = bytes;
}
