/* Topics to feature names: see naming.h for what templates and patterns mean.
 *
 * Both are cut once: a template into levels (add_level), each a word, a token, any level or the rest; a
 * pattern into pieces (add_piece), each text, a token by its level, the topic or the key. Then
 * mqtt_naming_match lays a topic over the levels and notes where each begins, and mqtt_naming_feature puts
 * the pieces together. The texts of template and pattern stay where the command line has them. */
#include "naming.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "log.h"

/* A piece of a pattern: text as it is, or a token. */
struct piece {
    enum { TEXT, TOKEN, TOPIC, KEY } kind;
    const char *text;
    size_t length;
    int level;
};

struct naming {
    bool any; /* no template: every topic fits */
    struct level {
        enum { WORD, NAMED, ANY, REST } kind;
        const char *text; /* of the word, or the token's name */
        size_t length;
    } level[LEVELS_MAX];
    int levels;
    struct piece piece[2 * LEVELS_MAX + 1];
    int pieces;
    bool has_key;
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
    return n > 0 && strspn(text, letters) >= n;
}

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

static void add_piece(struct naming *n, struct piece p) {
    n->piece[n->pieces++] = p;
    n->has_key = n->has_key || p.kind == KEY;
}

/* The token between braces. */
static bool add_token(struct naming *n, const char *text, size_t length, char *why, size_t size) {
    int level = 0;
    while (level < n->levels && !(n->level[level].kind == NAMED && n->level[level].length == length &&
                                  memcmp(n->level[level].text, text, length) == 0))
        level++;
    if (level < n->levels)
        add_piece(n, (struct piece){TOKEN, NULL, 0, level});
    else if (mqtt_naming_same(text, length, "topic") || mqtt_naming_same(text, length, "key"))
        add_piece(n, (struct piece){text[0] == 't' ? TOPIC : KEY, NULL, 0, 0});
    else
        return mqtt_naming_fail(
            why, size, "--feature names a token that is neither {key}, {topic} nor in the template", text);
    return true;
}

static bool read_pattern(struct naming *n, const char *pattern, char *why, size_t size) {
    for (const char *at = pattern; *at;) {
        size_t plain = strcspn(at, "{"), token = strcspn(at + plain, "}");
        if (n->pieces + 2 > 2 * LEVELS_MAX)
            return mqtt_naming_fail(why, size, "--feature has too many tokens", pattern);
        if (plain)
            add_piece(n, (struct piece){TEXT, at, plain, 0});
        at += plain;
        if (*at && !at[token])
            return mqtt_naming_fail(why, size, "--feature has a { without }", pattern);
        if (*at && !add_token(n, at + 1, token - 1, why, size))
            return false;
        at += *at ? token + 1 : 0;
    }
    return true;
}

struct naming *mqtt_naming_new(const char *template, const char *pattern, char *why, size_t size) {
    struct naming *n = mqtt_need(1, sizeof *n);
    bool good = true;
    n->any = !template;
    for (const char *at = template; at && good;) {
        size_t length = strcspn(at, "/");
        bool last = !at[length];
        good = add_level(n, at, length, last, why, size);
        at = last ? NULL : at + length + 1;
    }
    if (!good || (pattern && !read_pattern(n, pattern, why, size))) {
        svi_free(n);
        return NULL;
    }
    for (int i = 0; !pattern && i < n->levels; i++) { /* all tokens of the template */
        if (n->level[i].kind != NAMED)
            continue;
        if (n->pieces)
            add_piece(n, (struct piece){TEXT, ".", 1, 0});
        add_piece(n, (struct piece){TOKEN, NULL, 0, i});
    }
    if (!pattern && n->pieces == 0)
        add_piece(n, (struct piece){TOPIC, NULL, 0, 0});
    return n;
}

char *mqtt_naming_filter(const char *template) {
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
    return (i == n->levels && !at) || (i < n->levels && n->level[i].kind == REST);
}

struct text {
    char *to;
    size_t size, length;
};

static void mqtt_naming_append(struct text *t, const char *text, size_t length) {
    if (t->length + length < t->size)
        memcpy(t->to + t->length, text, length);
    t->length += length;
}

size_t mqtt_naming_feature(const struct naming *n, const struct topic_tokens *t, const char *key, char *out,
                           size_t size) {
    struct text text = {out, size, 0};
    const char *word = key ? key : "value", *topic = t->topic + (*t->topic == '/');
    for (int i = 0; i < n->pieces; i++) {
        const struct piece *p = &n->piece[i];
        size_t at = text.length;
        if (p->kind == TOPIC) {
            mqtt_naming_append(&text, topic, strlen(topic));
            for (; at < text.length && at < size; at++)
                out[at] = out[at] == '/' ? '.' : out[at];
        } else if (p->kind == KEY)
            mqtt_naming_append(&text, word, strlen(word));
        else if (p->kind == TOKEN)
            mqtt_naming_append(&text, t->token[p->level].text, t->token[p->level].length);
        else
            mqtt_naming_append(&text, p->text, p->length);
    }
    if (key && !n->has_key) {
        mqtt_naming_append(&text, ".", 1);
        mqtt_naming_append(&text, key, strlen(key));
    }
    if (text.length == 0 || text.length >= size)
        return 0;
    out[text.length] = '\0';
    return text.length;
}
