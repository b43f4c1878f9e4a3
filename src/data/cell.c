#include "data/cell.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/text.h"
#include "data/number.h"

#define EXACT_INTEGERS 9007199254740992.0 /* 2^53: beyond it a double no longer names one integer */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

struct svi_span svi_trim(struct svi_span s) {
    while (s.at < s.end && is_blank(*s.at))
        s.at++;
    while (s.end > s.at && is_blank(s.end[-1]))
        s.end--;
    return s;
}

bool svi_span_is(struct svi_span s, const char *name) {
    size_t length = (size_t)(s.end - s.at);
    return length == strlen(name) && memcmp(s.at, name, length) == 0;
}

static bool one_of(struct svi_span s, const char *const *words) {
    size_t length = (size_t)(s.end - s.at);
    for (; *words; words++)
        if (length == strlen(*words) && strncasecmp(s.at, *words, length) == 0)
            return true;
    return false;
}

bool svi_cell_missing(struct svi_span s) {
    static const char *const words[] = {"", "NA", "NaN", "null", "?", NULL};
    return one_of(s, words);
}

bool svi_cell_infinite(struct svi_span s) {
    static const char *const words[] = {"inf", "infinity", NULL};
    if (s.at < s.end && (*s.at == '-' || *s.at == '+'))
        s.at++;
    return one_of(s, words);
}

bool svi_cell_number(struct svi_span s, double *value) {
    return s.at < s.end && svi_number(s.at, value) == s.end;
}

svs_value svi_label_number(double y) {
    bool integral = y == trunc(y) && fabs(y) <= EXACT_INTEGERS;
    return integral ? svs_int((int64_t)y) : svs_real(y);
}

static svs_value view(struct svi_span s) {
    return (svs_value){.kind = SVS_STR, .length = (uint32_t)(s.end - s.at), .as.s = s.at};
}

/* Integer text, or nothing; both labels and ids may be that. */
static bool plain(struct svi_span s, svs_value *v) {
    int64_t i = 0;
    if (s.at < s.end && svi_integer(s.at, &i) == s.end) {
        *v = svs_int(i);
        return true;
    }
    if (!svi_cell_missing(s))
        return false;
    *v = svs_none();
    return true;
}

svs_code svi_cell_label(struct svi_span s, svs_value *y, svs_error *err) {
    if (plain(s, y))
        return SVS_OK;
    double number = 0;
    size_t length = (size_t)(s.end - s.at);
    if (svi_cell_number(s, &number)) {
        if (!isfinite(number))
            return svi_fail(err, SVS_NOT_FINITE, "the label is too large for a number");
        *y = svi_label_number(number);
        return SVS_OK;
    }
    if (length > SVS_NAME_MAX)
        return svi_fail(err, SVS_TOO_LARGE, "the label has %zu bytes: at most %d are taken", length,
                        SVS_NAME_MAX);
    if (!svi_utf8_valid(s.at, length))
        return svi_fail(err, SVS_BAD_LABEL, "the label is not valid UTF-8");
    *y = view(s);
    return SVS_OK;
}

svs_code svi_cell_id(struct svi_span s, svs_value *id, svs_error *err) {
    if (plain(s, id))
        return SVS_OK;
    size_t length = (size_t)(s.end - s.at);
    if (length > SVS_NAME_MAX)
        return svi_fail(err, SVS_BAD_ID, "the id has %zu bytes: at most %d are taken", length, SVS_NAME_MAX);
    if (!svi_utf8_valid(s.at, length))
        return svi_fail(err, SVS_BAD_ID, "the id is not valid UTF-8");
    *id = view(s);
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
