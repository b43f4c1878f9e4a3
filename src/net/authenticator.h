/* authenticator.h: which peers may connect, and which may stay. It judges what libzmq asks over ZAP (the
 * thread of peer_watch receives that, before any socket is bound) and keeps up with the allow file:
 * svi_authenticator_refresh is called several times a second and reads a changed file again once it stays the
 * same between two looks, so that half of an edit is never taken for the whole. A file that became wrong
 * leaves the last good one in force; while there is no file every peer is refused.
 *
 * A peer is let in by CURVE only, with a listed key that has the role of the socket (SVI_ROLES), ingest for
 * this stream. Any thread may ask. */
#ifndef SVI_AUTHENTICATOR_H
#define SVI_AUTHENTICATOR_H

#include "net/acl.h"

typedef struct svi_authenticator svi_authenticator;

/* Reads the allow file of the settings. NULL: as for svi_acl_load. Owner: the caller. */
svi_authenticator *svi_authenticator_new(const struct svi_settings *s, svs_error *err);
void svi_authenticator_free(svi_authenticator **a);

/* What libzmq asks: the domain is the socket's setting, `key` the peer's long-term public key (32 bytes).
 * True: `user` receives the key as text. False: `why` says why not. */
bool svi_authenticator_admits(svi_authenticator *a, const char *domain, const char *mechanism,
                              const uint8_t *key, size_t key_size, char user[SVI_KEY_LENGTH + 1],
                              svs_error *why);

/* Does this user, which was let in before, still have the role? Costs nothing before the first revocation. */
bool svi_authenticator_allows(svi_authenticator *a, enum svi_role role, const char *user);

/* May this user, which was let in before, send under this source name (length 0: without one)? Costs nothing
 * while no key of the allow file is bound to names. */
bool svi_authenticator_allows_source(svi_authenticator *a, const char *user, const char *src, size_t length);

/* Is any key bound to names? */
bool svi_authenticator_binds(const svi_authenticator *a);

/* Looks at the file. True: some key has fewer rights than before. *trouble is filled when the file became
 * wrong, else its code is SVS_OK. */
bool svi_authenticator_refresh(svi_authenticator *a, svs_error *trouble);

#endif
