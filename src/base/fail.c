#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static const struct {
    const char *name, *text;
} codes[] = {
#define X(constant, name, text) {#name, text},
    SVS_CODES(X)
#undef X
};

const char *svs_code_name(svs_code code) {
    return codes[(unsigned)code < SVS_CODE_COUNT ? code : SVS_INVALID].name;
}

const char *svs_code_text(svs_code code) {
    return codes[(unsigned)code < SVS_CODE_COUNT ? code : SVS_INVALID].text;
}

svs_code svi_code_by_name(const char *name) {
    for (int code = 1; code < SVS_CODE_COUNT; code++)
        if (strcmp(name, codes[code].name) == 0)
            return (svs_code)code;
    return SVS_INVALID;
}

svs_code svi_fail(svs_error *err, svs_code code, const char *format, ...) {
    if (!err)
        return code;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    err->code = code;
    if (length >= (int)sizeof err->text) { /* ends in "...", and never in half a UTF-8 sequence */
        size_t at = sizeof err->text - 4;
        while (at > 0 && ((unsigned char)err->text[at] & 0xc0) == 0x80)
            at--;
        memcpy(err->text + at, "...", 4);
    }
    return code;
}

svs_code svi_fail_memory(svs_error *err, const char *what) {
    return svi_fail(err, SVS_NO_MEMORY, "no memory for %s", what);
}

static void *fail_unless_made(void *object, const char *what, svs_error *err) {
    if (!object)
        svi_fail_memory(err, what);
    return object;
}

void *svi_new(size_t size, const char *what, svs_error *err) {
    return fail_unless_made(svi_alloc(size), what, err);
}

void *svi_new_plain(size_t size, const char *what, svs_error *err) {
    return fail_unless_made(svi_alloc_plain(size), what, err);
}

/* The next piece of output for the bytes at `in`: one whole character, or \xNN for one byte. */
static size_t escape_one(const char *in, size_t left, char piece[5], size_t *piece_length) {
    size_t length = svi_utf8_length(in, left);
    if (length > 0 && svi_text_control(in, left) < 0) {
        memcpy(piece, in, length);
        *piece_length = length;
        return length;
    }
    *piece_length = (size_t)snprintf(piece, 5, "\\x%02x", (unsigned char)in[0]);
    return 1;
}

char *svi_escape(char *out, size_t size, const char *bytes, size_t length) {
    size_t at = 0, dots = 0; /* dots: the last position at which "..." still fits */
    if (size == 0)
        return out;
    for (size_t i = 0; i < length;) {
        char piece[5]; /* pieces are never split, so the output stays valid UTF-8 */
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

bool svi_list_add(char *out, size_t size, const char *name, size_t length) {
    static const char more[] = "...", comma[] = ", ";
    char text[80];
    const size_t at = strlen(out), first = at == 0;
    svi_escape(text, sizeof text, name, length);
    const size_t left = size - at, wanted = strlen(text) + sizeof more + (first ? 1 : 2) * (sizeof comma - 1);
    const bool fits = wanted < left; /* `wanted` includes ", ...": the list can always be ended */
    snprintf(out + at, left, "%s%s", first ? "" : comma, fits ? text : more);
    return fits;
}

/* The next code after `last` in falling order of counts, equal counts in the order of codes. A selection
 * without an array: few codes ever occur. */
static svs_code next_frequent(const int64_t *counts, svs_code last) {
    svs_code found = SVS_OK;
    for (int c = SVS_OK + 1; c < SVS_CODE_COUNT; c++) {
        const bool after =
            last == SVS_OK || counts[c] < counts[last] || (counts[c] == counts[last] && c > (int)last);
        if (counts[c] > 0 && after && (found == SVS_OK || counts[c] > counts[found]))
            found = (svs_code)c;
    }
    return found;
}

bool svi_code_is_remark(svs_code code) {
    return code == SVS_UNKNOWN_COLUMN || code == SVS_AMBIGUOUS_CLASS || code == SVS_NEW_CLASS;
}

bool svi_code_is_notice(svs_code code) {
    return code == SVS_CLOCK_MOVED || code == SVS_CONFIG_CHANGED || code == SVS_STATE_LOADED ||
           svi_code_is_remark(code);
}

char *svi_code_counts(const int64_t *counts, char *out, size_t size, svs_code *most) {
    size_t at = 0;
    out[0] = '\0';
    if (most)
        *most = next_frequent(counts, SVS_OK);
    for (svs_code c = SVS_OK; (c = next_frequent(counts, c)) != SVS_OK;) {
        const int n = snprintf(out + at, size - at, "%s%lld %s", at > 0 ? ", " : "", (long long)counts[c],
                               svs_code_name(c));
        if ((size_t)n >= size - at) {
            out[at] = '\0';
            break;
        }
        at += (size_t)n;
    }
    return out;
}
