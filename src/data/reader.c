#include "data/reader.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cell.h"
#include "data/format.h"
#include "data/source.h"

#define LONGEST_LINE ((size_t)1 << 20)

struct svi_reader {
    struct svi_source source;
    struct svi_reader_options options;
    struct svi_shape *shape;
    const struct svi_format *format; /* NULL: the first line decides */
    void *state;                     /* of the format, from the first line on */
    struct svi_span line;
    int64_t number;  /* of that line, from 1 */
    size_t searched; /* bytes behind source.at that hold no line end */
    bool skipping;   /* the rest of a line that was too long */
};

static const struct svi_format *const formats[] = {&svi_csv, &svi_libsvm, &svi_jsonl};

static svs_code format_by_setting(struct svi_reader *r, svs_error *err) {
    const char *wanted = r->options.format;
    if (!wanted || strcmp(wanted, "auto") == 0)
        return SVS_OK;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(wanted, formats[i]->name) == 0)
            r->format = formats[i];
    if (!r->format)
        return svi_fail(err, SVS_SETTING,
                        "there is no format \"%.60s\": auto, csv, libsvm and jsonl are known", wanted);
    return SVS_OK;
}

static bool ends_in(const char *path, size_t length, const char *ending) {
    size_t n = strlen(ending);
    return length >= n && memcmp(path + length - n, ending, n) == 0;
}

static void format_by_name(struct svi_reader *r, const char *path) {
    static const struct {
        const char *ending;
        const struct svi_format *format;
    } endings[] = {{".csv", &svi_csv},       {".tsv", &svi_csv},     {".svm", &svi_libsvm},
                   {".libsvm", &svi_libsvm}, {".jsonl", &svi_jsonl}, {".ndjson", &svi_jsonl},
                   {".json", &svi_jsonl}};
    size_t length = strlen(path);
    if (ends_in(path, length, ".gz"))
        length -= 3;
    for (size_t i = 0; !r->format && i < sizeof endings / sizeof *endings; i++)
        if (ends_in(path, length, endings[i].ending))
            r->format = endings[i].format;
}

svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err) {
    svi_reader *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the reader");
        return NULL;
    }
    r->options = *o;
    r->shape = shape;
    svs_code code = format_by_setting(r, err);
    if (code == SVS_OK)
        code = svi_source_open(&r->source, path, LONGEST_LINE + 1, err);
    if (code != SVS_OK) {
        svi_free(r);
        return NULL;
    }
    format_by_name(r, path);
    return r;
}

void svi_reader_close(svi_reader **reader) {
    svi_reader *r = *reader;
    if (!r)
        return;
    if (r->state)
        r->format->end(r->state);
    svi_source_close(&r->source);
    svi_free(r);
    *reader = NULL;
}

int svi_reader_fd(const svi_reader *r) {
    return r->source.fd;
}

svs_code svi_reader_fill(svi_reader *r, svs_error *err) {
    return svi_source_fill(&r->source, err);
}

int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length) {
    *bytes = r->line.at;
    *length = (size_t)(r->line.end - r->line.at);
    return r->number;
}

int64_t svi_reader_position(const svi_reader *r, int64_t *size) {
    *size = r->source.size;
    return r->source.taken;
}

/* Puts the line's number in front of what was said about it. */
static enum svi_read refuse(const svi_reader *r, enum svi_read how, const svs_error *why, svs_error *err) {
    svi_fail(err, why->code, "line %lld: %s", (long long)r->number, why->text);
    return how;
}

/* Takes the `length` bytes in front as the present line, and `eaten` of them (its end included) out of the
 * buffer. */
static void take_line(svi_reader *r, size_t length, size_t eaten) {
    const char *at = r->source.buffer + r->source.at;
    r->line = (struct svi_span){at, at + length};
    r->source.at += eaten;
    r->searched = 0;
}

/* What the buffer holds of the next line. */
enum found { FOUND_LINE, FOUND_LONG, FOUND_NOTHING };

/* Drops what is left of a line that was refused for its length. */
static void skip_rest(svi_reader *r) {
    struct svi_source *s = &r->source;
    const char *at = s->buffer + s->at;
    const char *newline = memchr(at, '\n', s->end - s->at);
    r->skipping = !newline;
    s->at = newline ? s->at + (size_t)(newline + 1 - at) : s->end;
}

static enum found find_line(svi_reader *r) {
    struct svi_source *s = &r->source;
    if (s->packing == SVI_PACKING_UNKNOWN)
        return FOUND_NOTHING; /* a single first byte may turn out to be gzip */
    if (r->skipping)
        skip_rest(r);
    const char *at = s->buffer + s->at;
    size_t held = s->end - s->at;
    const char *newline = memchr(at + r->searched, '\n', held - r->searched);
    size_t length = newline ? (size_t)(newline - at) : held;
    if (length > LONGEST_LINE) {
        r->number++;
        r->skipping = true;
        take_line(r, LONGEST_LINE, LONGEST_LINE);
        return FOUND_LONG;
    }
    bool last = !newline && s->ended && !svi_source_pending(s) && held > 0;
    if (!newline && !last) {
        r->searched = held;
        return FOUND_NOTHING;
    }
    if (last)
        s->buffer[s->end] = '\n'; /* in the padding: numbers must end */
    r->number++;
    take_line(r, length > 0 && at[length - 1] == '\r' ? length - 1 : length, length + !last);
    return FOUND_LINE;
}

static const struct svi_format *format_by_line(struct svi_span line) {
    struct svi_span text = svi_trim(line);
    if (text.at < text.end && *text.at == '{')
        return &svi_jsonl;
    return svi_libsvm_looks(line) ? &svi_libsvm : &svi_csv;
}

/* The first line that is not blank. True: it was a header, or refused (*result). */
static bool begin(svi_reader *r, enum svi_read *result, svs_error *err) {
    svs_error why = {0};
    if (!r->format)
        r->format = format_by_line(r->line);
    r->state = r->format->begin(&r->options, r->shape, r->line, &why);
    *result = SVI_READ_MORE;
    if (!r->state)
        *result = refuse(r, SVI_READ_FAIL, &why, err);
    return !r->state || r->format->header;
}

static void drop_byte_order_mark(svi_reader *r) {
    if (r->number == 1 && r->line.end - r->line.at >= 3 && memcmp(r->line.at, "\xef\xbb\xbf", 3) == 0)
        r->line.at += 3;
}

/* The present line as a row. SVI_READ_MORE: it is none. */
static enum svi_read read_line(svi_reader *r, struct svi_message *m, svs_error *err) {
    enum svi_read result;
    if (!r->state) {
        drop_byte_order_mark(r);
        struct svi_span text = svi_trim(r->line);
        if (text.at == text.end)
            return SVI_READ_MORE;
        if (begin(r, &result, err))
            return result;
    }
    svs_error why = {0};
    *m = (struct svi_message){.x = r->shape->row, .ts = NAN, .weight = 1, .n = -1};
    svs_code code = r->format->row(r->state, r->line, m, &why);
    if (code == SVS_OK)
        code = svi_shape_fits(r->shape, m, &why);
    if (code == SVS_OK)
        return SVI_READ_ROW;
    return code == SVS_EMPTY ? SVI_READ_MORE : refuse(r, SVI_READ_BAD, &why, err);
}

static enum svi_read read_long_line(svi_reader *r, svs_error *err) {
    svs_error why = {0};
    svi_fail(&why, SVS_TOO_LARGE, "the line is longer than 1 MiB");
    /* Without its first line the file means nothing. */
    return refuse(r, r->state ? SVI_READ_BAD : SVI_READ_FAIL, &why, err);
}

static enum svi_read read_end(const svi_reader *r, svs_error *err) {
    if (r->state || r->format != &svi_csv)
        return SVI_READ_END;
    svi_fail(err, SVS_SETTING, "'%s' is empty; a CSV needs a header line with the column names",
             r->source.name);
    return SVI_READ_FAIL;
}

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err) {
    for (;;) {
        enum found found = find_line(r);
        if (found == FOUND_LONG)
            return read_long_line(r, err);
        if (found == FOUND_LINE) {
            enum svi_read result = read_line(r, m, err);
            if (result != SVI_READ_MORE)
                return result;
        } else if (svi_source_pending(&r->source)) {
            /* A caller may poll before it fills: what needs no read must not wait for one. */
            if (svi_source_fill(&r->source, err) != SVS_OK)
                return SVI_READ_FAIL;
        } else {
            return r->source.ended ? read_end(r, err) : SVI_READ_MORE;
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
