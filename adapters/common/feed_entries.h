/* feed_entries.h: rows of files as entries of a partitioned log: each entry is a message of the wire, a batch
 * of samples of one partition, and stands alone: where the rows are lists, its first sample names the
 * columns. No broker is known here; entries go to a callback. */
#ifndef FEED_ENTRIES_H
#define FEED_ENTRIES_H

#include <stdint.h>

#include "config/settings.h"

#define FEED_ENTRY_BATCH 64

/* Rows of a command line (adapter_options.h) for the settings that say what the columns of a file are: OWN
 * values, which `own` of the command passes to svi_settings_set under the row's name. */
#define FEED_ENTRIES_ROW(name, argument, text)                                                               \
    { name, argument, text, OPTION_OWN, 0, 0, 0 }
#define FEED_ENTRIES_ROWS                                                                                    \
    FEED_ENTRIES_ROW("in.format", "WORD", "auto, csv, libsvm, jsonl or vw (auto)"),                          \
        FEED_ENTRIES_ROW("label", "COLUMN", "column of the label (label, or the one most like it)"),         \
        FEED_ENTRIES_ROW("id", "COLUMN", "column of the samples' ids"),                                      \
        FEED_ENTRIES_ROW("ts", "COLUMN", "column of their times"),                                           \
        FEED_ENTRIES_ROW("ts.format", "TEXT", "form of these times, as strptime has it"),                    \
        FEED_ENTRIES_ROW("weight", "COLUMN", "column of their weights"),                                     \
        FEED_ENTRIES_ROW("key", "COLUMN", "column of the stream key: a model for each of its values"),       \
        FEED_ENTRIES_ROW("task", "WORD", "classify or regress"),                                             \
        FEED_ENTRIES_ROW("columns", "A,B,...", "names of the columns of a file without a header"),           \
        FEED_ENTRIES_ROW("categories", "A,B,...", "columns whose values are names"),                         \
        FEED_ENTRIES_ROW("numbers", "A,B,...", "columns whose values are numbers"),                          \
        FEED_ENTRIES_ROW("ignore", "A,B,...", "columns that are left out"),                                  \
        FEED_ENTRIES_ROW("features", "A,B,...", "the only columns that are features"),                       \
        FEED_ENTRIES_ROW("missing.words", "A,B,...", "words that stand for a missing value")

struct feed_entries_options {
    const struct svi_settings *settings; /* what the columns are: label, id, ts, weight, key, ... */
    const char *column; /* its value selects the partition; NULL: the key of the sample does, or without keys
                           each entry goes to the next partition */
    int partitions;
    int batch;    /* samples in an entry, at most; 0: FEED_ENTRY_BATCH */
    size_t bytes; /* of an entry, at most, unless one sample alone is larger; 0: 512 KiB */
    bool packed;  /* rows of numbers as ext 2 */
    bool quiet;   /* no line on how the columns were understood */
    /* Takes an entry of `count` samples; the bytes are valid during the call. A failure ends the feed. */
    svs_code (*entry)(void *user, int partition, const void *bytes, size_t size, int count, svs_error *err);
    /* Called while a pipe has no rows, about ten times a second; may be NULL. False: the feed ends. */
    bool (*idle)(void *user);
    void (*log)(void *user, const char *text); /* a line for a person, without a newline */
    void *user;
};

struct feed_entries_figures {
    int64_t rows, entries; /* handed on */
    int64_t unread;        /* rows that could not be read, or have no partition */
};

/* The partition of a text (a key, a value of a column): the same for each program and run. */
int feed_entries_partition(const char *text, size_t length, int partitions);

/* Reads the files ("-": standard input) in order to their ends and hands on all rows. Codes of the reader
 * (SVS_IO, SVS_SETTING), of `entry`; SVS_NO_MEMORY. *figures is set in any case. */
svs_code feed_entries_run(const struct feed_entries_options *o, const char *const *paths, int count,
                          struct feed_entries_figures *figures, svs_error *err);

#endif
