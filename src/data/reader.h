/* reader.h: rows of a text file or pipe as messages: CSV, JSON lines, LIBSVM, VW text; plain or gzip.
 *
 * CSV, flat JSON and VW give cells under the names of their columns (message.h); LIBSVM and arrays of JSON
 * give a vector.
 *
 *  - CSV: the header names the columns, else they are c1, c2, and so on. Separators are comma,
 *    semicolon, tab or bar, and quotes follow RFC 4180. An empty cell and the words of `missing`
 *    are missing. Cells are listed: all columns that are features, in the order of the header.
 *    Lines that repeat the header are skipped.
 *  - JSON lines: an object in the form of the wire ({"x": [...], "y": ...}, with any key of a
 *    sample; an object as x is named). When it has neither `x` nor `op`, it is a flat map of
 *    columns. Here null is missing, true and false count as 1 and 0, a string is a word.
 *  - LIBSVM: `label index:value ...`, ascending, where index 1 is column 0 and `#` starts a
 *    comment. Rows are sparse (dense in a dense stream). With the option `sparse` x is not set;
 *    m->column and m->value are the row. The label is a number. (A line without a label begins with
 *    an index:value pair.)
 *  - VW: `[label] [weight] ['tag]|ns a:1 b machine=press-03 |...` (data/vw.c).
 *
 * The use of the columns of CSV and flat JSON is guessed where the options leave it open
 * (data/column_guess.h). The guess takes the first rows: at most 1000 rows, 256 KiB, or what
 * arrived before a quarter of a second without input. These rows are then delivered like all
 * others.
 *
 * A row with x fits the shape (svi_shape_fits). Blank lines are not rows; CRLF, a byte order mark and a
 * missing last line end are accepted.
 *
 * svi_reader_next never blocks. A caller polls svi_reader_fd for at most svi_reader_wait seconds, fills
 * when the descriptor is readable, then takes rows until SVI_READ_MORE. Lines are at most 1 MiB (longer ones
 * are refused whole, as one row). No allocation per row. */
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
    SVI_READ_BAD, /* this row is refused: err has the reason and the line number, svi_reader_line its bytes */
    SVI_READ_MORE, /* no whole line is buffered, or more lines are wanted first: call svi_reader_fill */
    SVI_READ_FAIL  /* the file cannot be read further (I/O error, damaged gzip, a bad header): err has the
                      reason */
};

typedef struct svi_reader svi_reader;

/* Opens `path` ("-" = standard input). NULL on failure: SVS_IO, SVS_SETTING, SVS_NO_MEMORY. svi_reader_next
 * writes rows with x into the shape's row and names; shape and option strings must outlive the reader. The
 * shape may be given later (svi_reader_shape). Owner: the caller. */
svi_reader *svi_reader_open(const char *path, const struct svi_reader_options *o, struct svi_shape *shape,
                            svs_error *err);
void svi_reader_close(svi_reader **r);

/* Reads until the use of the columns is decided; this may block. SVS_IO, and the errors of a file that cannot
 * be understood; an empty file is not an error here. */
svs_code svi_reader_settle(svi_reader *r, svs_error *err);

/* Sets the shape of the rows from here on. */
void svi_reader_shape(svi_reader *r, struct svi_shape *shape);

/* The task that the label calls for, after svi_reader_settle: SVS_REGRESS when its column has many different
 * numbers, else SVS_CLASSIFY. */
svs_task svi_reader_task(const svi_reader *r);

int svi_reader_fd(const svi_reader *r);

/* Seconds after which svi_reader_next may have rows even without input; INFINITY: it will not. */
double svi_reader_wait(const svi_reader *r);

/* Does one read(2), and inflates. Call it after SVI_READ_MORE. SVS_IO. The next svi_reader_next notices the
 * end of the input. */
svs_code svi_reader_fill(svi_reader *r, svs_error *err);

enum svi_read svi_reader_next(svi_reader *r, struct svi_message *m, svs_error *err);

/* The same, filling as needed: never SVI_READ_MORE. Blocks. */
enum svi_read svi_reader_row(svi_reader *r, struct svi_message *m, svs_error *err);

/* The line of the last row: returns its number, from 1; sets its bytes and length. */
int64_t svi_reader_line(const svi_reader *r, const char **bytes, size_t *length);

/* One line for people about the columns, complete from the first row on: label, time, features, what is not
 * used, and candidates for the label where it is absent. NULL: nothing to report. */
const char *svi_reader_note(const svi_reader *r);

/* The columns that are not features, as svi_guess_unused. */
const char *svi_reader_unused(const svi_reader *r, bool taken, int *at);

/* The columns with a unit, as svi_guess_united. */
const char *svi_reader_united(const svi_reader *r, const char **unit, int *at);

/* How many lines repeated the header of a CSV. */
int64_t svi_reader_headers(const svi_reader *r);

/* Bytes read from the file so far; *size: its size, -1 when unknown (a pipe). */
int64_t svi_reader_position(const svi_reader *r, int64_t *size);

#endif
