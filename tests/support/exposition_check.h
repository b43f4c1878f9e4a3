/* exposition_check.h: a strict reader of Prometheus' text format and of OpenMetrics, for tests.
 * Every line must have the form of its format. A family must not be interrupted, and has one TYPE
 * and one HELP. No two samples may have the same name and labels. */
#ifndef TEST_SUPPORT_EXPOSITION_CHECK_H
#define TEST_SUPPORT_EXPOSITION_CHECK_H

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define CHECK_NAME 128

struct exposition_check {
    bool openmetrics;
    char family[CHECK_NAME], type[16]; /* the present one */
    bool help, sampled;                /* it has had a HELP; a sample */
    char **seen;                       /* names of finished families, and all series */
    size_t seen_count, seen_capacity;
    int samples, families;
    char why[200];
};

static inline bool check_fail(struct exposition_check *c, const char *what, const char *line) {
    snprintf(c->why, sizeof c->why, "%s: %.120s", what, line);
    return false;
}

static inline int check_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keeps a name; two equal ones are found at the end. */
static inline void check_keep(struct exposition_check *c, char mark, const char *text, size_t length) {
    if (c->seen_count == c->seen_capacity) {
        c->seen_capacity = 2 * c->seen_capacity + 64;
        c->seen = realloc(c->seen, c->seen_capacity * sizeof *c->seen);
    }
    char *copy = malloc(length + 2);
    copy[0] = mark;
    memcpy(copy + 1, text, length);
    copy[length + 1] = '\0';
    c->seen[c->seen_count++] = copy;
}

static inline size_t check_name(const char *p, bool colon) {
    size_t n = 0;
    while (isalpha((unsigned char)p[n]) || p[n] == '_' || (colon && p[n] == ':') ||
           (n > 0 && isdigit((unsigned char)p[n])))
        n++;
    return n;
}

/* {name="value",...}; returns the address behind it, NULL: malformed. */
static inline const char *check_labels(const char *p) {
    for (p++; *p != '}';) {
        size_t n = check_name(p, false);
        if (n == 0 || p[n] != '=' || p[n + 1] != '"')
            return NULL;
        for (p += n + 2; *p != '"'; p++) {
            if (!*p || (unsigned char)*p < 32 || *p == 127)
                return NULL;
            if (*p == '\\' && *++p != '\\' && *p != '"' && *p != 'n')
                return NULL;
        }
        p++;
        if (*p == ',' && p[1] != '}')
            p++;
        else if (*p != '}')
            return NULL;
    }
    return p + 1;
}

static inline bool check_suffix(const struct exposition_check *c, const char *suffix) {
    const bool open = c->openmetrics;
    if (strcmp(c->type, "histogram") == 0)
        return !strcmp(suffix, "_bucket") || !strcmp(suffix, "_sum") || !strcmp(suffix, "_count");
    if (strcmp(c->type, "counter") == 0)
        return strcmp(suffix, open ? "_total" : "") == 0;
    if (strcmp(c->type, "info") == 0)
        return strcmp(suffix, "_info") == 0;
    return suffix[0] == '\0';
}

static inline bool check_sample(struct exposition_check *c, const char *line) {
    char name[CHECK_NAME], *end;
    const size_t n = check_name(line, true), base = strlen(c->family);
    if (n == 0 || n >= sizeof name || base == 0)
        return check_fail(c, "no name", line);
    memcpy(name, line, n);
    name[n] = '\0';
    if (n < base || memcmp(name, c->family, base) != 0 || !check_suffix(c, name + base))
        return check_fail(c, "not of this family", line);
    if (!c->help)
        return check_fail(c, "no HELP", line);
    const char *p = line[n] == '{' ? check_labels(line + n) : line + n;
    if (!p || *p != ' ')
        return check_fail(c, "labels", line);
    check_keep(c, '=', line, (size_t)(p - line));
    const double value = strtod(p + 1, &end);
    if (end == p + 1 || *end || isspace((unsigned char)p[1]) || p[1] == 'x')
        return check_fail(c, "value", line);
    if (!strcmp(c->type, "counter") && !(value >= 0))
        return check_fail(c, "counter below 0", line);
    c->sampled = true;
    c->samples++;
    return true;
}

static inline bool check_begin_family(struct exposition_check *c, const char *name, size_t n) {
    if (strlen(c->family) == n && memcmp(c->family, name, n) == 0)
        return !c->sampled;
    if (n == 0 || n >= CHECK_NAME)
        return false;
    memcpy(c->family, name, n);
    c->family[n] = '\0';
    c->type[0] = '\0';
    c->help = c->sampled = false;
    c->families++;
    check_keep(c, '#', name, n);
    return true;
}

static inline bool check_comment(struct exposition_check *c, const char *line) {
    char what[8];
    int at = 0;
    if (sscanf(line, "# %7[A-Z] %n", what, &at) != 1 || at == 0)
        return check_fail(c, "comment", line);
    const char *name = line + at;
    const size_t n = check_name(name, true);
    if (name[n] != ' ' || !check_begin_family(c, name, n))
        return check_fail(c, "family", line);
    const char *rest = name + n + 1;
    if (strcmp(what, "HELP") == 0) {
        if (c->help || strpbrk(rest, "\\\"") || !*rest)
            return check_fail(c, "help", line);
        c->help = true;
        return true;
    }
    if (strcmp(what, "UNIT") == 0)
        return (c->openmetrics && n > strlen(rest) && strcmp(name + n - strlen(rest), rest) != 0 &&
                memcmp(name + n - strlen(rest), rest, strlen(rest)) == 0) ||
               check_fail(c, "unit", line);
    const bool known = !strcmp(rest, "gauge") || !strcmp(rest, "counter") || !strcmp(rest, "histogram") ||
                       (c->openmetrics && !strcmp(rest, "info"));
    if (strcmp(what, "TYPE") != 0 || c->type[0] || !known)
        return check_fail(c, "type", line);
    strcpy(c->type, rest);
    return true;
}

/* True: the text is valid. False: why has the reason. */
static inline bool exposition_check(struct exposition_check *c, bool openmetrics, const char *text,
                                    size_t size) {
    bool good = true, ended = false;
    *c = (struct exposition_check){.openmetrics = openmetrics};
    char *copy = malloc(size + 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    if (!svi_utf8_valid(text, size) || strlen(copy) != size || (size > 0 && text[size - 1] != '\n'))
        good = check_fail(c, "bytes", "");
    for (char *line = copy, *next; good && *line; line = next) {
        char *lf = strchr(line, '\n');
        *lf = '\0';
        next = lf + 1;
        if (ended)
            good = check_fail(c, "behind the end", line);
        else if (openmetrics && strcmp(line, "# EOF") == 0)
            ended = true;
        else
            good = line[0] == '#' ? check_comment(c, line) : check_sample(c, line);
    }
    if (good && ended != openmetrics)
        good = check_fail(c, "the end", "");
    qsort(c->seen, c->seen_count, sizeof *c->seen, check_order);
    for (size_t i = 1; i < c->seen_count; i++)
        if (good && strcmp(c->seen[i - 1], c->seen[i]) == 0)
            good = check_fail(c, "twice", c->seen[i]);
    for (size_t i = 0; i < c->seen_count; i++)
        free(c->seen[i]);
    free(c->seen);
    free(copy);
    return good;
}

#endif
