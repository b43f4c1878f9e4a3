#include "routes.h"

#include "handlers.h"

/* Handlers of one subject stand together, in the order of /openapi.json. */
const struct http_route http_routes[] = {
    {"GET", "/healthz", 0, http_health_answer, "200 while the adapter itself works", NULL, NULL,
     "text/plain"},
    {0},
};
