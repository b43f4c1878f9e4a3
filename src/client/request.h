/* request.h: one question to the control socket of a running process. */
#ifndef SVI_REQUEST_H
#define SVI_REQUEST_H

#include "config/settings.h"
#include "data/message.h"
#include "wire/event.h"

/* Called once when no answer has come within a second. */
typedef void client_waiting(void *user, const char *address);

struct client_question {
    const struct svi_bytes *request; /* msgpack */
    double timeout;                  /* seconds */
    bool until_gone;                 /* wait, after the answer, until the process has closed the connection */
    client_waiting *waiting;         /* NULL: nobody is informed */
    void *user;                      /* of `waiting` */
};

/* Sends the request to the address `ctl` and waits for the reply, which replaces the content of `reply`.
 * SVS_IO: no answer within the time, not an address, or our key is refused; codes of svi_identity_load. */
svs_code client_ask(const struct svi_settings *s, const struct client_question *q, struct svi_bytes *reply,
                    svs_error *err);

/* Which keys of a stream are asked for. */
struct client_keys {
    const char *sort, *like, *prefix; /* NULL: as the process has it; all */
    int64_t limit, rows;              /* at most `limit` keys, of `rows` rows at least */
    double silent;                    /* seconds; 0: all */
    bool open;                        /* with an open alert */
};

/* The request for their list into `request` (replaced). */
svs_code client_keys_request(const struct client_keys *k, struct svi_bytes *request);

/* The request for the current model, of a key unless it is NULL, with what leaving samples out says of it
 * (replaced). */
svs_code client_model_request(const char *key, struct svi_bytes *request);

/* A process that acknowledges nothing cannot refuse columns: it is asked at `ctl`, if that is given or `in`
 * is not, so that both are of one process. SVS_WRONG_COLUMNS: with both lists; SVS_BAD_KEY: the row has a
 * key, and the process one model. Without an answer SVS_OK. */
svs_code client_ask_columns(const struct svi_settings *s, const struct svi_message *row, svs_error *err);

#endif
