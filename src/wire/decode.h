/* decode.h: the elements of an envelope -> messages, by a bounded cursor of our own that allocates nothing.
 * Keys and values: the manual, page protocol, section "Samples". */
#ifndef SVI_DECODE_H
#define SVI_DECODE_H

#include "features/schema.h"
#include "wire/envelope.h"

/* Decodes the next element (e->left > 0), whatever became of the ones before. The values of an array stay in
 * its order, which e->columns may name (columns.h); an element that only names columns has no x.
 * SVS_WRONG_TYPE, SVS_NOT_FINITE, SVS_DUPLICATE_KEY, SVS_BAD_COLUMN, SVS_LIMIT, SVS_BAD_LABEL,
 * SVS_BAD_WEIGHT, SVS_BAD_ID, SVS_UNKNOWN_OP, SVS_TOO_LARGE: the schema may hold new names until
 * svi_schema_restore. */
svs_code svi_envelope_next(struct svi_envelope *e, struct svi_schema *schema, struct svi_message *m,
                           svs_error *err);

#endif
