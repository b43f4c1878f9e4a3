#include "payload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <jansson.h>

#include "say.h"

#define PLAIN_MAX 64   /* bytes of a plain number */
#define WHOLE_MAX 9e15 /* doubles hold every whole number up to here */
#define MILLI     1e11 /* a time stamp above it (year 5138) is in milliseconds */
#define MICRO     1e14 /* above it, in microseconds */
#define TIME_MAX  1e12 /* seconds */

struct reading {
    struct payload *p;
    const char *ts_key, *id_key;
    char key[NAME_BYTES + 1]; /* of the member being read */
    char *why;
    size_t size;
};

static bool fail(struct reading *r, const char *what, const char *text) {
    char safe[80];
    snprintf(r->why, r->size, "%s %s", what, shown(safe, sizeof safe, text, strlen(text)));
    return false;
}

/* What devices write besides numbers. */
static bool word_value(const char *text, struct field *f) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"true", 1}, {"on", 1}, {"false", 0}, {"off", 0}, {"nan", NAN}, {"null", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i].word) == 0) {
            f->value = words[i].value;
            f->missing = isnan(f->value);
            return true;
        }
    return false;
}

/* A number in text, as a whole. Hexadecimal and infinite ones are none. */
static bool text_value(const char *text, struct field *f) {
    char *end;
    text += strspn(text, " \t\r\n");
    size_t length = strspn(text, "+-.0123456789eE");
    if (length == 0 || text[length + strspn(text + length, " \t\r\n")])
        return word_value(text, f);
    f->value = strtod(text, &end);
    return end == text + length && isfinite(f->value);
}

static bool json_value(const json_t *v, struct field *f) {
    f->missing = json_is_null(v);
    f->value = json_is_true(v) ? 1 : 0;
    if (json_is_number(v))
        f->value = json_number_value(v);
    if (json_is_string(v))
        return text_value(json_string_value(v), f);
    return json_is_number(v) || json_is_boolean(v) || f->missing;
}

/* 2026-03-01T12:00:00.250Z, or with an offset like +01:00. Without either it is taken as UTC. */
static bool iso_time(const char *text, double *ts) {
    struct tm t = {0};
    char *end, sign;
    int hours = 0, minutes = 0;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
    if (!rest)
        rest = strptime(text, "%Y-%m-%d %H:%M:%S", &t);
    if (!rest)
        return false;
    double fraction = *rest == '.' ? strtod(rest, &end) : 0;
    rest = *rest == '.' ? end : rest;
    if (sscanf(rest, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
        fraction -= (sign == '-' ? -60 : 60) * (60 * hours + minutes);
    else if (*rest && strcmp(rest, "Z") != 0)
        return false;
    *ts = (double)timegm(&t) + fraction;
    return true;
}

static bool take_ts(struct reading *r, const json_t *v) {
    struct field f = {0};
    bool number = json_value(v, &f) && !f.missing;
    if (number)
        r->p->ts = f.value > MICRO ? f.value / 1e6 : f.value > MILLI ? f.value / 1e3 : f.value;
    if (number && fabs(r->p->ts) > TIME_MAX)
        return fail(r, "the time stamp is out of range in", r->key);
    if (!number && (!json_is_string(v) || !iso_time(json_string_value(v), &r->p->ts)))
        return fail(r, "no time stamp in", r->key);
    r->p->has_ts = true;
    return true;
}

static bool take_id(struct reading *r, const json_t *v) {
    struct sample_id *id = &r->p->id;
    double number = json_number_value(v);
    if (json_is_string(v) && json_string_length(v) <= NAME_BYTES) {
        id->kind = ID_TEXT;
        strcpy(id->text, json_string_value(v));
    } else if (json_is_number(v) && fabs(number) <= WHOLE_MAX && number == floor(number)) {
        id->kind = ID_NUMBER;
        id->number = (int64_t)number;
    } else {
        return fail(r, "no id (a whole number or a text of at most 64 bytes) in", r->key);
    }
    return true;
}

static bool is_key(const char *wanted, const char *key) {
    return wanted && strcmp(wanted, key) == 0;
}

static bool take_member(struct reading *r, const json_t *v) {
    struct payload *p = r->p;
    if (is_key(r->ts_key, r->key))
        return take_ts(r, v);
    if (is_key(r->id_key, r->key))
        return take_id(r, v);
    if (p->fields == FEATURES_MAX)
        return fail(r, "more than 1024 values; one too many is", r->key);
    struct field *f = &p->field[p->fields];
    if (json_value(v, f)) {
        strcpy(f->key, r->key);
        p->fields++;
    } else if (p->skipped++ == 0) {
        strcpy(p->skipped_key, r->key);
    }
    return true;
}

/* Each level makes the key longer by its dot at least, so the length of a key bounds the depth. */
static bool take_object(struct reading *r, json_t *object, size_t length) {
    const char *name;
    json_t *v;
    json_object_foreach(object, name, v) {
        size_t more = strlen(name), dot = length > 0;
        if (length + dot + more > NAME_BYTES)
            return fail(r, "longer than 64 bytes is the key", name);
        if (dot)
            r->key[length] = '.';
        strcpy(r->key + length + dot, name);
        bool nested = json_is_object(v) && length + dot + more > length;
        if (nested ? !take_object(r, v, length + dot + more) : !take_member(r, v))
            return false;
    }
    return true;
}

static bool take_plain(struct reading *r, const char *bytes, size_t length) {
    char text[PLAIN_MAX + 1];
    struct field *f = &r->p->field[0];
    if (length > PLAIN_MAX)
        return fail(r, "neither a number nor a JSON object, and long", "");
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (memchr(bytes, 0, length) || !text_value(text, f))
        return fail(r, "neither a number nor a JSON object:", text);
    r->p->fields = 1;
    return true;
}

/* A JSON string, number, truth value or null on its own; anything else is read as plain text. */
static bool take_document(struct reading *r, json_t *document) {
    r->p->object = json_is_object(document);
    if (json_is_object(document))
        return take_object(r, document, 0);
    r->p->fields = 1;
    if (!json_value(document, &r->p->field[0]))
        return fail(r, "a JSON array or text is neither a number nor an object", "");
    return true;
}

bool payload_read(struct payload *p, const void *bytes, size_t length, const char *ts_key, const char *id_key,
                  char *why, size_t size) {
    struct reading r = {.p = p, .ts_key = ts_key, .id_key = id_key, .why = why, .size = size};
    json_error_t trouble;
    p->fields = p->skipped = 0;
    p->object = p->has_ts = false;
    p->id.kind = ID_NONE;
    p->field[0] = (struct field){0};
    if (length == 0)
        return fail(&r, "it is empty", "");
    json_t *document = json_loadb(bytes, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &trouble);
    const char *text = bytes;
    size_t blank = 0;
    while (blank < length && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    bool object = blank < length && text[blank] == '{';
    bool good = document ? take_document(&r, document)
                : object ? fail(&r, "not JSON:", trouble.text)
                         : take_plain(&r, bytes, length);
    json_decref(document);
    if (good && p->fields == 0)
        return fail(&r, "there is no number in it", "");
    return good;
}
