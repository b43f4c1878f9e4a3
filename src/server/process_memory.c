#include "server/process_memory.h"

#include <string.h>

#include "server/intake.h"
#include "state/write_ahead.h"

#define PROCESS_BYTES (14.0 * 1024 * 1024)
#define CALLERS       2 /* of OpenBLAS: the stream, the refit */
#define PACKED_BYTES  (1.0 * 1024 * 1024)
#define PACKED_COLUMN 3072.0

/* What the process has whatever the stream is, and for each feature what OpenBLAS packs of a matrix in the
 * stream and in a refit: measured on x86-64 with Debian 12 and rounded up; other systems differ by a few MiB.
 */
double svi_server_process_memory(int d) {
    return PROCESS_BYTES + CALLERS * (PACKED_BYTES + PACKED_COLUMN * (double)d);
}

/* What there is besides the engine: a share of the size of its state, and a number of bytes. */
static void surrounding_memory(const struct svi_settings *s, int d, double *share, double *fixed) {
    *share = *fixed = 0;
    if (s->state_dir[0])
        svi_write_ahead_memory(svi_ingest_zmq_batch_memory(s), share, fixed);
    *fixed += (strcmp(s->in, "-") == 0 ? 0 : svi_ingest_zmq_memory(s)) + svi_server_process_memory(d);
}

double svi_server_memory(const struct svi_settings *s, int d, int classes) {
    double share, fixed;
    surrounding_memory(s, d, &share, &fixed);
    return svi_engine_memory(s, d, classes) + share * svi_engine_state_memory(s, d, classes) + fixed;
}

void svi_server_predict_memory(const struct svi_settings *s, svi_stream *stream, double queues) {
    double share, fixed;
    surrounding_memory(s, svi_engine_features(svi_stream_root(stream)), &share, &fixed);
    svi_stream_set_kept_memory(stream, share, fixed + queues);
}
