/* delivery.h: samples from a command to one process, until it has them, and the names of their columns: a
 * link that is waited for.
 *
 * To in.mode router they are acknowledged; it goes on by itself when the connection breaks or the process is
 * restarted. To in.mode pull (SVS_OUTBOX_SENT) they are sent once. */
#ifndef SVI_DELIVERY_H
#define SVI_DELIVERY_H

#include "base/bytes.h"
#include "client/link.h"
#include "data/message.h"

#define DELIVERY_SHOWN 5 /* refusals that are kept for the end */

struct delivery {
    const char *address;
    const struct svi_identity *identity; /* keys of both ends; read by delivery_open only */
    double timeout; /* seconds without progress, while samples wait, after which it fails */
    void (*warn)(void *user, const char *text); /* of what may take long; may be NULL */
    void *user;
    struct link link;
    bool curve;      /* keys are on */
    bool met;        /* the process has answered once */
    bool hopeless;   /* the last passing refusal is of a kind that does not pass */
    bool finishing;  /* the disk is waited for */
    double moved;    /* svi_monotonic: the last progress, or when there was nothing to wait for */
    int64_t settled; /* acknowledged and refused then */
    svs_error later; /* the last passing refusal; code SVS_OK: none since something came through */
    double warned;   /* when of the last one */
    int64_t refused; /* samples */
    int64_t reasons[SVS_CODE_COUNT]; /* of these, by code; one that is not known here as SVS_INVALID */
    int shown;
    svs_error refusal[DELIVERY_SHOWN]; /* the first of these, with their numbers */
    int64_t restarts;
    int64_t forgotten[2]; /* acknowledged samples that it came to lack: restarted, power cut */
};

/* Connects, and waits until the process has answered (or, without acknowledgement, is connected). `o` without
 * callback. SVS_IO: no answer within `timeout`; codes of svs_outbox_new. delivery_close in any case. */
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

/* Without acknowledgement it waits until the process has taken what the socket holds; SVS_IO: not in time,
 * and messages are lost. */
svs_code delivery_close(struct delivery *d, svs_error *err);

/* Before a row is put: where its cells are listed, their names go with each message from here on. *named:
 * those that do already. Codes of svs_outbox_columns. */
svs_code delivery_columns(svs_outbox *box, const struct svi_message *row, struct svi_bytes *named,
                          svs_error *err);

#endif
