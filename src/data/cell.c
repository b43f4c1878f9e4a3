#include "data/cell.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "data/number.h"
#include "data/time_text.h"

#define AMOUNT_TEXT 48 /* bytes of the longest amount */

struct svi_span svi_trim(struct svi_span s) {
    while (s.at < s.end && svi_is_blank(*s.at))
        s.at++;
    while (s.end > s.at && svi_is_blank(s.end[-1]))
        s.end--;
    return s;
}

bool svi_span_is(struct svi_span s, const char *name) {
    size_t length = (size_t)(s.end - s.at);
    return length == strlen(name) && memcmp(s.at, name, length) == 0;
}

/* Is it one of the words between commas? In any case where `fold`. */
static bool one_of(struct svi_span s, const char *words, bool fold) {
    const size_t length = (size_t)(s.end - s.at);
    while (words && *words) {
        const char *end = strchrnul(words, ',');
        const struct svi_span word = svi_trim((struct svi_span){words, end});
        if ((size_t)(word.end - word.at) == length &&
            (fold ? strncasecmp(s.at, word.at, length) : memcmp(s.at, word.at, length)) == 0)
            return true;
        words = *end ? end + 1 : end;
    }
    return false;
}

bool svi_span_listed(struct svi_span s, const char *names) {
    return one_of(s, names, false);
}

bool svi_cell_missing(struct svi_span s, const char *words) {
    return s.at == s.end || one_of(s, words, true);
}

bool svi_cell_infinite(struct svi_span s) {
    if (s.at < s.end && (*s.at == '-' || *s.at == '+'))
        s.at++;
    return one_of(s, "inf,infinity", true);
}

bool svi_cell_number(struct svi_span s, double *value) {
    return s.at < s.end && svi_number(s.at, value) == s.end;
}

bool svi_cell_measures(struct svi_span s) {
    double v;
    return svi_cell_number(s, &v) || svi_time_of_text(s.at, (size_t)(s.end - s.at), 0, &v);
}

bool svi_cell_word(struct svi_cell *cell, struct svi_span word) {
    const size_t length = (size_t)(word.end - word.at);
    if (!svi_utf8_valid(word.at, length))
        return false;
    cell->kind = SVI_CELL_WORD;
    cell->word = word.at;
    cell->length = (uint32_t)length;
    return true;
}

/* Takes the sign of money, or of a percentage, that the text ends or begins with. */
static bool cut_sign(struct svi_span *s, bool begins) {
    static const char *const signs[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5",
                                        "%"}; /* dollar, euro, pound, yen */
    for (int k = 0; k < (begins ? 4 : 5); k++) {
        const size_t length = strlen(signs[k]);
        if ((size_t)(s->end - s->at) <= length ||
            memcmp(begins ? s->at : s->end - length, signs[k], length) != 0)
            continue;
        s->at += begins ? length : 0;
        s->end -= begins ? 0 : length;
        *s = svi_trim(*s);
        return true;
    }
    return false;
}

bool svi_cell_amount(struct svi_span s, double *value) {
    char text[AMOUNT_TEXT + SVI_NUMBER_PAD + 1] = "";
    size_t length = 0;
    int digits = -1; /* since the last comma; -1: none was there */
    bool point = false;
    const bool minus = s.at < s.end && *s.at == '-';
    s.at += minus;
    if (!cut_sign(&s, true))
        cut_sign(&s, false);
    if (s.end - s.at >= AMOUNT_TEXT || s.at == s.end || *s.at < '0' || *s.at > '9')
        return false;
    for (const char *p = s.at; p < s.end; p++) {
        point = point || *p == '.';
        const bool comma = *p == ',';
        if (comma && (point || (digits >= 0 ? digits != 3 : p - s.at > 3)))
            return false;
        digits = comma ? 0 : digits < 0 || point ? digits : digits + 1;
        if (!comma)
            text[length++] = *p;
    }
    if ((digits >= 0 && digits != 3) || !svi_cell_number((struct svi_span){text, text + length}, value))
        return false;
    *value = minus ? -*value : *value;
    return true;
}

svs_value svi_label_number(double y) {
    bool integral = y == trunc(y) && fabs(y) <= SVI_EXACT_MAX;
    return integral ? svs_int((int64_t)y) : svs_real(y);
}

/* Integer text, or nothing; both labels and ids may be that. */
static bool cell_plain(struct svi_span s, const char *missing, svs_value *v) {
    int64_t i = 0;
    if (s.at < s.end && svi_integer(s.at, &i) == s.end) {
        *v = svs_int(i);
        return true;
    }
    if (!svi_cell_missing(s, missing))
        return false;
    *v = svs_none();
    return true;
}

/* The text of a label or id; `too_long` and `malformed` are the codes of what is refused. */
static svs_code cell_text(struct svi_span s, const char *what, svs_code too_long, svs_code malformed,
                          svs_value *v, svs_error *err) {
    size_t length = (size_t)(s.end - s.at);
    if (length > SVS_NAME_MAX)
        return svi_fail(err, too_long, "the %s has %zu bytes: at most %d are taken", what, length,
                        SVS_NAME_MAX);
    if (!svi_utf8_valid(s.at, length))
        return svi_fail(err, malformed, "the %s is not valid UTF-8: " SVI_LATIN1, what);
    *v = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = s.at};
    return SVS_OK;
}

svs_code svi_cell_label(struct svi_span s, const char *missing, svs_value *y, svs_error *err) {
    double number = 0;
    if (cell_plain(s, missing, y))
        return SVS_OK;
    if (!svi_cell_number(s, &number))
        return cell_text(s, "label", SVS_TOO_LARGE, SVS_BAD_LABEL, y, err);
    if (!isfinite(number))
        return svi_fail(err, SVS_NOT_FINITE, "the label is too large for a number");
    *y = svi_label_number(number);
    return SVS_OK;
}

svs_code svi_cell_id(struct svi_span s, const char *missing, svs_value *id, svs_error *err) {
    return cell_plain(s, missing, id) ? SVS_OK : cell_text(s, "id", SVS_BAD_ID, SVS_BAD_ID, id, err);
}

svs_code svi_cell_key(struct svi_span s, const char *missing, svs_value *key, svs_error *err) {
    const size_t length = (size_t)(s.end - s.at);
    *key = svs_none();
    if (svi_cell_missing(s, missing))
        return SVS_OK;
    if (length > SVS_KEY_MAX)
        return svi_fail(err, SVS_BAD_KEY, "the key has %zu bytes: at most %d are taken", length, SVS_KEY_MAX);
    if (memchr(s.at, 0, length) || !svi_utf8_valid(s.at, length))
        return svi_fail(err, SVS_BAD_KEY, "the key is not valid UTF-8 text");
    *key = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = s.at};
    return SVS_OK;
}

svs_code svi_check_weight(double w, svs_error *err) {
    if (w > 0 && isfinite(w))
        return SVS_OK;
    return svi_fail(err, SVS_BAD_WEIGHT, "the weight is %g: it must be finite and above 0", w);
}

char *svi_span_text(struct svi_span s, char *out, size_t size) {
    return svi_escape(out, size, s.at, (size_t)(s.end - s.at));
}
