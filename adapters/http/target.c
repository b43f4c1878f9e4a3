#include "target.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"

static int http_target_digit(char c) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes the terminated text in place: it can only become shorter. A NUL would hide what follows it. */
static const char *http_target_decode(char *text, bool plus) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at != '%') {
            *to++ = plus && *at == '+' ? ' ' : *at;
            continue;
        }
        const int high = http_target_digit(at[1]), low = high < 0 ? -1 : http_target_digit(at[2]);
        if (low < 0)
            return "it has a % without two hexadecimal digits";
        if (high == 0 && low == 0)
            return "it has an encoded NUL";
        *to++ = (char)(16 * high + low);
        at += 2;
    }
    *to = '\0';
    return svi_utf8_valid(text, (size_t)(to - text)) ? NULL : "it is not UTF-8";
}

/* Split before decoding: an encoded slash or ampersand belongs to its part. */
static const char *http_target_path(struct http_target *t, char *path) {
    const char *why = NULL;
    for (char *at = path + 1, *next; at && !why; at = next) {
        if (t->segments == HTTP_SEGMENT_LIMIT)
            return "its path has more than 8 parts";
        next = strchr(at, '/');
        if (next)
            *next++ = '\0';
        why = http_target_decode(at, false);
        t->segment[t->segments++] = at;
    }
    return why;
}

static const char *http_target_parameters(struct http_target *t, char *query) {
    for (char *rest = query, *part; (part = strsep(&rest, "&"));) {
        char *value = strchr(part, '=');
        const char *why = NULL;
        if (!*part)
            continue;
        if (t->queries == HTTP_QUERY_LIMIT)
            return "it has more than 32 query parameters";
        if (value)
            *value++ = '\0';
        if ((why = http_target_decode(part, true)) || (value && (why = http_target_decode(value, true))))
            return why;
        if (http_target_query(t, part))
            return "it names a query parameter twice";
        t->query[t->queries].name = part;
        t->query[t->queries++].value = value ? value : "";
    }
    return NULL;
}

/* The absolute form of a target, which a server must take as well: what stands before its path. */
static size_t http_target_scheme(const char *raw) {
    return strncasecmp(raw, "http://", 7) == 0 ? 7 : strncasecmp(raw, "https://", 8) == 0 ? 8 : 0;
}

const char *http_target_read(struct http_target *t, const char *raw) {
    const size_t length = strlen(raw), scheme = http_target_scheme(raw);
    *t = (struct http_target){0};
    if (length > HTTP_TARGET_MAX)
        return "it is longer than 8,192 bytes";
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)raw[i] <= ' ' || raw[i] == 0x7f)
            return "it has a control character or a space";
    /* Twice: the path as it was sent, and one to take apart. */
    t->text = svi_alloc_plain(2 * length + 4);
    if (!t->text)
        return "there is no memory for it";
    char *own = t->text + length + 2, *at = own;
    memcpy(own, raw, length + 1);
    if (scheme > 0) {
        /* An absolute target without a path means /: moved one back, there is a byte for the slash. */
        size_t host = strcspn(own + scheme, "/?#");
        memmove(own, own + scheme, host);
        const bool slash = own[scheme + host] == '/';
        t->authority = own;
        at = own + scheme + host - !slash;
        *at = '/';
        own[host] = '\0';
    }
    t->any = strcmp(at, "*") == 0;
    if (!t->any && *at != '/')
        return "it does not begin with a slash";
    if (strchr(at, '#'))
        return "it has a fragment (#)";
    char *query = strchr(at, '?');
    if (query)
        *query++ = '\0';
    t->path = strcpy(t->text, at);
    if (t->any)
        return NULL;
    const char *why = http_target_path(t, at);
    return why || !query ? why : http_target_parameters(t, query);
}

void http_target_clear(struct http_target *t) {
    svi_free(t->text);
    *t = (struct http_target){0};
}

const char *http_target_query(const struct http_target *t, const char *name) {
    for (int i = 0; i < t->queries; i++)
        if (strcmp(t->query[i].name, name) == 0)
            return t->query[i].value;
    return NULL;
}
