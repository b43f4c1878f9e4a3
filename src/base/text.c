#include "base/text.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 63 /* a longer word is no misspelt key: the tables below have a fixed size */
#define FARTHEST 64

/* Row i of the table of distances between the prefixes of a and of b ("optimal string alignment"): insert,
 * delete, replace, and swap of neighbours, which needs the row before the last, row2. */
static void distance_row(const char *a, size_t i, const char *b, size_t n, const int *row2, const int *row1,
                         int *row) {
    row[0] = (int)i;
    for (size_t j = 1; j <= n; j++) {
        int either = (row1[j] < row[j - 1] ? row1[j] : row[j - 1]) + 1;
        int both = row1[j - 1] + (a[i - 1] != b[j - 1]);
        row[j] = either < both ? either : both;
        bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        if (swapped && row2[j - 2] + 1 < row[j])
            row[j] = row2[j - 2] + 1;
    }
}

int svi_edit_distance(const char *a, const char *b, int limit) {
    size_t m = strlen(a), n = strlen(b);
    if (m > WORD_MAX || n > WORD_MAX)
        return limit + 1;
    int rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= m; i++)
        distance_row(a, i, b, n, rows[(i + 1) % 3], rows[(i + 2) % 3], rows[i % 3]);
    int distance = rows[m % 3][n];
    return distance > limit ? limit + 1 : distance;
}

static bool is_part(const char *part, const char *whole) {
    size_t n = strlen(part), length = strlen(whole);
    return n > 0 && n < length &&
           ((strncmp(part, whole, n) == 0 && whole[n] == '.') ||
            (strcmp(whole + length - n, part) == 0 && whole[length - n - 1] == '.'));
}

/* In half steps, so that a word that differs in case only, or is a part, wins over one that differs in a
 * letter. */
static int nearest_steps(const char *word, const char *known) {
    if (strcasecmp(word, known) == 0 || is_part(word, known))
        return strcmp(word, known) == 0 ? 0 : 1;
    int distance = svi_edit_distance(word, known, FARTHEST);
    return distance > FARTHEST ? INT_MAX : 2 * distance;
}

const char *svi_nearest(const char *word, const char *const *words) {
    const char *nearest = NULL;
    int least = INT_MAX;
    for (int i = 0; words[i]; i++) {
        int n = nearest_steps(word, words[i]);
        if (n < least) {
            least = n;
            nearest = words[i];
        }
    }
    return nearest;
}

size_t svi_utf8_length(const char *bytes, size_t length) {
    const unsigned char *s = (const unsigned char *)bytes;
    if (length == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length < n) /* 0x80 to 0xc1 begin no character, or an overlong one */
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] > 0x9f;
    bool above = s[0] == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || above ? 0 : n;
}

int svi_text_control(const char *bytes, size_t length) {
    const unsigned char *s = (const unsigned char *)bytes;
    const size_t n = svi_utf8_length(bytes, length);
    if (n == 1 && (s[0] < 0x20 || s[0] == 0x7f))
        return s[0];
    if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0)
        return s[1];
    if (n != 3)
        return -1;
    const int code = (s[0] & 0xf) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    const bool mark = code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                      (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
    return mark ? code : -1;
}

bool svi_utf8_valid(const char *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        if ((unsigned char)bytes[i] < 0x80) { /* nearly all */
            i++;
            continue;
        }
        size_t n = svi_utf8_length(bytes + i, length - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t svi_join_names(const char *outer, size_t outer_length, const char *inner, size_t inner_length,
                      char *to, size_t capacity) {
    if (outer_length >= capacity || inner_length >= capacity - outer_length)
        return 0;
    memcpy(to, outer, outer_length);
    to[outer_length] = '.';
    memcpy(to + outer_length + 1, inner, inner_length);
    return outer_length + 1 + inner_length;
}

bool svi_ends_with(const char *text, size_t length, const char *ending) {
    const size_t n = strlen(ending);
    return length >= n && memcmp(text + length - n, ending, n) == 0;
}

/* A walk with one point of return: at a mismatch the last * takes one byte more. */
bool svi_text_matches(const char *pattern, size_t length, const char *text) {
    const char *end = pattern + length, *star = NULL, *from = NULL;
    while (*text)
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (pattern < end && *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}
