/* Bodies as rows: a body is read once (http_rows_read), states its source (http_rows_source), and is then cut
 * into messages (http_rows_take). The parts follow in this order; read http_rows_read first.
 *
 * JSON, lines of JSON and CSV become one JSON array, msgpack a series of elements. A JSON text is checked
 * once (data/json_in.h), after which walking over it needs no bounds; msgpack likewise (wire/cursor.h).
 * Nothing of a client's text is put between other text before that check: it cannot end the array that the
 * rows are in.
 *
 * Rows are not decoded here. The stream decides what their columns mean, and a second decoder could differ
 * from it.
 *
 * Names that one row gives to the arrays after it (`columns`) hold until another row gives others. Where a
 * body is cut, they are therefore stated again at the start of each message. */
#include "sample_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "csv_rows.h"
#include "data/json_in.h"
#include "data/number.h"
#include "wire/cursor.h"
#include "wire/fields.h"

#define DEPTH      (SVI_JSON_DEPTH - 1) /* of a row: it is inside an array */
#define MAX_NUMBER (INT64_MAX / 2)      /* of a first row: those after it are counted from it */

bool http_rows_form(const char *type, enum http_rows_form *form) {
    static const struct {
        const char *type;
        enum http_rows_form form;
    } types[] = {{"application/json", HTTP_ROWS_JSON},       {"application/x-ndjson", HTTP_ROWS_LINES},
                 {"application/jsonl", HTTP_ROWS_LINES},     {"text/csv", HTTP_ROWS_CSV},
                 {"application/msgpack", HTTP_ROWS_MSGPACK}, {"application/x-msgpack", HTTP_ROWS_MSGPACK}};
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].type) == 0) {
            *form = types[i].form;
            return true;
        }
    return false;
}

void http_rows_clear(struct http_rows *r) {
    svi_bytes_clear(&r->bytes);
}

static svs_code rows_put(struct http_rows *r, const void *bytes, size_t size) {
    return svi_bytes_append(&r->bytes, bytes, size);
}

/* ---- text */

/* What begins a file that is no text in UTF-8, as clients send it by mistake. */
static const char *rows_foreign(const uint8_t *body, size_t size) {
    static const struct {
        const char *begin;
        size_t size;
        const char *text;
    } files[] = {{"\x1f\x8b", 2, "it is gzip: it needs the header Content-Encoding: gzip"},
                 {"PK\x03\x04", 4, "it is a ZIP or Excel file: export it as CSV"},
                 {"\xff\xfe", 2, "it is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
                 {"\xfe\xff", 2, "it is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (size >= files[i].size && memcmp(body, files[i].begin, files[i].size) == 0)
            return files[i].text;
    return NULL;
}

/* Counts bytes as the client wrote them, which the stream behind us could not. */
static svs_code rows_check_text(const char *body, size_t size, svs_error *err) {
    /* Files of another kind are rarely valid UTF-8. They are named first, as "line 1 is not UTF-8" helps
     * nobody. */
    const char *foreign = rows_foreign((const uint8_t *)body, size);
    int64_t line = 1;
    if (foreign)
        return svi_fail(err, SVS_WRONG_TYPE, "the body is no text in UTF-8: %s", foreign);
    if (svi_utf8_valid(body, size))
        return SVS_OK;
    /* Only a text that failed is walked again, for the number of its line. */
    for (size_t at = 0, n; (n = svi_utf8_length(body + at, size - at)) > 0; at += n)
        line += body[at] == '\n';
    return svi_fail(err, SVS_WRONG_TYPE,
                    "line %lld: the text is not UTF-8; if it is Latin-1, convert it with iconv -f LATIN1 -t "
                    "UTF-8",
                    (long long)line);
}

static int64_t rows_most(const struct http_rows *r) {
    return r->most > 0 ? r->most : HTTP_ROWS_MAX;
}

static svs_code rows_too_many(const struct http_rows *r, svs_error *err) {
    return svi_fail(err, SVS_LIMIT, "the body has more than %lld rows: send fewer at a time",
                    (long long)rows_most(r));
}

/* ---- JSON */

/* The NUL is a character of every set of strchr, so it is excluded. */
static bool rows_blank(const char *text, size_t size) {
    size_t i = 0;
    while (i < size && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    return i == size;
}

/* The library calls what is no line of JSON "not msgpack", as files have no other code. */
static svs_code rows_refuse(svs_error *err, svs_code code, const char *where) {
    char text[SVS_ERROR_TEXT];
    memcpy(text, err->text, sizeof text);
    return svi_fail(err, code == SVS_NOT_MSGPACK ? SVS_NOT_JSON : code, "%s: %s", where, text);
}

static svs_code rows_json(struct http_rows *r, const char *body, size_t size, svs_error *err) {
    const size_t blanks = strspn(body, " \t\r\n");
    const bool object = body[blanks] == '{';
    if (!object && body[blanks] != '[')
        return svi_fail(err, SVS_WRONG_TYPE, "the body is to be a JSON object or an array of objects");
    /* An object alone becomes an array of one, which takes a level of the depth. */
    const svs_code code = svi_json_check_value((struct svi_span){body, body + size}, DEPTH + !object, err);
    if (code != SVS_OK)
        return rows_refuse(err, code,
                           code == SVS_TRAILING
                               ? "the body (lines of JSON have the Content-Type application/x-ndjson)"
                               : "the body");
    /* Length `object`: the brackets are added where the body has none. */
    SVI_TRY(rows_put(r, "[", object));
    SVI_TRY(rows_put(r, body + blanks, size - blanks));
    return rows_put(r, "]", object);
}

static svs_code rows_lines(struct http_rows *r, const char *body, size_t size, svs_error *err) {
    int64_t line = 0;
    SVI_TRY(rows_put(r, "[", 1));
    for (size_t at = 0; at < size;) {
        const char *end = memchr(body + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - body) - at : size - at;
        /* Blank lines count as lines, so that an error names the line that an editor shows. */
        line++;
        if (!rows_blank(body + at, length)) {
            if (++r->count > rows_most(r))
                return rows_too_many(r, err);
            /* Each line is checked alone: "1],[2" is no row, though it would fit into the array. */
            const svs_code code = svi_json_check((struct svi_span){body + at, body + at + length}, err);
            /* By far the most common cause, which the bare error would not suggest. */
            if (code == SVS_TRAILING && !memchr(body, '\n', size))
                return svi_fail(err, code,
                                "the body: several JSON values in one line; with curl, --data-binary @FILE "
                                "sends a file with its line ends (-d removes them)");
            if (code != SVS_OK) {
                char where[40];
                snprintf(where, sizeof where, "line %lld of the body", (long long)line);
                return rows_refuse(err, code, where);
            }
            SVI_TRY(rows_put(r, ",", r->bytes.size > 1));
            SVI_TRY(rows_put(r, body + at, length));
        }
        at += length + 1;
    }
    return rows_put(r, "]", 1);
}

/* ---- msgpack */

static svs_code rows_msgpack(struct http_rows *r, const void *body, size_t size, svs_error *err) {
    struct svi_item head;
    SVI_TRY(svi_msgpack_check(body, size, SVI_DEPTH_MAX, err));
    const uint8_t *at = svi_item_read(body, &head), *const end = (const uint8_t *)body + size;
    if (head.type != SVI_MAP && head.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE, "the body is %s: it is to be a map or an array of maps",
                        svi_item_name(&head));
    r->count = head.type == SVI_MAP ? 1 : head.length;
    if (r->count > rows_most(r))
        return rows_too_many(r, err);
    /* The head of an array is dropped: each message gets one of its own, with the number of its elements. */
    if (head.type == SVI_MAP)
        at = body;
    return rows_put(r, at, (size_t)(end - at));
}

/* ---- reading */

/* Of an array as the client sent it; the other forms are counted as they are read. */
static svs_code rows_count(struct http_rows *r, svs_error *err) {
    /* It stops above the limit: a body of small elements must not cost a walk over all of them. */
    const char *row = svi_json_first((const char *)r->bytes.data);
    for (; row && r->count <= rows_most(r); row = svi_json_next(svi_json_skip(row)))
        r->count++;
    return r->count > rows_most(r) ? rows_too_many(r, err) : SVS_OK;
}

svs_code http_rows_read(struct http_rows *r, enum http_rows_form form, const void *body, size_t size,
                        svs_error *err) {
    static const char zeros[SVI_NUMBER_PAD + 1];
    struct svi_bytes text = {0};
    svs_error local = {SVS_NO_MEMORY, "no memory for the body"};
    svs_code code;
    /* Appending sets no error, so what it means is stated in advance. */
    *err = local;
    r->json = form != HTTP_ROWS_MSGPACK;
    if (size == 0 || (r->json && rows_blank(body, size)))
        return svi_fail(err, SVS_EMPTY, "the body is empty");
    /* msgpack has its length in itself, and needs neither text checks nor zeros. */
    if (!r->json) {
        SVI_TRY(rows_msgpack(r, body, size, err));
        r->size = r->bytes.size;
        return SVS_OK;
    }
    SVI_TRY(rows_check_text(body, size, err));
    /* The checks of the library look at bytes after the text. */
    code = svi_bytes_append(&text, body, size);
    if (code == SVS_OK)
        code = svi_bytes_append(&text, zeros, sizeof zeros);
    const char *const copy = (const char *)text.data;
    if (code == SVS_OK && form == HTTP_ROWS_JSON)
        code = rows_json(r, copy, size, err);
    else if (code == SVS_OK && form == HTTP_ROWS_LINES)
        code = rows_lines(r, copy, size, err);
    else if (code == SVS_OK) {
        code = rows_put(r, "[", 1);
        if (code == SVS_OK)
            code = http_csv_rows(&r->bytes, copy, size, rows_most(r), &r->count, err);
        if (code == SVS_OK)
            code = rows_put(r, "]", 1);
    }
    svi_bytes_clear(&text);
    SVI_TRY(code);
    /* `size` is noted before the zeros: they serve the walks, and are never sent. */
    r->size = r->bytes.size;
    SVI_TRY(rows_put(r, zeros, sizeof zeros));
    return form == HTTP_ROWS_JSON ? rows_count(r, err) : SVS_OK;
}

/* ---- what a row states */

/* The value of a key of a JSON object, the last one of several. NULL: absent. */
static const char *rows_json_key(const char *object, const char *key) {
    const char *found = NULL;
    if (svi_json_type(object) != SVI_JSON_OBJECT)
        return NULL;
    for (const char *p = svi_json_first(object); p;) {
        struct svi_span raw;
        /* The last of equal keys; the stream refuses a row that has two. */
        const char *value = svi_json_key(p, &raw);
        if ((size_t)(raw.end - raw.at) == strlen(key) && memcmp(raw.at, key, strlen(key)) == 0)
            found = value;
        p = svi_json_next(svi_json_skip(value));
    }
    return found;
}

/* The value of a key of a msgpack map; *end: the byte after it. NULL: absent. */
static const uint8_t *rows_map_key(const uint8_t *map, const uint8_t *limit, const char *key,
                                   const uint8_t **end) {
    struct svi_item head, name;
    const uint8_t *at = svi_item_read(map, &head), *found = NULL;
    for (uint32_t i = 0; head.type == SVI_MAP && i < head.length; i++) {
        /* `value` skips the key, then `at` skips the value: one walk over each pair. */
        const uint8_t *value = at;
        svi_item_read(at, &name);
        svi_walk(&value, limit, SVI_WALK_MAX);
        at = value;
        svi_walk(&at, limit, SVI_WALK_MAX);
        if (svi_item_is(&name, key)) {
            found = value;
            *end = at;
        }
    }
    return found;
}

static svs_code rows_bad_source(svs_error *err) {
    return svi_fail(err, SVS_MISSING_SOURCE,
                    "src is to be a name of 1 to %d bytes, and n a whole number from 0", SVS_NAME_MAX);
}

/* What the wire's own first element states comes from the request itself here. */
static svs_code rows_no_message(svs_error *err) {
    return svi_fail(err, SVS_UNKNOWN_OP,
                    "{op: message} is made by this program: number the rows by ?src=NAME&n=NUMBER, and give "
                    "`columns` in the first row");
}

static svs_code rows_source_json(const char *row, char *src, int64_t *n, svs_error *err) {
    const char *name = rows_json_key(row, "src"), *number = rows_json_key(row, "n"),
               *op = rows_json_key(row, "op");
    struct svi_span raw, text;
    /* In a flat row these are columns. */
    if (!op && !rows_json_key(row, "x"))
        return SVS_OK;
    /* Checked before the source: this error names the cure. */
    if (op && strncmp(op, "\"message\"", 9) == 0)
        return rows_no_message(err);
    if (name && svi_json_type(name) != SVI_JSON_NULL) {
        if (svi_json_type(name) != SVI_JSON_STRING)
            return rows_bad_source(err);
        svi_json_string_at(name, &raw);
        /* A name without escapes stays where it is in the body, so it is moved into `src` in either case. */
        if (!svi_json_unescape(raw, src, SVS_NAME_MAX, &text) || text.at == text.end ||
            text.end - text.at > SVS_NAME_MAX)
            return rows_bad_source(err);
        const size_t length = (size_t)(text.end - text.at);
        memmove(src, text.at, length);
        src[length] = '\0';
    }
    if (number && svi_json_type(number) != SVI_JSON_NULL &&
        (svi_json_type(number) != SVI_JSON_NUMBER || svi_integer(number, n) != svi_json_skip(number) ||
         *n < 0 || *n > MAX_NUMBER))
        return rows_bad_source(err);
    return SVS_OK;
}

static svs_code rows_source_map(const uint8_t *row, const uint8_t *limit, char *src, int64_t *n,
                                svs_error *err) {
    const uint8_t *end, *name = rows_map_key(row, limit, "src", &end),
                        *number = rows_map_key(row, limit, "n", &end),
                        *op = rows_map_key(row, limit, "op", &end);
    struct svi_item item = {.type = SVI_NIL};
    if (op)
        svi_item_read(op, &item);
    /* The same rules as for JSON, in the same order: a source must not depend on the form of the body. */
    if (svi_item_is(&item, "message"))
        return rows_no_message(err);
    item.type = SVI_NIL;
    if (name)
        svi_item_read(name, &item);
    if (item.type != SVI_NIL) {
        if (item.type != SVI_STRING || item.length < 1 || item.length > SVS_NAME_MAX ||
            memchr(item.body, 0, item.length))
            return rows_bad_source(err);
        memcpy(src, item.body, item.length);
        src[item.length] = '\0';
    }
    item.type = SVI_NIL;
    if (number)
        svi_item_read(number, &item);
    if (item.type != SVI_NIL) {
        if (item.type != SVI_INT || item.i < 0 || item.i > MAX_NUMBER)
            return rows_bad_source(err);
        *n = item.i;
    }
    return SVS_OK;
}

svs_code http_rows_source(const struct http_rows *r, char *src, int64_t *n, svs_error *err) {
    src[0] = '\0';
    *n = -1;
    if (r->count == 0)
        return SVS_OK;
    if (r->json)
        return rows_source_json(svi_json_first((const char *)r->bytes.data), src, n, err);
    return rows_source_map(r->bytes.data, r->bytes.data + r->size, src, n, err);
}

/* ---- cutting */

/* Notes the columns that a row sets, for the messages after it. */
static void rows_note_columns(struct http_rows *r, size_t row) {
    /* A null states nothing, so the columns before it stay in force. */
    const uint8_t *at = r->bytes.data + row, *end = NULL;
    if (r->json) {
        const char *value = rows_json_key((const char *)at, "columns");
        at = (const uint8_t *)value;
        end = value && svi_json_type(value) != SVI_JSON_NULL ? (const uint8_t *)svi_json_skip(value) : NULL;
    } else {
        at = rows_map_key(at, r->bytes.data + r->size, "columns", &end);
        end = at && *at != 0xc0 ? end : NULL;
    }
    if (end) {
        r->columns = (size_t)(at - r->bytes.data);
        r->columns_size = (size_t)(end - at);
    }
}

/* The end of the row at `row`, and where the next begins (0: no row follows). */
static size_t rows_end(const struct http_rows *r, size_t row, size_t *next) {
    const uint8_t *at = r->bytes.data + row;
    if (r->json) {
        const char *end = svi_json_skip((const char *)at), *after = svi_json_next(end);
        *next = after ? (size_t)((const uint8_t *)after - r->bytes.data) : 0;
        return (size_t)((const uint8_t *)end - r->bytes.data);
    }
    svi_walk(&at, r->bytes.data + r->size, SVI_WALK_MAX);
    const size_t end = (size_t)(at - r->bytes.data);
    *next = end < r->size ? end : 0;
    return end;
}

bool http_rows_take(struct http_rows *r, size_t bytes, int64_t rows, struct http_rows_part *part) {
    if (r->taken == r->count)
        return false;
    /* Offset 0 is the bracket of the array, or the first element of msgpack. */
    if (r->json && r->taken == 0)
        r->next = (size_t)(svi_json_first((const char *)r->bytes.data) - (const char *)r->bytes.data);
    const size_t begin = r->next;
    *part = (struct http_rows_part){.at = r->bytes.data + begin, .first = r->taken};
    /* Columns noted so far come from rows of earlier messages. Those of this one take effect by themselves.
     */
    if (r->columns_size > 0) {
        part->columns = r->bytes.data + r->columns;
        part->columns_size = r->columns_size;
    }
    /* All of it, as nearly always. */
    if (r->taken == 0 && r->count <= rows && r->size <= bytes) {
        part->size = r->size - begin;
        if (r->json) { /* without the closing bracket, and blanks after it */
            while (part->at[part->size - 1] != ']')
                part->size--;
            part->size--;
        }
        r->taken = part->count = r->count;
        return true;
    }
    for (size_t row = begin, next = 0; r->taken < r->count && part->count < rows; row = next) {
        const size_t end = rows_end(r, row, &next);
        /* The first row is taken whatever its size, or the caller would never see the end of the rows. */
        if (part->count > 0 && end - begin > bytes)
            break;
        rows_note_columns(r, row);
        part->size = end - begin;
        part->count++;
        r->taken++;
        r->next = next;
    }
    return true;
}
