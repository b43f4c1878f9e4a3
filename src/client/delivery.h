/* delivery.h: delivers samples from a command to one process and waits until it has them; also the names of
 * their columns. A link with blocking calls.
 *
 * With in.mode router the samples are acknowledged, and delivery continues by itself when the connection
 * breaks or the process restarts. With in.mode pull (SVS_OUTBOX_SENT) they are sent once. */
#ifndef SVI_DELIVERY_H
#define SVI_DELIVERY_H

#include "base/bytes.h"
#include "client/link.h"
#include "data/message.h"

#define DELIVERY_SHOWN 5 /* refusals stored for the final report */

struct delivery {
    const char *address;
    const struct svi_identity *identity; /* keys of both ends; used by delivery_open only */
    double timeout; /* seconds without progress, while samples wait, until a call fails */
    void (*warn)(void *user, const char *text); /* reports that something takes long; may be NULL */
    void *user;
    struct link link;
    bool curve;      /* CURVE is on */
    bool met;        /* the process has answered once */
    bool hopeless;   /* the last temporary refusal will in fact never end */
    bool finishing;  /* waiting for the disk of the process */
    double moved;    /* svi_monotonic: the last progress, or the last time with nothing to wait for */
    int64_t settled; /* samples settled at that time */
    svs_error later; /* the last temporary refusal; code SVS_OK: none since the last success */
    double warned;   /* svi_monotonic of the last warning */
    int64_t refused; /* samples */
    int64_t reasons[SVS_CODE_COUNT]; /* refused samples by code; a code unknown here counts as SVS_INVALID */
    int shown;
    svs_error refusal[DELIVERY_SHOWN]; /* the first refusals, with row numbers */
    int64_t restarts;
    int64_t forgotten[2]; /* acknowledged samples that the process lost: by a restart, by a power cut */
};

/* Connects and waits until the process has answered (without acknowledgement: until it is connected). `o`
 * without a receiver of results; `score` gets the delivery as its user. SVS_IO: no answer within `timeout`;
 * codes of svs_outbox_new. delivery_close in any case. */
svs_code delivery_open(struct delivery *d, svs_outbox_options *o, svs_error *err);

/* Takes one sample (with replay: the wanted one) and sends once `batch` of them wait; blocks while the outbox
 * is full. Also SVS_OK if the process meanwhile wants another sample and this one was not taken: see
 * svs_outbox_wanted. SVS_IO: no progress in time, with the likely reason. */
svs_code delivery_put(struct delivery *d, const void *bytes, size_t length, int batch, svs_error *err);

/* Sends and receives for `seconds`, or until `fd` (-1: none) is readable. SVS_IO as above. */
svs_code delivery_wait(struct delivery *d, double seconds, int fd, svs_error *err);

/* Runs until svs_outbox_done, or until the process wants an earlier sample again. SVS_IO as above, or if all
 * is taken but not on its disk in time. */
svs_code delivery_finish(struct delivery *d, svs_error *err);

/* Closes the link. Without acknowledgements it first waits until the process has received what the socket
 * holds; SVS_IO: not in time, messages are lost. */
svs_code delivery_close(struct delivery *d, svs_error *err);

/* Call before a row is put: if its cells are a list, their names are sent with each message from here on.
 * *named: the names sent so far. Codes of svs_outbox_columns. */
svs_code delivery_columns(svs_outbox *box, const struct svi_message *row, struct svi_bytes *named,
                          svs_error *err);

#endif
