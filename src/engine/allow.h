/* allow.h: the allow file: who may do what. One line a client:
 *
 *     KEY NAME ROLES        rq:rM>}U...  pump1  ingest:pump1,source:pump1-*,subscribe
 *
 * KEY: 40 characters of Z85. NAME: letters, digits, _ and -, 1 to 64. ROLES: ingest (samples of every
 * stream), ingest:STREAM, subscribe, control, separated by commas. With source:NAME, once or more, the key is
 * bound: its samples must name one of these as `src`, so that it cannot use up the numbers of others. NAME:
 * letters, digits, _ - and ., 1 to 64; a * at its end stands for anything. Blank lines and lines that begin
 * with "# " (or are "#") are comments. A key and a name occur once. Whoever is not listed may do nothing.
 *
 * The reader trusts nothing: the file is at most 1 MiB and 4096 clients, a line at most 1024 bytes; one line
 * that is wrong makes the whole file refused, with its number. */
#ifndef SVI_ALLOW_H
#define SVI_ALLOW_H

#include "engine/keys.h"

#define SVI_ALLOW_FILE  "svmstream.allow"
#define SVI_CLIENTS_MAX 4096
#define SVI_ROLES_MAX   512 /* bytes of a client's roles with the NUL */

enum svi_role { SVI_ROLE_INGEST = 0, SVI_ROLE_SUBSCRIBE, SVI_ROLE_CONTROL, SVI_ROLE_COUNT };

struct svi_client {
    char key[SVI_KEY_LENGTH + 1];
    char name[65];
    char roles[SVI_ROLES_MAX]; /* as in the file; every word is known */
};

/* In the order of their keys. Zero-initialised is empty: nobody may do anything. */
struct svi_clients {
    struct svi_client *client;
    int count;
};

void svi_clients_clear(struct svi_clients *c);

/* SVS_INVALID with file and line, SVS_NO_MEMORY; *c is left as it was then. `name` stands for the file. */
svs_code svi_clients_parse(struct svi_clients *c, const char *name, const char *bytes, size_t length,
                           svs_error *err);

/* The same from a file that nobody else may write. SVS_IO, SVS_TOO_LARGE too. */
svs_code svi_clients_load(struct svi_clients *c, const char *path, svs_error *err);

/* NULL: not listed. */
const struct svi_client *svi_clients_find(const struct svi_clients *c, const char *key);

/* Has the client this role, for this stream? */
bool svi_client_may(const struct svi_client *client, enum svi_role role, const char *stream);

/* May the client send under this name (length 0: samples that name none)? Whoever is not bound may under
 * each. */
bool svi_allow_source(const struct svi_client *client, const char *src, size_t length);

/* Are these names and roles as a line may have them? SVS_INVALID with the reason. */
svs_code svi_client_check(const char *name, const char *roles, svs_error *err);

/* Adds a client to the file, which is made when it is not there; one with the same key is replaced. Other
 * lines stay as they are. SVS_INVALID: another key has the name, or the file is damaged; SVS_IO, SVS_LIMIT.
 */
svs_code svi_allow_add(const char *path, const struct svi_client *client, svs_error *err);

/* Takes the client of this name or key out; *taken (may be NULL) is who it was. SVS_UNKNOWN_ID: there is
 * none. */
svs_code svi_allow_remove(const char *path, const char *who, struct svi_client *taken, svs_error *err);

#endif
