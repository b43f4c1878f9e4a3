/* Quantities: the digits are copied without their marks and with a point as decimal mark, then read by
 * svi_number, so that the value is rounded as that of a plain number. Each part is consumed from the front of
 * the span; what is left at the end must be a unit.
 *
 * Order: digits, money, units, the whole. */
#include "data/quantity.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "data/cell.h"
#include "data/number.h"

#define QUANTITY_TEXT 48 /* bytes of the longest number; a longer one is not a quantity */

/* The number as svi_number reads it: without marks between thousands, with a point as decimal mark, padded.
 */
struct digits {
    char text[QUANTITY_TEXT + SVI_NUMBER_PAD + 1];
    size_t length;
};

static bool quantity_digit(const char *p, const char *end) {
    return p < end && isdigit((unsigned char)*p);
}

static bool quantity_put(struct digits *d, char c) {
    if (d->length == QUANTITY_TEXT)
        return false;
    d->text[d->length++] = c;
    return true;
}

/* Moves up to `limit` digits from the span to the number; returns their count. */
static int quantity_take(struct digits *d, struct svi_span *s, int limit) {
    int count = 0;
    for (; count < limit && quantity_digit(s->at, s->end) && quantity_put(d, *s->at); s->at++)
        count++;
    return count;
}

/* Moves the digits before the decimal mark. A later group has exactly three digits, and a number with groups
 * does not begin with 0: 12,34 and 0,123 are not thousands. */
static bool quantity_whole(struct digits *d, struct svi_span *s, char mark, bool *grouped) {
    const char *first = s->at;
    const int count = quantity_take(d, s, QUANTITY_TEXT);
    if (count == 0)
        return false;
    if (s->at == s->end || *s->at != mark)
        return true;
    /* A mark after the digits makes them the first group. */
    if (count > 3 || *first == '0')
        return false;
    while (s->at < s->end && *s->at == mark) {
        s->at++;
        if (quantity_take(d, s, 3) != 3)
            return false;
    }
    *grouped = true;
    return !quantity_digit(s->at, s->end);
}

/* Moves an exponent if digits follow the e; otherwise the e begins a unit (5 eV). */
static bool quantity_exponent(struct digits *d, struct svi_span *s) {
    const char *p = s->at + (s->at < s->end && (*s->at == 'e' || *s->at == 'E'));
    if (p == s->at)
        return true;
    const char *digits = p + (p < s->end && (*p == '-' || *p == '+'));
    if (!quantity_digit(digits, s->end))
        return true;
    /* Copies the e and its sign. */
    for (; s->at < digits; s->at++)
        if (!quantity_put(d, *s->at))
            return false;
    return quantity_take(d, s, QUANTITY_TEXT) > 0;
}

/* The length in bytes of the sign of money at the beginning, 0 = none. Dollar, euro, pound, yen. */
static size_t quantity_money(struct svi_span s) {
    static const char *const signs[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5"};
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        const size_t length = strlen(signs[k]);
        if ((size_t)(s.end - s.at) >= length && memcmp(s.at, signs[k], length) == 0)
            return length;
    }
    return 0;
}

bool svi_unit_is_money(const char *unit) {
    const struct svi_span s = {unit, unit + strlen(unit)};
    return s.at < s.end && quantity_money(s) == strlen(unit);
}

/* Skips blanks, also the no-break ones (U+00A0, U+202F). */
static void quantity_skip_blanks(struct svi_span *s) {
    for (;;) {
        const size_t left = (size_t)(s->end - s->at);
        if (left >= 1 && svi_is_blank(*s->at))
            s->at++;
        else if (left >= 2 && memcmp(s->at, "\xc2\xa0", 2) == 0)
            s->at += 2;
        else if (left >= 3 && memcmp(s->at, "\xe2\x80\xaf", 3) == 0)
            s->at += 3;
        else
            return;
    }
}

/* Is the text safe to print: valid UTF-8 without characters that control a terminal? */
static bool quantity_shown(struct svi_span s) {
    for (const char *p = s.at; p < s.end; p += svi_utf8_length(p, (size_t)(s.end - p)))
        if (svi_utf8_length(p, (size_t)(s.end - p)) == 0 || svi_text_control(p, (size_t)(s.end - p)) >= 0)
            return false;
    return true;
}

/* Is the whole span a unit? */
static bool quantity_unit(struct svi_span s) {
    const size_t money = quantity_money(s);
    if (s.end - s.at > SVI_UNIT_MAX || money > 0)
        return money == (size_t)(s.end - s.at);
    if (!quantity_shown(s))
        return false;
    /* One digit may end a unit: m/s2, m3. */
    if (s.end - s.at > 1 && isdigit((unsigned char)s.end[-1]))
        s.end--;
    for (const char *p = s.at; p < s.end; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool joint = (c == '^' || c == '/') && p > s.at;
        if (!isalpha(c) && c != '%' && c < 0x80 && !joint)
            return false;
    }
    return true;
}

bool svi_quantity_read(struct svi_span s, bool comma, struct svi_quantity *q) {
    struct digits d = {.text = ""};
    *q = (struct svi_quantity){.unit = {s.end, s.end}};
    bool minus = s.at < s.end && *s.at == '-';
    s.at += minus || (s.at < s.end && *s.at == '+');
    const size_t money = quantity_money(s);
    q->money = money > 0;
    if (q->money) {
        q->unit = (struct svi_span){s.at, s.at + money};
        s.at += money;
        quantity_skip_blanks(&s);
        /* The sign may stand on either side of the money: -$5, $-5. */
        if (!minus && s.at < s.end && *s.at == '-') {
            minus = true;
            s.at++;
        }
    }
    /* Number first, unit last: what the number leaves must be the unit and nothing else. */
    if (!quantity_whole(&d, &s, comma ? '.' : ',', &q->grouped))
        return false;
    q->fraction = s.at < s.end && *s.at == (comma ? ',' : '.');
    if (q->fraction) {
        s.at++;
        if (!quantity_put(&d, '.') || quantity_take(&d, &s, QUANTITY_TEXT) == 0)
            return false;
    }
    if (!quantity_exponent(&d, &s) ||
        !svi_cell_number((struct svi_span){d.text, d.text + d.length}, &q->value))
        return false;
    q->value = minus ? -q->value : q->value;
    quantity_skip_blanks(&s);
    if (s.at == s.end)
        return true;
    /* A sign of money may also stand after the number: 4,35 €. */
    q->unit = q->unit.at < q->unit.end ? (struct svi_span){NULL, NULL} : s; /* $5 km has two units: refused */
    q->money = quantity_money(s) == (size_t)(s.end - s.at);
    return q->unit.at && quantity_unit(s);
}

bool svi_quantity_has_unit(const struct svi_quantity *q, const char *unit) {
    if (q->unit.at == q->unit.end)
        return !*unit || q->value == 0 || svi_unit_is_money(unit);
    return svi_span_is(q->unit, unit);
}
