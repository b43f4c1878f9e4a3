/* schema_text.h: the columns of a model as text for people, and the size of a schema in bytes. */
#ifndef SVI_SCHEMA_TEXT_H
#define SVI_SCHEMA_TEXT_H

#include <stdio.h>

#include "svmstream/model.h"

/* Prints a line for each column and one for the calendar; nothing if the model has no schema. Codes of
 * svi_schema_decode. */
svs_code svi_schema_print(const svs_model *m, FILE *to, svs_error *err);

/* Measures the schema of raw rows that begins at `at`, in bytes that passed svi_msgpack_check: *size.
 * Verifies by decoding it that it is a schema of these d features; callers keep the bytes themselves.
 * Codes of svi_schema_decode. */
svs_code svi_schema_measure(const char *const *features, int d, const uint8_t *at, const uint8_t *end,
                            size_t *size, svs_error *err);

#endif
