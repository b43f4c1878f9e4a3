/* key_quality.h: what came of a file whose rows have keys: a line for each of them, the worst first, and what
 * all of them come to. Beside the quality of each stands that of saying the label before, for a key that is
 * no better has learned nothing. */
#ifndef SVI_KEY_QUALITY_H
#define SVI_KEY_QUALITY_H

#include "report/quality_report.h"

#define SVI_KEY_QUALITY_SHOWN "50" /* where nothing else is asked for */

struct svi_key_quality;

/* All keys of the report's engine, and '' where it has rows, the worst first. NULL: SVS_NO_MEMORY, or what a
 * key that is out of memory cannot be read for. Owner: the caller. */
struct svi_key_quality *svi_key_quality_new(const struct svi_quality_report *r, svs_error *err);
void svi_key_quality_free(struct svi_key_quality **k);

/* On standard output, with at most `limit` keys of `rows` rows at least. */
void svi_key_quality_print(const struct svi_key_quality *k, int64_t limit, int64_t rows);

/* What people should know of it: how many keys are no better than saying the label before. */
void svi_key_quality_verdict(const struct svi_key_quality *k, FILE *to);

/* Appends the figures of the stream with `by_key`, an array of all keys with that many rows at least.
 * SVS_NO_MEMORY. */
svs_code svi_key_quality_pack(const struct svi_key_quality *k, int64_t rows, struct svi_bytes *out,
                              svs_error *err);

#endif
