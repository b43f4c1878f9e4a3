/* Rows of files as entries of a partitioned log.
 *
 * A row is read, encoded as a sample of the wire, and appended to the open entry of its partition. An entry
 * is handed on when it has `batch` samples or enough bytes, when the columns change (another file with
 * another header), when a pipe is silent, and at the end. Rows of one partition stay in the order of the
 * file; so do entries.
 *
 * The partition is a hash of a text: the sample's key, or the value of a named column. A number counts as the
 * text that it is written as, so that 7 in a file of numbers and "7" as a key meet in one partition. Without
 * either, rows have no home: each entry goes to the next partition. */
#include "feed_entries.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "data/reader.h"
#include "wire/cursor.h"
#include "wire/event.h"
#include "wire/pack.h"

#define ENTRY_BYTES ((size_t)512 << 10)
#define UNREAD      5   /* unreadable rows that are reported */
#define SILENCE     0.1 /* seconds without a row after which open entries of a pipe go out */

struct feed_entry {
    struct svi_bytes body; /* samples, without the head of their array */
    int count;
};

struct feed_entries {
    const struct feed_entries_options *o;
    struct svi_shape shape;
    struct feed_entry *open;               /* [partitions] */
    struct svi_bytes sample, whole, names; /* names: those of the columns of list rows, each with its NUL */
    int next;                              /* partition of the next row without a home */
    struct feed_entries_figures *figures;
    bool stopped;
};

int feed_entries_partition(const char *text, size_t length, int partitions) {
    return (int)(svi_fnv_fold(svi_fnv(SVI_FNV_SEED, text, length)) % (uint64_t)partitions);
}

static void feed_entries_log(const struct feed_entries *f, const char *path, const char *text) {
    char line[SVS_ERROR_TEXT + 200];
    snprintf(line, sizeof line, "%.150s: %s", path, text);
    f->o->log(f->o->user, line);
}

static svs_code feed_entries_flush(struct feed_entries *f, int partition, svs_error *err) {
    struct feed_entry *e = &f->open[partition];
    struct svi_pack p;
    if (e->count == 0)
        return SVS_OK;
    f->whole.size = 0;
    svi_pack_begin(&p, &f->whole);
    svi_pack_array(&p, (size_t)e->count);
    svi_pack_raw(&p, e->body.data, e->body.size);
    if (svi_pack_end(&p) != SVS_OK)
        return svi_fail_memory(err, "an entry");
    const int count = e->count;
    e->body.size = 0;
    e->count = 0;
    SVI_TRY(f->o->entry(f->o->user, partition, f->whole.data, f->whole.size, count, err));
    f->figures->entries++;
    f->figures->rows += count;
    return SVS_OK;
}

static svs_code feed_entries_flush_all(struct feed_entries *f, svs_error *err) {
    for (int p = 0; p < f->o->partitions; p++)
        SVI_TRY(feed_entries_flush(f, p, err));
    return SVS_OK;
}

/* ---- the partition of a row */

static int feed_entries_number(double number, char out[40]) {
    return number == floor(number) && fabs(number) < 1e15 ? snprintf(out, 40, "%.0f", number)
                                                          : snprintf(out, 40, "%.17g", number);
}

static int feed_entries_text(const struct feed_entries *f, const char *text, size_t length) {
    return feed_entries_partition(text, length, f->o->partitions);
}

static int feed_entries_value(const struct feed_entries *f, const svs_value *v) {
    char digits[40];
    if (v->kind == SVS_STR)
        return feed_entries_text(f, v->as.s, v->length);
    return feed_entries_text(
        f, digits, (size_t)feed_entries_number(v->kind == SVS_INT ? (double)v->as.i : v->as.r, digits));
}

/* -1: the row has no value in the column that selects. */
static int feed_entries_home(const struct feed_entries *f, const struct svi_message *m) {
    const struct feed_entries_options *o = f->o;
    char digits[40];
    if (!o->column && m->key.kind != SVS_NONE)
        return feed_entries_value(f, &m->key);
    if (!o->column)
        return f->next;
    if (*o->settings->key && strcmp(o->column, o->settings->key) == 0 && m->key.kind != SVS_NONE)
        return feed_entries_value(f, &m->key);
    if (strcmp(o->column, o->settings->id) == 0 && m->id.kind != SVS_NONE)
        return feed_entries_value(f, &m->id);
    for (int i = 0; m->cells && i < m->cell_count; i++) {
        const struct svi_cell *c = &m->cells[i];
        if (c->name_length != strlen(o->column) || memcmp(c->name, o->column, c->name_length) != 0)
            continue;
        if (c->kind == SVI_CELL_WORD)
            return feed_entries_text(f, c->word, c->length);
        return c->kind == SVI_CELL_MISSING
                   ? -1
                   : feed_entries_text(f, digits, (size_t)feed_entries_number(c->number, digits));
    }
    return -1;
}

/* ---- a row into the entry of its partition */

/* Do these cells have the columns that f->names lists? Otherwise it lists them from here on, and the open
 * entries go out first: their rows are in the order of the earlier columns. */
static svs_code feed_entries_columns(struct feed_entries *f, const struct svi_message *m, svs_error *err) {
    size_t at = 0;
    bool same = true;
    for (int i = 0; i < m->cell_count && same; i++) {
        const struct svi_cell *c = &m->cells[i];
        same = f->names.size - at > c->name_length &&
               memcmp(f->names.data + at, c->name, c->name_length) == 0 &&
               f->names.data[at + c->name_length] == 0;
        at += c->name_length + 1;
    }
    if (same && at == f->names.size)
        return SVS_OK;
    SVI_TRY(feed_entries_flush_all(f, err));
    f->names.size = 0;
    for (int i = 0; i < m->cell_count; i++)
        if (svi_bytes_append(&f->names, m->cells[i].name, m->cells[i].name_length) != SVS_OK ||
            svi_bytes_append(&f->names, "", 1) != SVS_OK)
            return svi_fail_memory(err, "the columns");
    return SVS_OK;
}

/* Appends the sample, the first of an entry with the names of its columns. */
static svs_code feed_entries_append(struct feed_entries *f, struct feed_entry *e,
                                    const struct svi_message *m) {
    struct svi_pack p;
    struct svi_item item;
    const uint8_t *end = f->sample.data + f->sample.size, *pairs = svi_item_read(f->sample.data, &item);
    if (!m->listed || e->count > 0)
        return svi_bytes_append(&e->body, f->sample.data, f->sample.size);
    svi_pack_begin(&p, &e->body);
    svi_pack_map(&p, item.length + 1);
    svi_pack_raw(&p, pairs, (size_t)(end - pairs));
    svi_pack_key(&p, "columns");
    svi_pack_array(&p, (size_t)m->cell_count);
    for (int i = 0; i < m->cell_count; i++)
        svi_pack_string(&p, m->cells[i].name, m->cells[i].name_length);
    return svi_pack_end(&p);
}

static void feed_entries_unread(struct feed_entries *f, const char *path, const char *why) {
    svi_shape_restore(&f->shape);
    if (f->figures->unread++ < UNREAD)
        feed_entries_log(f, path, why);
}

static svs_code feed_entries_take(struct feed_entries *f, const char *path, struct svi_message *m,
                                  svs_error *err) {
    const int home = feed_entries_home(f, m), batch = f->o->batch ? f->o->batch : FEED_ENTRY_BATCH;
    char why[200];
    if (home < 0) {
        snprintf(why, sizeof why,
                 "a row without a value in the column %.100s has no partition and is left out", f->o->column);
        feed_entries_unread(f, path, why);
        return SVS_OK;
    }
    if (m->listed)
        SVI_TRY(feed_entries_columns(f, m, err));
    m->in_order = false; /* the order is that of f->names, which the entry states */
    m->src = svs_none();
    m->n = -1;
    f->sample.size = 0;
    const svs_code code = svi_message_encode(m, f->shape.names, f->o->packed && m->missing == 0, &f->sample);
    if (code != SVS_OK)
        return svi_fail(err, code, "%.150s: a row cannot be sent: %s", path, svs_code_text(code));
    struct feed_entry *e = &f->open[home];
    if (e->count > 0 && e->body.size + f->sample.size > (f->o->bytes ? f->o->bytes : ENTRY_BYTES))
        SVI_TRY(feed_entries_flush(f, home, err));
    if (feed_entries_append(f, e, m) != SVS_OK)
        return svi_fail_memory(err, "an entry");
    svi_shape_commit(&f->shape, m);
    if (++e->count < batch)
        return SVS_OK;
    f->next = (f->next + 1) % f->o->partitions;
    return feed_entries_flush(f, home, err);
}

/* ---- files */

/* Waits for more of a file. Open entries do not wait for a pipe that is silent. */
static svs_code feed_entries_fill(struct feed_entries *f, svi_reader *r, svs_error *err) {
    struct pollfd item = {svi_reader_fd(r), POLLIN, 0};
    const double wait = fmin(SILENCE, svi_reader_wait(r));
    if (poll(&item, 1, (int)(1000 * fmax(0, wait))) > 0)
        return svi_reader_fill(r, err);
    f->stopped = f->o->idle && !f->o->idle(f->o->user);
    return feed_entries_flush_all(f, err);
}

static svs_code feed_entries_rows(struct feed_entries *f, svi_reader *r, const char *path, svs_error *err) {
    struct svi_message m;
    svs_error why;
    svs_code code = SVS_OK;
    while (code == SVS_OK && !f->stopped) {
        const enum svi_read what = svi_reader_next(r, &m, &why);
        if (what == SVI_READ_END)
            break;
        if (what == SVI_READ_FAIL)
            return svi_fail(err, why.code, "%.150s: %s", path, why.text);
        if (what == SVI_READ_MORE)
            code = feed_entries_fill(f, r, err);
        else if (what == SVI_READ_BAD)
            feed_entries_unread(f, path, why.text);
        else
            code = feed_entries_take(f, path, &m, err);
    }
    return code;
}

static svs_code feed_entries_file(struct feed_entries *f, const char *path, svs_error *err) {
    const struct svi_reader_options o = svi_settings_reader(f->o->settings);
    svi_reader *r = svi_reader_open(path, &o, &f->shape, err);
    if (!r)
        return err->code;
    const svs_code code = feed_entries_rows(f, r, path, err);
    const char *note = svi_reader_note(r);
    if (note && !f->o->quiet)
        feed_entries_log(f, path, note);
    svi_reader_close(&r);
    return code;
}

svs_code feed_entries_run(const struct feed_entries_options *o, const char *const *paths, int count,
                          struct feed_entries_figures *figures, svs_error *err) {
    struct feed_entries f = {.o = o, .figures = figures};
    *figures = (struct feed_entries_figures){0};
    f.open = svi_alloc_array((size_t)o->partitions, sizeof *f.open);
    svs_code code = f.open ? SVS_OK : svi_fail_memory(err, "the entries");
    if (code == SVS_OK)
        code = svi_shape_init(&f.shape, (int)o->settings->max_features, o->settings->features, err);
    for (int i = 0; code == SVS_OK && i < count && !f.stopped; i++)
        code = feed_entries_file(&f, paths[i], err);
    if (code == SVS_OK)
        code = feed_entries_flush_all(&f, err);
    for (int p = 0; f.open && p < o->partitions; p++)
        svi_bytes_clear(&f.open[p].body);
    svi_free(f.open);
    svi_bytes_clear(&f.sample);
    svi_bytes_clear(&f.whole);
    svi_bytes_clear(&f.names);
    svi_shape_clear(&f.shape);
    return code;
}
