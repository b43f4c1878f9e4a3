/* server.h: sockets, signals and the clock on one side, the engine on the other. One thread: it takes all
 * that is queued (within bounds, so that control requests are answered in time), then publishes what came of
 * it, and waits only when idle: never to fill a batch. ZeroMQ is known here, in net and in client. */
#ifndef SVI_SERVER_H
#define SVI_SERVER_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_server_hooks {
    FILE *scores; /* `in` is "-" and no `out` was given: scores go here as JSON lines, to its descriptor; NULL
                     = nowhere */
    FILE *refused; /* `in` is "-": refused rows are reported here as text; NULL = nowhere */
    FILE *log; /* addresses at the start, of sockets refusals and alerts (a line a second), a summary at the
                  end, the accuracy as the last line; NULL = quiet */
    /* `in` is "-": live figures go to the log every N rows, or where this is 0 at rows 1, 2, 4, 8, ... and on
     * a terminal every second (report/live_figures.h). */
    int64_t every;
    FILE *errors; /* what goes wrong meanwhile and does not end it; NULL = nowhere */
    /* SIGHUP: the settings as a start would have them now (server/reload.h); NULL = there is no file. */
    svs_code (*read_again)(const void *args, struct svi_settings *s, svs_error *err);
    const void *args;
};

/* Runs until the input ends, a signal (SIGINT, SIGTERM) or `stop`: then everything received is learned and
 * published first. `stop` is answered when another process may take over: the addresses `in` and `out` are
 * free by then, the state is unlocked, and `ctl` is free when the connection ends. SIGHUP reads the settings
 * again, SIGPIPE is ignored meanwhile. SVS_IO with the address that failed and why, or when the
 * input cannot be read on; the most frequent reason when all rows of standard input were refused. */
svs_code svi_server_run(const struct svi_settings *s, const struct svi_server_hooks *hooks, svs_error *err);

/* Bytes that a process with these settings holds at most for a stream of d features: the engine, what keeps
 * the state, the messages of a turn, and the process itself. Not the queues of producers that are ahead and
 * of subscribers that do not read. */
double svi_server_memory(const struct svi_settings *s, int d, int classes);
double svi_server_process_memory(int d); /* of these the process itself */

/* Lets the engine report the same, and `queues` bytes of producers that are ahead, as memory_predicted. */
void svi_server_predict_memory(const struct svi_settings *s, svi_stream *stream, double queues);

#endif
