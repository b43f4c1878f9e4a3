/* reader_internal.h: the joint between the reader, which cuts lines, and the text formats, which turn lines
 * into messages.
 *
 * A line is [at, end) without its line end. The byte at `end` cannot be part of a number, and SVI_NUMBER_PAD
 * bytes after it are readable (number.h). Error texts name neither file nor line: the reader prepends that.
 */
#ifndef SVI_READER_INTERNAL_H
#define SVI_READER_INTERNAL_H

#include <stdbool.h>

#include "data/column_guess.h"
#include "data/reader.h"
#include "data/span.h"

/* How a line ends. A row of CSV continues on the next line inside of quotes. */
enum svi_row_end {
    SVI_ENDS_WHOLE, /* complete, with as many cells as the header */
    SVI_ENDS_OPEN,  /* inside of quotes: the row may continue */
    SVI_ENDS_WRONG
};

struct svi_format {
    const char *name;
    /* Gets the first line, which is offered again as the first row. The columns are added to the guess, which
     * outlives the state. NULL on failure. */
    void *(*begin)(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                   svs_error *err);
    /* NULL: the format needs no sample. Else it gets the first lines once before any is a row, until it sets
     * *enough or the reader has no more. SVS_NO_MEMORY. */
    svs_code (*sample)(void *state, struct svi_span line, bool *enough, svs_error *err);
    /* Called after the last sampled line; `whole`: the sample is the whole file. */
    svs_code (*decide)(void *state, bool whole, svs_error *err);
    /* Turns one line into *m, which holds the defaults of a message and x == the shape's row. SVS_EMPTY: the
     * line has no row (blank, a comment, a header). All strings of *m are views of the line or of the state.
     */
    svs_code (*row)(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                    svs_error *err);
    /* How does this text, a line or several joined ones, end? Asked about lines that are not rows. NULL:
     * every row is one line. */
    enum svi_row_end (*ends)(const void *state, struct svi_span line);
    void (*end)(void *state);              /* frees the state */
    int64_t (*headers)(const void *state); /* as svi_reader_headers; NULL: the format has none */
};

extern const struct svi_format svi_csv, svi_libsvm, svi_jsonl, svi_vw;

/* Does the line have as many cells as `below`, which has several, by the separator of `below`? */
bool svi_csv_heads(struct svi_span line, struct svi_span below);

/* Does a line look like `label index:value ...` or `index:value ...`? */
bool svi_libsvm_looks(struct svi_span line);

/* Does a line look like `label |ns a:1 ...`, the label being a number or absent? */
bool svi_vw_looks(struct svi_span line);

/* Grows an array of a row or of the guess to at least `count` elements, by doubling; the content is kept.
 * False: no memory, and the array is unchanged. */
bool svi_row_reserve(void **block, size_t *capacity, size_t count, size_t element);

#endif
