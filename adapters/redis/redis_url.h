/* redis_url.h: the address of a Redis server, redis://USER@HOST:PORT/DATABASE, and how to log in there.
 *
 * All parts are optional: redis://localhost is port 6379, the user `default` and database 0. A password in
 * the text is accepted only where the caller permits it: in the environment, never on a command line. */
#ifndef REDIS_URL_H
#define REDIS_URL_H

#include <stdbool.h>

#include "svmstream/error.h"

#define REDIS_HOST_BYTES     256
#define REDIS_USER_BYTES     128
#define REDIS_PASSWORD_BYTES 1024

struct redis_url {
    char host[REDIS_HOST_BYTES]; /* a name or an address, an IPv6 address without its brackets */
    int port;
    int database;
    char user[REDIS_USER_BYTES];         /* "": the default user */
    char password[REDIS_PASSWORD_BYTES]; /* "": none */
};

/* SVS_SETTING: not an address of this form, rediss://, or a password without `secret`, with what to do. */
svs_code redis_url_read(struct redis_url *u, const char *text, bool secret, svs_error *err);

/* Takes the password of the first line of a file. SVS_IO, SVS_SETTING. */
svs_code redis_url_password(struct redis_url *u, const char *path, svs_error *err);

/* Overwrites the password. */
void redis_url_wipe(struct redis_url *u);

#endif
