/* reader_internal.h: the joint between the reader, which cuts lines, and a text format, which makes messages
 * of them.
 *
 * A line is [at, end) without its line end. The byte at `end` cannot be part of a number, and SVI_NUMBER_PAD
 * bytes after it can be read (number.h). Error texts name neither file nor line: the reader puts that in
 * front. */
#ifndef SVI_READER_INTERNAL_H
#define SVI_READER_INTERNAL_H

#include <stdbool.h>

#include "data/reader.h"
#include "data/span.h"

struct svi_format {
    const char *name;
    bool header; /* the first line is not a row */
    /* Gets the first line, whether or not it is a header; returns the state for `row`. NULL on failure. */
    void *(*begin)(const struct svi_reader_options *o, struct svi_shape *shape, struct svi_span line,
                   svs_error *err);
    /* One line into *m, which holds the defaults of a message and x == the shape's row. SVS_EMPTY: there is
     * no row in this line (blank, a comment). All strings of *m are views of the line or of the state. */
    svs_code (*row)(void *state, struct svi_span line, struct svi_message *m, svs_error *err);
    void (*end)(void *state);               /* NULL: there is nothing to free */
    const char *(*note)(const void *state); /* svi_reader_note; NULL: there never is one */
};

extern const struct svi_format svi_csv, svi_libsvm, svi_jsonl;

/* Does a line look like `label index:value ...` or `index:value ...`? */
bool svi_libsvm_looks(struct svi_span line);

#endif
