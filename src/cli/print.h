/* print.h: an event as one line: for people, or as JSON. */
#ifndef SVI_CLI_PRINT_H
#define SVI_CLI_PRINT_H

#include <stdio.h>

#include "cli/object.h"
#include "wire/event.h"

/* The kind that a topic begins with; SVI_TOPIC_COUNT when it is none. */
enum svi_topic cli_topic_kind(const char *topic, size_t length);

/* One line for people: "score default id=7 yhat=1 y=0 wrong ...". */
void cli_print_event(FILE *to, enum svi_topic kind, const msgpack_object *payload);

/* Replaces `line` by {"topic": "model.default.", ...the payload's keys...} and a newline; by nothing when the
 * payload is no map. SVS_NO_MEMORY and codes of svi_json_msgpack. */
svs_code cli_event_json(const char *topic, size_t topic_length, const void *payload, size_t length,
                        struct svi_bytes *line, svs_error *err);

/* The same, printed. */
svs_code cli_print_json(FILE *to, const char *topic, size_t topic_length, const void *payload, size_t length,
                        struct svi_bytes *line, svs_error *err);

#endif
