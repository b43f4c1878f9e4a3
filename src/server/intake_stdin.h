/* ingest_stdin.h: standard input as the source of samples: rows of text (data/reader.h), or msgpack objects
 * one after another. */
#ifndef SVI_INGEST_STDIN_H
#define SVI_INGEST_STDIN_H

#include <stdbool.h>

#include "data/reader.h"
#include "state/write_ahead.h"

typedef struct svi_ingest_stdin svi_ingest_stdin;

/* Called after each row (or object) was handed over, accepted or refused; `row` counts from 1. */
typedef void svi_ingest_stdin_taken(void *user, int64_t row);

/* What the settings say about text input, as a reader takes it; the strings are the settings'. */
struct svi_reader_options svi_ingest_stdin_options(const struct svi_settings *s);

/* Settings must outlive it. With a write-ahead (NULL: none) every row is written first. NULL on failure:
 * SVS_IO, SVS_SETTING, SVS_NO_MEMORY. Owner: the caller. */
svi_ingest_stdin *svi_ingest_stdin_new(const struct svi_settings *s, svi_stream *stream, svi_write_ahead *w,
                                       svs_error *err);
void svi_ingest_stdin_watch(svi_ingest_stdin *in, svi_ingest_stdin_taken *taken, void *user);
void svi_ingest_stdin_free(svi_ingest_stdin **in);

int svi_ingest_stdin_fd(const svi_ingest_stdin *in);

/* Seconds after which a turn without a read may have rows, as svi_reader_wait. */
double svi_ingest_stdin_wait(const svi_ingest_stdin *in);

/* Hands the stream all that is buffered, after one read(2) when `fill`. *ended: nothing more will come.
 * Returns SVS_IO or SVS_NOT_MSGPACK when the input cannot be read on, SVS_DISK_FULL or SVS_IO when a row
 * cannot be written down (it was not taken); refused rows are no failure. */
svs_code svi_ingest_stdin_turn(svi_ingest_stdin *in, bool fill, double now, bool *ended, svs_error *err);

/* The row (or object) that the engine has in hand, counted from 1, header not counted. */
int64_t svi_ingest_stdin_row(const svi_ingest_stdin *in);

/* svi_reader_note, once and when there are rows; else NULL. */
const char *svi_ingest_stdin_note(svi_ingest_stdin *in);

/* "line 7: " for the text of a refusal, "" when its reason says it already. Valid until the next call. */
const char *svi_ingest_stdin_place(svi_ingest_stdin *in);

#endif
