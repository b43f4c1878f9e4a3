/* A reader cuts lines out of an input (input.h) and hands each to a format (reader_internal.h): that of the
 * settings, else of the file's name, else of what the first line looks like.
 *
 * A line is a view of the input's buffer, valid until the next fill; the bytes after it are readable. A line
 * over 1 MiB is reported once and its rest skipped. Only svi_reader_fill and the calls built on it block.
 *
 * A format may sample lines before any is a row. They are cut `ahead` of the position where rows are cut, so
 * they are delivered later; when there are enough, or none arrives for a while, the format decides.
 *
 * Only a line of CSV that is not a row by itself is examined for an open quote, so ordinary rows pay nothing.
 * If nothing closes it within 64 KiB or a second, the line is refused alone.
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
#define SAMPLE_LINES     1000                /* lines that are sampled before the first row, at most */
#define SAMPLE_BYTES     ((size_t)256 << 10) /* or bytes, whichever comes first */
#define LONGEST_ROW      ((size_t)64 << 10)  /* bytes of a row that spans several lines */
#define COMMENT_LINES    100                 /* lines examined below a possible comment */
#define SILENCE          0.25                /* seconds without input that end the sample */
#define MAX_OPEN_SECONDS 1                   /* seconds to wait for the end of a row that spans lines */

struct svi_reader {
    struct svi_input source;
    struct svi_reader_options options;
    struct svi_shape *shape;
    const struct svi_format *format; /* NULL: the first line decides */
    void *state;                     /* of the format; NULL before the first line */
    svi_guess *guess;
    bool sampling;  /* lines go to the sample, not to rows */
    size_t ahead;   /* bytes after source.at that are sampled */
    int samples;    /* lines sampled */
    double sampled; /* when input last arrived; monotonic seconds */
    double open;    /* since when a line with an open quote waits for more lines; 0 = none waits */
    struct svi_span line;
    int64_t number;  /* number of that line, from 1 */
    size_t searched; /* bytes after source.at that were searched and hold no line end */
    bool skipping;   /* the rest of an overlong line is being skipped */
};

static void reader_format_by_name(struct svi_reader *r, const char *path) {
    static const struct {
        const char *ending;
        const struct svi_format *format;
    } endings[] = {{".csv", &svi_csv},       {".tsv", &svi_csv},     {".svm", &svi_libsvm},
                   {".libsvm", &svi_libsvm}, {".jsonl", &svi_jsonl}, {".ndjson", &svi_jsonl},
                   {".json", &svi_jsonl},    {".vw", &svi_vw}};
    /* .csv.gz is a CSV. */
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
    /* One exit for all failures: svi_reader_close frees a partly built reader. */
    svs_code code = r->guess ? SVS_OK : svi_fail_memory(err, "the reader");
    if (code == SVS_OK && !r->format && strcmp(wanted, "auto") != 0)
        code = svi_fail(err, SVS_SETTING,
                        "unknown format \"%.60s\": it must be auto, csv, libsvm, jsonl or vw", wanted);
    if (code != SVS_OK || svi_input_open(&r->source, path, LONGEST_LINE + 1, err) != SVS_OK) {
        svi_reader_close(&r);
        return NULL;
    }
    /* After the settings, which win over the name. */
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
    /* Silence is counted from the last byte that arrived, not from the last poll. */
    if (r->source.end - r->source.at > held)
        r->sampled = svi_monotonic();
    return code;
}

double svi_reader_wait(const svi_reader *r) {
    if (r->open > 0)
        return fmax(0, r->open + MAX_OPEN_SECONDS - svi_monotonic());
    if (!r->sampling || (svi_guess_rows(r->guess) == 0 && r->samples < 2)) /* a header alone is no evidence */
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

/* Prepends the line number to the error text. */
static enum svi_read reader_refuse(const svi_reader *r, enum svi_read how, const svs_error *why,
                                   svs_error *err) {
    svi_fail(err, why->code, "line %lld: %s", (long long)r->number, why->text);
    return how;
}

/* What the buffer holds of the next line. */
enum found { FOUND_LINE, FOUND_LONG, FOUND_NOTHING };

/* Cuts the next line in full generality: skips the rest of an overlong line, finds the last line without a
 * line end, removes CR and the byte order mark. `searched` keeps a line that arrives in many pieces from
 * being searched over and over. */
static enum found reader_find_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    if (s->packing == SVI_PACKING_UNKNOWN)
        return FOUND_NOTHING; /* a single first byte may turn out to be gzip */
    const char *at = s->buffer + s->at, *newline;
    if (r->skipping) { /* the line was refused already */
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

/* The fast path of reader_find_line: the line is complete and ordinary. False: use the general one. The first
 * line is left to that, for its byte order mark. */
static inline bool reader_cut_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    const char *at = s->buffer + s->at, *end = s->buffer + s->end;
    /* A line that ends in the buffer and is not too long needs none of the other cases. */
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

/* The state of a row that begins with an open line. */
enum joined { JOINED_ROW, JOINED_NOT, JOINED_WAITS };

/* Extends the line over the following ones, to the line that closes the quote. `held`: the end of the
 * buffered bytes. Quotes inside of quotes are doubled, so an odd number of them in a line closes it. */
static enum joined reader_join(const struct svi_reader *r, struct svi_span *line, const char *held) {
    const bool ended = r->source.ended && !svi_input_pending(&r->source);
    /* Continue after the line end, LF or CRLF. */
    const char *p = line->end + (line->end < held && *line->end == '\r') + 1;
    while (p < held && (size_t)(p - line->at) <= LONGEST_ROW) {
        bool closes = false;
        for (; p < held && *p != '\n'; p++)
            closes ^= *p == '"';
        /* The last line is incomplete: its remaining bytes may hold quotes. */
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

/* The current line is not a row: tries to join it with the lines after it. JOINED_NOT: it is refused alone,
 * and the input continues after it. */
static enum joined reader_join_line(svi_reader *r) {
    struct svi_input *s = &r->source;
    const char *held = s->buffer + s->end, *at = r->line.at;
    const char *newline = memchr(at, '\n', (size_t)(r->line.end - at));
    struct svi_span line = {at, newline ? newline - (newline > at && newline[-1] == '\r') : r->line.end};
    const struct svi_span first = line;
    if (s->ended)
        s->buffer[s->end] = '\n'; /* in the padding: numbers must end */
    enum joined joined = reader_is_open(r, line) ? reader_join(r, &line, held) : JOINED_NOT;
    /* The wait has a limit, so that one stray quote does not stall a live stream. */
    if (joined == JOINED_WAITS && r->open > 0 && svi_reader_wait(r) <= 0)
        joined = JOINED_NOT;
    if (joined == JOINED_WAITS) {
        /* Put the line back, to be joined again when more input has arrived; the clock runs from the first
         * attempt. */
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
    /* Keep line numbers those of the file. */
    for (const char *p = first.end; p < r->line.end; p++)
        r->number += *p == '\n';
    return joined;
}

/* ---- the first lines */

/* Is it UTF-16? The file begins with a byte order mark, or one of the first bytes is 0, as every other byte
 * of western text is. */
static bool is_utf16(struct svi_span line) {
    const size_t length = (size_t)(line.end - line.at);
    return length >= 2 && (memcmp(line.at, "\xff\xfe", 2) == 0 || memcmp(line.at, "\xfe\xff", 2) == 0 ||
                           memchr(line.at, 0, length < 4 ? length : 4));
}

/* Is it the line sep=; that gives a spreadsheet the separator? */
static bool is_separator_hint(struct svi_span line) {
    return line.end - line.at == 5 && memcmp(line.at, "sep=", 4) == 0;
}

/* Is the current line a comment before the data? A line that begins with # is, unless it is the header: the
 * line directly above the first row, with as many cells. *wait: the lines below are not buffered yet. */
static bool reader_is_comment(const struct svi_reader *r, bool *wait) {
    const struct svi_input *s = &r->source;
    const char *p = s->buffer + s->at, *const held = s->buffer + s->end;
    const bool ended = s->ended && !svi_input_pending(s);
    *wait = false;
    if ((r->format && r->format != &svi_csv) || r->line.at == r->line.end || *r->line.at != '#')
        return false;
    /* Looks for the first line below that is neither blank nor begins with #. */
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

/* The jq filter that puts one object on each line, where the line begins an array of objects or an object
 * that spans lines; NULL: neither. */
static const char *json_on_many_lines(struct svi_span line) {
    const struct svi_span rest = svi_trim((struct svi_span){line.at + (line.at < line.end), line.end});
    const bool alone = rest.at == rest.end;
    return *line.at == '[' && (alone || *rest.at == '{') ? "'.[]'" : *line.at == '{' && alone ? "." : NULL;
}

/* Refuses a key for VW and LIBSVM text, whose rows have no column that could hold it. */
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

/* Begins the format with the current line, which is delivered again. The tests go from encodings, which would
 * make any format fail in a misleading way, to the first line; CSV takes whatever nothing else claims.
 */
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
                        "a JSON file needs one object a line: convert this one with jq -c %s", filter);
    /* The most specific look first. */
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

/* Gives the format the buffered lines that it has not sampled yet, and lets it decide when it has enough.
 * While it wants more, r->sampling stays. */
static svs_code reader_sample(svi_reader *r, svs_error *err) {
    struct svi_input *s = &r->source;
    bool enough = false;
    while (!enough && r->samples < SAMPLE_LINES) {
        const char *at = s->buffer + s->at + r->ahead;
        const size_t held = s->end - s->at - r->ahead;
        const char *newline = memchr(at, '\n', held);
        /* The last line may lack its line end. */
        const bool rest = !newline && s->ended && !svi_input_pending(s) && held > 0 && held <= LONGEST_LINE;
        if (!newline && !rest)
            break;
        if (s->ended)
            s->buffer[s->end] = '\n';
        size_t length = newline ? (size_t)(newline - at) : held;
        struct svi_span line = {at, at + length - (length > 0 && at[length - 1] == '\r')}, row = line;
        /* A row that spans lines is sampled as one, or its pieces would look like rows of the wrong width. */
        if (length <= LONGEST_LINE && reader_is_open(r, line)) {
            const enum joined joined = reader_join(r, &row, at + held);
            if (joined == JOINED_WAITS)
                break;
            line = joined == JOINED_ROW ? row : line;
            if (joined == JOINED_ROW)
                length = (size_t)(row.end - at) + (row.end < at + held && *row.end == '\r');
        }
        const bool last = at + length == s->buffer + s->end;
        /* An overlong line is not sampled; it is refused later as a row. */
        svs_code code = length > LONGEST_LINE ? SVS_OK : r->format->sample(r->state, line, &enough, err);
        if (code != SVS_OK)
            return code;
        r->ahead += length + !last;
        r->samples++;
    }
    const bool ended = s->ended && !svi_input_pending(s);
    const size_t held = s->end - s->at;
    /* Decide on whichever limit comes first: lines, bytes (once there is a row), the end of the file, or
     * silence.
     * Sampled lines stay in the buffer, and a fill is only allowed with at most LONGEST_LINE + 1 bytes in
     * it: beyond LONGEST_LINE the format decides by what it has. */
    const bool full = r->samples >= SAMPLE_LINES || held > LONGEST_LINE ||
                      (held >= SAMPLE_BYTES && svi_guess_rows(r->guess) > 0);
    const bool silent = !svi_input_pending(s) && svi_reader_wait(r) <= 0;
    /* The sample is the whole file if the input has ended and every byte of it was sampled. */
    return enough || full || ended || silent ? reader_decide(r, ended && held == r->ahead, err) : SVS_OK;
}

/* ---- rows */

/* Reads the current line as a row. SVI_READ_MORE: it has none. */
static enum svi_read reader_read_line(svi_reader *r, struct svi_message *m, svs_error *err) {
    svs_error why; /* not cleared: it is large, and nearly every line is a row */
    svi_message_begin(m, r->shape->row);
    svs_code code = r->format->row(r->state, r->shape, r->line, m, &why);
    /* With keys the row must fit the shape of its key's stream, which checks it. */
    if (code == SVS_OK && !m->cells && !(r->options.key && *r->options.key))
        code = svi_shape_fits(r->shape, m, &why);
    if (code == SVS_OK)
        return SVI_READ_ROW;
    return code == SVS_EMPTY ? SVI_READ_MORE : reader_refuse(r, SVI_READ_BAD, &why, err);
}

/* Retries a refused line as the first of a row that spans lines. False: there is no row yet. */
static bool reader_read_more(svi_reader *r, struct svi_message *m, svs_error *err, enum svi_read *result) {
    const struct svi_span line = r->line;
    const enum joined joined = r->format->ends ? reader_join_line(r) : JOINED_NOT;
    *result = joined == JOINED_WAITS                            ? SVI_READ_MORE
              : joined == JOINED_ROW || r->line.end != line.end ? reader_read_line(r, m, err)
                                                                : SVI_READ_BAD;
    return *result != SVI_READ_MORE;
}

/* Puts the current line back; the next step cuts it again. */
static void reader_put_back(svi_reader *r) {
    r->source.at = (size_t)(r->line.at - r->source.buffer);
    r->number--;
}

/* One step of the state machine: sample, find a line, begin the format, or read a row. SVI_READ_MORE with
 * *again false: the input must be filled first; *again true: take another step. */
static enum svi_read reader_step(svi_reader *r, struct svi_message *m, bool *again, svs_error *err) {
    svs_error why;
    *again = true;
    if (r->sampling) {
        if (reader_sample(r, &why) != SVS_OK) { /* the error concerns the columns, not a line */
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
    if (found == FOUND_LONG) { /* without its first line a file cannot be understood */
        *again = false;
        return reader_refuse(r, r->state ? SVI_READ_BAD : SVI_READ_FAIL,
                             &(svs_error){SVS_TOO_LARGE, "the line is longer than 1 MiB"}, err);
    }
    if (!r->state) {
        const struct svi_span text = svi_trim(r->line);
        bool wait;
        /* Blank lines, a separator hint and comments before the data are skipped. */
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
        r->searched = 0; /* the wait is over: the open line is read again, now on its own */
    /* The fast path: whole lines in the buffer, one after the other. */
    while (r->state && !r->sampling && reader_cut_line(r)) {
        const enum svi_read result = reader_read_line(r, m, err);
        if (result == SVI_READ_ROW)
            return result;
        if (result == SVI_READ_BAD && reader_read_more(r, m, err, &more))
            return more;
    }
    /* The general path, until it has a row or needs input. */
    for (;;) {
        bool again;
        const enum svi_read result = reader_step(r, m, &again, err);
        if (again)
            continue;
        if (result != SVI_READ_MORE)
            return result;
        if (svi_input_pending(&r->source)) {
            /* The caller polls before it fills, and the descriptor may stay silent: what needs no read is
             * inflated here. */
            if (svi_reader_fill(r, err) != SVS_OK)
                return SVI_READ_FAIL;
        } else if (!r->source.ended) {
            return SVI_READ_MORE;
        } else if (r->state || r->format != &svi_csv) {
            return SVI_READ_END;
        } else {
            svi_fail(err, SVS_SETTING, "'%s' is empty: a CSV file needs a line of column names, or rows",
                     r->source.name);
            return SVI_READ_FAIL;
        }
    }
}

/* Waits for input, or until svi_reader_wait has passed; then fills. */
static svs_code reader_await(svi_reader *r, svs_error *err) {
    struct pollfd ready = {.fd = r->source.fd, .events = POLLIN};
    const double wait = svi_reader_wait(r);
    /* Standard input may have been set nonblocking by another owner, so poll before each read. */
    const int count = poll(&ready, 1, isinf(wait) ? -1 : (int)(1000 * wait) + 1);
    return count <= 0 ? SVS_OK : svi_reader_fill(r, err);
}

svs_code svi_reader_settle(svi_reader *r, svs_error *err) {
    struct svi_message m;
    /* Steps as svi_reader_next does, but stops before the first row is read. */
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
