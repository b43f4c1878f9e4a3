/* Cells of the text formats, read from spans of a line without copying.
 *
 * The order of the tests matters everywhere here. Missing words come before numbers only when one of the
 * words is itself a number (-999): otherwise a text that is a number cannot be missing, and the list of words
 * need not be searched. Integer text comes before other numbers, so that a large id or class keeps all its
 * digits instead of being rounded to a double.
 *
 * Order: spans and lists of words, missing values, numbers and times, then labels, ids, keys and weights. */
#include "data/cell.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "data/number.h"
#include "base/time_text.h"

#define WORD_NUMBER 32 /* bytes of the longest number among the words for a missing value */

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

/* The next word of a comma-separated list, without the blanks around it; *words moves past its comma. */
static struct svi_span next_word(const char **words) {
    const char *end = strchrnul(*words, ',');
    const struct svi_span word = svi_trim((struct svi_span){*words, end});
    *words = *end ? end + 1 : end;
    return word;
}

/* Is the span one of the comma-separated words? `fold` ignores case. */
static bool one_of(struct svi_span s, const char *words, bool fold) {
    const size_t length = (size_t)(s.end - s.at);
    while (words && *words) {
        const struct svi_span word = next_word(&words);
        if ((size_t)(word.end - word.at) == length &&
            (fold ? strncasecmp(s.at, word.at, length) : memcmp(s.at, word.at, length)) == 0)
            return true;
    }
    return false;
}

/* A word of a setting as a number. The word is copied first: the setting's text is not padded as a line is,
 * and svi_number would read past its end (number.h). */
static bool word_number(struct svi_span word, double *value) {
    char text[WORD_NUMBER + SVI_NUMBER_PAD + 1] = "";
    const size_t length = (size_t)(word.end - word.at);
    if (length == 0 || length > WORD_NUMBER)
        return false;
    memcpy(text, word.at, length);
    return svi_cell_number((struct svi_span){text, text + length}, value);
}

bool svi_span_listed(struct svi_span s, const char *names) {
    return one_of(s, names, false);
}

void svi_missing_words_init(struct svi_missing_words *m, const char *words) {
    double v;
    *m = (struct svi_missing_words){.words = words ? words : SVI_MISSING_WORDS};
    for (const char *p = m->words; *p;) {
        const struct svi_span word = next_word(&p);
        if (word.at == word.end)
            continue;
        m->numbers = m->numbers || word_number(word, &v);
        /* Both cases are entered, because the words match in any case. */
        m->first[(unsigned char)tolower((unsigned char)*word.at)] = true;
        m->first[(unsigned char)toupper((unsigned char)*word.at)] = true;
    }
}

bool svi_missing_words_have(const struct svi_missing_words *m, struct svi_span s) {
    double v, word;
    if (one_of(s, m->words, true))
        return true;
    /* Texts of the same number differ: compare values, but only when a word is a number at all. */
    if (!m->numbers || !svi_cell_number(s, &v))
        return false;
    for (const char *p = m->words; *p;)
        if (word_number(next_word(&p), &word) && word == v)
            return true;
    return false;
}

bool svi_span_is_any(struct svi_span s, const char *words) {
    return one_of(s, words, true);
}

bool svi_cell_infinite(struct svi_span s) {
    /* svi_number knows no words, so an infinite value is recognised by its name. */
    if (s.at < s.end && (*s.at == '-' || *s.at == '+'))
        s.at++;
    return one_of(s, "inf,infinity", true);
}

bool svi_cell_number(struct svi_span s, double *value) {
    return s.at < s.end && svi_number(s.at, value) == s.end;
}

bool svi_cell_time(struct svi_span s, const char *format, enum svi_time_order order, double *seconds) {
    const size_t length = (size_t)(s.end - s.at);
    return (format && *format && svi_time_of_format(s.at, length, format, 0, seconds)) ||
           svi_time_of_text(s.at, length, 0, seconds) ||
           svi_time_of_date(s.at, length, 0, order, seconds, NULL);
}

bool svi_cell_measures(struct svi_span s) {
    double v;
    return svi_cell_number(s, &v) || svi_cell_time(s, NULL, SVI_TIME_DAY_FIRST, &v) ||
           svi_cell_time(s, NULL, SVI_TIME_MONTH_FIRST, &v) ||
           svi_time_of_clock(s.at, (size_t)(s.end - s.at), &v);
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

svs_value svi_label_number(double y) {
    bool integral = y == trunc(y) && fabs(y) <= SVI_EXACT_MAX;
    return integral ? svs_int((int64_t)y) : svs_real(y);
}

/* The forms that labels and ids share: a missing value (SVS_NONE) or integer text. False: the text is
 * neither. */
static bool cell_plain(struct svi_span s, const struct svi_missing_words *missing, svs_value *v) {
    int64_t i = 0;
    *v = svs_none();
    /* A missing word like -999 is also integer text, so it is tested first. */
    if (missing && missing->numbers && svi_cell_missing(missing, s))
        return true;
    if (s.at < s.end && svi_integer(s.at, &i) == s.end) {
        *v = svs_int(i);
        return true;
    }
    return missing ? svi_cell_missing(missing, s) : s.at == s.end;
}

/* A label or id that is text. `too_long` and `malformed` are the error codes, which differ between the two.
 */
static svs_code cell_text(struct svi_span s, const char *what, svs_code too_long, svs_code malformed,
                          svs_value *v, svs_error *err) {
    size_t length = (size_t)(s.end - s.at);
    if (length > SVS_NAME_MAX)
        return svi_fail(err, too_long, "the %s has %zu bytes: at most %d are allowed", what, length,
                        SVS_NAME_MAX);
    if (!svi_utf8_valid(s.at, length))
        return svi_fail(err, malformed, "the %s is not valid UTF-8: " SVI_LATIN1, what);
    *v = (svs_value){.kind = SVS_STR, .length = (uint32_t)length, .as.s = s.at};
    return SVS_OK;
}

svs_code svi_cell_label(struct svi_span s, const struct svi_missing_words *missing, svs_value *y,
                        svs_error *err) {
    double number = 0;
    if (cell_plain(s, missing, y))
        return SVS_OK;
    /* Integers beyond int64 and fractions arrive here as doubles; anything else is a class by its text. */
    if (!svi_cell_number(s, &number))
        return cell_text(s, "label", SVS_TOO_LARGE, SVS_BAD_LABEL, y, err);
    if (!isfinite(number))
        return svi_fail(err, SVS_NOT_FINITE, "the label is too large for a number");
    *y = svi_label_number(number);
    return SVS_OK;
}

svs_code svi_cell_id(struct svi_span s, const struct svi_missing_words *missing, svs_value *id,
                     svs_error *err) {
    return cell_plain(s, missing, id) ? SVS_OK : cell_text(s, "id", SVS_BAD_ID, SVS_BAD_ID, id, err);
}

svs_code svi_cell_key(struct svi_span s, const struct svi_missing_words *missing, svs_value *key,
                      svs_error *err) {
    const size_t length = (size_t)(s.end - s.at);
    *key = svs_none();
    /* No integers here: a key keeps its text, zeros included. */
    if (svi_cell_missing(missing, s))
        return SVS_OK;
    if (length > SVS_KEY_MAX)
        return svi_fail(err, SVS_BAD_KEY, "the key has %zu bytes: at most %d are allowed", length,
                        SVS_KEY_MAX);
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
