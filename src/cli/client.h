/* client.h: one question to the control socket of a running process. */
#ifndef SVI_CLI_CLIENT_H
#define SVI_CLI_CLIENT_H

#include "engine/settings.h"
#include "wire/event.h"

/* Sends `request` (msgpack) to the address `ctl` and waits for the reply, which replaces the content of
 * `reply`. SVS_IO: nobody answered within `timeout` seconds, the address is none, or our key is refused; what
 * svi_identity_load says of the keys. */
svs_code cli_ask(const struct svi_settings *s, const struct svi_bytes *request, double timeout,
                 struct svi_bytes *reply, svs_error *err);

/* {op: NAME} into `request` (replaced). */
svs_code cli_operation(const char *name, struct svi_bytes *request);

#endif
