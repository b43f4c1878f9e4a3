/* keys.h: CURVE keys of this process and of the process it talks to: key files, and which keys the settings
 * mean.
 *
 * A key file is text as czmq and pyzmq (zmq.auth.load_certificate) write and read it: the lines
 * `public-key = "..."` and `secret-key = "..."`, keys as 40 characters of Z85. One with a secret key must be
 * readable by its owner alone (0600), belong to this user or root (root reads anybody's) and hold a pair that
 * fits; beside it stands FILE.pub with the public key only, to be given away. The keys that zmq_curve(7)
 * prints are refused everywhere. */
#ifndef SVI_KEYS_H
#define SVI_KEYS_H

#include "engine/settings.h"

#define SVI_KEY_LENGTH 40 /* characters of a key in Z85 */
#define SVI_KEY_FILE   "svmstream.key"
#define SVI_KEY_PUBLIC ".pub" /* behind the key file's name */

/* The keys of one end. Wipe it when the sockets have them. */
struct svi_identity {
    bool on;                             /* else without CURVE, and the keys are empty */
    char public_key[SVI_KEY_LENGTH + 1]; /* this end's */
    char secret_key[SVI_KEY_LENGTH + 1];
    char server_key[SVI_KEY_LENGTH + 1]; /* public key of the process to connect to; "" = none is known */
};

void svi_identity_wipe(struct svi_identity *id);

/* Is `text` a public key? SVS_INVALID with the reason: no 40 characters of Z85, or one that everybody knows.
 */
svs_code svi_key_check(const char *text, svs_error *err);

/* `text` is a public key, or else a file that holds one (as svi_keys_new writes both). A file of that name
 * goes first. SVS_INVALID, SVS_IO. */
svs_code svi_key_resolve(const char *text, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Makes a pair and writes `path` (0600) and `path`.pub, whole or not at all, never over a file that is there.
 * SVS_IO. `key` receives the public key. */
svs_code svi_keys_new(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err);

/* Reads a key file with its secret key. SVS_IO: not there, not a regular file, others may read it;
 * SVS_INVALID: it is damaged, the keys do not fit each other or are known to everybody. The text never shows
 * a key. */
svs_code svi_keys_read(const char *path, struct svi_identity *id, svs_error *err);

/* The key file that the setting `curve` names; NULL when it is off. */
const char *svi_keys_path(const struct svi_settings *s);

/* What the settings say about this end. `client`: one that connects to a process of ours and needs
 * curve.server. All else is as of svi_keys_read, and SVS_SETTING. */
svs_code svi_identity_load(const struct svi_settings *s, bool client, struct svi_identity *id,
                           svs_error *err);

/* Gives them to a ZeroMQ socket that is going to connect; true and nothing when they are off. false: errno
 * tells, no CURVE in this libzmq. */
bool svi_identity_connect(const struct svi_identity *id, void *socket);

/* Reads all of a small regular file into `out` (size bytes, ends in NUL). With `secret` nobody else may read
 * it, else nobody else may write it. SVS_IO, SVS_TOO_LARGE. */
svs_code svi_read_guarded(const char *path, bool secret, char *out, size_t size, size_t *length,
                          svs_error *err);

/* Writes `text` beside `path`, synced, then puts it in place in one step: as a new file only (`fresh`), or
 * over what is there. SVS_IO: nothing was changed. */
svs_code svi_write_whole(const char *path, const char *text, size_t length, int mode, bool fresh,
                         svs_error *err);

#endif
