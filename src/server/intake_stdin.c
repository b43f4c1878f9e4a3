/* Standard input: rows of text, or msgpack objects one after another, become messages. Scores go to standard
 * output as JSON lines; refusals and figures go to standard error.
 *
 * A row of text is read into the shape of the stream, encoded as the message that a producer would
 * send, and applied like one. A kept state adds only the journal record in between, so a replay
 * sees the same bytes as the stream did. An msgpack object has no frame: its end is found by
 * walking over it. So nothing after a malformed object can be read.
 *
 * A refused row is reported with its line number; the error event has its text. Read intake_stdin_turn
 * first. */
#include "server/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "features/cells.h"
#include "data/reader.h"
#include "fleet/fleet.h"
#include "fleet/key_list.h"
#include "report/live_figures.h"
#include "server/score_lines.h"
#include "state/write_ahead.h"
#include "wire/columns.h"
#include "wire/cursor.h"

#define CHUNK 65536 /* bytes of one read(2) in msgpack mode */
#define SHOWN 5     /* refused rows reported individually; the others are only counted */

struct rows {
    svi_stream *stream;
    const struct svi_settings *settings;
    svi_reader *reader; /* NULL: msgpack */
    struct svi_reader_options options;
    struct svi_cells cells;
    struct svi_bytes sample;   /* the row in hand as a message */
    char key[SVS_KEY_MAX + 1]; /* the key with most rows at the start; "" = none */
    bool begun;                /* the first turn is over */
    bool united;               /* the units of the columns were passed to the stream */
    bool noted;                /* the note on the columns was logged */
    bool located;              /* the reason of the refusal in hand already names the line */
    uint8_t *buffer;           /* msgpack not applied yet: `capacity` bytes, of which [0, size) are filled */
    size_t size, capacity;
    int reported; /* refused rows so far */
    struct svi_score_lines lines;
    struct svi_live_figures live;
};

/* What the stream knows about a column of this name. With keys each key has its own schema; that of the
 * largest one stands for all, so that a restarted stream reads columns as before. */
static enum svi_cell_kind intake_stdin_known(const void *user, const char *name, size_t length) {
    const struct rows *r = user;
    svs_error err;
    const enum svi_cell_kind own =
        svi_cells_known(svi_engine_schema(svi_stream_root(r->stream)), name, length);
    svi_engine *e = own == SVI_CELL_MISSING && r->key[0] ? svi_stream_engine(r->stream, r->key, &err) : NULL;
    return e ? svi_cells_known(svi_engine_schema(e), name, length) : own;
}

static void intake_stdin_choose_key(struct rows *r) {
    const struct svi_key_query most = {.order = SVI_KEYS_BY_ROWS, .limit = 1};
    const struct svi_key_entry *entry;
    int64_t matching;
    if (svi_stream_keys(r->stream, &most, &entry, &matching) > 0)
        snprintf(r->key, sizeof r->key, "%s", entry->name);
}

static void intake_stdin_close(struct svi_intake *in) {
    struct rows *r = in->own;
    svi_reader_close(&r->reader);
    svi_free(r->buffer);
    svi_bytes_clear(&r->sample);
    svi_bytes_clear(&r->lines.text);
    svi_bytes_clear(&r->lines.event);
    svi_cells_clear(&r->cells);
    svi_free(r);
    in->own = NULL;
}

static svs_code intake_stdin_open(struct svi_intake *in, svs_error *err) {
    const struct svi_settings *s = in->settings;
    svi_stream *stream = in->control->stream;
    struct rows *r = svi_new(sizeof *r, "the standard input", err);
    if (!r)
        return err->code;
    in->own = r;
    r->stream = stream;
    r->settings = s;
    /* The largest object fits, and one read after it. */
    r->capacity = (size_t)s->max_message + CHUNK;
    r->options = svi_settings_reader(s);
    r->options.known = intake_stdin_known;
    r->options.stream = r;
    r->lines.fd = in->scores ? fileno(in->scores) : -1;
    intake_stdin_choose_key(r);
    if (strcmp(s->in_format, "msgpack") != 0)
        r->reader =
            svi_reader_open("-", &r->options, &svi_engine_schema(svi_stream_root(stream))->shape, err);
    else if (!(r->buffer = svi_alloc(r->capacity)))
        svi_fail_memory(err, "the standard input's buffer");
    if (!r->reader && !r->buffer)
        return err->code;
    svi_live_figures_begin(&r->live, in->log, stream, in->every);
    return SVS_OK;
}

static void intake_stdin_poll(const struct svi_intake *in, zmq_pollitem_t *item) {
    const struct rows *r = in->own;
    item->fd = r->reader ? svi_reader_fd(r->reader) : STDIN_FILENO;
}

/* Seconds until the reader may have rows without another read; INFINITY: it will not. */
static double intake_stdin_due(const struct rows *r) {
    return r->reader ? svi_reader_wait(r->reader) : INFINITY;
}

static double intake_stdin_wait(const struct svi_intake *in) {
    const struct rows *r = in->own;
    return fmin(intake_stdin_due(r), svi_live_figures_wait(&r->live));
}

/* Logs the reader's note on the columns, once, as soon as there are rows. */
static void intake_stdin_log_note(const struct svi_intake *in) {
    struct rows *r = in->own;
    if (!r->reader || in->rows == 0 || r->noted || r->settings->method == SVI_METHOD_NONE)
        return;
    r->noted = true;
    const char *note = svi_reader_note(r->reader);
    if (note && in->log)
        fprintf(in->log, "%s\n", note);
}

/* After each row: live figures, if due. The note on the columns must precede the first of them. */
static void intake_stdin_end_row(const struct svi_intake *in) {
    struct rows *r = in->own;
    if (!svi_live_figures_due(&r->live, in->rows))
        return;
    intake_stdin_log_note(in);
    svi_live_figures_show(&r->live);
}

/* Writes "line 7: ", unless the reason contains it, and the reason. */
static void intake_stdin_log_refusal(const struct svi_intake *in, const char *reason) {
    const struct rows *r = in->own;
    const char *bytes;
    size_t length;
    fputs("svmstream: ", in->refused);
    if (!r->reader)
        fprintf(in->refused, "object %" PRId64 ": ", in->rows);
    else if (!r->located)
        fprintf(in->refused, "line %" PRId64 ": ", svi_reader_line(r->reader, &bytes, &length));
    fprintf(in->refused, "%s\n", reason);
}

static void intake_stdin_event(struct svi_intake *in, const struct svi_event *e) {
    struct rows *r = in->own;
    if (e->topic == SVI_TOPIC_SCORE)
        svi_score_lines_score(&r->lines, e, e->as.score.mark);
    else if (e->topic == SVI_TOPIC_ALERT && in->log)
        fprintf(in->log, "alert: %s\n", e->as.alert.text);
    else if (e->topic == SVI_TOPIC_ERROR && in->refused && r->reported++ < SHOWN)
        intake_stdin_log_refusal(in, e->as.error.reason);
}

/* Sends the names of the columns as a separate message. */
static svs_code intake_stdin_report_names(struct svi_intake *in, const struct svi_message *m, double now,
                                          svs_error *err) {
    struct rows *r = in->own;
    struct svi_pack p;
    r->sample.size = 0;
    svi_pack_begin(&p, &r->sample);
    svi_pack_map(&p, 1);
    svi_columns_pack_cells(&p, m);
    if (svi_pack_end(&p) != SVS_OK)
        return svi_fail_memory(err, "the names of the columns");
    return svi_intake_apply(in, r->sample.data, r->sample.size, NULL, 0, now, err);
}

/* Must the row state that its values belong to named columns? Pure numbers in the order of a stream of
 * numbers need not. *gaps: a value is missing. */
static bool intake_stdin_needs_names(const struct svi_schema *s, const struct svi_message *m, bool *gaps) {
    bool words = false;
    *gaps = false;
    for (int i = 0; i < m->cell_count; i++) {
        words |= m->cells[i].kind == SVI_CELL_WORD;
        *gaps |= m->cells[i].kind == SVI_CELL_MISSING;
    }
    return s->columns || words || s->shape.kind == SVI_NAMED || (s->shape.kind == SVI_UNSET && *gaps);
}

/* Puts the cells of a listed row into the order of the stream's columns. Their names are sent once, before
 * the first row, so that all rows after it can be lists. */
static svs_code intake_stdin_order(struct svi_intake *in, struct svi_message *m, double now, svs_error *err) {
    struct rows *r = in->own;
    struct svi_schema *s = svi_engine_schema(svi_stream_root(r->stream));
    bool gaps;
    SVI_TRY(svi_cells_choose(&r->cells, &s->shape, m, err));
    m->listed = m->listed && !svi_settings_keyed(r->settings); /* each key has its own order */
    if (!m->listed)
        return SVS_OK;
    /* The schema has no columns yet: this is the first row. */
    if (m->cell_count > 0 && svi_schema_columns(s) == 0)
        SVI_TRY(intake_stdin_report_names(in, m, now, err));
    SVI_TRY(svi_cells_order(&r->cells, s, m, err));
    /* Names are needed only if something beyond plain numbers may occur; a plain row is then as short as a
     * producer would send it. */
    m->in_order = intake_stdin_needs_names(s, m, &gaps);
    if (!m->in_order && !gaps)
        m->absent = SVI_MISSING_AUTO;
    return SVS_OK;
}

/* A new stream of classes would refuse most labels of a column of many different numbers, or learn each
 * number as a class. The columns are known at the first row only, when the task is fixed already: so this is
 * an error, unless the task was given. */
static svs_code intake_stdin_check_task(const struct rows *r, svs_error *err) {
    const struct svi_settings *s = r->settings;
    if (s->task != SVS_CLASSIFY || s->method == SVI_METHOD_NONE ||
        svi_settings_given(s, svi_settings_row("task")) || svi_stream_seen(r->stream) > 0 ||
        svi_reader_task(r->reader) != SVS_REGRESS)
        return SVS_OK;
    /* The state directory was created with the task. */
    return svi_fail(
        err, SVS_SETTING,
        "the label has many different numbers: give --task regress to predict a number%s, or --task "
        "classify if each number is a class",
        s->state_dir[0] ? ", and remove state.dir or use another" : "");
}

/* Applies a row as the message that a producer would send. Encoding may add names to the schema in passing;
 * svi_schema_restore takes them back, since the message itself adds them when it is applied. */
static svs_code intake_stdin_take_row(struct svi_intake *in, struct svi_message *m, const char *line,
                                      size_t length, double now, svs_error *err) {
    struct rows *r = in->own;
    struct svi_schema *schema = svi_engine_schema(svi_stream_root(r->stream));
    if (!r->united) {
        r->united = true;
        SVI_TRY(intake_stdin_check_task(r, err));
        SVI_TRY(svi_cells_note_units(schema, r->reader, err));
    }
    if (m->cells)
        SVI_TRY(intake_stdin_order(in, m, now, err));
    r->sample.size = 0;
    const svs_code code = svi_message_encode(m, schema->shape.names, m->missing == 0, &r->sample);
    svi_schema_restore(schema);
    if (code != SVS_OK)
        return svi_fail_memory(err, "a row");
    return svi_intake_apply(in, r->sample.data, r->sample.size, line, length, now, err);
}

/* Reads all complete rows of the buffer. A refused row is reported and the loop continues; only a failure of
 * the input or of the journal ends it. */
static svs_code text_turn(struct svi_intake *in, bool fill, double now, svs_error *err) {
    struct rows *r = in->own;
    struct svi_message m;
    svs_error why;
    svs_code code = fill ? svi_reader_fill(r->reader, &why) : SVS_OK;
    while (code == SVS_OK) {
        const char *line = NULL;
        size_t length = 0;
        enum svi_read what = svi_reader_next(r->reader, &m, &why);
        if (what == SVI_READ_FAIL)
            break;
        /* `ended` is set before the return: the rows taken so far still get their scores in this turn. */
        in->ended = what == SVI_READ_END;
        if (what == SVI_READ_END || what == SVI_READ_MORE)
            return SVS_OK;
        /* Counted before the row is applied: refusals and scores name this row. */
        in->rows++;
        svi_reader_line(r->reader, &line, &length);
        r->located = what != SVI_READ_ROW; /* then why.text names the line */
        if (what == SVI_READ_ROW && intake_stdin_take_row(in, &m, line, length, now, &why) != SVS_OK)
            break;
        if (r->located)
            svi_write_ahead_refuse(in->control->write_ahead, r->stream, why.code, why.text, line, length,
                                   now);
        r->located = false;
        intake_stdin_end_row(in);
    }
    return svi_fail(err, why.code, "%s", why.text);
}

/* Finds the end of the object at `from` by walking over it; *to == from: it is not complete yet. Nothing
 * after a malformed object can be found again, so that ends the input. */
static svs_code object_end(const struct svi_intake *in, size_t from, size_t *to, svs_error *err) {
    const struct rows *r = in->own;
    const uint8_t *at = r->buffer + from;
    svs_code code = svi_walk(&at, r->buffer + r->size, SVI_WALK_MAX);
    *to = code == SVS_OK ? (size_t)(at - r->buffer) : from;
    size_t left = r->size - from;
    /* More bytes than the largest message, and still no end: waiting for more would never finish. */
    if (code == SVS_TRUNCATED && left > (size_t)r->settings->max_message)
        return svi_fail(err, SVS_TOO_LARGE,
                        "object %" PRId64 " of the input exceeds max.message = %" PRId64 " bytes",
                        in->rows + 1, r->settings->max_message);
    if (code == SVS_OK || (code == SVS_TRUNCATED && !in->ended))
        return SVS_OK;
    return svi_fail(err, code, "object %" PRId64 " of the input: %s; the rest of the input was skipped",
                    in->rows + 1, svs_code_text(code));
}

static svs_code take_objects(struct svi_intake *in, double now, svs_error *err) {
    struct rows *r = in->own;
    size_t from = 0, to = 0;
    svs_code code = SVS_OK;
    while (from < r->size && (code = object_end(in, from, &to, err)) == SVS_OK && to > from) {
        in->rows++;
        if ((code = svi_intake_apply(in, r->buffer + from, to - from, NULL, 0, now, err)) != SVS_OK)
            return code;
        intake_stdin_end_row(in);
        from = to;
    }
    if (code != SVS_OK) {
        in->rows++;
        svi_write_ahead_refuse(in->control->write_ahead, r->stream, code, svs_code_text(code),
                               r->buffer + from, r->size - from, now);
    }
    /* The incomplete rest moves to the beginning, so that one object always fits. */
    memmove(r->buffer, r->buffer + from, r->size - from);
    r->size -= from;
    return code;
}

static svs_code msgpack_turn(struct svi_intake *in, bool fill, double now, svs_error *err) {
    struct rows *r = in->own;
    if (!fill)
        return SVS_OK;
    size_t free_bytes = r->capacity - r->size;
    ssize_t n = read(STDIN_FILENO, r->buffer + r->size, free_bytes < CHUNK ? free_bytes : CHUNK);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return SVS_OK;
    if (n < 0)
        return svi_fail(err, SVS_IO, "cannot read standard input: %s", strerror(errno));
    /* A rest that is no complete object is reported by take_objects as truncated. */
    in->ended = n == 0;
    r->size += (size_t)n;
    return take_objects(in, now, err);
}

static svs_code intake_stdin_read(struct svi_intake *in, bool fill, double now, svs_error *err) {
    struct rows *r = in->own;
    const double start = svi_monotonic();
    const int64_t before = in->rows;
    svs_error trouble;
    /* With keys a score line needs the class names of the key's engine, which are only valid while its row is
     * being processed; so the stream must not be left open then. */
    svi_stream_leave_open(r->stream, !svi_settings_keyed(r->settings));
    const svs_code code = r->reader ? text_turn(in, fill, now, err) : msgpack_turn(in, fill, now, err);
    svi_stream_leave_open(r->stream, false);
    const double seconds = svi_monotonic() - start;
    svi_latency_add(in->latency, seconds, in->rows - before);
    svi_latency_bucket(in->buckets, seconds, in->rows - before);
    intake_stdin_log_note(in);
    /* Scores are written once a turn: a write for each row would dominate the cost of small rows. */
    const svs_code written = svi_score_lines_flush(&r->lines, in->stop, &trouble);
    in->ended = in->ended || r->lines.closed;
    return code == SVS_OK && written != SVS_OK ? svi_fail(err, written, "%s", trouble.text) : code;
}

/* One turn. The first takes the rows that were read to detect the format, without another read. */
static svs_code intake_stdin_turn(struct svi_intake *in, bool ready, double now, svs_error *err) {
    struct rows *r = in->own;
    svs_code code = SVS_OK;
    if (!r->begun || ready || intake_stdin_due(r) <= 0)
        code = intake_stdin_read(in, r->begun && ready, now, err);
    r->begun = true;
    if (svi_live_figures_wait(&r->live) <= 0)
        svi_live_figures_show(&r->live);
    return code;
}

const struct svi_intake_ops svi_intake_stdin = {.open = intake_stdin_open,
                                                .close = intake_stdin_close,
                                                .poll = intake_stdin_poll,
                                                .turn = intake_stdin_turn,
                                                .wait = intake_stdin_wait,
                                                .event = intake_stdin_event};
