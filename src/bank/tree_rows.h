/* tree_rows.h: the last labelled rows, from which the boosted trees of a bank are fitted.
 *
 * A ring of rows of d floats, each with its label, target, weight and the number that the host gave
 * it. A value is stored less the origin of its column, the first value that the column had. A time
 * stamp thus keeps its digits in single precision. Values are cut at the largest float.
 *
 * Rows have places that rise by one from 0, and row i lies at i modulo the capacity. The capacity
 * is larger than the rows of a fit. A fit on another thread can therefore read its rows in place
 * while further ones are pushed, up to svi_tree_rows_slack. Only the pushed row and the `live`
 * flags are written, and a fit takes a copy of the flags. Functions that are marked "no fit" change
 * rows that a fit may read. */
#ifndef SVI_TREE_ROWS_H
#define SVI_TREE_ROWS_H

#include "base/archive.h"
#include "svmstream/error.h"

struct svi_tree_rows {
    int d;                /* values of a row */
    int stride;           /* values allocated a row */
    int known;            /* columns that have an origin */
    int64_t kept;         /* rows that fits can use; 0 until the first svi_tree_rows_grow */
    int64_t capacity;     /* rows allocated, a multiple of SVI_TREE_CHUNK */
    int64_t pushed;       /* rows so far: the place of the next one */
    int64_t oldest;       /* no row before this place is used */
    double *origin;       /* stride */
    double target_origin; /* the first target */
    float *x;             /* capacity x stride */
    int64_t *number;      /* capacity; the host's, -1: it has no such sample any more */
    float *target;        /* capacity; less target_origin */
    float *weight;        /* capacity */
    int32_t *label;       /* capacity; -1 in a regression */
    uint8_t *live;        /* capacity; 0: taken back */
};

#define SVI_TREE_CHUNK 64 /* rows of a block in the archive; chunks lie in one piece */

/* Rows that are kept at d values, and the further ones that fit into the ring with them. */
int64_t svi_tree_rows_kept(int d);
int64_t svi_tree_rows_slack(int d);

/* No fit. d values a row from now on; new ones were 0 so far. SVS_NO_MEMORY: nothing has changed. */
svs_code svi_tree_rows_grow(struct svi_tree_rows *r, int d, svs_error *err);
void svi_tree_rows_clear(struct svi_tree_rows *r); /* no fit; frees */
void svi_tree_rows_empty(struct svi_tree_rows *r); /* no fit; forgets all rows and origins */

/* True if the next push of a row with d values writes to rows that are there. */
static inline bool svi_tree_rows_rewrites(const struct svi_tree_rows *r) {
    return r->known < r->d;
}

/* A row as floats; `x` has d - 1 values after `first`, or d if `first` is NULL. */
void svi_tree_rows_convert(const struct svi_tree_rows *r, const double *first, const double *x, float *out);

struct svi_tree_row {
    const double *first; /* value of column 0, before x; NULL: x has all d */
    const double *x;
    int64_t number;
    double target, weight;
    int label;
};

/* Appends a row. No fit if svi_tree_rows_rewrites. */
void svi_tree_rows_push(struct svi_tree_rows *r, const struct svi_tree_row *row);

/* The row with this number of the host is left out by fits that begin later. */
void svi_tree_rows_remove(struct svi_tree_rows *r, int64_t number);
bool svi_tree_rows_live(const struct svi_tree_rows *r, int64_t number);

/* No fit. Sets a column to 0 in all rows. */
void svi_tree_rows_renew(struct svi_tree_rows *r, int j);

/* Saves, or loads into rows that have been grown to at least the d saved. Labels are below `classes`; 0: a
 * regression. No fit. */
void svi_tree_rows_archive(struct svi_archive *a, struct svi_tree_rows *r, int classes);

double svi_tree_rows_memory(int d); /* bytes */

#endif
