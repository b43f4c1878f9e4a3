/* relay.h: a request of HTTP that becomes a request to a stream, and the reply that becomes its answer.
 *
 * A client may leave, or its time may be over, before the reply arrives: then the reply is dropped. Refusals
 * and missing replies become problem documents here. */
#ifndef HTTP_RELAY_H
#define HTTP_RELAY_H

#include "exchange.h"
#include "streams.h"
#include "wire/pack.h"

#define HTTP_RELAY_SECONDS 10.0

/* Answers `x` with a reply that succeeded: checked msgpack. `user`: as given to http_relay. */
typedef void http_relay_answer(struct exchange *x, struct http_stream *s, struct svi_view reply, void *user);

/* Asks ctl. The request is copied. `user` is freed with svi_free at the end; NULL: none. */
void http_relay(struct exchange *x, struct http_stream *s, const struct svi_bytes *request,
                http_relay_answer *answer, void *user);

/* The stream of the query `stream`, or NULL after answering with the problem. `live`: it must answer now. */
struct http_stream *http_relay_stream(struct exchange *x, struct http_streams *all, bool live);

/* Answers with what a missing reply means, or a refusal {error, code}. */
void http_relay_failed(struct exchange *x, const struct http_stream *s, const char *why);
void http_relay_refused(struct exchange *x, struct svi_view reply);

/* The status of HTTP for an error code of svmstream. */
int http_relay_status(const char *code);

/* May the same request succeed later: a full disk, a lack of memory? */
bool http_relay_temporary(const char *code);

/* Answers with a value as JSON or, where Accept prefers it, msgpack. */
void http_relay_value(struct exchange *x, int status, struct svi_view value);

/* Ends the writer `p`, answers 200 with the value that it wrote into `out`, and clears `out`. */
void http_relay_packed(struct exchange *x, struct svi_pack *p, struct svi_bytes *out);

/* The query parameter as a number within `low` and `high`; `other` where it is absent. False: it was answered
 * with the problem. */
bool http_relay_integer(struct exchange *x, const char *name, int64_t low, int64_t high, int64_t *value);
bool http_relay_number(struct exchange *x, const char *name, double low, double high, double *value);

/* ... as a switch: true, 1, yes; false, 0, no. */
bool http_relay_switch(struct exchange *x, const char *name, bool *value);

#endif
