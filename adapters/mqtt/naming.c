/* Topics to names of features and keys of samples: see naming.h for what templates and patterns mean.
 *
 * Templates and patterns are cut once. A template becomes levels (add_level), each a word, a token,
 * any level or the rest. A pattern becomes pieces (add_piece), each a text, a token by its level,
 * the topic, the key of a value or a member of the payload. Then mqtt_naming_match lays a topic
 * over the levels and notes where each begins, and mqtt_naming_put joins the pieces of one pattern.
 * The texts of templates and patterns stay where the command line has them. */
#include "naming.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "log.h"

/* A piece of a pattern: text as it is, or a token. */
struct piece {
    enum { TEXT, TOKEN, TOPIC, KEY, MEMBER } kind;
    const char *text;
    size_t length;
    int level; /* of a token; of a member: which of them */
};

struct pattern {
    const char *option;
    /* Space for the worst default: 32 tokens with 31 dots between them. add_piece does not check;
     * read_pattern stops before the end. */
    struct piece piece[2 * LEVELS_MAX + 1];
    int pieces;
};

struct naming {
    bool any; /* no template: every topic fits */
    struct level {
        enum { WORD, NAMED, ANY, REST } kind;
        const char *text; /* of the word, or the token's name */
        size_t length;
    } level[LEVELS_MAX];
    int levels;
    struct pattern feature, key; /* a key without pieces: samples have none */
    struct members members;
};

static bool mqtt_naming_same(const char *a, size_t n, const char *b) {
    return strlen(b) == n && memcmp(a, b, n) == 0;
}

static bool mqtt_naming_fail(char *why, size_t size, const char *what, const char *text) {
    snprintf(why, size, "%s: %.150s", what, text);
    return false;
}

static bool is_token_name(const char *text, size_t n) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    /* >=, not ==: the text continues after n bytes, and letters may follow there. */
    return n > 0 && strspn(text, letters) >= n;
}

/* The order of the tests matters: whole-level wildcards first, then any other + or # is an error, as MQTT
 * allows them nowhere inside a level. */
static bool add_level(struct naming *n, const char *text, size_t length, bool last, char *why, size_t size) {
    if (n->levels == LEVELS_MAX)
        return mqtt_naming_fail(why, size, "--template has more than 32 levels", text);
    struct level *l = &n->level[n->levels++];
    *l = (struct level){WORD, text, length};
    bool braces = memchr(text, '{', length) || memchr(text, '}', length);
    if (mqtt_naming_same(text, length, "+"))
        l->kind = ANY;
    else if (mqtt_naming_same(text, length, "#") && last)
        l->kind = REST;
    else if (memchr(text, '+', length) || memchr(text, '#', length))
        return mqtt_naming_fail(
            why, size, "--template: + stands for a whole level, # at the end for all further ones", text);
    else if (braces && (text[0] != '{' || text[length - 1] != '}' || !is_token_name(text + 1, length - 2)))
        return mqtt_naming_fail(why, size, "--template: a token is a whole level in braces, {name}", text);
    else if (braces)
        *l = (struct level){NAMED, text + 1, length - 2};
    return true;
}

static void add_piece(struct pattern *p, struct piece piece) {
    p->piece[p->pieces++] = piece;
}

static bool has_piece(const struct pattern *p, int kind, int level) {
    for (int i = 0; i < p->pieces; i++)
        if ((int)p->piece[i].kind == kind && (kind != TOKEN || p->piece[i].level == level))
            return true;
    return false;
}

/* A token of the key that the topic lacks: a member of the payload. */
static bool add_member(struct naming *n, const char *text, size_t length, char *why, size_t size) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    struct members *m = &n->members;
    if (mqtt_naming_same(text, length, "key"))
        return mqtt_naming_fail(why, size,
                                "--key: {key} is the name of a value, of which a payload has many; take a "
                                "level of the --template, {topic} or a member of the payload",
                                text - 1);
    if (length == 0 || length > SVS_NAME_MAX || strspn(text, letters) < length)
        return mqtt_naming_fail(
            why, size, "--key: a token is a name of 1 to 64 letters, digits, _, - and . in braces", text - 1);
    if (m->count == MEMBERS_MAX)
        return mqtt_naming_fail(why, size, "--key takes up to 4 members of the payload", text - 1);
    /* mqtt_need zeroed the struct and length leaves one byte: the name ends in a NUL. */
    memcpy(m->text[m->count], text, length);
    add_piece(&n->key, (struct piece){MEMBER, NULL, 0, m->count++});
    return true;
}

/* The token between braces. */
static bool add_token(struct naming *n, struct pattern *p, const char *text, size_t length, char *why,
                      size_t size) {
    /* The template's names go first: a level called {topic} or {key} hides the built-in token. Only --key
     * may reach into the payload, for a feature's name must not change with the values. */
    int level = 0;
    while (level < n->levels && !(n->level[level].kind == NAMED && n->level[level].length == length &&
                                  memcmp(n->level[level].text, text, length) == 0))
        level++;
    if (level < n->levels)
        add_piece(p, (struct piece){TOKEN, NULL, 0, level});
    else if (mqtt_naming_same(text, length, "topic"))
        add_piece(p, (struct piece){TOPIC, NULL, 0, 0});
    else if (p == &n->key)
        return add_member(n, text, length, why, size);
    else if (mqtt_naming_same(text, length, "key"))
        add_piece(p, (struct piece){KEY, NULL, 0, 0});
    else {
        /* The error lists what is possible, so that a mistyped token is seen next to the right one. */
        int end = snprintf(why, size, "--feature: {%.*s} is unknown; use {topic}, {key}",
                           (int)(length < 60 ? length : 60), text);
        for (int i = 0; i < n->levels && end < (int)size; i++)
            if (n->level[i].kind == NAMED)
                end += snprintf(why + end, size - (size_t)end, ", {%.*s}",
                                (int)(n->level[i].length < 60 ? n->level[i].length : 60), n->level[i].text);
        return false;
    }
    return true;
}

static bool read_pattern(struct naming *n, struct pattern *p, const char *text, char *why, size_t size) {
    char what[60];
    for (const char *at = text; *at;) {
        size_t plain = strcspn(at, "{"), token = strcspn(at + plain, "}");
        /* A } without { is plain text in --feature and an error in --key. */
        const bool stray = p == &n->key && memchr(at, '}', plain);
        snprintf(what, sizeof what, "%s has %s", p->option,
                 p->pieces + 2 > 2 * LEVELS_MAX ? "too many tokens"
                 : stray                        ? "a } without {"
                                                : "a { without }");
        /* One round adds two pieces at most, a text and a token. Testing here keeps add_piece within its
         * array. */
        if (p->pieces + 2 > 2 * LEVELS_MAX || stray)
            return mqtt_naming_fail(why, size, what, text);
        if (plain)
            add_piece(p, (struct piece){TEXT, at, plain, 0});
        at += plain;
        if (*at && !at[token])
            return mqtt_naming_fail(why, size, what, text);
        if (*at && !add_token(n, p, at + 1, token - 1, why, size))
            return false;
        at += *at ? token + 1 : 0;
    }
    return true;
}

static bool read_template(struct naming *n, const char *template, char *why, size_t size) {
    n->any = !template;
    /* An empty level is a level: MQTT treats /a as two, the first of them empty. */
    for (const char *at = template; at;) {
        size_t length = strcspn(at, "/");
        bool last = !at[length];
        if (!add_level(n, at, length, last, why, size))
            return false;
        at = last ? NULL : at + length + 1;
    }
    return true;
}

/* What names the key names no feature: each key would have columns of its own. */
static bool are_apart(const struct naming *n, const char *feature, char *why, size_t size) {
    const struct pattern *f = &n->feature, *k = &n->key;
    bool of_topic = has_piece(k, TOPIC, 0);
    for (int i = 0; i < n->levels; i++) {
        const bool taken = has_piece(k, TOKEN, i);
        of_topic = of_topic || taken;
        if (taken && has_piece(f, TOKEN, i))
            return mqtt_naming_fail(
                why, size, "--feature holds what --key takes: the columns of each key would be others",
                feature);
    }
    if (of_topic && has_piece(f, TOPIC, 0))
        return mqtt_naming_fail(
            why, size, "--feature has {topic}, with the --key in it: the columns of each key would be others",
            feature);
    return true;
}

static void take_defaults(struct naming *n) {
    struct pattern *f = &n->feature;
    bool of_topic = has_piece(&n->key, TOPIC, 0);
    for (int i = 0; i < n->levels; i++) { /* all tokens of the template */
        const bool taken = has_piece(&n->key, TOKEN, i);
        of_topic = of_topic || taken;
        if (n->level[i].kind != NAMED || taken)
            continue;
        if (f->pieces)
            add_piece(f, (struct piece){TEXT, ".", 1, 0});
        add_piece(f, (struct piece){TOKEN, NULL, 0, i});
    }
    /* {topic} would carry the key into the feature, which are_apart forbids. Only {key} is left to keep
     * values apart. */
    if (f->pieces == 0)
        add_piece(f, (struct piece){of_topic ? KEY : TOPIC, NULL, 0, 0});
}

struct naming *mqtt_naming_new(const char *template, const char *feature, const char *key, char *why,
                               size_t size) {
    struct naming *n = mqtt_need(1, sizeof *n);
    n->feature.option = "--feature";
    n->key.option = "--key";
    /* The order is fixed: tokens are looked up in the levels, and are_apart and take_defaults look at the
     * pieces of the key. */
    bool good =
        read_template(n, template, why, size) && (!key || read_pattern(n, &n->key, key, why, size)) &&
        (!feature || (read_pattern(n, &n->feature, feature, why, size) && are_apart(n, feature, why, size)));
    if (good && !feature)
        take_defaults(n);
    if (good)
        return n;
    svi_free(n);
    return NULL;
}

char *mqtt_naming_filter(const char *template) {
    /* The template's length is enough: the shortest token, {x}, shrinks to one byte. + and # mean the same
     * to the broker and stay. */
    char *filter = mqtt_need(strlen(template) + 1, 1), *to = filter;
    for (const char *at = template; *at;) {
        size_t length = strcspn(at, "/");
        if (*at == '{')
            *to++ = '+';
        else
            to = mempcpy(to, at, length);
        at += length;
        if (*at)
            *to++ = *at++;
    }
    return filter;
}

/* The tokens point into `topic` and live only as long as the message does. */
bool mqtt_naming_match(const struct naming *n, const char *topic, struct topic_tokens *out) {
    const char *at = topic;
    int i = 0;
    out->topic = topic;
    if (n->any)
        return true;
    for (; i < n->levels && at; i++) {
        const struct level *l = &n->level[i];
        size_t length = strcspn(at, "/");
        if (l->kind == REST)
            return true;
        if (l->kind == WORD && !(l->length == length && memcmp(l->text, at, length) == 0))
            return false;
        out->token[i].text = at;
        out->token[i].length = length;
        at = at[length] ? at + length + 1 : NULL;
    }
    /* MQTT lets a/# match a itself, the parent: the topic may end right before the level REST. */
    return (i == n->levels && !at) || (i < n->levels && n->level[i].kind == REST);
}

struct text {
    char *to;
    size_t size, length;
};

/* The length grows even when nothing is copied. A text that is too long thus stays too long, nothing is
 * ever written past it, and one test at the end suffices. < leaves a byte for the NUL. */
static void mqtt_naming_append(struct text *t, const char *text, size_t length) {
    if (t->length + length < t->size)
        memcpy(t->to + t->length, text, length);
    t->length += length;
}

/* The pieces of a pattern one after another. `word`: what {key} is, in a feature; NULL: it is a key. */
static void mqtt_naming_put(struct text *text, const struct pattern *pattern, const struct topic_tokens *t,
                            const char *word, const struct members *members) {
    const char *topic = t->topic + (*t->topic == '/');
    /* add_member refuses {key} in a key and add_token makes members for keys only: neither pointer is NULL
     * where it is used. */
    for (int i = 0; i < pattern->pieces; i++) {
        const struct piece *p = &pattern->piece[i];
        size_t at = text->length;
        if (p->kind == TOPIC) {
            mqtt_naming_append(text, topic, strlen(topic));
            for (; word && at < text->length && at < text->size; at++)
                text->to[at] = text->to[at] == '/' ? '.' : text->to[at];
        } else if (p->kind == KEY)
            mqtt_naming_append(text, word, strlen(word));
        else if (p->kind == MEMBER)
            mqtt_naming_append(text, members->text[p->level], strlen(members->text[p->level]));
        else if (p->kind == TOKEN)
            mqtt_naming_append(text, t->token[p->level].text, t->token[p->level].length);
        else
            mqtt_naming_append(text, p->text, p->length);
    }
}

size_t mqtt_naming_feature(const struct naming *n, const struct topic_tokens *t, const char *key, char *out,
                           size_t size) {
    struct text text = {out, size, 0};
    mqtt_naming_put(&text, &n->feature, t, key ? key : "value", NULL);
    /* "value" is what {key} is for a plain number: both payloads of a topic give one name. */
    if (key && strcmp(key, "value") != 0 && !has_piece(&n->feature, KEY, 0)) {
        mqtt_naming_append(&text, ".", 1);
        mqtt_naming_append(&text, key, strlen(key));
    }
    if (text.length == 0 || text.length >= size)
        return 0;
    out[text.length] = '\0';
    return text.length;
}

const struct members *mqtt_naming_members(const struct naming *n) {
    return &n->members;
}

bool mqtt_naming_key(const struct naming *n, const struct topic_tokens *t,
                     const struct members *members, char *out, char *why, size_t size) {
    struct text text = {out, SVS_KEY_MAX + 1, 0};
    out[0] = '\0';
    /* An absent member must fail here: as empty text it would merge several devices into one key. */
    for (int i = 0; i < n->members.count; i++)
        if (!members->text[i][0]) {
            snprintf(
                why, size,
                "it has no key: {%s} of --key is neither a level of --template nor in the payload a whole "
                "number or a text of up to 64 bytes",
                n->members.text[i]);
            return false;
        }
    mqtt_naming_put(&text, &n->key, t, NULL, members);
    /* The length comes first: a longer text is not in `out` completely, and the UTF-8 test would read past
     * it. */
    const char *wrong = text.length > SVS_KEY_MAX           ? "is longer than 64 bytes"
                        : !svi_utf8_valid(out, text.length) ? "is not UTF-8"
                        : n->key.pieces > 0 && !text.length ? "is empty"
                                                            : NULL;
    /* The same for the topic: with other pieces around it, an empty level leaves a key that is not empty
     * but wrong. */
    for (int i = 0; i < n->levels && !wrong; i++)
        if (has_piece(&n->key, TOKEN, i) && t->token[i].length == 0)
            wrong = "would be made of an empty level of the topic";
    if (wrong)
        snprintf(why, size, "its key %s", wrong);
    else
        out[text.length] = '\0';
    return !wrong;
}
