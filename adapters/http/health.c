#include "handlers.h"

void http_health_answer(struct exchange *x, struct http_app *app) {
    (void)app;
    http_exchange_answer(x, 200, "text/plain", "ok\n", 3);
}
