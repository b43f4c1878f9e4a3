/* key_quality.h: results for a file whose rows have keys: a line for each key, worst first, and figures over
 * all keys. Next to the quality of each key is that of predicting the previous label: a key that is no better
 * has learned nothing. */
#ifndef SVI_KEY_QUALITY_H
#define SVI_KEY_QUALITY_H

#include "report/quality_report.h"

#define SVI_KEY_QUALITY_SHOWN "50" /* default of --limit */

struct svi_key_quality;

/* Collects all keys of the report's stream, and '' if it has rows, worst first. NULL: SVS_NO_MEMORY, or the
 * code with which a key that is on disk could not be read. Owner: the caller. */
struct svi_key_quality *svi_key_quality_new(const struct svi_quality_report *r, svs_error *err);
void svi_key_quality_free(struct svi_key_quality **k);

/* Prints on standard output at most `limit` keys of at least `rows` rows. */
void svi_key_quality_print(const struct svi_key_quality *k, int64_t limit, int64_t rows);

/* Prints how many keys are no better than predicting the previous label, if any. */
void svi_key_quality_verdict(const struct svi_key_quality *k, FILE *to);

/* Appends the figures of the stream with `by_key`, an array of all keys with at least `rows` rows.
 * SVS_NO_MEMORY. */
svs_code svi_key_quality_pack(const struct svi_key_quality *k, int64_t rows, struct svi_bytes *out,
                              svs_error *err);

#endif
