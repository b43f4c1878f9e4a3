/* reader_internal.h: the joint between the reader, which cuts lines, and a text format, which makes messages
 * of them.
 *
 * A line is [at, end) without its line end. The byte at `end` cannot be part of a number, and SVI_NUMBER_PAD
 * bytes after it can be read (number.h). Error texts name neither file nor line: the reader puts that in
 * front. */
#ifndef SVI_READER_INTERNAL_H
#define SVI_READER_INTERNAL_H

#include <stdbool.h>

#include "data/column_guess.h"
#include "data/reader.h"
#include "data/span.h"

/* How a line ends: a row of CSV goes on in the next one inside of quotes. */
enum svi_row_end {
    SVI_ENDS_WHOLE, /* with as many cells as the header has */
    SVI_ENDS_OPEN,  /* inside of quotes */
    SVI_ENDS_WRONG
};

struct svi_format {
    const char *name;
    /* Gets the first line, which comes again as the first row. What the columns are goes to the guess, which
     * outlives the state. NULL on failure. */
    void *(*begin)(const struct svi_reader_options *o, svi_guess *guess, struct svi_span line,
                   svs_error *err);
    /* NULL: rows need nothing but the line. Else the first lines come here once before any is a row, until
     * this says that it knows enough (*enough), or the reader that there are no more; SVS_NO_MEMORY. */
    svs_code (*sample)(void *state, struct svi_span line, bool *enough, svs_error *err);
    /* After the last of them; `whole`: they were all there are. */
    svs_code (*decide)(void *state, bool whole, svs_error *err);
    /* One line into *m, which holds the defaults of a message and x == the shape's row. SVS_EMPTY: there is
     * no row in this line (blank, a comment, a header). All strings of *m are views of the line or of the
     * state. */
    svs_code (*row)(void *state, struct svi_shape *shape, struct svi_span line, struct svi_message *m,
                    svs_error *err);
    /* How does a line that is no row by itself end, or some lines that may be one? NULL: rows are lines. */
    enum svi_row_end (*ends)(const void *state, struct svi_span line);
    void (*end)(void *state);              /* NULL: there is nothing to free */
    int64_t (*headers)(const void *state); /* svi_reader_headers; NULL: there are none */
};

extern const struct svi_format svi_csv, svi_libsvm, svi_jsonl, svi_vw;

/* Has the line, by what parts the cells of `below`, as many cells, of several? */
bool svi_csv_heads(struct svi_span line, struct svi_span below);

/* Does a line look like `label index:value ...` or `index:value ...`? */
bool svi_libsvm_looks(struct svi_span line);

/* Does a line look like `label |ns a:1 ...`, the label being a number or absent? */
bool svi_vw_looks(struct svi_span line);

/* Room for the cells of a row, the bytes of what is unescaped, or what is gathered for the guess, grown to
 * `count` of the elements and kept; false: no memory, it is as it was. */
bool svi_row_reserve(void **block, size_t *capacity, size_t count, size_t element);

#endif
