/* tokens.h: the tokens file: the rights of each token. One line a token:
 *
 *     HASH NAME ROLES        9f86d0...0a08  panel  watch,control
 *
 * HASH: SHA-256 of the token, 64 hexadecimal digits, so that the file gives nobody a token. NAME: letters,
 * digits, _ and -, 1 to 64. ROLES, separated by commas: watch (read everything), send (samples, labels),
 * control (verdicts, mutes), and source:NAME, once or more, which binds `send` to these `src`; a * at its end
 * matches any rest. Blank lines and lines that begin with "# " (or are "#") are comments. A hash or a name
 * must not occur twice.
 *
 * The file is not trusted: at most 1 MiB, 4096 tokens, 1024 bytes a line. One invalid line rejects the whole
 * file, with the line's number. */
#ifndef HTTP_TOKENS_H
#define HTTP_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/error.h"

#define HTTP_TOKENS_MAX   4096
#define HTTP_TOKENS_FILE  (1024 * 1024) /* bytes */
#define HTTP_TOKEN_LINE   1024
#define HTTP_TOKEN_BYTES  70 /* of a token: "svm_", 64 digits, the NUL */
#define HTTP_HASH_BYTES   32
#define HTTP_SOURCES_SIZE 512
#define HTTP_ROLES_TEXT   "watch, send, control, source:NAME"

struct http_token {
    unsigned char hash[HTTP_HASH_BYTES];
    char name[65];
    char sources[HTTP_SOURCES_SIZE]; /* "NAME,PREFIX*"; "": every source */
    unsigned roles;                  /* of enum http_role (principal.h) */
};

/* Zero-initialised is empty: no token has a right. */
struct http_tokens {
    struct http_token *token;
    int count;
};

/* Parses the text of a file; `path` is used in messages only. SVS_INVALID with file and line, SVS_NO_MEMORY;
 * *all is unchanged then. */
svs_code http_tokens_parse(struct http_tokens *all, const char *path, const char *bytes, size_t length,
                           svs_error *err);

/* Loads a file that no other user may write. Also SVS_IO, SVS_TOO_LARGE. */
svs_code http_tokens_load(struct http_tokens *all, const char *path, svs_error *err);
void http_tokens_clear(struct http_tokens *all);

/* Finds a token by its text; the time does not depend on how much of a hash is right. NULL: not listed. */
const struct http_token *http_tokens_find(const struct http_tokens *all, const char *text, size_t length);

/* The entry with this hash; NULL: not listed. */
const struct http_token *http_tokens_by_hash(const struct http_tokens *all,
                                             const unsigned char hash[HTTP_HASH_BYTES]);

/* Makes a token, 256 random bits, in `text`, and its line of the file in `line` (HTTP_TOKEN_LINE bytes).
 * SVS_INVALID: name or roles; SVS_IO: the system has no random bytes. */
svs_code http_tokens_make(const char *name, const char *roles, char text[HTTP_TOKEN_BYTES], char *line,
                          svs_error *err);

/* Appends the line to the file, which is created (0600) if it is missing. SVS_INVALID: the file is damaged,
 * or has the name already; SVS_IO, SVS_TOO_LARGE. */
svs_code http_tokens_append(const char *path, const char *line, svs_error *err);

/* Removes the line of this name and keeps all others, comments too. SVS_UNKNOWN_ID: no line has it. */
svs_code http_tokens_remove(const char *path, const char *name, svs_error *err);

#endif
