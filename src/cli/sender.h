/* sender.h: samples pushed to a process with in.mode pull: fire and forget. (Acknowledged: delivery.h.) */
#ifndef SVI_CLI_SENDER_H
#define SVI_CLI_SENDER_H

#include <stdbool.h>

#include "engine/keys.h"

struct sender {
    void *context, *socket;
    const char *address;
    const struct svi_identity *identity; /* keys of both ends */
    double timeout;                      /* seconds without any progress */
};

/* Connects and waits until somebody listens. SVS_IO. sender_close in any case. */
svs_code sender_open(struct sender *s, svs_error *err);

/* Sends one message; waits while the other end is behind. SVS_IO. */
svs_code sender_send(struct sender *s, const void *bytes, size_t length, svs_error *err);

/* Waits until what was sent is handed over. SVS_IO when the other end did not take it in time: messages are
 * lost. */
svs_code sender_close(struct sender *s, svs_error *err);

#endif
