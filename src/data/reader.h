/* reader.h: rows of a text file or pipe as messages: CSV with a header, LIBSVM, JSON lines; plain or gzip.
 *
 *  - CSV: the header names the columns; comma, semicolon or tab (guessed from the header); RFC 4180 quotes,
 * but a cell ends on its line; an empty cell, NA, NaN, null or ? (any case) is missing; a cell that is not a
 * number refuses the row. Column `label` is y (missing: none), the columns named by `id`, `ts` and `weight`
 * are those, all others are features (or only those of the shape when its names are fixed), dense; their
 * names go to the shape with the header.
 *  - LIBSVM: `label index:value ...`, index 1 = column 0, ascending, `#` starts a comment; sparse (dense in a
 * dense stream). The label is a number. (A label-less line begins with an index:value pair.)
 *  - JSON lines: an object as on the wire ({"x": [...], "y": ...}, any key of a wire sample; an object as x
 * is named), or, when it has neither `x` nor `op`, a flat map of feature names to numbers with `label`, `id`,
 * `ts` and `weight` columns as in CSV; named. null is missing, true and false count as 1 and 0.
 *
 * A row that is given fits the shape (svi_shape_fits). Blank lines are no rows; CRLF, a byte order mark and a
 * missing last line end are taken as meant.
 *
 * A reader never blocks by itself but in svi_reader_fill: a caller polls svi_reader_fd, fills, then takes
 * rows until SVI_READ_MORE. Lines are at most 1 MiB (longer: refused whole, as one row). No allocation per
 * row. */
#ifndef SVI_READER_H
#define SVI_READER_H

#include <stddef.h>
#include <stdint.h>

#include "data/message.h"

struct svi_reader_options {
    const char *format;  /* auto, csv, libsvm, jsonl; auto looks at the file name, then at the first line */
    const char *label;   /* column of y; default "label" */
    bool label_required; /* a CSV without that column is refused (SVS_SETTING) with the columns listed */
    const char *id, *ts, *weight; /* columns, NULL = none */
};

enum svi_read {
    SVI_READ_END, /* no more rows */
    SVI_READ_ROW, /* *m holds a row */
    SVI_READ_BAD, /* this row is refused: err says why (with the line number), svi_reader_line gives its bytes
                   */
    SVI_READ_MORE, /* no whole line is buffered: svi_reader_fill first */
    SVI_READ_FAIL  /* the file cannot be read on (I/O error, damaged gzip, no header): err says why */
};

typedef struct svi_reader svi_reader;

/* Opens `path` ("-" = standard input). NULL on failure: SVS_IO, SVS_SETTING, SVS_NO_MEMORY. The shape's row
 * and names are written by svi_reader_next; shape and option strings must outlive the reader. Owner: the
 * caller. */
svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err);
void svi_reader_close(svi_reader **r);

int svi_reader_fd(const svi_reader *r);

/* One read(2) (and inflate). Call after SVI_READ_MORE. SVS_IO. End of input is seen by the next
 * svi_reader_next. */
svs_code svi_reader_fill(svi_reader *r, svs_error *err);

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err);

/* The same with the fills done: never SVI_READ_MORE. */
enum svi_read svi_reader_row(svi_reader *r, struct svi_message *m, svs_error *err);

/* The line of the last row: its number from 1, bytes and length. */
int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length);

/* What a person should know of the header, known from the first row on: there is no label column, and which
 * columns it may be. NULL: nothing. */
const char *svi_reader_note(const svi_reader *r);

/* Bytes taken from the file so far, and its size (-1 when unknown: a pipe). */
int64_t svi_reader_position(const svi_reader *r, int64_t *size);

#endif
