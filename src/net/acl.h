/* acl.h: the allow file: the rights of each key. One line a client:
 *
 *     KEY NAME ROLES        rq:rM>}U...  pump1  ingest:pump1,source:pump1-*,subscribe
 *
 * KEY: 40 characters of Z85. NAME: letters, digits, _ and -, 1 to 64. ROLES: those of SVI_ROLES,
 * separated by commas. ingest:STREAM is the role for one stream, ingest for every stream.
 * source:NAME, once or more, binds the key: its samples must name one of these as `src`. So it
 * cannot use up the numbers of others. This NAME: letters, digits, _ - and ., 1 to 64; a * at its
 * end matches any rest. Blank lines and lines that begin with "# " (or are "#") are comments. A key
 * or a name must not occur twice. A key that is not listed has no role.
 *
 * The file is not trusted: at most 1 MiB, 4096 clients, 1024 bytes a line. One invalid line rejects the whole
 * file, with the line's number. */
#ifndef SVI_ACL_H
#define SVI_ACL_H

#include "net/keys.h"

#define SVI_CLIENTS_MAX 4096
#define SVI_ROLES_MAX   512 /* bytes of a client's roles, with the NUL */

/* Every role. X(constant, word, its socket (the setting, which is also the ZAP domain), whether ROLE:STREAM
 * limits it to one stream, syntax for people) */
#define SVI_ROLES(X)                                                                                         \
    X(SVI_ROLE_INGEST, "ingest", "in", true, "ingest, ingest:STREAM")                                        \
    X(SVI_ROLE_SUBSCRIBE, "subscribe", "out", false, "subscribe")                                            \
    X(SVI_ROLE_CONTROL, "control", "ctl", false, "control")

#define SVI_ROLE_CONSTANT(constant, word, socket, per_stream, text) constant,
enum svi_role { SVI_ROLES(SVI_ROLE_CONSTANT) SVI_ROLE_COUNT };

/* The number of the socket to a merger (the setting merge.from): it connects, so no client needs a role. */
#define SVI_SOCKET_MERGER SVI_ROLE_COUNT
#define SVI_SOCKET_COUNT  (SVI_ROLE_COUNT + 1)

/* "ingest, ingest:STREAM, ..., source:NAME" */
#define SVI_ROLE_TEXT(constant, word, socket, per_stream, text) text ", "
#define SVI_ROLES_TEXT                                          SVI_ROLES(SVI_ROLE_TEXT) "source:NAME"

/* The role needed for a socket: "in", "out", "ctl". SVI_ROLE_COUNT: none of these, as for "merge.from". */
enum svi_role svi_role_of(const char *socket);

struct svi_client {
    char key[SVI_KEY_LENGTH + 1];
    char name[65];
    char roles[SVI_ROLES_MAX]; /* as in the file, all valid */
};

/* Sorted by key. Zero-initialised is empty: no key has a role. */
struct svi_acl {
    struct svi_client *client;
    int count;
};

void svi_acl_clear(struct svi_acl *acl);

/* Parses the text of an allow file; `path` is used in messages only. SVS_INVALID with file and line,
 * SVS_NO_MEMORY; *acl is unchanged then. */
svs_code svi_acl_parse(struct svi_acl *acl, const char *path, const char *bytes, size_t length,
                       svs_error *err);

/* Loads a file that no other user may write. Also SVS_IO, SVS_TOO_LARGE. */
svs_code svi_acl_load(struct svi_acl *acl, const char *path, svs_error *err);

/* Binary search by key. NULL: not listed. */
const struct svi_client *svi_acl_find(const struct svi_acl *acl, const char *key);

/* Does the client have this role for this stream? */
bool svi_acl_client_may(const struct svi_client *client, enum svi_role role, const char *stream);

/* May the client send under this source name (length 0: samples without one)? A client that is not bound may
 * use any name. */
bool svi_acl_client_may_send_as(const struct svi_client *client, const char *src, size_t length);

/* Checks a name and roles as they would stand in a line. SVS_INVALID with the reason. */
svs_code svi_acl_client_check(const char *name, const char *roles, svs_error *err);

/* Adds a client to the file, which is created if missing; a client with the same key is replaced. Other lines
 * are unchanged. SVS_INVALID: another key has the name, or the file is damaged; SVS_IO, SVS_LIMIT. */
svs_code svi_acl_add(const char *path, const struct svi_client *client, svs_error *err);

/* Removes the client with this name or key; *removed receives it. SVS_UNKNOWN_ID: no such client. */
svs_code svi_acl_remove(const char *path, const char *name_or_key, struct svi_client *removed,
                        svs_error *err);

#endif
