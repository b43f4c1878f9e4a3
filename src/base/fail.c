#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *const names[] = {
#define X(constant, name, text) #name,
    SVS_CODES(X)
#undef X
};

static const char *const texts[] = {
#define X(constant, name, text) text,
    SVS_CODES(X)
#undef X
};

static svs_code known(svs_code code) {
    return (unsigned)code < SVS_CODE_COUNT ? code : SVS_INVALID;
}

const char *svs_code_name(svs_code code) {
    return names[known(code)];
}

const char *svs_code_text(svs_code code) {
    return texts[known(code)];
}

/* Ends a text that did not fit in "...", without leaving half a UTF-8 sequence before it. */
static void end_in_dots(char *text, size_t size) {
    size_t at = size - 4;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    memcpy(text + at, "...", 4);
}

svs_code svi_fail(svs_error *err, svs_code code, const char *format, ...) {
    if (!err)
        return code;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    err->code = code;
    if (length >= (int)sizeof err->text)
        end_in_dots(err->text, sizeof err->text);
    return code;
}

svs_code svi_fail_memory(svs_error *err, const char *what) {
    return svi_fail(err, SVS_NO_MEMORY, "no memory for %s", what);
}

static bool printable(const char *bytes, size_t length) {
    unsigned char first = (unsigned char)bytes[0];
    if (first < 0x20 || first == 0x7f)
        return false;
    /* U+0080 to U+009F are control characters too. */
    return !(first == 0xc2 && length == 2 && (unsigned char)bytes[1] < 0xa0);
}

/* The next piece of output for the bytes at `in`: one whole character, or \xNN for one byte. */
static size_t escape_one(const char *in, size_t left, char piece[5], size_t *piece_length) {
    size_t length = svi_utf8_length(in, left);
    if (length > 0 && printable(in, length)) {
        memcpy(piece, in, length);
        *piece_length = length;
        return length;
    }
    *piece_length = (size_t)snprintf(piece, 5, "\\x%02x", (unsigned char)in[0]);
    return 1;
}

char *svi_escape(char *out, size_t size, const char *bytes, size_t length) {
    size_t at = 0, dots = 0; /* dots: the last place where "..." still fits */
    if (size == 0)
        return out;
    for (size_t i = 0; i < length;) {
        char piece[5];
        size_t n;
        i += escape_one(bytes + i, length - i, piece, &n);
        if (at + n >= size) {
            at = dots;
            for (int k = 0; k < 3 && at + 1 < size; k++)
                out[at++] = '.';
            break;
        }
        memcpy(out + at, piece, n);
        at += n;
        if (at + 3 < size)
            dots = at;
    }
    out[at] = '\0';
    return out;
}
