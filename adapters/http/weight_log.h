/* weight_log.h: models of each stream as they were published, at intervals, within a limited memory: what GET
 * /weights compares. Models of single keys are not kept. */
#ifndef HTTP_WEIGHT_LOG_H
#define HTTP_WEIGHT_LOG_H

#include "streams.h"

struct http_weights;

/* Listens to `all`, which must outlive it. NULL: SVS_NO_MEMORY. Owner: the caller. */
struct http_weights *http_weights_open(struct http_streams *all, svs_error *err);
void http_weights_close(struct http_weights **w);

#endif
