#include "data/json_in.h"

#include <string.h>

#include "base/fail.h"
#include "data/number.h"

/* Text that is not known to be JSON yet. */
struct check {
    const char *start, *at, *end;
    svs_error *err;
};

static const char *skip_space(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static bool at_end(struct check *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
    return c->at >= c->end;
}

static svs_code refuse(const struct check *c, const char *what) {
    size_t at = (size_t)(c->at - c->start) + 1;
    if (c->at >= c->end)
        return svi_fail(c->err, SVS_TRUNCATED, "the JSON object ends too early: %s expected", what);
    char text[24];
    size_t left = (size_t)(c->end - c->at);
    svi_escape(text, sizeof text, c->at, left < 12 ? left : 12);
    return svi_fail(c->err, SVS_NOT_MSGPACK, "no JSON: %s expected at byte %zu instead of \"%s\"", what, at,
                    text);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int hex_digit(char c) {
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; -1 when they are not. The line's end is none, so nothing is read behind it. */
static int32_t hex_four(const char *p) {
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

static bool is_high(int32_t v) {
    return v >= 0xd800 && v < 0xdc00;
}

static bool is_low(int32_t v) {
    return v >= 0xdc00 && v < 0xe000;
}

/* The character after a backslash-u, `p` behind it; a pair of surrogates is one. Returns its length, 0 when
 * malformed. */
static int unicode(const char *p, uint32_t *character) {
    int32_t first = hex_four(p), second = 0;
    if (first <= 0 || is_low(first))
        return 0;
    *character = (uint32_t)first;
    if (!is_high(first))
        return 4;
    if (p[4] != '\\' || p[5] != 'u' || (second = hex_four(p + 6), !is_low(second)))
        return 0;
    *character = 0x10000 + ((uint32_t)(first - 0xd800) << 10) + (uint32_t)(second - 0xdc00);
    return 10;
}

static svs_code check_escape(struct check *c) {
    uint32_t character;
    c->at++;
    if (c->at < c->end && *c->at == 'u') {
        int length = unicode(c->at + 1, &character);
        if (length == 0)
            return refuse(c, "a character other than NUL in four hexadecimal digits");
        c->at += 1 + length;
        return SVS_OK;
    }
    if (c->at >= c->end || *c->at == '\0' || !strchr("\"\\/bfnrt", *c->at))
        return refuse(c, "an escape");
    c->at++;
    return SVS_OK;
}

static svs_code check_string(struct check *c) {
    if (at_end(c) || *c->at != '"')
        return refuse(c, "a string");
    c->at++;
    while (c->at < c->end && *c->at != '"') {
        if ((unsigned char)*c->at < 0x20)
            return refuse(c, "a character that is no control character");
        if (*c->at != '\\') {
            c->at++;
            continue;
        }
        svs_code code = check_escape(c);
        if (code != SVS_OK)
            return code;
    }
    if (c->at >= c->end)
        return refuse(c, "a closing quote");
    c->at++;
    return SVS_OK;
}

static bool take_word(struct check *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* svi_number takes a little more than JSON does: a leading plus, zeros in front, a bare point. */
static svs_code check_number(struct check *c) {
    double value;
    const char *p = c->at + (*c->at == '-');
    const char *stop = svi_number(c->at, &value);
    if (stop == c->at || !is_digit(*p) || (*p == '0' && is_digit(p[1])))
        return take_word(c, "-Infinity") ? SVS_OK : refuse(c, "a value");
    const char *point = memchr(p, '.', (size_t)(stop - p));
    if (point && !is_digit(point[1]))
        return refuse(c, "a number with digits behind its point");
    c->at = stop;
    return SVS_OK;
}

static svs_code check_value(struct check *c, int depth);

static svs_code check_member(struct check *c, bool object, int depth) {
    if (object) {
        svs_code code = check_string(c);
        if (code != SVS_OK)
            return code;
        if (at_end(c) || *c->at != ':')
            return refuse(c, "a colon");
        c->at++;
    }
    return check_value(c, depth);
}

static svs_code check_container(struct check *c, int depth) {
    bool object = *c->at++ == '{';
    char close = object ? '}' : ']';
    if (depth == 0)
        return svi_fail(c->err, SVS_TOO_DEEP, "objects and arrays are nested more than %d deep",
                        SVI_JSON_DEPTH);
    if (!at_end(c) && *c->at == close)
        return c->at++, SVS_OK;
    for (;;) {
        svs_code code = check_member(c, object, depth - 1);
        if (code != SVS_OK)
            return code;
        if (at_end(c) || (*c->at != ',' && *c->at != close))
            return refuse(c, object ? "a comma or }" : "a comma or ]");
        if (*c->at++ == close)
            return SVS_OK;
    }
}

static svs_code check_value(struct check *c, int depth) {
    static const char *const words[] = {"null", "true", "false", "NaN", "Infinity"};
    if (at_end(c))
        return refuse(c, "a value");
    if (*c->at == '{' || *c->at == '[')
        return check_container(c, depth);
    if (*c->at == '"')
        return check_string(c);
    if (is_digit(*c->at) || *c->at == '-')
        return check_number(c);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (take_word(c, words[i]))
            return SVS_OK;
    return refuse(c, "a value");
}

svs_code svi_json_check(struct svi_span line, svs_error *err) {
    struct check c = {.start = line.at, .at = line.at, .end = line.end, .err = err};
    svs_code code = check_value(&c, SVI_JSON_DEPTH);
    if (code != SVS_OK)
        return code;
    if (!at_end(&c))
        return svi_fail(err, SVS_TRAILING, "something follows the JSON object that ends before byte %zu",
                        (size_t)(c.at - c.start) + 1);
    enum svi_json_type type = svi_json_type(skip_space(line.at));
    if (type != SVI_JSON_OBJECT)
        return svi_fail(err, SVS_WRONG_TYPE, "the line is %s: a row is an object", svi_json_type_name(type));
    return SVS_OK;
}

enum svi_json_type svi_json_type(const char *value) {
    switch (*value) {
    case 'n':
        return SVI_JSON_NULL;
    case 't':
        return SVI_JSON_TRUE;
    case 'f':
        return SVI_JSON_FALSE;
    case '"':
        return SVI_JSON_STRING;
    case '[':
        return SVI_JSON_ARRAY;
    case '{':
        return SVI_JSON_OBJECT;
    case '-':
        return value[1] == 'I' ? SVI_JSON_NOT_FINITE : SVI_JSON_NUMBER;
    default:
        return is_digit(*value) ? SVI_JSON_NUMBER : SVI_JSON_NOT_FINITE;
    }
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

/* A container ends where as many brackets have closed as opened; those in strings do not count. */
static const char *skip_container(const char *p) {
    struct svi_span ignored;
    int depth = 0;
    do {
        if (*p == '"') {
            p = svi_json_string_at(p, &ignored);
            continue;
        }
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
    } while (depth > 0);
    return p;
}

const char *svi_json_skip(const char *p) {
    struct svi_span ignored;
    if (*p == '"')
        return svi_json_string_at(p, &ignored);
    if (*p == '{' || *p == '[')
        return skip_container(p);
    while (*p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\t' && *p != '\r')
        p++;
    return p;
}

/* UTF-8 of a character; returns its length. */
static size_t encode(uint32_t character, char out[4]) {
    if (character < 0x80)
        return out[0] = (char)character, 1;
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3f));
    out[0] = (char)((0xf00 >> length) | character);
    return length;
}

/* The character that the escape at `p` means; returns what follows it. */
static const char *read_escape(const char *p, char out[4], size_t *length) {
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    uint32_t character = 0;
    if (p[1] == 'u') {
        int digits = unicode(p + 2, &character);
        *length = encode(character, out);
        return p + 2 + digits;
    }
    const char *letter = memchr(letters, p[1], sizeof letters - 1);
    out[0] = letter ? meanings[letter - letters] : p[1];
    *length = 1;
    return p + 2;
}

bool svi_json_unescape(struct svi_span raw, char *room, size_t size, struct svi_span *text) {
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
        memcpy(room + used, piece, n);
        used += n;
    }
    *text = (struct svi_span){room, room + used};
    return true;
}
