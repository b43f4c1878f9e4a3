/* keys.h: the CURVE keys of this process and of the process it connects to: key files, and which of them the
 * settings name.
 *
 * A key file is text as czmq and pyzmq (zmq.auth.load_certificate) write and read it: the lines
 * `public-key = "..."` and `secret-key = "..."`, keys as 40 characters of Z85. One with a secret key must be
 * readable by its owner alone (0600), belong to this user or root (root reads anybody's) and hold a pair that
 * fits; next to it stands FILE.pub with the public key only, to be given away. The keys that zmq_curve(7)
 * prints are refused everywhere. */
#ifndef SVI_KEYS_H
#define SVI_KEYS_H

#include "config/settings.h"

#define SVI_KEY_LENGTH 40 /* characters of a key in Z85 */
#define SVI_KEY_FILE   "svmstream.key"
#define SVI_KEY_PUBLIC ".pub" /* appended to the name of the key file */

/* The keys of one end. Wipe it when the sockets have them. */
struct svi_identity {
    bool on;                             /* else without CURVE, and the keys are empty */
    char public_key[SVI_KEY_LENGTH + 1]; /* this end's */
    char secret_key[SVI_KEY_LENGTH + 1];
    char server_key[SVI_KEY_LENGTH + 1]; /* public key of the process to connect to; "" = none is known */
};

void svi_identity_wipe(struct svi_identity *id);

/* Is `text` a public key? SVS_INVALID with the reason: no 40 characters of Z85, or a published one.
 */
svs_code svi_key_check(const char *text, svs_error *err);

/* `text` is a public key, or else a file that holds one (as svi_keys_new writes both). A file of that name
 * takes precedence. SVS_INVALID, SVS_IO. */
svs_code svi_key_resolve(const char *text, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Makes a pair and writes `path` (0600) and `path`.pub, whole or not at all, never over a file that is there.
 * SVS_IO. `key` receives the public key. */
svs_code svi_keys_new(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Reads a key file with its secret key. SVS_IO: missing, not a regular file, open to other users;
 * SVS_INVALID: it is damaged, the keys do not match or are published ones. The text never shows a key. */
svs_code svi_keys_read(const char *path, struct svi_identity *id, svs_error *err);

/* The key file that the setting `curve` names; NULL when it is off. */
const char *svi_keys_path(const struct svi_settings *s);

/* What the settings say about this end. `client`: one that connects to an svmstream process and
 * needs curve.server. Codes of svi_keys_read, and SVS_SETTING. */
svs_code svi_identity_load(const struct svi_settings *s, bool client, struct svi_identity *id,
                           svs_error *err);

/* Sets them on a ZeroMQ socket that is going to connect; nothing when they are off. False: errno has the
 * reason, such as a libzmq without CURVE. */
bool svi_identity_connect(const struct svi_identity *id, void *socket);

#endif
