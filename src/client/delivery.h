/* delivery.h: acknowledged samples from a command to a process with in.mode router: an outbox and its socket.
 * Goes on by itself when the connection breaks or the process is started anew. */
#ifndef SVI_CLI_DELIVERY_H
#define SVI_CLI_DELIVERY_H

#include "engine/keys.h"
#include "svmstream/outbox.h"

#define DELIVERY_TOLD 5 /* refusals that are kept for the end */

struct delivery {
    const char *address;
    const struct svi_identity *identity; /* keys of both ends; read by delivery_open only */
    double timeout; /* seconds without progress, while samples wait, after which it fails */
    svs_outbox *box;
    void *context, *socket, *monitor;
    void (*warn)(void *user, const char *text); /* told of what may take long; may be NULL */
    void *user;
    bool curve;      /* they are on */
    bool listened;   /* somebody accepted the connection */
    bool spoke;      /* and speaks to a DEALER */
    bool here;       /* at present */
    bool met;        /* it has answered once */
    bool blocked;    /* the socket takes no more now */
    double moved;    /* cli_clock: the last progress, or when there was nothing to wait for */
    int64_t settled; /* acknowledged and refused then */
    svs_error later; /* the last passing refusal; code SVS_OK: none since something came through */
    bool hopeless;   /* of a kind that does not pass */
    bool finishing;  /* the disk is waited for */
    double warned;   /* when of the last one */
    int64_t refused; /* samples */
    int told;
    svs_error refusal[DELIVERY_TOLD]; /* the first of these, with their numbers */
    int64_t restarts;
    int64_t forgotten[2]; /* acknowledged samples that it came to lack: started anew, power cut */
};

/* Connects, and waits until the process has answered. `o` without listener. SVS_IO: nobody answers within
 * `timeout`; codes of svs_outbox_new. delivery_close in any case. */
svs_code delivery_open(struct delivery *d, svs_outbox_options *o, svs_error *err);

/* Takes one sample (with replay: the one that is wanted), and sends when `batch` of them wait; waits while
 * the outbox is full. SVS_OK also when the process came to want another sample meanwhile, and this one was
 * not taken: see svs_outbox_wanted. SVS_IO: no progress in time, with what may be wrong. */
svs_code delivery_put(struct delivery *d, const void *bytes, size_t length, int batch, svs_error *err);

/* Sends and listens for `seconds`, or until `fd` (-1: none) can be read. SVS_IO as above. */
svs_code delivery_wait(struct delivery *d, double seconds, int fd, svs_error *err);

/* Until svs_outbox_done, or the process wants what was put before. SVS_IO as above, or when all is taken, but
 * not on disk in time. */
svs_code delivery_finish(struct delivery *d, svs_error *err);

void delivery_close(struct delivery *d);

#endif
