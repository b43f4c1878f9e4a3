#include "naming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

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

static bool same(const char *a, size_t n, const char *b) {
    return strlen(b) == n && memcmp(a, b, n) == 0;
}

static bool fail(char *why, size_t size, const char *what, const char *text) {
    snprintf(why, size, "%s: %.150s", what, text);
    return false;
}

static bool is_token_name(const char *text, size_t n) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return n > 0 && strspn(text, letters) >= n;
}

static bool add_level(struct naming *n, const char *text, size_t length, bool last, char *why, size_t size) {
    if (n->levels == LEVELS_MAX)
        return fail(why, size, "--template has more than 32 levels", text);
    struct level *l = &n->level[n->levels++];
    *l = (struct level){WORD, text, length};
    bool braces = memchr(text, '{', length) || memchr(text, '}', length);
    if (same(text, length, "+"))
        l->kind = ANY;
    else if (same(text, length, "#") && last)
        l->kind = REST;
    else if (memchr(text, '+', length) || memchr(text, '#', length))
        return fail(why, size, "--template: + stands for a whole level, # at the end for all further ones",
                    text);
    else if (braces && (text[0] != '{' || text[length - 1] != '}' || !is_token_name(text + 1, length - 2)))
        return fail(why, size, "--template: a token is a whole level in braces, {name}", text);
    else if (braces)
        *l = (struct level){NAMED, text + 1, length - 2};
    return true;
}

static bool read_template(struct naming *n, const char *template, char *why, size_t size) {
    n->any = !template;
    for (const char *at = template; at;) {
        size_t length = strcspn(at, "/");
        bool last = !at[length];
        if (!add_level(n, at, length, last, why, size))
            return false;
        at = last ? NULL : at + length + 1;
    }
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
    else if (same(text, length, "topic") || same(text, length, "key"))
        add_piece(n, (struct piece){text[0] == 't' ? TOPIC : KEY, NULL, 0, 0});
    else
        return fail(why, size, "--feature names a token that is neither {key}, {topic} nor in the template",
                    text);
    return true;
}

static bool read_pattern(struct naming *n, const char *pattern, char *why, size_t size) {
    for (const char *at = pattern; *at;) {
        size_t plain = strcspn(at, "{"), token = strcspn(at + plain, "}");
        if (n->pieces + 2 > 2 * LEVELS_MAX)
            return fail(why, size, "--feature has too many tokens", pattern);
        if (plain)
            add_piece(n, (struct piece){TEXT, at, plain, 0});
        at += plain;
        if (*at && !at[token])
            return fail(why, size, "--feature has a { without }", pattern);
        if (*at && !add_token(n, at + 1, token - 1, why, size))
            return false;
        at += *at ? token + 1 : 0;
    }
    return true;
}

/* Without a pattern: the template's tokens, else the topic. */
static void default_pattern(struct naming *n) {
    for (int i = 0; i < n->levels; i++) {
        if (n->level[i].kind != NAMED)
            continue;
        if (n->pieces)
            add_piece(n, (struct piece){TEXT, ".", 1, 0});
        add_piece(n, (struct piece){TOKEN, NULL, 0, i});
    }
    if (n->pieces == 0)
        add_piece(n, (struct piece){TOPIC, NULL, 0, 0});
}

struct naming *naming_new(const char *template, const char *pattern, char *why, size_t size) {
    struct naming *n = need(1, sizeof *n);
    bool good = read_template(n, template, why, size);
    if (good && pattern)
        good = read_pattern(n, pattern, why, size);
    else if (good)
        default_pattern(n);
    if (good)
        return n;
    naming_free(n);
    return NULL;
}

void naming_free(struct naming *n) {
    free(n);
}

char *naming_filter(const char *template) {
    char *filter = need(strlen(template) + 1, 1), *to = filter;
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

bool naming_match(const struct naming *n, const char *topic, struct topic_tokens *out) {
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

static void append(struct text *t, const char *text, size_t length) {
    if (t->length + length < t->size)
        memcpy(t->to + t->length, text, length);
    t->length += length;
}

static void append_topic(struct text *t, const char *topic) {
    size_t from = t->length;
    topic += *topic == '/';
    append(t, topic, strlen(topic));
    for (size_t i = from; i < t->length && i < t->size; i++)
        if (t->to[i] == '/')
            t->to[i] = '.';
}

size_t naming_feature(const struct naming *n, const struct topic_tokens *t, const char *key, char *out,
                      size_t size) {
    struct text text = {out, size, 0};
    const char *word = key ? key : "value";
    for (int i = 0; i < n->pieces; i++) {
        const struct piece *p = &n->piece[i];
        if (p->kind == TOPIC)
            append_topic(&text, t->topic);
        else if (p->kind == KEY)
            append(&text, word, strlen(word));
        else if (p->kind == TOKEN)
            append(&text, t->token[p->level].text, t->token[p->level].length);
        else
            append(&text, p->text, p->length);
    }
    if (key && !n->has_key) {
        append(&text, ".", 1);
        append(&text, key, strlen(key));
    }
    if (text.length == 0 || text.length >= size)
        return 0;
    out[text.length] = '\0';
    return text.length;
}
