/* handlers.h: what answers each route of the table in routes.c. */
#ifndef HTTP_HANDLERS_H
#define HTTP_HANDLERS_H

#include "app.h"
#include "exchange.h"
#include "route.h"

http_handler http_health_answer; /* GET /healthz */

#endif
