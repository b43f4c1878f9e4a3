/* decode.h: decodes the elements of an envelope into messages, with a bounded cursor that allocates nothing.
 * Keys and values: manual page protocol, section "Samples". */
#ifndef SVI_DECODE_H
#define SVI_DECODE_H

#include "features/schema.h"
#include "wire/envelope.h"

/* Decodes the next element (e->left > 0) into *m, also after an earlier element failed. The values of an
 * array stay in its order, which e->columns may name (svi_columns_order); an element that only names columns
 * has no x. Strings of *m point into the envelope's bytes. SVS_WRONG_TYPE, SVS_NOT_FINITE, SVS_DUPLICATE_KEY,
 * SVS_BAD_COLUMN, SVS_WRONG_COLUMNS, SVS_WRONG_DIMENSION, SVS_LIMIT, SVS_MISSING_X, SVS_BAD_LABEL,
 * SVS_BAD_WEIGHT, SVS_BAD_ID, SVS_UNKNOWN_OP, SVS_TOO_LARGE: the schema may then hold new names, which
 * svi_schema_restore removes. */
svs_code svi_envelope_next(struct svi_envelope *e, struct svi_schema *schema, struct svi_message *m,
                           svs_error *err);

#endif
