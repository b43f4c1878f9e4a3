/* intake.h: standard input as the source of samples: rows of text (data/reader.h), or msgpack objects one
 * after another. */
#ifndef SVI_INTAKE_H
#define SVI_INTAKE_H

#include <stdbool.h>

#include "data/reader.h"
#include "engine/keeper.h"

typedef struct svi_intake svi_intake;

/* What the settings say about text input, as a reader takes it; the strings are the settings'. */
struct svi_reader_options svi_intake_options(const struct svi_settings *s);

/* Settings must outlive it. With a keeper (NULL: none) every row is written down first. NULL on failure:
 * SVS_IO, SVS_SETTING, SVS_NO_MEMORY. Owner: the caller. */
svi_intake *svi_intake_new(const struct svi_settings *s, svi_engine *e, svi_keeper *k, svs_error *err);
void svi_intake_free(svi_intake **in);

int svi_intake_fd(const svi_intake *in);

/* Hands the engine all that is buffered, after one read(2) when `fill`. *ended: nothing more will come.
 * Returns SVS_IO or SVS_NOT_MSGPACK when the input cannot be read on, SVS_DISK_FULL or SVS_IO when a row
 * cannot be written down (it was not taken); refused rows are no failure. */
svs_code svi_intake_turn(svi_intake *in, bool fill, double now, bool *ended, svs_error *err);

/* The row (or object) that the engine has in hand, counted from 1, header not counted. */
int64_t svi_intake_row(const svi_intake *in);

/* "line 7: " for the text of a refusal, "" when its reason says it already. Valid until the next call. */
const char *svi_intake_place(svi_intake *in);

#endif
