/* json_message.h: a message in JSON -> the msgpack message that a producer would have sent.
 *
 * JSON begins with { or [ (blanks in front of it are passed over): bytes that begin no sample and no request
 * of msgpack. What comes on a socket is turned over on receipt, so that all that follows (envelope, access,
 * journal, engine, recovery) knows one form.
 *
 *  - An object with `x`, `op` or a list of `columns` is that map. In `x` true and false are 1 and 0, under a
 * name NaN and "" are missing; `ts` may be ISO 8601 text; where there is an x and no `missing`, "missing":
 * "mean" is added, because JSON leaves out what is missing.
 *  - Any other object is a flat row, as of JSON lines (data/reader.h), but nothing is guessed from further
 * rows: columns are what the settings say, all others are features, in the order in which they stand. Without
 * the setting label, and without a column of its default, the column of the first row whose name is most that
 * of a label is the label (column_guess.h). Without
 * the setting ts the first column with ISO 8601 text is the time, and stays it; other columns with such text
 * are left out, for a time is no category.
 *  - An array is a batch of such objects; `sample` of a request is one, or a batch.
 *  - An object in a flat row, or in `x`, stays a map in x, which is columns of joined names (decode.h).
 *
 * Numbers without point and exponent are integers where they fit int64, others the nearest double; what is
 * not finite (1e999, Infinity) stays that and is refused where the sample is decoded. */
#ifndef SVI_JSON_MESSAGE_H
#define SVI_JSON_MESSAGE_H

#include "base/bytes.h"
#include "data/cell.h"
#include "data/text_options.h"

#define SVI_JSON_GROWTH 9 /* the message has at most this many times the bytes of its text: {} has 17 */

/* What the columns of flat rows are, and what is used again. Zero-initialised: label is the label. */
struct svi_json_input {
    struct svi_reader_options columns; /* what the settings say: label, id, ts, weight, key, ignore,
                                          categories, numbers, features, missing */
    char label[SVS_NAME_MAX + 1];      /* the column that is the label by its name; "" = none */
    struct svi_missing_words missing;  /* of the columns, once the first message came */
    bool looked;                       /* for it, in the first flat row */
    char time[SVS_NAME_MAX + 1];       /* the column that was found to be the time; "" = none yet */
    struct svi_bytes text;             /* of the message in hand; owned */
};

void svi_json_input_clear(struct svi_json_input *in);

bool svi_json_begins(const void *bytes, size_t size);

/* Adds the message to `out`. SVS_NOT_JSON, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_TOO_LARGE (a batch
 * of more than SVI_BATCH_MAX), with the place; SVS_NO_MEMORY: err is not NULL. Then `out` is as it was. */
svs_code svi_json_message(struct svi_json_input *in, const void *text, size_t size, struct svi_bytes *out,
                          svs_error *err);

#endif
