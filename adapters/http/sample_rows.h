/* sample_rows.h: the body of a request as rows for the wire: an array of JSON, or msgpack elements.
 *
 * JSON, JSON lines and CSV become the text of one JSON array; its rows are not taken apart, as the stream
 * decides what their columns mean. msgpack stays msgpack. A body that is not of its type is refused as a
 * whole, with the line or the byte. The rows can then be cut into messages of a limited size. */
#ifndef HTTP_SAMPLE_ROWS_H
#define HTTP_SAMPLE_ROWS_H

#include <stdbool.h>

#include "base/bytes.h"
#include "svmstream/error.h"

enum http_rows_form { HTTP_ROWS_JSON, HTTP_ROWS_LINES, HTTP_ROWS_CSV, HTTP_ROWS_MSGPACK };

/* Of a body: reading it holds all other requests, and the scores of all rows become one answer. */
#define HTTP_ROWS_MAX 262144

struct http_rows {
    bool json;                    /* else msgpack */
    int64_t most;                 /* rows; set before reading. 0: HTTP_ROWS_MAX */
    struct svi_bytes bytes;       /* "[row,row]" with zeros after it; or the elements, one after another */
    size_t size;                  /* of it, without what follows the array or the elements */
    int64_t count;                /* rows */
    size_t next;                  /* offset of the next row for http_rows_take; 0 of JSON: before the first */
    int64_t taken;                /* rows */
    size_t columns, columns_size; /* the value of `columns` in force at `next`; size 0: none */
};

/* The form of a media type. False: another one. */
bool http_rows_form(const char *type, enum http_rows_form *form);

/* The media types, as "a/b, c/d". */
#define HTTP_ROWS_TYPES                                                                                      \
    "application/json, application/x-ndjson, application/jsonl, text/csv, application/msgpack, "             \
    "application/x-msgpack"

/* Reads a body. `*r` zero-initialised; http_rows_clear in any case. SVS_EMPTY, SVS_NOT_JSON, SVS_NOT_MSGPACK,
 * SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE (neither an object nor an array; not UTF-8),
 * SVS_WRONG_DIMENSION and SVS_BAD_COLUMN (of a CSV), SVS_LIMIT (too many rows), SVS_NO_MEMORY. */
svs_code http_rows_read(struct http_rows *r, enum http_rows_form form, const void *body, size_t size,
                        svs_error *err);
void http_rows_clear(struct http_rows *r);

/* What the first row states about the whole: `src` and `n` of the form with `x` or `op`. Absent: "" and -1. A
 * `src` of more than SVS_NAME_MAX bytes, or an `n` that is no number from 0: SVS_MISSING_SOURCE. {op:
 * message}: SVS_UNKNOWN_OP. */
svs_code http_rows_source(const struct http_rows *r, char *src, int64_t *n, svs_error *err);

/* A message of rows. */
struct http_rows_part {
    const uint8_t *at;
    size_t size;
    int64_t first, count;
    const uint8_t *columns; /* that an earlier row has set, and that this message must state; NULL: none */
    size_t columns_size;
};

/* The next rows: at most `rows` of them and `bytes` in all, but at least one. False: no more. */
bool http_rows_take(struct http_rows *r, size_t bytes, int64_t rows, struct http_rows_part *part);

#endif
