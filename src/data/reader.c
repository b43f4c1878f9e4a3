/* A reader cuts lines out of an input (input.h: bytes of a file or pipe, unpacked) and hands each to a format
 * (reader_internal.h). The format is the one of the settings, else that of the file's name, else what the
 * first line looks like; the first line that is not blank begins it.
 *
 * A line is a view of the input's buffer, valid until the next fill; what stands after it can be read. A line
 * over 1 MiB is reported once and its rest skipped. Nothing here blocks but svi_reader_fill.
 *
 * A format may want to see lines before any is a row. They are cut ahead of the place where rows are cut
 * (`ahead` bytes), so they come again; when there are enough, or nothing more comes for a while, the format
 * decides.
 *
 * A line of CSV that ends inside of quotes may go on in the next ones: only one that is no row by itself is
 * looked at for that. If nothing closes the quote within 64 KiB the line is refused alone.
 *
 * Order: opening, lines, rows of several lines, the first lines, rows. */
#include "data/reader.h"

#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/reader_internal.h"
#include "data/input.h"

#define LONGEST_LINE     ((size_t)1 << 20)
#define SAMPLE_LINES     1000                /* looked at before the first row */
#define SAMPLE_BYTES     ((size_t)256 << 10) /* or this many bytes */
#define LONGEST_ROW      ((size_t)64 << 10)  /* of several lines */
#define COMMENT_LINES    100                 /* looked at below a line that may be a comment */
#define SILENCE          0.25                /* seconds without more of them */
#define MAX_OPEN_SECONDS 1                   /* seconds that a row of several lines may take to come */

struct svi_reader {
    struct svi_input source;
    struct svi_reader_options options;
    struct svi_shape *shape;
    const struct svi_format *format; /* NULL: the first line decides */
    void *state;                     /* of the format, from the first line on */
    svi_guess *guess;
    bool sampling;  /* the format looks at lines */
    size_t ahead;   /* bytes after source.at that it has seen */
    int samples;    /* lines in them */
    double sampled; /* when the last of them came */
    double open;    /* since when a line with an open quote waits for those that may close it; 0: none */
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
                   {".json", &svi_jsonl},    {".vw", &svi_vw}};
    size_t length = strlen(path);
    if (svi_ends_with(path, length, ".gz"))
        length -= 3;
    for (size_t i = 0; !r->format && i < sizeof endings / sizeof *endings; i++)
        if (svi_ends_with(path, length, endings[i].ending))
            r->format = endings[i].format;
}

svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err) {
    static const struct svi_format *const formats[] = {&svi_csv, &svi_libsvm, &svi_jsonl, &svi_vw};
    const char *wanted = o->format ? o->format : "auto";
    svi_reader *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the reader");
        return NULL;
    }
    r->options = *o;
    if (!o->missing)
        r->options.missing = SVI_MISSING_WORDS;
    r->shape = shape;
    r->guess = svi_guess_new(&r->options);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(wanted, formats[i]->name) == 0)
            r->format = formats[i];
    svs_code code = r->guess ? SVS_OK : svi_fail_memory(err, "the reader");
    if (code == SVS_OK && !r->format && strcmp(wanted, "auto") != 0)
        code = svi_fail(err, SVS_SETTING,
                        "unknown format \"%.60s\": it must be auto, csv, libsvm, jsonl or vw", wanted);
    if (code != SVS_OK || svi_input_open(&r->source, path, LONGEST_LINE + 1, err) != SVS_OK) {
        svi_reader_close(&r);
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
    svi_guess_free(&r->guess);
    svi_input_close(&r->source);
    svi_free(r);
    *reader = NULL;
}

int svi_reader_fd(const svi_reader *r) {
    return r->source.fd;
}

svs_code svi_reader_fill(svi_reader *r, svs_error *err) {
    const size_t held = r->source.end - r->source.at;
    svs_code code = svi_input_fill(&r->source, err);
    if (r->source.end - r->source.at > held)
        r->sampled = svi_monotonic();
    return code;
}

double svi_reader_wait(const svi_reader *r) {
    if (r->open > 0)
        return fmax(0, r->open + MAX_OPEN_SECONDS - svi_monotonic());
    if (!r->sampling || (svi_guess_rows(r->guess) == 0 && r->samples < 2)) /* a header alone tells nothing */
        return INFINITY;
    return fmax(0, r->sampled + SILENCE - svi_monotonic());
}

void svi_reader_shape(svi_reader *r, struct svi_shape *shape) {
    r->shape = shape;
}

svs_task svi_reader_task(const svi_reader *r) {
    return svi_guess_regress(r->guess) ? SVS_REGRESS : SVS_CLASSIFY;
}

int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length) {
    *bytes = r->line.at;
    *length = (size_t)(r->line.end - r->line.at);
    return r->number;
}

const char *svi_reader_note(const svi_reader *r) {
    const char *note = svi_guess_note(r->guess);
    return note[0] ? note : NULL;
}

const char *svi_reader_unused(const svi_reader *r, bool taken, int *at) {
    return svi_guess_unused(r->guess, taken, at);
}

const char *svi_reader_united(const svi_reader *r, const char **unit, int *at) {
    return svi_guess_united(r->guess, unit, at);
}

int64_t svi_reader_headers(const svi_reader *r) {
    return r->state && r->format->headers ? r->format->headers(r->state) : 0;
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
    if (r->number++ == 0 && length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        r->line.at += 3; /* a byte order mark */
    r->searched = 0;
    r->skipping = longer;
    return longer ? FOUND_LONG : FOUND_LINE;
}

/* The same where a whole line is there, as nearly always. */
static inline bool reader_cut_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    const char *at = s->buffer + s->at, *end = s->buffer + s->end;
    if (r->skipping || r->number == 0)
        return false;
    const char *newline = memchr(at + r->searched, '\n', (size_t)(end - at) - r->searched);
    if (!newline || (size_t)(newline - at) > LONGEST_LINE)
        return false;
    s->at = (size_t)(newline + 1 - s->buffer);
    newline -= newline > at && newline[-1] == '\r';
    r->line = (struct svi_span){at, newline};
    r->number++;
    r->searched = 0;
    return true;
}

/* ---- rows of several lines */

/* What is known of the row that begins with an open line. */
enum joined { JOINED_ROW, JOINED_NOT, JOINED_WAITS };

/* Adds the lines up to the one that closes the quote. `held`: the end of what the buffer holds. Quotes inside
 * of quotes are doubled, so an odd number of them closes. */
static enum joined reader_join(const struct svi_reader *r, struct svi_span *line, const char *held) {
    const bool ended = r->source.ended && !svi_input_pending(&r->source);
    const char *p = line->end + (line->end < held && *line->end == '\r') + 1;
    while (p < held && (size_t)(p - line->at) <= LONGEST_ROW) {
        bool closes = false;
        for (; p < held && *p != '\n'; p++)
            closes ^= *p == '"';
        if (p == held && !ended)
            return JOINED_WAITS;
        if (closes) {
            line->end = p - (p[-1] == '\r');
            return r->format->ends(r->state, *line) == SVI_ENDS_WHOLE ? JOINED_ROW : JOINED_NOT;
        }
        p++;
    }
    return p >= held && !ended ? JOINED_WAITS : JOINED_NOT;
}

static bool reader_is_open(const struct svi_reader *r, struct svi_span line) {
    return r->format->ends && memchr(line.at, '"', (size_t)(line.end - line.at)) &&
           r->format->ends(r->state, line) == SVI_ENDS_OPEN;
}

/* The present line, which is no row: the lines after it may belong to it. Where they do not it is alone
 * again. */
static enum joined reader_join_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    const char *held = s->buffer + s->end, *at = r->line.at;
    const char *newline = memchr(at, '\n', (size_t)(r->line.end - at));
    struct svi_span line = {at, newline ? newline - (newline > at && newline[-1] == '\r') : r->line.end};
    const struct svi_span first = line;
    if (s->ended)
        s->buffer[s->end] = '\n'; /* in the padding: numbers must end */
    enum joined joined = reader_is_open(r, line) ? reader_join(r, &line, held) : JOINED_NOT;
    if (joined == JOINED_WAITS && r->open > 0 && svi_reader_wait(r) <= 0)
        joined = JOINED_NOT;
    if (joined == JOINED_WAITS) {
        r->open = r->open > 0 ? r->open : svi_monotonic();
        r->searched = (size_t)(held - at);
        s->at = (size_t)(at - s->buffer);
        r->number--;
        return joined;
    }
    r->open = 0;
    r->line = joined == JOINED_ROW ? line : first;
    const char *next = memchr(r->line.end, '\n', (size_t)(held - r->line.end));
    s->at = next ? (size_t)(next + 1 - s->buffer) : s->end;
    for (const char *p = first.end; p < r->line.end; p++)
        r->number += *p == '\n';
    return joined;
}

/* ---- the first lines */

/* Every other byte of text in a western language is 0, or the file says it by its first two. */
static bool is_utf16(struct svi_span line) {
    const size_t length = (size_t)(line.end - line.at);
    return length >= 2 && (memcmp(line.at, "\xff\xfe", 2) == 0 || memcmp(line.at, "\xfe\xff", 2) == 0 ||
                           memchr(line.at, 0, length < 4 ? length : 4));
}

/* sep=; stands before the first line of a CSV and tells a spreadsheet what parts cells. */
static bool is_separator_hint(struct svi_span line) {
    return line.end - line.at == 5 && memcmp(line.at, "sep=", 4) == 0;
}

/* A line that begins with # before anything else is a comment, unless it is the header: then it stands above
 * a row that does not, with as many cells. *wait: more lines are to come. */
static bool reader_is_comment(const struct svi_reader *r, bool *wait) {
    const struct svi_input *s = &r->source;
    const char *p = s->buffer + s->at, *const held = s->buffer + s->end;
    const bool ended = s->ended && !svi_input_pending(s);
    *wait = false;
    if ((r->format && r->format != &svi_csv) || r->line.at == r->line.end || *r->line.at != '#')
        return false;
    for (int i = 0; i < COMMENT_LINES; i++) {
        const char *newline = memchr(p, '\n', (size_t)(held - p));
        *wait = !newline && !ended;
        if (!newline && (*wait || p == held))
            return false;
        const struct svi_span below = {p, newline ? newline : held};
        if (p < below.end && *p != '#' && svi_trim(below).at < below.end)
            return i > 0 || !svi_csv_heads(r->line, below);
        p = newline ? newline + 1 : held;
    }
    return false;
}

/* The beginning of an array of objects, or of an object on several lines: the filter of jq that makes one
 * object a line of it. NULL: neither. */
static const char *json_on_many_lines(struct svi_span line) {
    const struct svi_span rest = svi_trim((struct svi_span){line.at + (line.at < line.end), line.end});
    const bool alone = rest.at == rest.end;
    return *line.at == '[' && (alone || *rest.at == '{') ? "'.[]'" : *line.at == '{' && alone ? "." : NULL;
}

/* Only text whose columns are the same in all rows has one for the key. */
static svs_code refuse_keys(const struct svi_reader *r, svs_error *err) {
    const char *key = r->options.key;
    char shown[80];
    if (!key || !*key || r->options.key_spare || r->format == &svi_csv || r->format == &svi_jsonl)
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "%s has no column for the key (key is \"%s\"): rows with keys are CSV or JSON lines",
                    r->format == &svi_vw ? "VW text" : "LIBSVM",
                    svi_escape(shown, sizeof shown, key, strlen(key)));
}

/* The present line begins the format, which may want to see it and further ones before it is a row. */
static svs_code reader_begin(svi_reader *r, svs_error *err) {
    const struct svi_span text = svi_trim(r->line);
    if (is_utf16(text))
        return svi_fail(err, SVS_SETTING, "the file is UTF-16: convert it with iconv -f UTF-16 -t UTF-8");
    if (memchr(text.at, '\r', (size_t)(text.end - text.at)))
        return svi_fail(err, SVS_SETTING,
                        "a CR in the line: if lines end in CR alone, convert the file with tr '\\r' '\\n'");
    const char *filter = !r->format || r->format == &svi_jsonl ? json_on_many_lines(text) : NULL;
    if (filter)
        return svi_fail(err, SVS_SETTING,
                        "a file of JSON has one object a line: jq -c %s makes that of this one", filter);
    if (!r->format)
        r->format = *text.at == '{'             ? &svi_jsonl
                    : svi_libsvm_looks(r->line) ? &svi_libsvm
                    : svi_vw_looks(r->line)     ? &svi_vw
                                                : &svi_csv;
    if (refuse_keys(r, err) != SVS_OK)
        return err->code;
    r->state = r->format->begin(&r->options, r->guess, r->line, err);
    r->sampling = r->state && r->format->sample;
    return r->state ? SVS_OK : err->code;
}

static svs_code reader_decide(svi_reader *r, bool whole, svs_error *err) {
    r->sampling = false;
    return r->format->decide(r->state, whole, err);
}

/* Shows the format the lines that are there. When it still wants more, r->sampling stays. */
static svs_code reader_sample(svi_reader *r, svs_error *err) {
    struct svi_input *s = &r->source;
    bool enough = false;
    while (!enough && r->samples < SAMPLE_LINES) {
        const char *at = s->buffer + s->at + r->ahead;
        const size_t held = s->end - s->at - r->ahead;
        const char *newline = memchr(at, '\n', held);
        const bool rest = !newline && s->ended && !svi_input_pending(s) && held > 0 && held <= LONGEST_LINE;
        if (!newline && !rest)
            break;
        if (s->ended)
            s->buffer[s->end] = '\n';
        size_t length = newline ? (size_t)(newline - at) : held;
        struct svi_span line = {at, at + length - (length > 0 && at[length - 1] == '\r')}, row = line;
        if (length <= LONGEST_LINE && reader_is_open(r, line)) {
            const enum joined joined = reader_join(r, &row, at + held);
            if (joined == JOINED_WAITS)
                break;
            line = joined == JOINED_ROW ? row : line;
            if (joined == JOINED_ROW)
                length = (size_t)(row.end - at) + (row.end < at + held && *row.end == '\r');
        }
        const bool last = at + length == s->buffer + s->end;
        svs_code code = length > LONGEST_LINE ? SVS_OK : r->format->sample(r->state, line, &enough, err);
        if (code != SVS_OK)
            return code;
        r->ahead += length + !last;
        r->samples++;
    }
    const bool ended = s->ended && !svi_input_pending(s);
    const size_t held = s->end - s->at;
    const bool full = r->samples >= SAMPLE_LINES || held > LONGEST_LINE ||
                      (held >= SAMPLE_BYTES && svi_guess_rows(r->guess) > 0);
    const bool silent = !svi_input_pending(s) && svi_reader_wait(r) <= 0;
    return enough || full || ended || silent ? reader_decide(r, ended && held == r->ahead, err) : SVS_OK;
}

/* ---- rows */

/* The present line as a row. SVI_READ_MORE: it is not one. */
static enum svi_read reader_read_line(svi_reader *r, struct svi_message *m, svs_error *err) {
    svs_error why; /* not cleared: it is long, and nearly every line is a row */
    svi_message_begin(m, r->shape->row);
    svs_code code = r->format->row(r->state, r->shape, r->line, m, &why);
    if (code == SVS_OK && !m->cells && !(r->options.key && *r->options.key)) /* of its key it may fit */
        code = svi_shape_fits(r->shape, m, &why);
    if (code == SVS_OK)
        return SVI_READ_ROW;
    return code == SVS_EMPTY ? SVI_READ_MORE : reader_refuse(r, SVI_READ_BAD, &why, err);
}

/* A refused line may be the first of a row of several. False: there is no row yet. */
static bool reader_read_more(svi_reader *r, struct svi_message *m, svs_error *err, enum svi_read *result) {
    const struct svi_span line = r->line;
    const enum joined joined = r->format->ends ? reader_join_line(r) : JOINED_NOT;
    *result = joined == JOINED_WAITS                            ? SVI_READ_MORE
              : joined == JOINED_ROW || r->line.end != line.end ? reader_read_line(r, m, err)
                                                                : SVI_READ_BAD;
    return *result != SVI_READ_MORE;
}

/* The line comes again. */
static void reader_put_back(svi_reader *r) {
    r->source.at = (size_t)(r->line.at - r->source.buffer);
    r->number--;
}

/* One step: SVI_READ_MORE where the input is to be filled, and *again where another step comes. */
static enum svi_read reader_step(svi_reader *r, struct svi_message *m, bool *again, svs_error *err) {
    svs_error why;
    *again = true;
    if (r->sampling) {
        if (reader_sample(r, &why) != SVS_OK) { /* which is about no single line */
            svi_fail(err, why.code, "%s", why.text);
            return *again = false, SVI_READ_FAIL;
        }
        *again = !r->sampling;
        return SVI_READ_MORE;
    }
    const enum found found = reader_find_line(r);
    *again = found != FOUND_NOTHING;
    if (found == FOUND_NOTHING)
        return SVI_READ_MORE;
    if (found == FOUND_LONG) { /* without its first line a file has no meaning */
        *again = false;
        return reader_refuse(r, r->state ? SVI_READ_BAD : SVI_READ_FAIL,
                             &(svs_error){SVS_TOO_LARGE, "the line is longer than 1 MiB"}, err);
    }
    if (!r->state) {
        const struct svi_span text = svi_trim(r->line);
        bool wait;
        if (text.at == text.end || is_separator_hint(text) || reader_is_comment(r, &wait))
            return SVI_READ_MORE;
        if (wait) {
            reader_put_back(r);
            return *again = false, SVI_READ_MORE;
        }
        if (reader_begin(r, &why) != SVS_OK)
            return *again = false, reader_refuse(r, SVI_READ_FAIL, &why, err);
        reader_put_back(r);
        return SVI_READ_MORE;
    }
    enum svi_read result = reader_read_line(r, m, err);
    if (result == SVI_READ_BAD)
        reader_read_more(r, m, err, &result);
    *again = result == SVI_READ_MORE;
    return result;
}

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err) {
    enum svi_read more;
    if (r->open > 0 && svi_reader_wait(r) <= 0)
        r->searched = 0; /* the open line is looked at once more, now as one of its own */
    while (r->state && !r->sampling && reader_cut_line(r)) {
        const enum svi_read result = reader_read_line(r, m, err);
        if (result == SVI_READ_ROW)
            return result;
        if (result == SVI_READ_BAD && reader_read_more(r, m, err, &more))
            return more;
    }
    for (;;) {
        bool again;
        const enum svi_read result = reader_step(r, m, &again, err);
        if (again)
            continue;
        if (result != SVI_READ_MORE)
            return result;
        if (svi_input_pending(&r->source)) {
            /* A caller may poll before it fills: what needs no read must not wait for one. */
            if (svi_reader_fill(r, err) != SVS_OK)
                return SVI_READ_FAIL;
        } else if (!r->source.ended) {
            return SVI_READ_MORE;
        } else if (r->state || r->format != &svi_csv) {
            return SVI_READ_END;
        } else {
            svi_fail(err, SVS_SETTING, "'%s' is empty; a CSV has a line of column names, or rows",
                     r->source.name);
            return SVI_READ_FAIL;
        }
    }
}

/* Waits for bytes, or for the time after which none are waited for. */
static svs_code reader_await(svi_reader *r, svs_error *err) {
    struct pollfd ready = {.fd = r->source.fd, .events = POLLIN};
    const double wait = svi_reader_wait(r);
    /* Standard input may be set nonblocking by its other owners. */
    const int count = poll(&ready, 1, isinf(wait) ? -1 : (int)(1000 * wait) + 1);
    return count <= 0 ? SVS_OK : svi_reader_fill(r, err);
}

svs_code svi_reader_settle(svi_reader *r, svs_error *err) {
    struct svi_message m;
    while (!r->state || r->sampling) {
        bool again;
        if (reader_step(r, &m, &again, err) == SVI_READ_FAIL)
            return err->code;
        if (again)
            continue;
        if (r->source.ended && !svi_input_pending(&r->source))
            return SVS_OK;
        svs_code code = svi_input_pending(&r->source) ? svi_reader_fill(r, err) : reader_await(r, err);
        if (code != SVS_OK)
            return code;
    }
    return SVS_OK;
}

enum svi_read svi_reader_row(svi_reader *r, struct svi_message *m, svs_error *err) {
    for (;;) {
        enum svi_read result = svi_reader_next(r, m, err);
        if (result != SVI_READ_MORE)
            return result;
        if (reader_await(r, err) != SVS_OK)
            return SVI_READ_FAIL;
    }
}

bool svi_row_reserve(void **block, size_t *capacity, size_t count, size_t element) {
    if (count <= *capacity)
        return true;
    size_t more = *capacity ? *capacity : 16;
    while (more < count)
        more *= 2;
    void *grown = svi_realloc(*block, *capacity * element, more * element);
    if (!grown)
        return false;
    *block = grown;
    *capacity = more;
    return true;
}
