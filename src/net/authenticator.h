/* authenticator.h: decides which peers may connect, and which may stay. It answers libzmq's ZAP
 * requests and follows the allow file. The thread of peer_watch receives the requests; it starts
 * before any socket is bound. svi_authenticator_refresh is called several times a second. It reads
 * a changed file once it is the same in two consecutive checks, so that a half-written file is not
 * taken for the whole. An invalid file leaves the last valid one in force; while the file is
 * missing, every peer is refused.
 *
 * A peer is admitted by CURVE only, with a listed key that has the role of the socket (SVI_ROLES), ingest for
 * this stream. All functions but refresh may be called from any thread. */
#ifndef SVI_AUTHENTICATOR_H
#define SVI_AUTHENTICATOR_H

#include "net/acl.h"

typedef struct svi_authenticator svi_authenticator;

/* Loads the allow file of the settings. NULL: codes of svi_acl_load. Owner: the caller. */
svi_authenticator *svi_authenticator_new(const struct svi_settings *s, svs_error *err);
void svi_authenticator_free(svi_authenticator **a);

/* Answers a ZAP request: `domain` is the socket's setting, `key` the peer's long-term public key (32 bytes).
 * True: `user` receives the key as text. False: `why` has the reason. */
bool svi_authenticator_admits(svi_authenticator *a, const char *domain, const char *mechanism,
                              const uint8_t *key, size_t key_size, char user[SVI_KEY_LENGTH + 1],
                              svs_error *why);

/* Does this user, admitted earlier, still have the role? Costs one atomic load until the first revocation. */
bool svi_authenticator_allows(svi_authenticator *a, enum svi_role role, const char *user);

/* May this user, admitted earlier, send under this source name (length 0: none)? Costs one atomic load while
 * no key of the allow file is bound to names. */
bool svi_authenticator_allows_source(svi_authenticator *a, const char *user, const char *src, size_t length);

/* Is any key of the allow file bound to source names? */
bool svi_authenticator_binds(const svi_authenticator *a);

/* Checks the file and loads it if it changed; one thread only. True: some key has fewer rights than before.
 * *trouble describes a file that became invalid or missing, else its code is SVS_OK. */
bool svi_authenticator_refresh(svi_authenticator *a, svs_error *trouble);

#endif
