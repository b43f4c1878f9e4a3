/* guard.h: what a client may do, where --tokens is given. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include <stdbool.h>

#include "tokens.h"

struct http_guard;

/* Reads the tokens file. NULL: the reason was logged. */
struct http_guard *http_guard_open(const char *path);
void http_guard_close(struct http_guard *g);

/* Reads the file again. A file that is not valid is reported, and the previous one stays in force. */
void http_guard_reload(struct http_guard *g);

enum http_verdict {
    HTTP_ADMITTED,
    HTTP_NO_TOKEN,    /* none was sent, or it is not listed */
    HTTP_TOO_MANY,    /* not listed, and this address has sent too many of those */
    HTTP_ROLE_MISSING /* listed, but without this right */
};

/* Judges a header Authorization (NULL: absent) of a request that needs `role`. `address`: 16 bytes of the
 * client. With HTTP_ADMITTED *token is the entry, valid until the next reload. */
enum http_verdict http_guard_check(struct http_guard *g, const char *authorization, unsigned role,
                                   const unsigned char address[16], const struct http_token **token);

/* The entry of a token that was admitted before; NULL: it is not listed any more. */
const struct http_token *http_guard_find(const struct http_guard *g,
                                         const unsigned char hash[HTTP_HASH_BYTES]);

#endif
