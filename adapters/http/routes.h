/* routes.h: the table of all requests. The server finds handlers by it, and /openapi.json is made of it: one
 * row here and one handler (handlers.h) is all that a new request needs. */
#ifndef HTTP_ROUTES_H
#define HTTP_ROUTES_H

#include "route.h"

extern const struct http_route http_routes[]; /* ends with a row without method */

#endif
