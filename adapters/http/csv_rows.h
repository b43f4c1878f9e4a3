/* csv_rows.h: a CSV as rows of JSON. */
#ifndef HTTP_CSV_ROWS_H
#define HTTP_CSV_ROWS_H

#include "base/bytes.h"
#include "svmstream/error.h"

/* Appends the rows of a CSV as JSON objects under the names of its header, numbers as numbers, empty cells as
 * null, separated by commas. Comma, semicolon, tab or bar, RFC 4180 quotes. *count: rows. SVS_TRUNCATED,
 * SVS_TRAILING, SVS_WRONG_DIMENSION, SVS_BAD_COLUMN, SVS_NOT_JSON (not UTF-8, or a zero byte), SVS_EMPTY,
 * SVS_LIMIT, with the line; SVS_NO_MEMORY. */
svs_code http_csv_rows(struct svi_bytes *out, const char *text, size_t size, int64_t most, int64_t *count,
                       svs_error *err);

#endif
