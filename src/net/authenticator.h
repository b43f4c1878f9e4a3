/* authenticator.h: who may come in, and who may stay. It judges what libzmq asks over ZAP (the monitor's
 * thread receives that, before any socket is bound) and keeps the allow file up to date:
 * svi_authenticator_refresh is called several times a second and reads a changed file again once it stays the
 * same between two looks, so that half of an edit is never taken for the whole. A file that became wrong
 * leaves the last good one in force; a file that is gone lets nobody in.
 *
 * Nobody comes in but by CURVE with a listed key that has the role of the socket: in = ingest (for this
 * stream), out = subscribe, ctl = control. Any thread may ask. */
#ifndef SVI_AUTHENTICATOR_H
#define SVI_AUTHENTICATOR_H

#include "engine/allow.h"

typedef struct svi_authenticator svi_authenticator;

/* Reads the allow file of the settings. NULL: as of svi_clients_load. Owner: the caller. */
svi_authenticator *svi_authenticator_new(const struct svi_settings *s, svs_error *err);
void svi_authenticator_free(svi_authenticator **a);

/* What libzmq asks: the domain is the socket's setting, `key` the peer's long-term public key (32 bytes).
 * True: `user` receives the key as text. False: `why` says why not. */
bool svi_authenticator_admits(svi_authenticator *a, const char *domain, const char *mechanism,
                              const uint8_t *key, size_t key_size, char user[SVI_KEY_LENGTH + 1],
                              svs_error *why);

/* Has this user, who came in before, the role still? Costs nothing while nothing was taken from anybody. */
bool svi_authenticator_allows(svi_authenticator *a, enum svi_role role, const char *user);

/* May this user, who came in before, send under this name (length 0: without one)? Costs nothing while no key
 * of the allow file is bound to names. */
bool svi_authenticator_allows_source(svi_authenticator *a, const char *user, const char *src, size_t length);

/* Is any key bound, so that svi_authenticator_allows_source has to be asked? */
bool svi_authenticator_binds(const svi_authenticator *a);

/* Looks at the file. True: rights were taken from somebody. *trouble is filled when the file became wrong,
 * else its code is SVS_OK. */
bool svi_authenticator_refresh(svi_authenticator *a, svs_error *trouble);

/* The role that a socket asks for: "in", "out", "ctl". SVI_ROLE_COUNT: none of them. */
enum svi_role svi_role_of(const char *setting);

#endif
