/* Standard input: rows of text or msgpack objects, one after another, become messages.
 *
 * A row of text is read into the engine's own shape and row, encoded as the message that a producer would
 * send, and applied like one; whether the state is kept makes no difference but for the journal record in
 * between, so a replay sees the bytes that the engine saw. Objects of msgpack have no frame around them here:
 * where one ends is found by walking over it, and nothing after a malformed one can be read.
 *
 * A refused row is reported with its line; the text of the line goes into the error event. */
#include "server/intake_stdin.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "features/cells.h"
#include "fleet/key_list.h"
#include "fleet/fleet.h"
#include "wire/columns.h"
#include "wire/cursor.h"

#define CHUNK 65536 /* bytes of one read(2) of msgpack */

struct svi_ingest_stdin {
    svi_stream *stream;
    svi_write_ahead *write_ahead; /* NULL = the state is not kept */
    struct svi_bytes sample;      /* a row as a message */
    const struct svi_settings *settings;
    svi_reader *reader;        /* NULL: msgpack */
    char key[SVS_KEY_MAX + 1]; /* of the keys there were at the start the one with the most rows; "" = none */
    struct svi_reader_options options;
    struct svi_cells cells;
    int64_t row;
    bool united;  /* the stream has the units of the columns */
    bool noted;   /* what there is to say of the header was asked for */
    bool located; /* the reason of the present refusal names the line itself */
    char place[48];
    uint8_t *buffer; /* msgpack not handed on yet: `capacity` bytes, of which [0, size) are filled */
    size_t size, capacity;
    bool ended;
    svi_ingest_stdin_taken *taken; /* NULL: nobody wants to know */
    void *user;
};

struct svi_reader_options svi_ingest_stdin_options(const struct svi_settings *s) {
    const bool chosen = svi_settings_chosen(s, "label"), none = chosen && !*s->label;
    const bool numbers = svi_settings_chosen(s, "task") && s->task == SVS_REGRESS;
    return (struct svi_reader_options){
        .format = s->in_format,
        .label = s->label,
        .label_required = chosen && !none,
        .placed = !chosen && !numbers && s->method != SVI_METHOD_NONE,
        .id = s->id,
        .ts = s->ts,
        .ts_format = s->ts_format,
        .weight = s->weight,
        .key = s->key,
        .ignore = s->ignore,
        .categories = s->categories,
        .numbers = s->numbers,
        .features = s->features,
        .columns = s->columns,
        .no_header = s->no_header,
        .missing = s->missing_words,
        .hash = s->hash > 0,
        .unlabelled = none || s->method == SVI_METHOD_NONE,
        .task_given = svi_settings_chosen(s, "task"),
    };
}

/* What a stream with keys knows of its columns: that of one key is taken for all. */
static enum svi_cell_kind ingest_stdin_known(const void *user, const char *name, size_t length) {
    const svi_ingest_stdin *in = user;
    svs_error err;
    const enum svi_cell_kind own =
        svi_cells_known(svi_engine_schema(svi_stream_root(in->stream)), name, length);
    svi_engine *e =
        own == SVI_CELL_MISSING && in->key[0] ? svi_stream_engine(in->stream, in->key, &err) : NULL;
    return e ? svi_cells_known(svi_engine_schema(e), name, length) : own;
}

static void ingest_stdin_choose_key(svi_ingest_stdin *in) {
    const struct svi_key_query most = {.order = SVI_KEYS_BY_ROWS, .limit = 1};
    const struct svi_key_entry *entry;
    int64_t matching;
    if (svi_stream_keys(in->stream, &most, &entry, &matching) > 0)
        snprintf(in->key, sizeof in->key, "%s", entry->name);
}

svi_ingest_stdin *svi_ingest_stdin_new(const struct svi_settings *s, svi_stream *stream, svi_write_ahead *w,
                                       svs_error *err) {
    svi_ingest_stdin *in = svi_new(sizeof *in, "the standard input", err);
    bool msgpack = strcmp(s->in_format, "msgpack") == 0;
    if (!in)
        return NULL;
    in->stream = stream;
    in->write_ahead = w;
    in->settings = s;
    in->capacity = (size_t)s->max_message + CHUNK;
    in->options = svi_ingest_stdin_options(s);
    in->options.known = ingest_stdin_known;
    in->options.stream = in;
    ingest_stdin_choose_key(in);
    if (!msgpack)
        in->reader =
            svi_reader_open("-", &in->options, &svi_engine_schema(svi_stream_root(stream))->shape, err);
    else if (!(in->buffer = svi_alloc(in->capacity)))
        svi_fail_memory(err, "the standard input's buffer");
    if (!in->reader && !in->buffer)
        svi_ingest_stdin_free(&in);
    return in;
}

void svi_ingest_stdin_watch(svi_ingest_stdin *in, svi_ingest_stdin_taken *taken, void *user) {
    in->taken = taken;
    in->user = user;
}

static void ingest_stdin_end_row(svi_ingest_stdin *in) {
    if (in->taken)
        in->taken(in->user, in->row);
}

void svi_ingest_stdin_free(svi_ingest_stdin **in) {
    if (!*in)
        return;
    svi_reader_close(&(*in)->reader);
    svi_free((*in)->buffer);
    svi_bytes_clear(&(*in)->sample);
    svi_cells_clear(&(*in)->cells);
    svi_free(*in);
    *in = NULL;
}

int svi_ingest_stdin_fd(const svi_ingest_stdin *in) {
    return in->reader ? svi_reader_fd(in->reader) : STDIN_FILENO;
}

double svi_ingest_stdin_wait(const svi_ingest_stdin *in) {
    return in->reader ? svi_reader_wait(in->reader) : INFINITY;
}

int64_t svi_ingest_stdin_row(const svi_ingest_stdin *in) {
    return in->row;
}

const char *svi_ingest_stdin_note(svi_ingest_stdin *in) {
    const bool now = in->reader && in->row > 0 && !in->noted;
    in->noted = in->noted || now;
    return now ? svi_reader_note(in->reader) : NULL;
}

const char *svi_ingest_stdin_place(svi_ingest_stdin *in) {
    const char *bytes;
    size_t length;
    in->place[0] = 0;
    if (!in->reader)
        snprintf(in->place, sizeof in->place, "object %" PRId64 ": ", in->row);
    else if (!in->located)
        snprintf(in->place, sizeof in->place, "line %" PRId64 ": ",
                 svi_reader_line(in->reader, &bytes, &length));
    return in->place;
}

/* A message, however it came: written ahead where the state is kept, then applied. `shown`: the text that it
 * was made from, NULL = none. */
static svs_code ingest_stdin_take_message(svi_ingest_stdin *in, const void *bytes, size_t size,
                                          const char *shown, size_t shown_size, double now, svs_error *err) {
    struct svi_envelope env;
    svs_code code = SVS_OK;
    if (in->write_ahead)
        code = svi_write_ahead_write(in->write_ahead, SVI_RECORD_FRAME, now, bytes, size, err);
    if (code != SVS_OK)
        return code;
    svi_envelope_read(&env, bytes, size);
    env.shown = shown;
    env.shown_size = shown_size;
    svi_stream_mark(in->stream, in->row);
    svi_stream_apply(in->stream, &env, now, false, NULL); /* a refusal becomes an event */
    return SVS_OK;
}

/* Names of columns as a message of their own. */
static svs_code ingest_stdin_tell_names(svi_ingest_stdin *in, const struct svi_message *m, double now,
                                        svs_error *err) {
    struct svi_pack p;
    in->sample.size = 0;
    svi_pack_begin(&p, &in->sample);
    svi_pack_map(&p, 1);
    svi_columns_pack_cells(&p, m);
    if (svi_pack_end(&p) != SVS_OK)
        return svi_fail_memory(err, "the names of the columns");
    return ingest_stdin_take_message(in, in->sample.data, in->sample.size, NULL, 0, now, err);
}

/* Does the row have to say that its values are under names? Numbers alone in the order of a stream of numbers
 * go without. */
static bool ingest_stdin_needs_names(const struct svi_schema *s, const struct svi_message *m, bool *gaps) {
    bool words = false;
    *gaps = false;
    for (int i = 0; i < m->cell_count; i++) {
        words |= m->cells[i].kind == SVI_CELL_WORD;
        *gaps |= m->cells[i].kind == SVI_CELL_MISSING;
    }
    return s->columns || words || s->shape.kind == SVI_NAMED || (s->shape.kind == SVI_UNSET && *gaps);
}

/* The columns of a list in the order of the stream, which has their names from the first row on. */
static svs_code ingest_stdin_order(svi_ingest_stdin *in, struct svi_message *m, double now, svs_error *err) {
    struct svi_schema *s = svi_engine_schema(svi_stream_root(in->stream));
    bool gaps;
    svs_code code = svi_cells_choose(&in->cells, &s->shape, m, err);
    if (svi_settings_keyed(in->settings)) { /* each key has an order of its own */
        m->listed = false;
        return code;
    }
    if (code == SVS_OK && m->listed && m->cell_count > 0 && svi_schema_columns(s) == 0)
        code = ingest_stdin_tell_names(in, m, now, err);
    if (code == SVS_OK && m->listed)
        code = svi_cells_order(&in->cells, s, m, err);
    if (code != SVS_OK || !m->listed)
        return code;
    m->in_order = ingest_stdin_needs_names(s, m, &gaps);
    if (!m->in_order && !gaps)
        m->absent = SVI_MISSING_AUTO;
    return SVS_OK;
}

/* A row is taken as the message that a producer would send. */
static svs_code ingest_stdin_take_row(svi_ingest_stdin *in, struct svi_message *m, const char *line,
                                      size_t length, double now, svs_error *err) {
    struct svi_schema *schema = svi_engine_schema(svi_stream_root(in->stream));
    svs_code code = in->united ? SVS_OK : svi_cells_note_units(schema, in->reader, err);
    in->united = true;
    if (code == SVS_OK && m->cells)
        code = ingest_stdin_order(in, m, now, err);
    if (code != SVS_OK)
        return code;
    in->sample.size = 0;
    code = svi_message_encode(m, schema->shape.names, m->missing == 0, &in->sample);
    svi_schema_restore(schema);
    if (code != SVS_OK)
        return svi_fail_memory(err, "a row");
    return ingest_stdin_take_message(in, in->sample.data, in->sample.size, line, length, now, err);
}

static svs_code text_turn(svi_ingest_stdin *in, bool fill, double now, svs_error *err) {
    struct svi_message m;
    svs_error why;
    svs_code code = fill ? svi_reader_fill(in->reader, &why) : SVS_OK;
    while (code == SVS_OK) {
        const char *line = NULL;
        size_t length = 0;
        enum svi_read what = svi_reader_next(in->reader, &m, &why);
        if (what == SVI_READ_FAIL)
            break;
        in->ended = what == SVI_READ_END;
        if (what == SVI_READ_END || what == SVI_READ_MORE)
            return SVS_OK;
        in->row++;
        svi_reader_line(in->reader, &line, &length);
        in->located = what != SVI_READ_ROW; /* why.text names the line */
        if (what == SVI_READ_ROW && ingest_stdin_take_row(in, &m, line, length, now, &why) != SVS_OK)
            break;
        if (in->located)
            svi_write_ahead_refuse(in->write_ahead, in->stream, why.code, why.text, line, length, now);
        in->located = false;
        ingest_stdin_end_row(in);
    }
    return svi_fail(err, why.code, "%s", why.text);
}

/* Objects have no frame around them here: where one ends is found by walking over it, and nothing after a
 * malformed one can be found again. */
static svs_code object_end(const svi_ingest_stdin *in, size_t from, size_t *to, svs_error *err) {
    const uint8_t *at = in->buffer + from;
    svs_code code = svi_walk(&at, in->buffer + in->size, SVI_WALK_MAX);
    *to = code == SVS_OK ? (size_t)(at - in->buffer) : from;
    size_t left = in->size - from;
    if (code == SVS_TRUNCATED && left > (size_t)in->settings->max_message)
        return svi_fail(err, SVS_TOO_LARGE,
                        "object %" PRId64 " of the input exceeds max.message = %" PRId64 " bytes",
                        in->row + 1, in->settings->max_message);
    if (code == SVS_OK || (code == SVS_TRUNCATED && !in->ended))
        return SVS_OK;
    return svi_fail(err, code, "object %" PRId64 " of the input: %s; the rest cannot be split into objects",
                    in->row + 1, svs_code_text(code));
}

static svs_code take_objects(svi_ingest_stdin *in, double now, svs_error *err) {
    size_t from = 0, to = 0;
    svs_code code = SVS_OK;
    while (from < in->size && (code = object_end(in, from, &to, err)) == SVS_OK && to > from) {
        in->row++;
        if ((code = ingest_stdin_take_message(in, in->buffer + from, to - from, NULL, 0, now, err)) != SVS_OK)
            return code;
        ingest_stdin_end_row(in);
        from = to;
    }
    if (code != SVS_OK) {
        in->row++;
        svi_write_ahead_refuse(in->write_ahead, in->stream, code, svs_code_text(code), in->buffer + from,
                               in->size - from, now);
    }
    memmove(in->buffer, in->buffer + from, in->size - from);
    in->size -= from;
    return code;
}

static svs_code msgpack_turn(svi_ingest_stdin *in, bool fill, double now, svs_error *err) {
    if (!fill)
        return SVS_OK;
    size_t room = in->capacity - in->size;
    ssize_t n = read(STDIN_FILENO, in->buffer + in->size, room < CHUNK ? room : CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return SVS_OK;
    if (n < 0)
        return svi_fail(err, SVS_IO, "standard input cannot be read: %s", strerror(errno));
    in->ended = n == 0;
    in->size += (size_t)n;
    return take_objects(in, now, err);
}

svs_code svi_ingest_stdin_turn(svi_ingest_stdin *in, bool fill, double now, bool *ended, svs_error *err) {
    svs_code code = in->reader ? text_turn(in, fill, now, err) : msgpack_turn(in, fill, now, err);
    *ended = in->ended;
    return code;
}
