/* target.h: the target of a request line, taken apart and decoded. */
#ifndef HTTP_TARGET_H
#define HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_TARGET_MAX    8192 /* bytes */
#define HTTP_SEGMENT_LIMIT 8
#define HTTP_QUERY_LIMIT   32

/* All texts lie in `text`, decoded and terminated; they are UTF-8 without NUL. */
struct http_target {
    char *text;                        /* owned */
    const char *path;                  /* as it was sent, without the query: for messages */
    const char *authority;             /* HOST:PORT of the absolute form; NULL: the target is a path */
    char *segment[HTTP_SEGMENT_LIMIT]; /* of the path: "" and "x" for /x/ is "x", "" */
    int segments;                      /* 1 and "" for the path / */
    bool any;                          /* the target is *, of OPTIONS */
    struct {
        const char *name, *value;
    } query[HTTP_QUERY_LIMIT];
    int queries;
};

/* Takes a raw target apart. NULL, or what is wrong with it. http_target_clear in any case. */
const char *http_target_read(struct http_target *t, const char *raw);
void http_target_clear(struct http_target *t);

/* The value of a query parameter; NULL: it is absent. */
const char *http_target_query(const struct http_target *t, const char *name);

#endif
