/* score_lines.h: scores as JSON lines on a file descriptor, for `in` "-": {"id", "yhat", "scores", "y",
 * "novelty", "p", "model", "row"}, without absent keys; scores of classes are a map by class name. */
#ifndef SVI_SCORE_LINES_H
#define SVI_SCORE_LINES_H

#include <stdbool.h>

#include "wire/event.h"

struct svi_score_lines {
    int fd;                 /* -1 = lines go nowhere */
    bool closed;            /* the reader has closed its end: stop without an error */
    struct svi_bytes text;  /* not written yet */
    struct svi_bytes event; /* the line in hand as msgpack */
};

/* Appends the line of a score event; `row` counts the rows of the input from 1. SVS_NO_MEMORY. */
svs_code svi_score_lines_score(struct svi_score_lines *l, const struct svi_event *e, int64_t row);

/* Writes the pending lines. Waits for a reader that pauses, but not once `stop_fd` is readable (SVS_OK, the
 * rest is dropped and `closed` set). SVS_IO. */
svs_code svi_score_lines_flush(struct svi_score_lines *l, int stop_fd, svs_error *err);

#endif
