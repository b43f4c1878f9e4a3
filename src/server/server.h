/* pipeline.h: sockets, signals and the clock on one side, the engine on the other. One thread: it takes all
 * that is queued (within bounds, so that control requests are answered in time), then publishes what came of
 * it, and waits only when idle: never to fill a batch. ZeroMQ is known here and in transport, publisher and
 * monitor. */
#ifndef SVI_PIPELINE_H
#define SVI_PIPELINE_H

#include <stdio.h>

#include "engine/settings.h"

struct svi_pipeline_hooks {
    FILE *scores; /* `in` is "-" and no `out` was given: scores go here as JSON lines, to its descriptor; NULL
                     = nowhere */
    FILE *refused; /* `in` is "-": refused rows are told here as text; NULL = nowhere */
    FILE *log; /* addresses at the start, a summary at the end, the accuracy as the last line; NULL = quiet */
};

/* Runs until the input ends, a signal (SIGINT, SIGTERM) or `stop`: then everything received is learned and
 * published first. SIGPIPE is ignored meanwhile. SVS_IO with the address that failed and why, or when the
 * input cannot be read on. */
svs_code svi_pipeline_run(const struct svi_settings *s, const struct svi_pipeline_hooks *hooks,
                          svs_error *err);

#endif
