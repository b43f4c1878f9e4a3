/* json_value.h: any JSON text as msgpack. */
#ifndef SVI_JSON_VALUE_H
#define SVI_JSON_VALUE_H

#include "wire/pack.h"

/* Packs one value of any type: integers that fit int64 as integers, NaN and infinities as nil. SVS_NO_MEMORY,
 * and the codes of svi_json_check_value for a text that is not JSON: nothing is packed then. */
svs_code svi_pack_json(struct svi_pack *p, const char *text, svs_error *err);

#endif
