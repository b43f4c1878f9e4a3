/* reader.h: rows of a text file or pipe as messages: CSV, JSON lines, LIBSVM, VW text; plain or gzip.
 *
 * CSV, flat JSON and VW give cells under the names of their columns (message.h), LIBSVM and JSON's arrays a
 * vector.
 *
 *  - CSV: the header names the columns, else they are c1, c2, ...; comma, semicolon or tab; RFC 4180 quotes,
 * but a cell ends on its line; an empty cell and the words of `missing` are missing. Cells are listed: all
 * columns that are features, in the order of the header. A line that repeats the header is passed over.
 *  - JSON lines: an object as on the wire ({"x": [...], "y": ...}, any key of a wire sample; an object as x
 * is named), or, when it has neither `x` nor `op`, a flat map of columns. null is missing, true and false
 * count as 1 and 0, a string is a word.
 *  - LIBSVM: `label index:value ...`, index 1 = column 0, ascending, `#` starts a comment; sparse (dense in a
 * dense stream); with the option `sparse` x is not set, m->column and m->value are the row. The label is a
 * number. (A label-less line begins with an index:value pair.)
 *  - VW: `[label] [weight] ['tag]|ns a:1 b machine=press-03 |...` (data/vw.c).
 *
 * What the columns of a CSV or of flat JSON are is guessed from the first rows where the options leave it
 * open (data/column_guess.h): at most 1000 rows, 256 KiB, or what has come when nothing more comes for a
 * quarter of a second. These rows are then given like all others.
 *
 * A row with x fits the shape (svi_shape_fits). Blank lines are no rows; CRLF, a byte order mark and a
 * missing last line end are taken as meant.
 *
 * A reader never blocks by itself but in svi_reader_fill: a caller polls svi_reader_fd, no longer than
 * svi_reader_wait, fills when there is something, then takes rows until SVI_READ_MORE. Lines are at most 1
 * MiB (longer: refused whole, as one row). No allocation per row. */
#ifndef SVI_READER_H
#define SVI_READER_H

#include <stddef.h>
#include <stdint.h>

#include "data/message.h"
#include "data/text_options.h"
#include "svmstream/model.h"

enum svi_read {
    SVI_READ_END, /* no more rows */
    SVI_READ_ROW, /* *m holds a row */
    SVI_READ_BAD, /* this row is refused: err says why (with the line number), svi_reader_line gives its bytes
                   */
    SVI_READ_MORE, /* no whole line is buffered, or more are wanted first: svi_reader_fill */
    SVI_READ_FAIL  /* the file cannot be read on (I/O error, damaged gzip, a bad header): err says why */
};

typedef struct svi_reader svi_reader;

/* Opens `path` ("-" = standard input). NULL on failure: SVS_IO, SVS_SETTING, SVS_NO_MEMORY. Rows with x are
 * written into the shape's row and names by svi_reader_next; shape and option strings must outlive the
 * reader. The shape may come later (svi_reader_shape). Owner: the caller. */
svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err);
void svi_reader_close(svi_reader **r);

/* Reads until it is known what the columns are, which may block. SVS_IO and what a file without meaning is
 * refused with; an empty one is no failure here. */
svs_code svi_reader_settle(svi_reader *r, svs_error *err);

/* The shape of the rows to come. */
void svi_reader_shape(svi_reader *r, struct svi_shape *shape);

/* What the label is after that: SVS_REGRESS when its column has many different numbers, else SVS_CLASSIFY. */
svs_task svi_reader_task(const svi_reader *r);

int svi_reader_fd(const svi_reader *r);

/* Seconds after which svi_reader_next may have rows although nothing came; INFINITY: it will not. */
double svi_reader_wait(const svi_reader *r);

/* One read(2) (and inflate). Call after SVI_READ_MORE. SVS_IO. End of input is seen by the next
 * svi_reader_next. */
svs_code svi_reader_fill(svi_reader *r, svs_error *err);

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err);

/* The same with the fills done: never SVI_READ_MORE. */
enum svi_read svi_reader_row(svi_reader *r, struct svi_message *m, svs_error *err);

/* The line of the last row: its number from 1, bytes and length. */
int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length);

/* What a person should know of the columns, in one line, known from the first row on: label, time, features,
 * what is not used, and which columns may be the label where there is none. NULL: nothing. */
const char *svi_reader_note(const svi_reader *r);

/* The columns that are no features, as svi_guess_unused. */
const char *svi_reader_unused(const svi_reader *r, bool taken, int *at);

/* The columns with a unit, as svi_guess_united. */
const char *svi_reader_united(const svi_reader *r, const char **unit, int *at);

/* How often the header of a CSV came again. */
int64_t svi_reader_headers(const svi_reader *r);

/* Bytes taken from the file so far, and its size (-1 when unknown: a pipe). */
int64_t svi_reader_position(const svi_reader *r, int64_t *size);

#endif
