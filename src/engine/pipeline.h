/* pipeline.h: the one place that knows ZeroMQ, signals and the clock: sockets and standard input on one side, the engine
 * on the other. One thread: it takes all that is queued, then publishes what came of it, and waits only when idle. */
#ifndef SVI_PIPELINE_H
#define SVI_PIPELINE_H

#include <stdio.h>

#include "engine/settings.h"

struct svi_pipeline_hooks {
    FILE *scores; /* `in` is "-" and no `out` was given: scores and errors go here as JSON lines; NULL = nowhere */
    FILE *log;    /* addresses at the start, the summary at the end; NULL = quiet */
};

/* Runs until the input ends, a signal (SIGINT, SIGTERM) or `stop`: then everything received is learned and published first.
 * SVS_IO with the address that failed and why. */
svs_code svi_pipeline_run(const struct svi_settings *s, const struct svi_pipeline_hooks *hooks, svs_error *err);

#endif
