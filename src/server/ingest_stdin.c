#include "engine/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/cursor.h"

#define CHUNK 65536 /* bytes of one read(2) of msgpack */

struct svi_intake {
    svi_engine *engine;
    svi_keeper *keeper;      /* NULL = nothing is written down */
    struct svi_bytes sample; /* a row as it is written down */
    const struct svi_settings *settings;
    svi_reader *reader; /* NULL: msgpack */
    struct svi_reader_options options;
    int64_t row;
    bool located; /* the reason of the present refusal names the line itself */
    char place[48];
    uint8_t *buffer; /* msgpack not handed on yet: `capacity` bytes, of which [0, size) are filled */
    size_t size, capacity;
    bool ended;
};

static const char *column(const char *setting) {
    return setting[0] ? setting : NULL;
}

struct svi_reader_options svi_intake_options(const struct svi_settings *s) {
    return (struct svi_reader_options){
        .format = s->in_format,
        .label = s->label,
        .label_required = svi_settings_given(s, svi_settings_row("label")),
        .id = column(s->id),
        .ts = column(s->ts),
        .weight = column(s->weight),
    };
}

static bool open_reader(svi_intake *in, svs_error *err) {
    in->options = svi_intake_options(in->settings);
    in->reader = svi_reader_open("-", &in->options, svi_engine_shape(in->engine), err);
    return in->reader != NULL;
}

svi_intake *svi_intake_new(const struct svi_settings *s, svi_engine *e, svi_keeper *k, svs_error *err) {
    svi_intake *in = svi_alloc(sizeof *in);
    bool msgpack = strcmp(s->in_format, "msgpack") == 0;
    if (!in) {
        svi_fail_memory(err, "the standard input");
        return NULL;
    }
    in->engine = e;
    in->keeper = k;
    in->settings = s;
    in->capacity = (size_t)s->max_message + CHUNK;
    if (msgpack && !(in->buffer = svi_alloc(in->capacity)))
        svi_fail_memory(err, "the standard input's buffer");
    if (msgpack ? !in->buffer : !open_reader(in, err))
        svi_intake_free(&in);
    return in;
}

void svi_intake_free(svi_intake **in) {
    if (!*in)
        return;
    svi_reader_close(&(*in)->reader);
    svi_free((*in)->buffer);
    svi_bytes_clear(&(*in)->sample);
    svi_free(*in);
    *in = NULL;
}

int svi_intake_fd(const svi_intake *in) {
    return in->reader ? svi_reader_fd(in->reader) : STDIN_FILENO;
}

int64_t svi_intake_row(const svi_intake *in) {
    return in->row;
}

const char *svi_intake_place(svi_intake *in) {
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

static void refuse_row(svi_intake *in, const svs_error *why, double now) {
    const char *bytes = NULL;
    size_t length = 0;
    svi_reader_line(in->reader, &bytes, &length);
    in->located = true;
    svi_keeper_refuse(in->keeper, in->engine, why->code, why->text, bytes, length, now);
    in->located = false;
}

static svs_code take_object(svi_intake *in, const void *bytes, size_t size, double now, svs_error *err) {
    svs_code code =
        in->keeper ? svi_keeper_write(in->keeper, SVI_RECORD_FRAME, now, bytes, size, err) : SVS_OK;
    if (code == SVS_OK)
        svi_engine_frame(in->engine, bytes, size, now, false, NULL); /* a refusal becomes an event */
    return code;
}

/* A row that is kept is written down, and taken, as the message that a producer would send. */
static svs_code take_row(svi_intake *in, const struct svi_message *m, double now, svs_error *err) {
    const char *bytes = NULL;
    size_t length = 0;
    struct svi_shape *shape = svi_engine_shape(in->engine);
    if (!in->keeper) {
        svi_reader_line(in->reader, &bytes, &length);
        svi_engine_message(in->engine, m, bytes, length, now, NULL);
        return SVS_OK;
    }
    in->sample.size = 0;
    svs_code code = svi_message_encode(m, shape->names, m->missing == 0, &in->sample);
    svi_shape_restore(shape);
    if (code != SVS_OK)
        return svi_fail_memory(err, "a row");
    return take_object(in, in->sample.data, in->sample.size, now, err);
}

static svs_code text_turn(svi_intake *in, bool fill, double now, svs_error *err) {
    struct svi_message m;
    svs_error why;
    if (fill && svi_reader_fill(in->reader, &why) != SVS_OK)
        return svi_fail(err, why.code, "%s", why.text);
    for (;;) {
        enum svi_read what = svi_reader_next(in->reader, &m, &why);
        if (what == SVI_READ_FAIL)
            return svi_fail(err, why.code, "%s", why.text);
        in->ended = what == SVI_READ_END;
        if (what == SVI_READ_END || what == SVI_READ_MORE)
            return SVS_OK;
        in->row++;
        svs_code code = SVS_OK;
        if (what == SVI_READ_ROW)
            code = take_row(in, &m, now, err);
        else
            refuse_row(in, &why, now);
        if (code != SVS_OK)
            return code;
    }
}

/* Objects have no frame around them here: where one ends is told by walking over it, and nothing after a
 * malformed one can be found again. */
static svs_code object_end(const svi_intake *in, size_t from, size_t *to, svs_error *err) {
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
    return svi_fail(err, code, "object %" PRId64 " of the input: %s; what follows cannot be told apart",
                    in->row + 1, svs_code_text(code));
}

static svs_code take_objects(svi_intake *in, double now, svs_error *err) {
    size_t from = 0, to = 0;
    svs_code code = SVS_OK;
    while (from < in->size && (code = object_end(in, from, &to, err)) == SVS_OK && to > from) {
        in->row++;
        if ((code = take_object(in, in->buffer + from, to - from, now, err)) != SVS_OK)
            return code;
        from = to;
    }
    if (code != SVS_OK) {
        in->row++;
        svi_keeper_refuse(in->keeper, in->engine, code, svs_code_text(code), in->buffer + from,
                          in->size - from, now);
    }
    memmove(in->buffer, in->buffer + from, in->size - from);
    in->size -= from;
    return code;
}

static svs_code msgpack_turn(svi_intake *in, bool fill, double now, svs_error *err) {
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

svs_code svi_intake_turn(svi_intake *in, bool fill, double now, bool *ended, svs_error *err) {
    svs_code code = in->reader ? text_turn(in, fill, now, err) : msgpack_turn(in, fill, now, err);
    *ended = in->ended;
    return code;
}
