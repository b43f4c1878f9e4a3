/* schema_text.h: what the columns of a model are, for people. */
#ifndef SVI_SCHEMA_TEXT_H
#define SVI_SCHEMA_TEXT_H

#include <stdio.h>

#include "svmstream/model.h"

/* A line for each column, and one of the calendar; nothing without a schema. Codes of svi_schema_decode. */
svs_code svi_schema_print(const svs_model *m, FILE *to, svs_error *err);

/* The schema of raw rows that begins at `at`, in bytes that were checked: *size of it. It is kept as it came;
 * that it is one, of those d features, is seen by reading it. Codes of svi_schema_decode. */
svs_code svi_schema_measure(const char *const *features, int d, const uint8_t *at, const uint8_t *end,
                            size_t *size, svs_error *err);

#endif
