#include "fleet/key_word.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MIN_PREFIX 3
#define MAX_WORD   (SVI_KEY_WORD - 4) /* bytes; the longest ending replaces one and adds three */

/* Bytes above 127 belong to letters of other scripts, so a word in UTF-8 stays whole. */
static bool word_is_letter(char c) {
    return isalpha((unsigned char)c) || (unsigned char)c > 127;
}

static bool word_is_separator(char c) {
    return c == '_' || c == '-' || c == ' ' || c == '.';
}

/* The column's name as a word, with spaces between its parts. False: it is not a word, as a number is not. */
static bool word_of_column(char out[SVI_KEY_WORD], const char *column) {
    static const char *const suffixes[] = {"id", "no", "nr", "number", "name", "key"};
    size_t length = strlen(column);
    if (length == 0 || length > MAX_WORD)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!word_is_letter(column[i]) && !word_is_separator(column[i]))
            return false;
        out[i] = word_is_separator(column[i]) ? ' ' : column[i];
    }
    out[length] = '\0';
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t n = strlen(suffixes[i]);
        /* After a separator, or as machineId: "grid" keeps its end. */
        const bool apart = length > n + 1 && out[length - n - 1] == ' ' &&
                           strncasecmp(out + length - n, suffixes[i], n) == 0;
        const bool camel = length > n && islower((unsigned char)out[length - n - 1]) &&
                           isupper((unsigned char)out[length - n]) &&
                           strncasecmp(out + length - n, suffixes[i], n) == 0;
        if (!apart && !camel)
            continue;
        out[length - n - apart] = '\0';
        break;
    }
    return word_is_letter(out[0]) && word_is_letter(out[strlen(out) - 1]) && strcasecmp(out, "key") != 0;
}

/* The letters that every name begins with, followed by none. */
static bool word_of_names(char out[SVI_KEY_WORD], const char *const *names, int count) {
    size_t length = 0;
    while (count > 0 && word_is_letter(names[0][length]))
        length++;
    if (length < MIN_PREFIX || length > MAX_WORD)
        return false;
    for (int i = 1; i < count; i++)
        if (strncmp(names[i], names[0], length) != 0 || word_is_letter(names[i][length]))
            return false;
    memcpy(out, names[0], length);
    out[length] = '\0';
    return true;
}

static bool word_ends(const char *word, const char *end) {
    const size_t length = strlen(word), n = strlen(end);
    return length >= n && strcmp(word + length - n, end) == 0;
}

/* The plural by the common rules of English. A name that ends in a single s is taken for a plural. */
static void word_plural(char word[SVI_KEY_WORD]) {
    static const char *const with_es[] = {"ss", "us", "as", "is", "x", "z", "ch", "sh"};
    const size_t length = strlen(word);
    const char *end = word_ends(word, "s") ? "" : "s";
    for (size_t i = 0; i < sizeof with_es / sizeof *with_es; i++)
        if (word_ends(word, with_es[i]))
            end = "es";
    const bool y = length > 1 && word[length - 1] == 'y' && !strchr("aeiou", word[length - 2]);
    memcpy(word + length - y, y ? "ies" : end, strlen(y ? "ies" : end) + 1);
}

const char *svi_key_word(char out[SVI_KEY_WORD], const char *column, const char *const *names, int count) {
    if (!word_of_column(out, column) && !word_of_names(out, names, count))
        snprintf(out, SVI_KEY_WORD, "key");
    /* Press and PRESS-01 differ: a word begins small, an acronym stays. */
    if (!isupper((unsigned char)out[1]))
        out[0] = (char)tolower((unsigned char)out[0]);
    word_plural(out);
    return out;
}
