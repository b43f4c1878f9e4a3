/* keys.h: the CURVE keys of this process and of the process it connects to: key files, and which of them the
 * settings name.
 *
 * A key file is text in the format of czmq and pyzmq (zmq.auth.load_certificate). It has the lines
 * `public-key = "..."` and `secret-key = "..."`, keys as 40 characters of Z85. A file with a secret
 * key must be readable by its owner alone (0600). It must belong to this user or root (root reads
 * anybody's) and hold a matching pair. Next to it is FILE.pub with the public key only, to be given
 * to peers. The keys printed in zmq_curve(7) are refused everywhere. */
#ifndef SVI_KEYS_H
#define SVI_KEYS_H

#include "config/settings.h"

#define SVI_KEY_LENGTH 40 /* characters of a key in Z85 */
#define SVI_KEY_FILE   "svmstream.key"
#define SVI_KEY_PUBLIC ".pub" /* appended to the name of the key file */

/* The keys of one end of a connection. Wipe it once the sockets have them. */
struct svi_identity {
    bool on;                             /* false: no CURVE, and the keys are empty */
    char public_key[SVI_KEY_LENGTH + 1]; /* this end's */
    char secret_key[SVI_KEY_LENGTH + 1];
    char server_key[SVI_KEY_LENGTH + 1]; /* public key of the process to connect to; "" = not known */
};

void svi_identity_wipe(struct svi_identity *id);

/* Checks that `text` is a public key. SVS_INVALID with the reason: not 40 characters of Z85, or a published
 * key. */
svs_code svi_key_check(const char *text, svs_error *err);

/* Resolves `text`: a public key, or a file that holds one (either of those that svi_keys_new writes). An
 * existing file of that name takes precedence. SVS_INVALID, SVS_IO. */
svs_code svi_key_resolve(const char *text, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Generates a pair and writes `path` (0600) and `path`.pub, both or neither, never over an existing file.
 * `key` receives the public key. SVS_IO. */
svs_code svi_keys_new(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Reads a key file with its secret key. SVS_IO: missing, not a regular file, or open to other users;
 * SVS_INVALID: damaged, keys that do not match, or published ones. The message never contains a key. */
svs_code svi_keys_read(const char *path, struct svi_identity *id, svs_error *err);

/* The key file named by the setting `curve`; NULL when it is off. */
const char *svi_keys_path(const struct svi_settings *s);

/* Loads the identity that the settings define. `client`: this end connects to an svmstream process and needs
 * curve.server. Codes of svi_keys_read, and SVS_SETTING. */
svs_code svi_identity_load(const struct svi_settings *s, bool client, struct svi_identity *id,
                           svs_error *err);

/* Sets the keys on a ZeroMQ socket that will connect; no effect when they are off. False: errno has the
 * reason, such as a libzmq without CURVE. */
bool svi_identity_connect(const struct svi_identity *id, void *socket);

#endif
