/* fields.h: the keys of one map that a reader of files wants, found once, then taken with their type and
 * range checked. Part of the readers of models; the bytes were checked by svi_msgpack_check. */
#ifndef SVI_FIELDS_H
#define SVI_FIELDS_H

#include "wire/cursor.h"

#define SVI_FIELDS_MAX 24

struct svi_fields {
    const char *what;         /* "kernel model": for error texts */
    const char *const *names; /* count of them, all of which there must be */
    int count;
    const uint8_t *at[SVI_FIELDS_MAX]; /* out: where each value stands */
    svs_error *err;
};

/* what, names, count and err are set. Of a key that is there twice the last counts; unknown keys are passed
 * over. SVS_WRONG_TYPE. */
svs_code svi_fields_find(struct svi_fields *f, const uint8_t *bytes, const uint8_t *end);

/* Each takes the value of key k; SVS_WRONG_TYPE with a text when it is not what is asked for. */
svs_code svi_field_number(struct svi_fields *f, int k, double low, double high, double *out); /* finite */
svs_code svi_field_integer(struct svi_fields *f, int k, int64_t low, int64_t high, int64_t *out);
svs_code svi_field_word(struct svi_fields *f, int k, const char *const *words, int count, int *out);

/* Packed doubles (ext 2): their number, -1 when it is none (the text is written). */
int64_t svi_field_packed(struct svi_fields *f, int k, const uint8_t **body);

/* The i-th of packed doubles. */
double svi_packed_double(const uint8_t *body, int64_t i);

/* `count` of them, all finite: SVS_NOT_FINITE. */
svs_code svi_field_doubles(struct svi_fields *f, int k, const uint8_t *body, int64_t count, double *out);

bool svi_item_is(const struct svi_item *item, const char *text);

#endif
