/* cell.h: a piece of text as a label, an id or a missing value; what the text formats share. Spans end like
 * lines (reader_internal.h). */
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

/* Without the blanks around it. */
struct svi_span svi_trim(struct svi_span s);

/* Is it this name? */
bool svi_span_is(struct svi_span s, const char *name);

/* The words for a missing value where the settings name none. */
#define SVI_MISSING_WORDS                                                                                    \
    "NA,NaN,null,?,-,N/A,#N/A,#N/A N/A,#NA,<NA>,None,-NaN,1.#IND,-1.#IND,1.#QNAN,-1.#QNAN"

/* Is it one of these names, which are separated by commas, blanks around them dropped? NULL: there are none.
 */
bool svi_span_listed(struct svi_span s, const char *names);

/* Words for a missing value, and what tells most cells that they are none of them. */
struct svi_missing_words {
    const char *words;         /* separated by commas; they outlive this */
    bool numbers;              /* a number is among them */
    bool first[UCHAR_MAX + 1]; /* bytes that they begin with */
};

/* NULL: SVI_MISSING_WORDS. */
void svi_missing_words_init(struct svi_missing_words *m, const char *words);

/* Is it one of the words, in any case? Where the word is a number: any text of that number. */
bool svi_missing_words_have(const struct svi_missing_words *m, struct svi_span s);

/* Nothing, or one of the words. */
static inline bool svi_cell_missing(const struct svi_missing_words *m, struct svi_span s) {
    return s.at == s.end || (m->first[(unsigned char)*s.at] && svi_missing_words_have(m, s));
}

/* Is it one of these words, in any case? */
bool svi_span_is_any(struct svi_span s, const char *words);

/* Is it None, in any case? That stands for a missing value, but a label may be called so. */
static inline bool svi_cell_none(struct svi_span s) {
    return svi_span_is_any(s, "none");
}

/* [+-] inf or infinity, in any case. */
bool svi_cell_infinite(struct svi_span s);

/* The time of a text, by the format of the settings (NULL or "": none), ISO 8601, or that order. */
bool svi_cell_time(struct svi_span s, const char *format, enum svi_time_order order, double *seconds);

/* Is it a number or a time? */
bool svi_cell_measures(struct svi_span s);

/* The cell is this word. False: it is not UTF-8. */
bool svi_cell_word(struct svi_cell *cell, struct svi_span word);

/* A whole cell as a number (which may be infinite when it overflows). */
bool svi_cell_number(struct svi_span s, double *value);

/* SVS_INT when it is integral and at most 2^53 in size, else SVS_REAL. */
svs_value svi_label_number(double y);

/* Nothing, or one of the words (NULL: there are none): SVS_NONE; integer text: SVS_INT; another number: as
 * svi_label_number; else SVS_STR, a view of it. SVS_NOT_FINITE, SVS_TOO_LARGE (over SVS_NAME_MAX bytes),
 * SVS_BAD_LABEL (not UTF-8).
 */
svs_code svi_cell_label(struct svi_span s, const struct svi_missing_words *missing, svs_value *y,
                        svs_error *err);

/* One of the words `missing`: SVS_NONE; integer text: SVS_INT; else SVS_STR, a view. SVS_BAD_ID. */
svs_code svi_cell_id(struct svi_span s, const struct svi_missing_words *missing, svs_value *id,
                     svs_error *err);

/* The key of a row: one of the words `missing`: SVS_NONE; else its text as it stands, a view: 007 is not 7.
 * SVS_BAD_KEY (over SVS_KEY_MAX bytes, not UTF-8). */
svs_code svi_cell_key(struct svi_span s, const struct svi_missing_words *missing, svs_value *key,
                      svs_error *err);

/* A weight, finite and above 0. SVS_BAD_WEIGHT. */
svs_code svi_check_weight(double w, svs_error *err);

/* The text of a span for an error message: escaped, at most `size` bytes. */
char *svi_span_text(struct svi_span s, char *out, size_t size);

#endif
