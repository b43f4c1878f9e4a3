/* text_options.h: what is known of the columns before a text is read. */
#ifndef SVI_TEXT_OPTIONS_H
#define SVI_TEXT_OPTIONS_H

#include "data/message.h"

/* Names of columns are separated by commas where there may be several; NULL or "": none. */
struct svi_reader_options {
    const char
        *format;       /* auto, csv, libsvm, jsonl, vw; auto looks at the file name, then at the first line */
    const char *label; /* column of y; default "label" */
    bool label_required; /* a CSV without that column is refused (SVS_SETTING) with the columns listed; no
                            other one is guessed */
    const char *id, *ts, *weight, *key;        /* columns */
    const char *ts_format;                     /* of strptime, for times in text; NULL or "": none */
    const char *ignore, *categories, *numbers; /* columns */
    bool key_spare;                            /* a text without that column is fine: no model is by key */
    const char *features;                      /* no other columns are features */
    const char *columns;                       /* names of a CSV without a header line */
    bool no_header;                            /* the first line of a CSV is a row */
    const char *missing; /* words that stand for a missing value, in any case; NULL: those of the setting */
    bool placed;         /* else the label may be told by its place */
    bool label_needed;   /* a file in which no column is clearly the label is refused (SVS_SETTING) */
    bool hash;           /* a category may have very many values */
    bool unlabelled;     /* no label is looked for but that of the options, none is missed */
    bool positional; /* columns go by their places: all but those of the options and the label are features */
    bool task_given; /* whether the label is a class or a number was said */
    bool task_follows; /* else the caller goes by svi_reader_task */
    /* What a column of the stream is already: a number, a word, or missing: there is none of this name. NULL:
     * there are none. */
    enum svi_cell_kind (*known)(const void *stream, const char *name, size_t length);
    const void *stream;
    bool sparse; /* rows of LIBSVM come as the columns that they name (message.h), not as x */
};

#endif
