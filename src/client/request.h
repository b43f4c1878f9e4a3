/* request.h: one question to the control socket of a running process. */
#ifndef SVI_REQUEST_H
#define SVI_REQUEST_H

#include "config/settings.h"
#include "wire/event.h"

/* Called once when no answer has come within a second. */
typedef void client_waiting(void *user, const char *address);

/* Sends `request` (msgpack) to the address `ctl` and waits for the reply, which replaces the content of
 * `reply`. `waiting` may be NULL. SVS_IO: no answer within `timeout` seconds, not an address, or our key is
 * refused; codes of svi_identity_load. */
svs_code client_ask(const struct svi_settings *s, const struct svi_bytes *request, double timeout,
                    client_waiting *waiting, void *user, struct svi_bytes *reply, svs_error *err);

/* {op: NAME} into `request` (replaced). */
svs_code client_operation(const char *name, struct svi_bytes *request);

#endif
