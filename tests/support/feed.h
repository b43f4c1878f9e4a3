/* feed.h: text for a reader from memory, and what a reader says as text that can be compared. */
#ifndef TEST_FEED_H
#define TEST_FEED_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "data/reader.h"

#define FEED_FEATURES 300

struct feed {
    int fd;
    char path[64];
    struct svi_shape shape;
    svi_reader *reader;
};

/* Path of an anonymous file that holds the bytes. */
static inline void feed_memory(struct feed *f, const void *bytes, size_t length) {
    f->fd = memfd_create("feed", 0);
    assert_true(f->fd >= 0);
    assert_int_equal(write(f->fd, bytes, length), (ssize_t)length);
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
}

static inline void feed_open(struct feed *f, const void *bytes, size_t length,
                             const struct svi_reader_options *o, const char *fixed) {
    svs_error err = {0};
    feed_memory(f, bytes, length);
    assert_int_equal(svi_shape_init(&f->shape, FEED_FEATURES, fixed, &err), SVS_OK);
    f->reader = svi_reader_open(f->path, o, &f->shape, &err);
    if (!f->reader)
        fail_msg("%s", err.text);
}

static inline void feed_close(struct feed *f) {
    svi_reader_close(&f->reader);
    assert_null(f->reader);
    svi_shape_clear(&f->shape);
    close(f->fd);
}

static inline void feed_value(FILE *to, const char *name, svs_value v) {
    if (v.kind == SVS_INT)
        fprintf(to, " %s=%" PRId64, name, v.as.i);
    else if (v.kind == SVS_REAL)
        fprintf(to, " %s=%a", name, v.as.r);
    else if (v.kind == SVS_STR)
        fprintf(to, " %s='%.*s'", name, (int)v.length, v.as.s);
}

/* The cells of a row: name=number, name="word" or name=. */
static inline void feed_cells(FILE *to, const struct svi_message *m, bool nonzero) {
    for (int i = 0; i < m->cell_count; i++) {
        const struct svi_cell *c = &m->cells[i];
        if (nonzero && c->kind == SVI_CELL_NUMBER && c->number == 0)
            continue;
        fprintf(to, " %.*s=", (int)c->name_length, c->name);
        if (c->kind == SVI_CELL_NUMBER)
            fprintf(to, "%.17g", c->number);
        else if (c->kind == SVI_CELL_WORD)
            fprintf(to, "\"%.*s\"", (int)c->length, c->word);
    }
}

/* A row that came as the columns that it names, as x. */
static inline void feed_spread(struct svi_message *m) {
    for (int j = 0; m->column && j < m->d; j++)
        m->x[j] = 0;
    for (int k = 0; m->column && k < m->count; k++)
        m->x[m->column[k]] = m->value[k];
}

/* One line: op, kind, values (when `nonzero`: without zeros, as of columns c0, c1, ...), the rest of what is
 * set. */
static inline void feed_print(FILE *to, const struct svi_message *m, bool nonzero) {
    fprintf(to, "op%d", m->op);
    if (m->cells)
        feed_cells(to, m, nonzero);
    if (m->has_x && !m->cells && !nonzero)
        fprintf(to, " kind%d d%d missing%d", m->kind, m->d, m->missing);
    for (int j = 0; m->has_x && !m->cells && j < m->d; j++)
        if (!nonzero)
            fprintf(to, " %d:%.17g", j, m->x[j]);
        else if (m->x[j] != 0)
            fprintf(to, " c%d=%.17g", j, m->x[j]);
    feed_value(to, "y", m->y);
    feed_value(to, "id", m->id);
    feed_value(to, "stream", m->stream);
    feed_value(to, "src", m->src);
    if (!isnan(m->ts))
        fprintf(to, " ts=%.17g", m->ts);
    if (m->weight != 1)
        fprintf(to, " w=%.17g", m->weight);
    if (m->n >= 0)
        fprintf(to, " n=%" PRId64, m->n);
    fputc('\n', to);
}

/* The result of one call of the reader: a row, or the code and text of a refusal. Rows are
 * committed as an engine would. */
static inline void feed_report(FILE *to, struct feed *f, enum svi_read what, const struct svi_message *m,
                               const svs_error *err, bool nonzero) {
    if (what == SVI_READ_ROW) {
        feed_print(to, m, nonzero);
        if (!m->cells)
            svi_shape_commit(&f->shape, m);
        return;
    }
    fprintf(to, "%s %s: %s\n", what == SVI_READ_BAD ? "BAD" : "FAIL", svs_code_name(err->code), err->text);
    svi_shape_restore(&f->shape);
}

/* Everything there is to read. The caller frees it. */
static inline char *feed_read(struct feed *f, bool nonzero) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    for (;;) {
        struct svi_message m;
        svs_error err = {0};
        enum svi_read what = svi_reader_row(f->reader, &m, &err);
        assert_int_not_equal(what, SVI_READ_MORE);
        if (what == SVI_READ_END)
            break;
        if (what == SVI_READ_ROW)
            feed_spread(&m);
        feed_report(to, f, what, &m, &err, nonzero);
        if (what == SVI_READ_FAIL)
            break;
    }
    fclose(to);
    return text;
}

/* gzip of the bytes in `members` members of about the same size. The caller frees *out. */
static inline size_t feed_gzip(const char *bytes, size_t length, int members, unsigned char **out) {
    size_t capacity = length + length / 100 + 1000 + 200 * (size_t)members, used = 0;
    *out = malloc(capacity);
    for (int i = 0; i < members; i++) {
        size_t from = length * (size_t)i / (size_t)members, to = length * (size_t)(i + 1) / (size_t)members;
        z_stream z = {0};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_in = (unsigned char *)bytes + from;
        z.avail_in = (unsigned)(to - from);
        z.next_out = *out + used;
        z.avail_out = (unsigned)(capacity - used);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        used = capacity - z.avail_out;
        deflateEnd(&z);
    }
    return used;
}

#endif
