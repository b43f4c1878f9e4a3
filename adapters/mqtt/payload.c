/* An MQTT payload: plain text, or JSON that is read where it stands (data/json_in.h).
 *
 * What begins like an object must be one; anything else is read as JSON first ("21.5", true, null) and as
 * plain text after that (on, +7). An object is walked member by member, nested ones with a longer key, so the
 * length of a key bounds the depth. Of members of one name the last one counts, in the place of the first, as
 * in any JSON reader that builds a tree: mqtt_payload_members finds them before any is taken. */
#include "payload.h"

#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"
#include "data/json_in.h"
#include "data/number.h"
#include "log.h"

#define DEPTH_MAX 2048 /* of JSON: arrays, which are passed over */
#define TEXT_MAX  256  /* bytes of a text that may mean a number or a time */
#define PLAIN_MAX 64   /* bytes of a plain number */
#define MILLI     1e11 /* a time stamp above it (year 5138) is in milliseconds */
#define MICRO     1e14 /* above it, in microseconds */
#define TIME_MAX  1e12 /* seconds */

struct reading {
    struct payload *p;
    const struct payload_names *names;
    char key[NAME_BYTES + 1]; /* of the member being read */
    char *why;
    size_t size;
};

struct member {
    char key[NAME_BYTES + 1];
    const char *value;
};

/* Fails with a reason that a person sees in the log; text from outside is escaped. */
static bool mqtt_payload_fail(struct reading *r, const char *what, const char *text) {
    char safe[80];
    snprintf(r->why, r->size, "%s%s%s", what, *text ? " " : "",
             svi_escape(safe, sizeof safe, text, strlen(text)));
    return false;
}

/* What devices write besides numbers. Infinities are no value that a model could use: like null they count as
 * missing. */
static bool word_value(const char *text, struct field *f) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"true", 1},   {"on", 1},    {"false", 0},  {"off", 0},        {"nan", NAN},
                 {"null", NAN}, {"inf", NAN}, {"-inf", NAN}, {"infinity", NAN}, {"-infinity", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i].word) == 0) {
            f->value = words[i].value;
            return true;
        }
    return false;
}

/* A number in text, as a whole: spaces around it are allowed. Hexadecimal ones, which strtod would take, are
 * not numbers. */
static bool mqtt_payload_text_value(const char *text, struct field *f) {
    char *end;
    text += strspn(text, " \t\r\n");
    size_t length = strspn(text, "+-.0123456789eE");
    if (length == 0 || text[length + strspn(text + length, " \t\r\n")])
        return word_value(text, f);
    f->value = strtod(text, &end);
    return end == text + length;
}

/* Puts the string at `value` into `out` (size bytes); svi_json_unescape may have left it in the source.
 * False: it is not a string, or does not fit. */
static bool mqtt_payload_string(const char *value, char *out, size_t size) {
    struct svi_span raw, text;
    if (svi_json_type(value) != SVI_JSON_STRING)
        return false;
    svi_json_string_at(value, &raw);
    if (!svi_json_unescape(raw, out, size - 1, &text))
        return false;
    memmove(out, text.at, (size_t)(text.end - text.at));
    out[text.end - text.at] = '\0';
    return true;
}

/* A number, truth value, null, or text that means one of these, whatever its size. Text such as "21.5" is
 * what many devices write. */
static bool mqtt_payload_json_raw(const char *value, struct field *f) {
    const enum svi_json_type type = svi_json_type(value);
    char text[TEXT_MAX];
    f->value = type == SVI_JSON_NULL || type == SVI_JSON_NOT_FINITE ? NAN : type == SVI_JSON_TRUE;
    if (type == SVI_JSON_NUMBER)
        svi_number(value, &f->value);
    if (mqtt_payload_string(value, text, sizeof text))
        return mqtt_payload_text_value(text, f);
    return type <= SVI_JSON_NOT_FINITE;
}

/* What the engine could not compute with is no value: it would refuse the samples that hold it. */
static bool mqtt_payload_classify(bool good, struct field *f) {
    f->missing = !(fabs(f->value) <= SVI_VALUE_ANY_SCALE);
    return good;
}

static bool mqtt_payload_json_value(const char *value, struct field *f) {
    return mqtt_payload_classify(mqtt_payload_json_raw(value, f), f);
}

/* 2026-03-01T12:00:00.250Z, or with an offset like +01:00. Without either it is taken as UTC. */
/* strptime knows neither fractions nor offsets: these are read by hand. An offset is subtracted, as it says
 * how far local time is ahead of UTC. */
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

/* Milliseconds and microseconds differ by size: seconds of that size lie beyond the year 5138. */
static bool mqtt_payload_take_ts(struct reading *r, const char *value) {
    struct field f = {0};
    char text[TEXT_MAX];
    bool number = mqtt_payload_json_value(value, &f) && !f.missing;
    if (number)
        r->p->ts = f.value > MICRO ? f.value / 1e6 : f.value > MILLI ? f.value / 1e3 : f.value;
    if (number && fabs(r->p->ts) > TIME_MAX)
        return mqtt_payload_fail(r, "the time stamp is out of range in", r->key);
    if (!number && !(mqtt_payload_string(value, text, sizeof text) && iso_time(text, &r->p->ts)))
        return mqtt_payload_fail(r, "no time stamp in", r->key);
    r->p->has_ts = true;
    return true;
}

/* Whole numbers up to 2^53 in size are exact; larger ones could meet another id. */
static bool mqtt_payload_take_id(struct reading *r, const char *value) {
    struct sample_id *id = &r->p->id;
    double number = NAN;
    if (svi_json_type(value) == SVI_JSON_NUMBER)
        svi_number(value, &number);
    if (mqtt_payload_string(value, id->text, sizeof id->text) && id->text[0])
        id->value = svs_str(id->text);
    else if (fabs(number) <= SVI_EXACT_MAX && number == floor(number))
        id->value = svs_int((int64_t)number);
    else
        return mqtt_payload_fail(r, "no id (a whole number or a text of 1 to 64 bytes) in", r->key);
    return true;
}

/* A member that makes the key of the sample. False: it does not. */
static bool mqtt_payload_take_text(struct reading *r, const char *value) {
    bool found = false;
    double number = NAN;
    for (int i = 0; i < r->names->members->count; i++) {
        char *text = r->p->key_members.text[i];
        if (strcmp(r->names->members->text[i], r->key) != 0)
            continue;
        found = true;
        if (svi_json_type(value) == SVI_JSON_NUMBER)
            svi_number(value, &number);
        if (fabs(number) <= SVI_EXACT_MAX && number == floor(number))
            snprintf(text, NAME_BYTES + 1, "%.0f", number + 0); /* no -0 */
        else if (!mqtt_payload_string(value, text, NAME_BYTES + 1))
            text[0] = '\0';
    }
    return found;
}

/* One member: the time, the id, a part of the key, or a value. A value that is no number is skipped, not
 * refused, as devices mix texts among their numbers. */
static bool mqtt_payload_take_member(struct reading *r, const char *value) {
    struct payload *p = r->p;
    const struct payload_names *names = r->names;
    const bool named = mqtt_payload_take_text(r, value); /* it may be the time or the id, too */
    if (names->ts && strcmp(names->ts, r->key) == 0)
        return mqtt_payload_take_ts(r, value);
    if (names->id && strcmp(names->id, r->key) == 0)
        return mqtt_payload_take_id(r, value);
    if (named)
        return true;
    if (p->fields == FEATURES_MAX)
        return mqtt_payload_fail(r, "more than 1024 values, of which the first one too many is", r->key);
    struct field *f = &p->field[p->fields];
    if (mqtt_payload_json_value(value, f)) {
        strcpy(f->key, r->key);
        p->fields++;
    } else if (p->skipped++ == 0) {
        strcpy(p->skipped_key, r->key);
    }
    return true;
}

static int mqtt_payload_order(const void *a, const void *b) {
    return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static void mqtt_payload_forget(void *member) {
    (void)member; /* the tree does not own it */
}

/* The members of an object (owner: the caller), each name once: of members of one name the last value
 * counts, in the place of the first. NULL: a key is too long. */
static struct member *mqtt_payload_members(struct reading *r, const char *object, size_t *count) {
    struct svi_span raw;
    char key[80];
    size_t capacity = 1;
    void *tree = NULL;
    bool good = true;
    /* Counted first, as the tree holds pointers into the array, which must not move. */
    for (const char *p = svi_json_first(object); p; p = svi_json_next(svi_json_skip(svi_json_key(p, &raw))))
        capacity++;
    struct member *members = mqtt_need(capacity, sizeof *members);
    *count = 0;
    for (const char *p = svi_json_first(object); p && good;) {
        struct member *m = &members[*count];
        m->value = svi_json_key(p, &raw);
        good = mqtt_payload_string(p, m->key, sizeof m->key);
        if (!good) {
            snprintf(key, sizeof key, "%.*s", (int)(raw.end - raw.at < 79 ? raw.end - raw.at : 79), raw.at);
            mqtt_payload_fail(r, "a key is longer than 64 bytes:", key);
        }
        p = svi_json_next(svi_json_skip(m->value));
        /* A name that is known already only gives its value to the first one; m is filled again by the next
         * member. */
        struct member **known = good ? tsearch(m, &tree, mqtt_payload_order) : NULL;
        if (good && !known)
            mqtt_no_memory(sizeof *m);
        if (known && *known != m)
            (*known)->value = m->value;
        else
            ++*count;
    }
    tdestroy(tree, mqtt_payload_forget);
    if (!good)
        svi_free(members);
    return good ? members : NULL;
}

/* r->key is the path so far, of `length` bytes; a nested object continues it behind a dot. The length of a
 * key bounds the depth, for each level takes a byte at least. */
static bool mqtt_payload_take_object(struct reading *r, const char *object, size_t length) {
    size_t count;
    struct member *members = mqtt_payload_members(r, object, &count);
    bool good = members;
    for (size_t i = 0; i < count && good; i++) {
        const struct member *m = &members[i];
        const size_t more = strlen(m->key), dot = length > 0;
        if (length + dot + more > NAME_BYTES) {
            good = mqtt_payload_fail(r, "a key is longer than 64 bytes:", m->key);
            continue;
        }
        if (dot)
            r->key[length] = '.';
        strcpy(r->key + length + dot, m->key);
        bool nested = svi_json_type(m->value) == SVI_JSON_OBJECT && dot + more > 0;
        good = nested ? mqtt_payload_take_object(r, m->value, length + dot + more)
                      : mqtt_payload_take_member(r, m->value);
    }
    svi_free(members);
    return good;
}

/* Takes an object, or a JSON string, number, truth value or null on its own; anything else is read as plain
 * text. JSON first, so that "21.5" in quotes is a number. `text` ends in a NUL, after which number.h's bytes
 * can be read. */
static bool mqtt_payload_take(struct reading *r, const char *text, size_t length) {
    const char *start = text + strspn(text, " \t\r\n");
    svs_error err;
    svs_code code = svi_json_check_value((struct svi_span){text, text + length}, DEPTH_MAX, &err);
    if (code == SVS_OK && !svi_utf8_valid(text, length))
        code = svi_fail(&err, SVS_NOT_MSGPACK, "not JSON: not valid UTF-8");
    r->p->object = code == SVS_OK && *start == '{';
    if (r->p->object)
        return mqtt_payload_take_object(r, start, 0);
    r->p->fields = 1;
    if (code == SVS_OK)
        return mqtt_payload_json_value(start, &r->p->field[0]) ||
               mqtt_payload_fail(r, "a JSON array or text is neither a number nor an object", "");
    /* What begins like an object but is not one is reported as such: "not a number" would mislead. */
    if (*start == '{')
        return mqtt_payload_fail(r, err.text, "");
    if (length > PLAIN_MAX)
        return mqtt_payload_fail(r, "neither a number nor a JSON object, and long", "");
    if (strlen(text) < length ||
        !mqtt_payload_classify(mqtt_payload_text_value(text, &r->p->field[0]), &r->p->field[0]))
        return mqtt_payload_fail(r, "neither a number nor a JSON object:", text);
    return true;
}

bool mqtt_payload_read(struct payload *p, const void *bytes, size_t length, const struct payload_names *names,
                       char *why, size_t size) {
    struct reading r = {.p = p, .names = names, .why = why, .size = size};
    p->fields = p->skipped = 0;
    p->object = p->has_ts = false;
    p->id.value = svs_none();
    p->field[0] = (struct field){0};
    for (int i = 0; i < MEMBERS_MAX; i++)
        p->key_members.text[i][0] = '\0';
    if (length == 0)
        return mqtt_payload_fail(&r, "it is empty", "");
    char *text = mqtt_need(length + 1 + SVI_NUMBER_PAD, 1);
    memcpy(text, bytes, length);
    bool good = mqtt_payload_take(&r, text, length);
    svi_free(text);
    if (good && p->fields == 0)
        return mqtt_payload_fail(&r, "there is no number in it", "");
    return good;
}
