/* cell.h: what the text formats share: a span of text read as a label, an id, a key, a number, a time, or a
 * missing value.
 *
 * Spans passed here end like lines (reader_internal.h): the byte at `end` cannot be part of a number, and
 * SVI_NUMBER_PAD bytes after it are readable. */
#ifndef SVI_CELL_H
#define SVI_CELL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "data/message.h"
#include "data/span.h"
#include "base/time_text.h"
#include "svmstream/error.h"
#include "svmstream/value.h"

static inline bool svi_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The span without the blanks (space, tab, CR) at both ends. */
struct svi_span svi_trim(struct svi_span s);

/* Is the span exactly this name? */
bool svi_span_is(struct svi_span s, const char *name);

/* The default words for a missing value, separated by commas. */
#define SVI_MISSING_WORDS                                                                                    \
    "NA,NaN,null,?,-,N/A,#N/A,#N/A N/A,#NA,<NA>,None,-NaN,1.#IND,-1.#IND,1.#QNAN,-1.#QNAN"

/* Is the span one of the comma-separated names, by case? Blanks around a name are ignored. NULL: an empty
 * list. */
bool svi_span_listed(struct svi_span s, const char *names);

/* The words for a missing value, with a filter by first byte that rejects most cells at once. */
struct svi_missing_words {
    const char *words;         /* separated by commas; a view that must outlive this */
    bool numbers;              /* at least one word is a number */
    bool first[UCHAR_MAX + 1]; /* first bytes of the words, in both cases */
};

/* Sets up the filter for `words`; NULL: SVI_MISSING_WORDS. */
void svi_missing_words_init(struct svi_missing_words *m, const char *words);

/* Is the span one of the words, in any case? A word that is a number matches every text of that number: -999
 * also stands for -999.0. */
bool svi_missing_words_have(const struct svi_missing_words *m, struct svi_span s);

/* Is the cell empty, or one of the words? */
static inline bool svi_cell_missing(const struct svi_missing_words *m, struct svi_span s) {
    return s.at == s.end || (m->first[(unsigned char)*s.at] && svi_missing_words_have(m, s));
}

/* Is the span one of the comma-separated words, in any case? */
bool svi_span_is_any(struct svi_span s, const char *words);

/* Is the span None, in any case? By default None means missing, but it may also be the name of a class. */
static inline bool svi_cell_none(struct svi_span s) {
    return svi_span_is_any(s, "none");
}

/* Is the span [+-] inf or infinity, in any case? */
bool svi_cell_infinite(struct svi_span s);

/* Reads a time in seconds since 1970. Tried in order: the strptime format of the settings (NULL or "": none),
 * ISO 8601, a date in `order`. False: none of them fits. */
bool svi_cell_time(struct svi_span s, const char *format, enum svi_time_order order, double *seconds);

/* Does the span read as a number, a time, a date in either order, or a time of day? */
bool svi_cell_measures(struct svi_span s);

/* Makes the cell this word, as a view. False, and the cell is unchanged: the word is not valid UTF-8. */
bool svi_cell_word(struct svi_cell *cell, struct svi_span word);

/* Reads the whole span as a number; an overflow gives infinity. False: the span is not exactly one number. */
bool svi_cell_number(struct svi_span s, double *value);

/* A label from a number: SVS_INT when it is integral and at most 2^53 in magnitude, else SVS_REAL. */
svs_value svi_label_number(double y);

/* Reads a label. Empty, or one of the words (NULL: no words): SVS_NONE; integer text: SVS_INT; another
 * number: as svi_label_number; else SVS_STR, a view. SVS_NOT_FINITE, SVS_TOO_LARGE (over SVS_NAME_MAX bytes),
 * SVS_BAD_LABEL (not UTF-8). */
svs_code svi_cell_label(struct svi_span s, const struct svi_missing_words *missing, svs_value *y,
                        svs_error *err);

/* Reads an id. Empty, or one of the words `missing`: SVS_NONE; integer text: SVS_INT; else SVS_STR, a view.
 * SVS_BAD_ID: over SVS_NAME_MAX bytes or not UTF-8. */
svs_code svi_cell_id(struct svi_span s, const struct svi_missing_words *missing, svs_value *id,
                     svs_error *err);

/* Reads the key of a row. Empty, or one of the words `missing`: SVS_NONE; else the text unchanged, a view:
 * 007 and 7 are different keys. SVS_BAD_KEY: over SVS_KEY_MAX bytes, with a NUL, or not UTF-8. */
svs_code svi_cell_key(struct svi_span s, const struct svi_missing_words *missing, svs_value *key,
                      svs_error *err);

/* Accepts a weight that is finite and above 0. SVS_BAD_WEIGHT. */
svs_code svi_check_weight(double w, svs_error *err);

/* Writes the span for an error message, escaped, into `out` of `size` bytes; returns `out`. */
char *svi_span_text(struct svi_span s, char *out, size_t size);

#endif
