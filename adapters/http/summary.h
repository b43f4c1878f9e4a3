/* summary.h: how a stream is, for people: one sentence and a level; and the reasons why it is not ready. */
#ifndef HTTP_SUMMARY_H
#define HTTP_SUMMARY_H

#include "app.h"
#include "streams.h"

enum http_level { HTTP_LEVEL_OK, HTTP_LEVEL_NOTICE, HTTP_LEVEL_BAD };

extern const char *const http_level_names[]; /* by level: ok, notice, bad */

/* A moment that the sentence mentions is written in UTC; a page replaces `since_text` by `since` as it shows
 * times. Names in it are not escaped for HTML. */
struct http_summary {
    enum http_level level;
    char text[700];
    double since;        /* seconds since 1970; NAN: the sentence mentions none */
    char since_text[40]; /* as it stands in `text`; "": none */
};

void http_summary_of(const struct http_app *app, const struct http_stream *s, struct http_summary *out);

/* Why the stream is not ready, sentences separated by "; ", in `reasons` (cut to `size`). Ready: "". Returns
 * whether it is ready. */
bool http_ready_stream(const struct http_app *app, const struct http_stream *s, char *reasons, size_t size);

#endif
