/* request.h: one request to the control socket of a running process. */
#ifndef SVI_REQUEST_H
#define SVI_REQUEST_H

#include "config/settings.h"
#include "data/message.h"
#include "wire/event.h"

/* Called once if there is no answer within a second. */
typedef void client_waiting(void *user, const char *address);

struct client_question {
    const struct svi_bytes *request; /* msgpack */
    double timeout;                  /* seconds */
    bool until_closed;               /* after the answer, wait until the process has closed the connection */
    client_waiting *waiting;         /* NULL: no notice */
    void *user;                      /* of `waiting` */
    double connecting;               /* seconds until it gives up if no process listens; 0: the timeout */
};

/* Sends the request to the address `ctl` and waits for the reply, which replaces the content of `reply`.
 * SVS_IO: no answer in time, an invalid address, or our key is refused; codes of svi_identity_load. */
svs_code client_ask(const struct svi_settings *s, const struct client_question *q, struct svi_bytes *reply,
                    svs_error *err);

/* Selects keys of a stream. */
struct client_keys {
    const char *sort, *like, *prefix; /* NULL: the default order; all keys */
    int64_t limit, rows;              /* at most `limit` keys, each with at least `rows` rows */
    double silent;                    /* seconds without a row, at least; 0: all */
    bool open;                        /* only with an open alert */
};

/* Builds the request for their list in `request` (replaced). */
svs_code client_keys_request(const struct client_keys *k, struct svi_bytes *request);

/* Selects alert events that are kept. */
struct client_alerts {
    uint64_t since; /* number of the last one that is known */
    bool known;     /* `epoch` is that of the last reply */
    uint64_t epoch;
    const char *key; /* NULL: of all keys */
};

/* Builds the request for them in `request` (replaced). */
svs_code client_alerts_request(const struct client_alerts *a, struct svi_bytes *request);

/* Builds the request for the current model, of the key unless it is NULL, with its leave-one-out figures, in
 * `request` (replaced). */
svs_code client_model_request(const char *key, struct svi_bytes *request);

/* Checks columns in advance with a process that acknowledges nothing and so cannot refuse them. Asks at
 * `ctl`, if that is given or `in` is not, so that both addresses belong to one process. SVS_WRONG_COLUMNS:
 * with both lists; SVS_BAD_KEY: the row has a key, and the process has a single model. SVS_OK without an
 * answer. */
svs_code client_ask_columns(const struct svi_settings *s, const struct svi_message *row, svs_error *err);

#endif
