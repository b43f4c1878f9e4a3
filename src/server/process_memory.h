/* process_memory.h: how much memory a process will have, before it has it. */
#ifndef SVI_PROCESS_MEMORY_H
#define SVI_PROCESS_MEMORY_H

#include "config/settings.h"
#include "fleet/stream.h"

/* Bytes that a process with these settings holds at most for a stream of d features: the engine, what keeps
 * the state, the messages of a turn, and the process itself. Not the queues of producers that are ahead and
 * of subscribers that do not read. */
double svi_server_memory(const struct svi_settings *s, int d, int classes);
double svi_server_process_memory(int d); /* of these the process itself */

/* Lets the engine report the same, and `queues` bytes of producers that are ahead, as memory_predicted. */
void svi_server_predict_memory(const struct svi_settings *s, svi_stream *stream, double queues);

#endif
