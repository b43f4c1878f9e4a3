/* handlers.h: what answers each route of the table in routes.c. */
#ifndef HTTP_HANDLERS_H
#define HTTP_HANDLERS_H

#include "app.h"
#include "exchange.h"
#include "route.h"

http_handler http_page_get;           /* GET / */
http_handler http_openapi_answer;     /* GET /openapi.json */
http_handler http_health_answer;      /* GET /healthz */
http_handler http_shown_streams;      /* GET /streams */
http_handler http_shown_ready;        /* GET /readyz */
http_handler http_shown_errors;       /* GET /errors */
http_handler http_asked_status;       /* GET /status */
http_handler http_asked_bank;         /* GET /bank */
http_handler http_asked_model;        /* GET /model */
http_handler http_asked_keys;         /* GET /keys */
http_handler http_alerts_get;         /* GET /alerts */
http_handler http_asked_verdict;      /* POST /alerts/{alert}/verdict */
http_handler http_asked_mutes;        /* GET /mutes */
http_handler http_asked_mute;         /* POST /mutes */
http_handler http_asked_unmute;       /* DELETE /mutes/{mute} */
http_handler http_samples_post;       /* POST /samples */
http_handler http_samples_predict;    /* POST /predict */
http_handler http_samples_labels;     /* POST /labels */
http_handler http_samples_forget;     /* POST /forget */
http_handler http_weights_get;        /* GET /weights */
http_handler http_events_get;         /* GET /events */
http_handler http_history_get;        /* GET /history */
http_handler http_history_get_alerts; /* GET /history/alerts */
http_handler http_metrics_answer;     /* GET /metrics */

#endif
