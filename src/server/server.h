/* server.h: the run loop, between sockets, signals and the clock on one side and the stream on the other. One
 * thread does all of it: a turn takes what is queued, within bounds, so that control requests are answered in
 * time; then it publishes the results. The loop waits only when idle, never to fill a batch. ZeroMQ is used
 * here, in net and in client only. */
#ifndef SVI_SERVER_H
#define SVI_SERVER_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_server_hooks {
    FILE *scores; /* `in` is "-" and no `out` was given: scores are written as JSON lines to the descriptor of
                     this file; NULL = nowhere */
    FILE *refused; /* `in` is "-": refused rows are reported here as text; NULL = nowhere */
    FILE *log; /* addresses at the start; refusals and alerts of sockets, at most a line a second; a summary
                  at the end whose last line is the accuracy; NULL = quiet */
    /* `in` is "-": print live figures to the log every N rows. 0: at rows 1, 2, 4, 8, ..., and on a terminal
     * every second (report/live_figures.h). */
    int64_t every;
    FILE *errors; /* problems that do not end the run; NULL = nowhere */
    /* SIGHUP: reads the settings as a fresh start would (server/reload.h); NULL = there is no settings file.
     */
    svs_code (*read_again)(const void *args, struct svi_settings *s, svs_error *err);
    const void *args;
};

/* Runs until the input ends, a signal arrives (SIGINT, SIGTERM) or `stop` is requested. Everything received
 * is learned and published before it returns. `stop` is answered once another process may take over: the
 * addresses `in` and `out` are free and the state is unlocked by then; `ctl` is free when the connection
 * ends. SIGHUP reads the settings again; SIGPIPE is ignored during the run. Returns SVS_IO with the failing
 * address and the reason, or when the input can no longer be read; the most frequent refusal code when all
 * rows of standard input were refused. */
svs_code svi_server_run(const struct svi_settings *s, const struct svi_server_hooks *hooks, svs_error *err);

/* Upper bound, in bytes, of what a process with these settings holds for a stream of d features: the engine,
 * the kept state, the messages of a turn, and the process itself. Excludes queues of producers that are ahead
 * and of subscribers that do not read. */
double svi_server_memory(const struct svi_settings *s, int d, int classes);
double svi_server_process_memory(int d); /* the share of the process itself */

/* Makes the stream report the same bound as memory_predicted, plus `queues` bytes for producers that are
 * ahead. */
void svi_server_predict_memory(const struct svi_settings *s, svi_stream *stream, double queues);

#endif
