/* naming.h: from the levels of a topic to the name of a feature.
 *
 * A template gives each level of a topic a meaning: plain text must be there as it is, {name} takes the level
 * as a token, + takes any level, # at the end takes all further ones. A pattern puts tokens together:
 * '{machine}.{sensor}'. Besides the template's tokens there are {topic}, the whole topic with dots in the
 * place of slashes, and {key}, the key of a value in a JSON object ("value" for a plain number); a pattern
 * without {key} gets .KEY after it for values of objects.
 *
 * No template: every topic fits. No pattern: all tokens of the template joined by dots, or {topic}. */
#ifndef MQTT_NAMING_H
#define MQTT_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#define LEVELS_MAX 32 /* of a template */

struct naming;

/* What a topic's levels are; views of the topic's text. */
struct topic_tokens {
    const char *topic;
    struct token {
        const char *text;
        size_t length;
    } token[LEVELS_MAX];
};

/* NULL and the reason in `why` when template or pattern is malformed; both may be NULL. Owner (svi_free): the
 * caller. */
struct naming *mqtt_naming_new(const char *template, const char *pattern, char *why, size_t size);

/* The topic filter of a (good) template: tokens become +. Owner: the caller. */
char *mqtt_naming_filter(const char *template);

/* False: the topic does not fit the template. */
bool mqtt_naming_match(const struct naming *n, const char *topic, struct topic_tokens *out);

/* The feature's name into `out`; `key` is NULL for a plain number. Returns its length, 0 when it is empty or
 * does not fit into `size` with its NUL. */
size_t mqtt_naming_feature(const struct naming *n, const struct topic_tokens *t, const char *key, char *out,
                           size_t size);

#endif
