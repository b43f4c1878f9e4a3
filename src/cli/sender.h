/* sender.h: the producer's side of the input socket: pushed (fire and forget), or acknowledged through a
 * router with a bounded number of messages under way. */
#ifndef SVI_CLI_SENDER_H
#define SVI_CLI_SENDER_H

#include <stdbool.h>

#include "engine/keys.h"
#include "wire/event.h"

struct sender {
    void *context, *socket;
    const char *address;
    const struct svi_identity *identity; /* keys of both ends */
    bool acknowledged;                   /* a router at the other end */
    double timeout;                      /* seconds without any progress */
    const char *src;                     /* acknowledged: name of this producer */
    int64_t next;      /* acknowledged: the first number that the other end has not taken yet */
    int64_t under_way; /* acknowledged: messages without reply */
    int64_t window;    /* acknowledged: how many of these there may be */
    int64_t acked;     /* acknowledged: messages taken */
    int64_t refused;   /* acknowledged: messages refused for good */
    svs_error refusal; /* the last of these */
};

/* Connects and waits until somebody listens; acknowledged: says hello and learns `next`. SVS_IO. sender_close
 * in any case. */
svs_code sender_open(struct sender *s, svs_error *err);

/* Sends one message; waits while the other end is behind. SVS_IO, or the code of a refusal that is not final.
 */
svs_code sender_send(struct sender *s, const void *bytes, size_t length, svs_error *err);

/* Waits for the replies that are still out. */
svs_code sender_finish(struct sender *s, svs_error *err);

/* Waits until what was pushed is handed over. SVS_IO when the other end did not take it in time: messages are
 * lost. */
svs_code sender_close(struct sender *s, svs_error *err);

#endif
