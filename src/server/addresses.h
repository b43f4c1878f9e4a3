/* addresses.h: the sockets of a stream as a client may dial them, for the reply to `status`: one address is
 * enough to find the others. */
#ifndef SVI_ADDRESSES_H
#define SVI_ADDRESSES_H

#include "config/settings.h"
#include "wire/pack.h"

/* Puts addresses: {in, out, ctl: {address, mode}} and curve. A socket that the stream does not have is
 * absent; `address` is nil where the stream dials itself. The host of an address that is bound to every
 * interface is `*`: the client puts in the host under which it reached the stream. */
void svi_put_addresses(struct svi_pack *p, const struct svi_settings *s);

#endif
