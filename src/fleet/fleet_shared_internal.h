/* fleet_shared_internal.h: the bank that all keys share, for its own sources:
 *
 *  - fleet_shared.c: an element: its row, its score, its label, taking back
 *  - fleet_shared_bounds.c: which rows, labels and keys it learns from
 *  - fleet_shared_state.c: its state, and what a key keeps of it */
#ifndef SVI_FLEET_SHARED_INTERNAL_H
#define SVI_FLEET_SHARED_INTERNAL_H

#include "fleet/fleet_internal.h"

#define SVI_SHARED_KEY_BITS   6 /* of the hash, a feature each */
#define SVI_SHARED_KEY_LABELS 4 /* features of the key's labels at most */
#define SVI_SHARED_EXTRAS     (SVI_SHARED_KEY_BITS + SVI_SHARED_KEY_LABELS)
#define SVI_SHARED_WAITING    10000 /* rows that wait for a label */

/* Where a feature of the bank comes from: a column of the schema (from 0), or one of these. */
#define SVI_SHARED_BIT(i)   (-1 - (i))
#define SVI_SHARED_LABEL(i) (-1 - SVI_SHARED_KEY_BITS - (i))

/* A sample of the host: its key and its id there. */
struct svi_shared_slot {
    uint64_t key; /* number of the key + 1; 0: none */
    uint8_t id[16];
};

struct svi_fleet_shared {
    struct svi_schema schema;
    struct svi_columns columns;
    svs_learner *host;
    svi_bank *bank;
    int max_features, max_classes;
    bool regress;
    int32_t *source;      /* max_features + SVI_SHARED_EXTRAS */
    int *place;           /* by column: its feature */
    int features, placed; /* of the bank; columns that have one */
    double *row, *scores;
    double *middle,
        *limit; /* by column: bounds (INFINITY: none); limit < 0: the value is only cut at -limit */
    double target_middle, target_limit, most;   /* of targets; largest weight */
    double early_weight, early_low, early_high; /* of what was learned before bounds were known */
    uint64_t bounds_of;                         /* number of the prior they are of, + 1; 0: none */
    int bounded;                                /* columns with bounds */
    struct svi_shared_slot held[SVI_AUTO_WINDOW], waiting[SVI_SHARED_WAITING];
    uint64_t recent[SVI_SHARE_ROWS]; /* keys of the last rows learned */
    int64_t learned, taken;          /* rows; elements */
    double time;
    bool knew_bounds;         /* bounds have been known */
    bool wide;                /* the shares of more than two classes are features */
    struct svi_key_share all; /* averages over all labels */
    svs_value *label;         /* classes, which other threads read: those before label_count never change */
    char (*name)[SVS_NAME_MAX];
    int label_count;
    struct svi_stack_start start, part[SVI_FLEET_PARTS];
    struct svi_shared_score score; /* of the element at hand */
};

/* ---- fleet_shared_bounds.c */

/* Reads the bounds of the prior again if it is another one, or if there are more columns. */
void svi_fleet_shared_read_bounds(struct svi_fleet *f);

/* Is the row of d values normal among keys? Columns that vary in too few keys are cut. */
bool svi_fleet_shared_bound(struct svi_fleet_shared *sh, double *x, int d);

/* May this key teach a label of this weight now? */
bool svi_fleet_shared_admits(const struct svi_fleet *f, const struct svi_key_entry *entry, svs_value y,
                             double weight);

/* ---- fleet_shared.c */

/* Which samples are held now: a category's feature may change hands when none of them has it. */
void svi_fleet_shared_note_held(struct svi_fleet_shared *sh);

/* Classes that the host has met; strings are copied, as other threads read them. */
void svi_fleet_shared_note_classes(struct svi_fleet_shared *sh);

#endif
