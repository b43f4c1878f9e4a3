/* sums.h: a sums record, the payload of an event of the topic `sums.`: the sums over one window, and what is
 * needed to join them with those of other parts: names of features and classes, the schema, settings.
 *
 * A record is absolute. It replaces the earlier one of its part, and of one part the largest (part_epoch,
 * offset) holds, so lost, repeated and late records do no harm (svi_sums_newer). */
#ifndef SVI_SUMS_H
#define SVI_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "learner/window_sums.h"
#include "svmstream/learner.h"
#include "wire/pack.h"

#define SVI_PART_MAX 64 /* bytes of the name of a part */

enum svi_sums_kind { SVI_SUMS_DENSE = 0, SVI_SUMS_SPARSE, SVI_SUMS_NAMED };

/* Names, labels and maps point into `text` of a decoded record; else they belong to the caller. */
struct svi_sums {
    char part[SVI_PART_MAX + 1];
    uint64_t part_epoch;
    int64_t offset; /* samples accepted when it was made */
    svs_task task;
    enum svi_sums_kind kind;
    int64_t window; /* of the learner; 0: all samples */
    double C;
    svs_scale scale;
    const char *const *features; /* [sums.d] names; NULL: the columns have none */
    const svs_value *classes;    /* [sums.classes], in order of first appearance */
    const int32_t *unscaled; /* [unscaled_count] features that scale standard leaves as they are, ascending */
    int unscaled_count;
    uint64_t schema_hash; /* svi_sums_schema_hash; encoding computes it */
    const void *schema;   /* msgpack map (wire/schema_map.h); NULL: the columns are the features */
    size_t schema_size;
    const void *prior; /* msgpack map of the sums of stream keys; NULL: the stream has none */
    size_t prior_size;
    struct svi_window_sums sums;
    uint8_t *text; /* owned; NULL unless decoded */
};

void svi_sums_clear(struct svi_sums *r); /* frees what the record owns */

/* Does record (epoch, offset) replace one with (old_epoch, old_offset)? Equal ones do not. */
bool svi_sums_newer(uint64_t epoch, int64_t offset, uint64_t old_epoch, int64_t old_offset);

/* FNV-1a over "TASK KIND ", and for dense rows the number d as text or, with names, the sum of the FNV-1a of
 * each name: equal for parts whose rows can be joined as far as these show. Kinds of columns are not in it.
 */
uint64_t svi_sums_schema_hash(const struct svi_sums *r);

/* Puts the pairs of the record into an open map. */
void svi_sums_put(struct svi_pack *p, const struct svi_sums *r);

/* Replaces the content of `out` by these pairs without the head of a map; *pairs: their number.
 * SVS_NO_MEMORY. */
svs_code svi_sums_encode_pairs(const struct svi_sums *r, struct svi_bytes *out, size_t *pairs);

/* Appends one map with these pairs alone to `out`. SVS_NO_MEMORY: nothing was appended. */
svs_code svi_sums_encode(const struct svi_sums *r, struct svi_bytes *out);

/* Reads a payload from anybody into *r, which is cleared first; unknown keys are skipped. Memory is bounded
 * by the payload's size. SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP;
 * SVS_WRONG_TYPE (a key is absent, of another type or size, or a name is given twice), SVS_DUPLICATE_KEY,
 * SVS_NOT_FINITE, SVS_LIMIT, SVS_NO_MEMORY: *r is then clear. */
svs_code svi_sums_decode(struct svi_sums *r, const void *payload, size_t size, svs_error *err);

#endif
