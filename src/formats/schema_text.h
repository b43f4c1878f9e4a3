/* schema_text.h: what the columns of a model are, for people. */
#ifndef SVI_SCHEMA_TEXT_H
#define SVI_SCHEMA_TEXT_H

#include <stdio.h>

#include "svmstream/model.h"

/* A line for each column, and one of the calendar; nothing without a schema. Codes of svi_schema_decode. */
svs_code svi_schema_print(const svs_model *m, FILE *to, svs_error *err);

#endif
