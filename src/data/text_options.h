/* text_options.h: what settings and stream know about the columns before a text is read. */
#ifndef SVI_TEXT_OPTIONS_H
#define SVI_TEXT_OPTIONS_H

#include "data/message.h"

/* Lists of column names are separated by commas; NULL or "" = empty. */
struct svi_reader_options {
    const char *format;  /* auto (by file name, then first line), csv, libsvm, jsonl, vw */
    const char *label;   /* column of y; default "label" */
    bool label_required; /* a CSV without that column is refused (SVS_SETTING) with its columns listed; no
                            other label is guessed */
    const char *id, *ts, *weight, *key;        /* columns */
    const char *ts_format;                     /* strptime format of times as text; NULL or "": none */
    const char *ignore, *categories, *numbers; /* columns */
    bool key_spare;                            /* the key column may be absent: no model is by key */
    const char *features;                      /* the only columns that are features; NULL or "": all */
    const char *columns;                       /* names of a CSV without a header line */
    bool no_header;                            /* the first line of a CSV is a row */
    const char *missing; /* words for a missing value, in any case; NULL: SVI_MISSING_WORDS */
    bool placed;         /* if names do not decide, the label may be found by its position */
    bool label_needed;   /* a file without a clear label is refused (SVS_SETTING) */
    bool hash;           /* categories are hashed, so they may have very many values */
    bool unlabelled;     /* no label is guessed, and none is missed */
    bool positional; /* columns are taken by position: all are features but those of the options and the label
                      */
    bool task_given; /* the user gave the task */
    bool task_follows; /* if not, the caller follows svi_reader_task */
    /* What the stream knows about a column: a number, a word, or missing, when it has no such column. NULL:
     * the stream is new. */
    enum svi_cell_kind (*known)(const void *stream, const char *name, size_t length);
    const void *stream;
    bool sparse; /* rows of LIBSVM are delivered as columns and values (message.h), not as x */
};

#endif
