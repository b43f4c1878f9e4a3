/* naming.h: from the levels of a topic to the name of a feature, and to the key of a sample.
 *
 * A template gives each level of a topic a meaning: plain text must be there as it is, {name} takes the level
 * as a token, + takes any level, # at the end takes all further ones. A pattern puts tokens together:
 * '{machine}.{sensor}'. Besides the template's tokens there is {topic}, the whole topic with dots in the
 * place of slashes (in a key as it is).
 *
 * In the pattern of the feature {key} is the key of a value in a JSON object ("value" for a plain number). A
 * pattern without {key} gets .KEY after it for values of objects. The key "value" adds nothing: 21.5 and
 * {"value": 21.5} are the same feature. In the pattern of the sample's key every
 * other token is a member of the JSON object: a text or a whole number.
 *
 * No template: every topic fits. No pattern of the feature: the tokens of the template, without those that
 * the sample's key takes, joined by dots; where none is left, {topic}, or {key} where the sample's key is of
 * the topic. */
#ifndef MQTT_NAMING_H
#define MQTT_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "svmstream/value.h"

#define LEVELS_MAX  32 /* of a template */
#define MEMBERS_MAX 4  /* of a JSON object that make the key of a sample */

struct naming;

/* What a topic's levels are; views of the topic's text. */
struct topic_tokens {
    const char *topic;
    struct token {
        const char *text;
        size_t length;
    } token[LEVELS_MAX];
};

/* The names of the members that make the key (nested ones joined by dots), or what they say: "" is nothing.
 */
struct members {
    char text[MEMBERS_MAX][SVS_NAME_MAX + 1];
    int count;
};

/* NULL and the reason in `why` when template or pattern is malformed; each may be NULL. Owner (svi_free): the
 * caller. */
struct naming *mqtt_naming_new(const char *template, const char *feature, const char *key, char *why,
                               size_t size);

/* The topic filter of a (good) template: tokens become +. Owner: the caller. */
char *mqtt_naming_filter(const char *template);

/* False: the topic does not fit the template. */
bool mqtt_naming_match(const struct naming *n, const char *topic, struct topic_tokens *out);

/* The feature's name into `out`; `key` is NULL for a plain number. Returns its length, 0 when it is empty or
 * does not fit into `size` with its NUL. */
size_t mqtt_naming_feature(const struct naming *n, const struct topic_tokens *t, const char *key, char *out,
                           size_t size);

/* What the payload must say for the key. */
const struct members *mqtt_naming_members(const struct naming *n);

/* The key of a sample into `out` (SVS_KEY_MAX + 1 bytes), "" where there is no pattern of it, by the
 * members. False and the reason in `why`: it has none. */
bool mqtt_naming_key(const struct naming *n, const struct topic_tokens *t,
                     const struct members *members, char *out, char *why, size_t size);

#endif
