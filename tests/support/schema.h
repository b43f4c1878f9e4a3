/* schema.h: a schema without settings, for tests of what decodes into one. */
#ifndef SUPPORT_SCHEMA_H
#define SUPPORT_SCHEMA_H

#include "features/schema.h"

static inline svs_code schema_open(struct svi_schema *s, int max_features, const char *features,
                                   svs_error *err) {
    const struct svi_schema_options o = {.max_features = max_features,
                                         .features = features,
                                         .categories_max = 100,
                                         .missing = SVI_MISSING_AUTO};
    return svi_schema_init(s, &o, err);
}

#endif
