#include "base/nearest.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define FARTHEST 64

static bool is_part(const char *part, const char *whole) {
    size_t n = strlen(part), length = strlen(whole);
    if (n == 0 || n >= length)
        return false;
    bool begins = strncmp(part, whole, n) == 0 && whole[n] == '.';
    bool ends = strcmp(whole + length - n, part) == 0 && whole[length - n - 1] == '.';
    return begins || ends;
}

/* In half steps: a word that differs in case only, or is a part, comes before one that differs in a letter.
 */
static int steps(const char *word, const char *known) {
    if (strcasecmp(word, known) == 0 || is_part(word, known))
        return strcmp(word, known) == 0 ? 0 : 1;
    int distance = svi_edit_distance(word, known, FARTHEST);
    return distance > FARTHEST ? INT_MAX : 2 * distance;
}

const char *svi_nearest(const char *word, const char *const *words) {
    const char *nearest = NULL;
    int least = INT_MAX;
    for (int i = 0; words[i]; i++) {
        int n = steps(word, words[i]);
        if (n < least) {
            least = n;
            nearest = words[i];
        }
    }
    return nearest;
}
