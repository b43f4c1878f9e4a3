/* merge.h: the parts of one exact model: their last records, by name, and the model of the union of all their
 * samples (merge_solve.h).
 *
 * Of each part the record with the largest (part_epoch, offset) holds, among equal ones that of the later
 * event. */
#ifndef SVI_MERGE_H
#define SVI_MERGE_H

#include "merge/part_join.h"
#include "merge/part.h"
#include "merge/union_sums.h"
#include "svmstream/model.h"
#include "wire/pack.h"

#define SVI_MERGE_PARTS_MAX 65536

struct svi_merge_options {
    double C;    /* 0: that of the parts, which must agree */
    bool scaled; /* `scale` is given; else that of the parts, which must agree */
    svs_scale scale;
    int max_features, max_classes; /* of the union */
    double max_bytes;              /* of the payloads that are held */
    double stale;                  /* seconds of silence; 0: never */
    const char
        *dropped; /* names of parts that are dropped when they appear, separated by commas; NULL: none */
};

enum svi_merge_taken {
    SVI_TAKEN_NEW,   /* it replaces the last one of its part, or begins one */
    SVI_TAKEN_AGAIN, /* the one that is held */
    SVI_TAKEN_OLD    /* older than the one that is held */
};

struct svi_merge_counts {
    int64_t taken, again, old, refused; /* records */
};

struct svi_merge {
    struct svi_merge_options o;
    struct svi_part **part; /* [count], by name */
    int64_t count, capacity;
    double bytes; /* of the payloads that are held */
    struct svi_merge_counts counts;
    bool changed;                  /* since the last solution */
    uint64_t version;              /* of the last model; 0: no model */
    svs_model *model;              /* NULL: none, see `failure` */
    svs_error failure;             /* of the last solution; code SVS_OK: it succeeded */
    struct svi_bytes schema, next; /* of the model; of the one that is made */
    struct svi_union_sums sums;
};

/* *m must be zero. Only `o` is set. */
void svi_merge_init(struct svi_merge *m, const struct svi_merge_options *o);
void svi_merge_clear(struct svi_merge *m);

/* Takes a record from anybody at monotonic time `now`. Codes of svi_sums_decode; SVS_TOO_LARGE: a number
 * beyond what can be added; SVS_LIMIT: too many parts, or too many bytes. A refused record changes nothing.
 */
svs_code svi_merge_take(struct svi_merge *m, const void *payload, size_t size, double now,
                        enum svi_merge_taken *taken, svs_error *err);

/* Leaves a part out from now on; its records are still taken. SVS_UNKNOWN_ID: there is no such part;
 * SVS_UNAVAILABLE: it is dropped already (restore: it is not). */
svs_code svi_merge_drop(struct svi_merge *m, const char *name, svs_error *err);
svs_code svi_merge_restore(struct svi_merge *m, const char *name, svs_error *err);

/* Marks the parts that have been silent for too long, and forgets the second process of a part when that has.
 * True: a mark has changed. */
bool svi_merge_mark(struct svi_merge *m, double now);

/* The number of parts in each state. */
void svi_merge_states(const struct svi_merge *m, int64_t count[SVI_PART_STATE_COUNT]);

/* Packs the array of all parts, as the key `parts` of a model event has it; with `why` also the reason of
 * each that is refused. */
void svi_merge_put_parts(const struct svi_merge *m, double now, bool why, struct svi_pack *p);

/* The same, with reasons, of the first `most` parts that are stale, refused, dropped or contested. */
void svi_merge_put_others(const struct svi_merge *m, double now, int most, struct svi_pack *p);

#endif
