/* Any bytes as a text file: the readers must end, stay within the row and put nothing into it that is not
 * finite or missing, a word or a name of UTF-8. The first byte chooses the format and the settings, the rest
 * is the file. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "data/feature_names.h"
#include "data/reader.h"

#define FEATURES 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void check_text(svs_value v) {
    require(v.kind != SVS_REAL || isfinite(v.as.r));
    require(v.kind != SVS_STR || (v.length > 0 && v.length <= SVS_NAME_MAX));
    require(v.kind != SVS_STR || svi_utf8_valid(v.as.s, v.length)); /* reads every byte: a stale view shows */
}

static void check_cells(const struct svi_message *m) {
    require(m->has_x && m->d == 0 && m->missing == 0);
    for (int i = 0; i < m->cell_count; i++) {
        const struct svi_cell *c = &m->cells[i];
        require(c->name_length > 0 && c->name_length <= SVS_NAME_MAX &&
                svi_utf8_valid(c->name, c->name_length));
        require(c->kind != SVI_CELL_NUMBER || isfinite(c->number));
        require(c->kind != SVI_CELL_WORD || (c->length > 0 && svi_utf8_valid(c->word, c->length)));
    }
}

static void check_row(const struct svi_shape *s, const struct svi_message *m) {
    int missing = 0;
    if (m->cells)
        check_cells(m);
    require(m->d >= 0 && m->d <= FEATURES && m->x == s->row);
    for (int k = 0; m->column && k < m->count; k++)
        require(m->column[k] > (k > 0 ? m->column[k - 1] : -1) && m->column[k] < m->d &&
                isfinite(m->value[k]));
    for (int j = 0; j < m->d && m->has_x && !m->cells && !m->column; j++) {
        require(!isinf(m->x[j]));
        missing += isnan(m->x[j]);
    }
    require(missing == m->missing && m->weight > 0 && isfinite(m->weight) && !isinf(m->ts));
    check_text(m->y);
    check_text(m->id);
    check_text(m->stream);
    check_text(m->src);
    require(m->key.kind == SVS_NONE || (m->key.kind == SVS_STR && m->key.length <= SVS_KEY_MAX &&
                                        svi_utf8_valid(m->key.as.s, m->key.length)));
}

/* Every call takes at least a byte or ends: the number of rows is bounded by the text, which gzip may have
 * made longer. */
static void read_all(svi_reader *r, struct svi_shape *s, bool keyed) {
    for (int64_t rows = 0;; rows++) {
        struct svi_message m;
        svs_error err = {0};
        enum svi_read what = svi_reader_row(r, &m, &err);
        require(rows < (int64_t)1 << 30 && what != SVI_READ_MORE);
        if (what == SVI_READ_END || what == SVI_READ_FAIL)
            return;
        if (what == SVI_READ_ROW) {
            check_row(s, &m);
            if (!m.cells && !keyed) /* rows of keys fit what their key has */
                svi_shape_commit(s, &m);
        } else {
            require(err.code != SVS_OK && err.text[0]);
            svi_shape_restore(s);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const formats[] = {"auto", "csv", "libsvm", "jsonl", "vw", "csv", "auto", "jsonl"};
    if (size == 0)
        return 0;
    struct svi_reader_options o = {.format = formats[data[0] & 7]};
    if (data[0] & 16)
        o.id = "id", o.ts = "ts", o.weight = "w";
    if (data[0] & 32)
        o.numbers = "a", o.categories = "b,c", o.ignore = "d";
    if ((data[0] & 48) == 48)
        o.key = "k";
    o.no_header = data[0] & 64;
    o.sparse = data[0] & 64;
    o.columns = data[0] & 128 ? "a,b,c" : NULL;
    char path[64];
    struct svi_shape s;
    int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(svi_shape_init(&s, FEATURES, data[0] & 8 ? "a,b" : NULL, NULL) == SVS_OK);
    svi_reader *r = svi_reader_open(path, &o, &s, NULL);
    require(r != NULL);
    read_all(r, &s, o.key);
    const char *note = svi_reader_note(r);
    require(!note || svi_utf8_valid(note, strlen(note)));
    svi_reader_close(&r);
    require(svi_feature_names_check(s.names));
    svi_shape_clear(&s);
    close(fd);
    return 0;
}
