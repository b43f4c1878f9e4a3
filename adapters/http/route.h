/* route.h: one kind of request, and how a request finds its own. The table of all of them is in routes.c. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_SEGMENTS_MAX 8 /* of a path */

struct exchange;
struct http_app;

/* Answers at once, or calls http_exchange_later or http_exchange_stream (exchange.h). */
typedef void http_handler(struct exchange *x, struct http_app *app);

struct http_parameter {
    const char *name, *type, *text; /* type: string, number, integer or boolean */
};

struct http_route {
    const char *method; /* GET, POST or DELETE; a HEAD takes the way of GET */
    const char *path;   /* "/alerts/{alert}/verdict": a name in braces stands for one segment */
    unsigned role;      /* of enum http_role (principal.h); 0: no token is needed */
    http_handler *handler;
    const char *summary;                /* one line */
    const struct http_parameter *query; /* ends with a row without name; NULL: none. Others are refused */
    const char *body;                   /* media types, "a/b, c/d"; NULL: the request has no body */
    const char *answer;                 /* media types */
};

/* Does the path, as its decoded segments, fit the pattern? `named` receives the segments for its names. */
bool http_route_fits(const char *pattern, char *const *segment, int segments, const char **named);

/* The row of method and path in a table that ends with a row without method. NULL: `allow` (`size` bytes)
 * lists the methods of this path, "" if no row has it. */
const struct http_route *http_route_find(const struct http_route *table, const char *method,
                                         char *const *segment, int segments, const char **named, char *allow,
                                         size_t size);

/* The path of the table nearest to what was asked for. */
const char *http_route_nearest(const struct http_route *table, const char *path);

#endif
