/* json_message.h: converts a message in JSON into the msgpack message that a producer would have sent.
 *
 * JSON begins with { or [ (after blanks), bytes that begin no sample and no request in msgpack. A message is
 * converted on receipt, so that everything after it (envelope, access, journal, engine, recovery) knows one
 * form only.
 *
 *  - An object with `x`, `op` or a list of `columns` is that map. In `x`, true and false become 1 and 0, and
 * under a name NaN and "" are missing. `ts` may be ISO 8601 text. If x is present and `missing` is not, the
 * pair "missing": "mean" is added, because JSON producers omit missing values.
 *  - Any other object is a flat row, as in JSON lines (data/reader.h), but nothing is guessed from later
 * rows. The settings give columns a meaning; all others are features, in their order. Without the setting
 * label, and without a column of its default name, the column of the first row whose name is clearly the best
 * match for a label becomes the label (column_guess.h). Without the setting ts, the first column with ISO
 * 8601 text becomes the time for good; other columns with such text are left out, because a time is not a
 * category.
 *  - An array is a batch of such objects; `sample` of a request is one object or a batch.
 *  - An object in a flat row or in `x` stays a map in x, whose pairs are columns with joined names
 * (decode.h).
 *
 * Numbers without point and exponent become integers if they fit int64, other numbers the nearest double.
 * Values that are not finite (1e999, Infinity) are passed on, and refused when the sample is decoded. */
#ifndef SVI_JSON_MESSAGE_H
#define SVI_JSON_MESSAGE_H

#include "base/bytes.h"
#include "data/cell.h"
#include "data/text_options.h"

#define SVI_JSON_GROWTH 9 /* a message has at most this many times the bytes of its text: {} becomes 17 */

/* The meaning of the columns of flat rows, and scratch. Zero-initialised: the column `label` is the label. */
struct svi_json_input {
    struct svi_reader_options columns; /* from the settings: label, id, ts, weight, key, ignore, categories,
                                          numbers, features, missing; strings not owned */
    char label[SVS_NAME_MAX + 1];      /* the column that is the label by its name; "": none */
    char id[SVS_NAME_MAX + 1];         /* a feature whose name is that of an identifier (no setting id); "": none */
    struct svi_missing_words missing;  /* from columns.missing, set by the first message */
    bool looked;                       /* the first flat row was searched for the label and `id` */
    char time[SVS_NAME_MAX + 1];       /* the column that was recognised as the time; "": none yet */
    struct svi_bytes text;             /* padded copy of the current message; owned */
};

void svi_json_input_clear(struct svi_json_input *in); /* frees */

/* Do the bytes begin a message in JSON? */
bool svi_json_begins(const void *bytes, size_t size);

/* Appends the converted message to `out`. SVS_NOT_JSON, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP,
 * SVS_TOO_LARGE (a batch of more than SVI_BATCH_MAX), with the place in the text; SVS_NO_MEMORY. `err` must
 * not be NULL. After a failure `out` is unchanged. */
svs_code svi_json_message(struct svi_json_input *in, const void *text, size_t size, struct svi_bytes *out,
                          svs_error *err);

#endif
