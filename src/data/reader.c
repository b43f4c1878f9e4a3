/* A reader cuts lines out of an input (input.h: bytes of a file or pipe, unpacked) and hands each to a format
 * (format.h). The format is the one of the settings, else that of the file's name, else what the first line
 * looks like; the first line that is not blank begins it.
 *
 * A line is a view of the input's buffer, valid until the next fill. What stands after it can be read
 * (numbers need that): the next line, or a line end that is put into the padding at the end of the input. A
 * line over 1 MiB is reported once and its rest skipped as it comes. Nothing here blocks but svi_reader_fill;
 * svi_reader_next returns SVI_READ_MORE when it needs one.
 *
 * Order: opening, lines, rows. */
#include "data/reader.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/reader_internal.h"
#include "data/input.h"

#define LONGEST_LINE ((size_t)1 << 20)

struct svi_reader {
    struct svi_input source;
    struct svi_reader_options options;
    struct svi_shape *shape;
    const struct svi_format *format; /* NULL: the first line decides */
    void *state;                     /* of the format, from the first line on */
    struct svi_span line;
    int64_t number;  /* of that line, from 1 */
    size_t searched; /* bytes after source.at that hold no line end */
    bool skipping;   /* the rest of a line that was too long */
};

static void reader_format_by_name(struct svi_reader *r, const char *path) {
    static const struct {
        const char *ending;
        const struct svi_format *format;
    } endings[] = {{".csv", &svi_csv},       {".tsv", &svi_csv},     {".svm", &svi_libsvm},
                   {".libsvm", &svi_libsvm}, {".jsonl", &svi_jsonl}, {".ndjson", &svi_jsonl},
                   {".json", &svi_jsonl}};
    size_t length = strlen(path);
    if (svi_ends_with(path, length, ".gz"))
        length -= 3;
    for (size_t i = 0; !r->format && i < sizeof endings / sizeof *endings; i++)
        if (svi_ends_with(path, length, endings[i].ending))
            r->format = endings[i].format;
}

svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err) {
    static const struct svi_format *const formats[] = {&svi_csv, &svi_libsvm, &svi_jsonl};
    const char *wanted = o->format ? o->format : "auto";
    svi_reader *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the reader");
        return NULL;
    }
    r->options = *o;
    r->shape = shape;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(wanted, formats[i]->name) == 0)
            r->format = formats[i];
    svs_code code = SVS_OK;
    if (!r->format && strcmp(wanted, "auto") != 0)
        code = svi_fail(err, SVS_SETTING, "unknown format \"%.60s\": it must be auto, csv, libsvm or jsonl",
                        wanted);
    if (code != SVS_OK || svi_input_open(&r->source, path, LONGEST_LINE + 1, err) != SVS_OK) {
        svi_free(r);
        return NULL;
    }
    reader_format_by_name(r, path);
    return r;
}

void svi_reader_close(svi_reader **reader) {
    svi_reader *r = *reader;
    if (!r)
        return;
    if (r->state && r->format->end)
        r->format->end(r->state);
    svi_input_close(&r->source);
    svi_free(r);
    *reader = NULL;
}

int svi_reader_fd(const svi_reader *r) {
    return r->source.fd;
}

svs_code svi_reader_fill(svi_reader *r, svs_error *err) {
    return svi_input_fill(&r->source, err);
}

int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length) {
    *bytes = r->line.at;
    *length = (size_t)(r->line.end - r->line.at);
    return r->number;
}

const char *svi_reader_note(const svi_reader *r) {
    return r->state && r->format->note ? r->format->note(r->state) : NULL;
}

int64_t svi_reader_position(const svi_reader *r, int64_t *size) {
    *size = r->source.size;
    return r->source.taken;
}

/* Puts the line's number in front of the error's text. */
static enum svi_read reader_refuse(const svi_reader *r, enum svi_read how, const svs_error *why,
                                   svs_error *err) {
    svi_fail(err, why->code, "line %lld: %s", (long long)r->number, why->text);
    return how;
}

/* What the buffer holds of the next line. */
enum found { FOUND_LINE, FOUND_LONG, FOUND_NOTHING };

static enum found reader_find_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    if (s->packing == SVI_PACKING_UNKNOWN)
        return FOUND_NOTHING; /* a single first byte may turn out to be gzip */
    const char *at = s->buffer + s->at, *newline;
    if (r->skipping) { /* what is left of a line that was refused for its length */
        newline = memchr(at, '\n', s->end - s->at);
        r->skipping = !newline;
        s->at = newline ? s->at + (size_t)(newline + 1 - at) : s->end;
        at = s->buffer + s->at;
    }
    size_t held = s->end - s->at;
    newline = memchr(at + r->searched, '\n', held - r->searched);
    size_t length = newline ? (size_t)(newline - at) : held;
    bool longer = length > LONGEST_LINE;
    bool last = !newline && !longer && s->ended && !svi_input_pending(s) && held > 0;
    if (!newline && !last && !longer) {
        r->searched = held;
        return FOUND_NOTHING;
    }
    if (last)
        s->buffer[s->end] = '\n'; /* in the padding: numbers must end */
    s->at += longer ? LONGEST_LINE : length + !last;
    length = longer ? LONGEST_LINE : length - (length > 0 && at[length - 1] == '\r');
    r->line = (struct svi_span){at, at + length};
    r->number++;
    r->searched = 0;
    r->skipping = longer;
    return longer ? FOUND_LONG : FOUND_LINE;
}

/* The present line as a row. SVI_READ_MORE: it is not one. */
static enum svi_read reader_read_line(svi_reader *r, struct svi_message *m, svs_error *err) {
    svs_error why = {0};
    if (!r->state) {
        if (r->number == 1 && r->line.end - r->line.at >= 3 && memcmp(r->line.at, "\xef\xbb\xbf", 3) == 0)
            r->line.at += 3; /* a byte order mark */
        struct svi_span text = svi_trim(r->line);
        if (text.at == text.end)
            return SVI_READ_MORE;
        if (!r->format)
            r->format = *text.at == '{' ? &svi_jsonl : svi_libsvm_looks(r->line) ? &svi_libsvm : &svi_csv;
        r->state = r->format->begin(&r->options, r->shape, r->line, &why);
        if (!r->state)
            return reader_refuse(r, SVI_READ_FAIL, &why, err);
        if (r->format->header)
            return SVI_READ_MORE;
    }
    *m = (struct svi_message){.x = r->shape->row, .ts = NAN, .weight = 1, .n = -1};
    svs_code code = r->format->row(r->state, r->line, m, &why);
    if (code == SVS_OK)
        code = svi_shape_fits(r->shape, m, &why);
    if (code == SVS_OK)
        return SVI_READ_ROW;
    return code == SVS_EMPTY ? SVI_READ_MORE : reader_refuse(r, SVI_READ_BAD, &why, err);
}

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err) {
    for (;;) {
        enum found found = reader_find_line(r);
        if (found == FOUND_LONG) /* without its first line a file has no meaning */
            return reader_refuse(r, r->state ? SVI_READ_BAD : SVI_READ_FAIL,
                                 &(svs_error){SVS_TOO_LARGE, "the line is longer than 1 MiB"}, err);
        if (found == FOUND_LINE) {
            enum svi_read result = reader_read_line(r, m, err);
            if (result != SVI_READ_MORE)
                return result;
        } else if (svi_input_pending(&r->source)) {
            /* A caller may poll before it fills: what needs no read must not wait for one. */
            if (svi_input_fill(&r->source, err) != SVS_OK)
                return SVI_READ_FAIL;
        } else if (!r->source.ended) {
            return SVI_READ_MORE;
        } else if (r->state || r->format != &svi_csv) {
            return SVI_READ_END;
        } else {
            svi_fail(err, SVS_SETTING, "'%s' is empty; a CSV needs a header line with the column names",
                     r->source.name);
            return SVI_READ_FAIL;
        }
    }
}

enum svi_read svi_reader_row(svi_reader *r, struct svi_message *m, svs_error *err) {
    for (;;) {
        enum svi_read result = svi_reader_next(r, m, err);
        if (result != SVI_READ_MORE)
            return result;
        struct pollfd ready = {.fd = r->source.fd, .events = POLLIN};
        poll(&ready, 1, -1); /* standard input may be set nonblocking by its other owners */
        if (svi_reader_fill(r, err) != SVS_OK)
            return SVI_READ_FAIL;
    }
}
