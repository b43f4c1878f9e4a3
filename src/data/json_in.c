/* JSON read in place, in two steps.
 *
 * svi_json_check_value goes over arbitrary text once, by recursion on values (bounded by `depth`), and
 * refuses whatever is not JSON, with the byte and what was expected there. All other functions rely on it: a
 * checked text has every quote, bracket and separator, so they scan for the next one without comparing with
 * an end.
 *
 * Strings stay escaped in the line; svi_json_unescape writes the few that have escapes to the caller's
 * memory. Checking also admits no NUL in strings and no unpaired surrogate, so unescaping cannot fail except
 * for space.
 *
 * Order: checking, types, walking, unescaping. */
#include "data/json_in.h"

#include <string.h>

#include "base/fail.h"

/* Text that is being checked: `at` is the next byte. */
struct check {
    const char *start, *at, *end;
    int depth_max;
    svs_error *err;
};

static bool json_in_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *skip_space(const char *p) {
    while (json_in_is_space(*p))
        p++;
    return p;
}

static inline bool at_end(struct check *c) {
    const char *p = c->at;
    while (p < c->end && *p <= ' ' && json_in_is_space(*p)) /* most bytes fail the first comparison */
        p++;
    c->at = p;
    return p >= c->end;
}

static svs_code json_in_refuse(const struct check *c, const char *what) {
    size_t at = (size_t)(c->at - c->start) + 1;
    if (c->at >= c->end)
        return svi_fail(c->err, SVS_TRUNCATED, "the JSON text ends too early, after %zu bytes: %s expected",
                        at - 1, what);
    char text[24];
    size_t left = (size_t)(c->end - c->at);
    svi_escape(text, sizeof text, c->at, left < 12 ? left : 12);
    return svi_fail(c->err, SVS_NOT_MSGPACK, "not JSON: %s expected at byte %zu instead of \"%s\"", what, at,
                    text);
}

static bool json_in_is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Four hexadecimal digits; -1 when one is not. The byte at the end of the text is not a digit, so the scan
 * stops there. */
static int32_t hex_four(const char *p) {
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char letter = p[i] | 0x20;
        const bool digit = json_in_is_digit(p[i]);
        if (!digit && (letter < 'a' || letter > 'f'))
            return -1;
        v = v << 4 | (digit ? p[i] - '0' : letter - 'a' + 10);
    }
    return v;
}

enum { HIGH = 0xd800 >> 10, LOW = 0xdc00 >> 10 }; /* surrogates: the bits above the lower ten */

/* The character of a backslash-u escape whose digits begin at `p`. A pair of surrogates is one character.
 * Returns the number of bytes from `p` on (4 or 10), 0 when malformed. */
static int json_in_unicode(const char *p, uint32_t *character) {
    int32_t first = hex_four(p), second = 0;
    /* NUL is refused, because names and labels end up in C strings; so is the second half of a pair on its
     * own. */
    if (first <= 0 || first >> 10 == LOW)
        return 0;
    *character = (uint32_t)first;
    if (first >> 10 != HIGH)
        return 4;
    if (p[4] != '\\' || p[5] != 'u' || (second = hex_four(p + 6)) >> 10 != LOW)
        return 0;
    *character = 0x10000 + ((uint32_t)(first - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
    return 10;
}

/* An escape, of which the backslash was seen. */
static svs_code check_escape(struct check *c) {
    uint32_t character;
    c->at++;
    /* \u has digits, all others are one letter. */
    if (c->at < c->end && *c->at == 'u') {
        int length = json_in_unicode(c->at + 1, &character);
        if (length == 0)
            return json_in_refuse(c, "a character other than NUL in four hexadecimal digits");
        c->at += 1 + length;
        return SVS_OK;
    }
    if (c->at >= c->end || *c->at == '\0' || !strchr("\"\\/bfnrt", *c->at))
        return json_in_refuse(c, "an escape");
    c->at++;
    return SVS_OK;
}

/* Skips characters that need no escape. */
static const char *past_plain(const char *p, const char *end) {
    while (p < end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* A string: runs of plain characters, escapes between them, and its closing quote. */
static svs_code check_string(struct check *c) {
    if (at_end(c) || *c->at != '"')
        return json_in_refuse(c, "a string");
    c->at++;
    for (;;) {
        c->at = past_plain(c->at, c->end);
        if (c->at >= c->end || *c->at == '"')
            break;
        /* past_plain stops at quotes, backslashes and control characters. */
        if (*c->at != '\\')
            return json_in_refuse(c, "a character that is no control character");
        svs_code code = check_escape(c);
        if (code != SVS_OK)
            return code;
    }
    if (c->at >= c->end)
        return json_in_refuse(c, "a closing quote");
    c->at++;
    return SVS_OK;
}

static bool json_in_take_word(struct check *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static const char *past_digits(const char *p) {
    while (json_in_is_digit(*p))
        p++;
    return p;
}

/* Checks the form of a number alone. svi_number reads it later and would also take a leading plus, leading
 * zeros and a bare point, which JSON forbids. No end is compared: the byte after the line cannot be part of a
 * number. */
static svs_code check_number(struct check *c) {
    const char *first = c->at + (*c->at == '-'), *p = past_digits(first);
    /* No digits, or a leading zero: only -Infinity is left. */
    if (p == first || (*first == '0' && p > first + 1))
        return json_in_take_word(c, "-Infinity") ? SVS_OK : json_in_refuse(c, "a value");
    if (*p == '.' && !json_in_is_digit(p[1]))
        return json_in_refuse(c, "a number with digits after its point");
    if (*p == '.')
        p = past_digits(p + 1);
    if (*p == 'e' || *p == 'E') {
        const char *exponent = p + 1 + (p[1] == '-' || p[1] == '+');
        /* An e without digits is left to the caller, which expects a separator there. */
        if (json_in_is_digit(*exponent))
            p = past_digits(exponent);
    }
    c->at = p;
    return SVS_OK;
}

static svs_code check_value(struct check *c, int depth);

static svs_code check_container(struct check *c, int depth) {
    /* Objects and arrays share one loop: only an object has a key and a colon before each value. */
    bool object = *c->at++ == '{';
    char close = object ? '}' : ']';
    if (depth == 0)
        return svi_fail(c->err, SVS_TOO_DEEP, "objects and arrays are nested more than %d deep at byte %zu",
                        c->depth_max, (size_t)(c->at - c->start));
    if (!at_end(c) && *c->at == close)
        return c->at++, SVS_OK;
    for (;;) {
        svs_code code = object ? check_string(c) : SVS_OK;
        if (code != SVS_OK)
            return code;
        /* The key was checked as a string; its colon follows. */
        if (object && (at_end(c) || *c->at != ':'))
            return json_in_refuse(c, "a colon");
        c->at += object;
        code = check_value(c, depth - 1);
        if (code != SVS_OK)
            return code;
        if (at_end(c) || (*c->at != ',' && *c->at != close))
            return json_in_refuse(c, object ? "a comma or }" : "a comma or ]");
        /* After a comma a value must follow, so [1,] is refused by the next turn. */
        if (*c->at++ == close)
            return SVS_OK;
    }
}

static svs_code check_value(struct check *c, int depth) {
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity"};
    if (at_end(c))
        return json_in_refuse(c, "a value");
    if (*c->at == '{' || *c->at == '[')
        return check_container(c, depth);
    if (*c->at == '"')
        return check_string(c);
    if (json_in_is_digit(*c->at) || *c->at == '-')
        return check_number(c);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_in_take_word(c, words[i]))
            return SVS_OK;
    return json_in_refuse(c, "a value");
}

static svs_code check_text(struct check *c, struct svi_span text) {
    c->start = c->at = text.at;
    c->end = text.end;
    svs_code code = check_value(c, c->depth_max);
    if (code != SVS_OK || at_end(c))
        return code;
    return svi_fail(c->err, SVS_TRAILING, "something follows the JSON value that ends before byte %zu",
                    (size_t)(c->at - c->start) + 1);
}

svs_code svi_json_check_value(struct svi_span text, int depth, svs_error *err) {
    return check_text(&(struct check){.depth_max = depth, .err = err}, text);
}

svs_code svi_json_check(struct svi_span line, svs_error *err) {
    SVI_TRY(check_text(&(struct check){.depth_max = SVI_JSON_DEPTH, .err = err}, line));
    enum svi_json_type type = svi_json_type(skip_space(line.at));
    if (type != SVI_JSON_OBJECT)
        return svi_fail(err, SVS_WRONG_TYPE, "the line is %s: a row is an object", svi_json_type_name(type));
    return SVS_OK;
}

enum svi_json_type svi_json_type(const char *value) {
    /* By the first byte; only a minus sign needs the second one. */
    static const unsigned char types[128] = {
        ['n'] = SVI_JSON_NULL,       ['t'] = SVI_JSON_TRUE,       ['f'] = SVI_JSON_FALSE,
        ['N'] = SVI_JSON_NOT_FINITE, ['I'] = SVI_JSON_NOT_FINITE, ['"'] = SVI_JSON_STRING,
        ['['] = SVI_JSON_ARRAY,      ['{'] = SVI_JSON_OBJECT};
    if (json_in_is_digit(*value) || *value == '-')
        return value[1] == 'I' ? SVI_JSON_NOT_FINITE : SVI_JSON_NUMBER;
    return (enum svi_json_type)types[*value & 127];
}

const char *svi_json_type_name(enum svi_json_type type) {
    static const char *const names[] = {"null",     "true",     "false",    "a number", "NaN or infinite",
                                        "a string", "an array", "an object"};
    return names[type];
}

const char *svi_json_first(const char *p) {
    p = skip_space(p + 1);
    return *p == '}' || *p == ']' ? NULL : p;
}

const char *svi_json_next(const char *p) {
    p = skip_space(p);
    return *p == ',' ? skip_space(p + 1) : NULL;
}

const char *svi_json_string_at(const char *p, struct svi_span *raw) {
    raw->at = ++p;
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    raw->end = p;
    return p + 1;
}

const char *svi_json_key(const char *p, struct svi_span *raw) {
    p = skip_space(svi_json_string_at(p, raw));
    return skip_space(p + 1);
}

/* Skips a container: it ends where as many brackets closed as opened. Kinds need no comparison, because
 * checked brackets match; those in strings do not count. */
static const char *skip_container(const char *p) {
    enum { STRING = 2 };
    static const int8_t steps[UINT8_MAX + 1] = {['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1, ['"'] = STRING};
    struct svi_span ignored;
    int depth = 0;
    do {
        const int step = steps[(uint8_t)*p];
        if (step == STRING) {
            p = svi_json_string_at(p, &ignored);
        } else {
            depth += step;
            p++;
        }
    } while (depth > 0);
    return p;
}

const char *svi_json_skip(const char *p) {
    struct svi_span ignored;
    if (*p == '"')
        return svi_json_string_at(p, &ignored);
    if (*p == '{' || *p == '[')
        return skip_container(p);
    /* A number or a word ends at a separator, a bracket or a blank. */
    while (*p != ',' && *p != '}' && *p != ']' && !json_in_is_space(*p))
        p++;
    return p;
}

/* Writes a character as UTF-8; returns its length. */
static size_t json_in_encode(uint32_t character, char out[4]) {
    if (character < 0x80)
        return out[0] = (char)character, 1;
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    /* From the last byte: six bits each, and the rest is put into the first byte after its length marker. */
    for (size_t i = length - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3f));
    out[0] = (char)((0xf00 >> length) | character);
    return length;
}

/* Decodes the escape at `p` into UTF-8; returns the byte after it. */
static const char *read_escape(const char *p, char out[4], size_t *length) {
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    uint32_t character = 0;
    if (p[1] == 'u') {
        int digits = json_in_unicode(p + 2, &character);
        *length = json_in_encode(character, out);
        return p + 2 + digits;
    }
    const char *letter = memchr(letters, p[1], sizeof letters - 1);
    out[0] = letter ? meanings[letter - letters] : p[1];
    *length = 1;
    return p + 2;
}

bool svi_json_unescape(struct svi_span raw, char *scratch, size_t size, struct svi_span *text) {
    *text = raw;
    size_t length = (size_t)(raw.end - raw.at);
    if (!memchr(raw.at, '\\', length))
        return length <= size;
    size_t used = 0;
    for (const char *p = raw.at; p < raw.end;) {
        char piece[4] = {*p};
        size_t n = 1;
        p = *p == '\\' ? read_escape(p, piece, &n) : p + 1;
        if (used + n > size)
            return false;
        memcpy(scratch + used, piece, n);
        used += n;
    }
    *text = (struct svi_span){scratch, scratch + used};
    return true;
}
