/* member_ops.h: the interface of a member of the bank. One table of functions runs one or several members
 * (a block of first-order models has several heads); members.c lists the tables and their members.
 *
 * STATE. `self` is `size` bytes that the bank allocates, zeroed, and keeps as long as it lives. What init
 * allocates, clear frees.
 *
 * ORDER. The bank goes through the tables in the order of members.c where they change: init, grow, learn,
 * archive. It goes from last to first where they score a row and where they take a sample back. So a table
 * that reads what another one made of the row stands before it: when it scores, the other has made it, and
 * when it learns, the label has not changed it yet.
 *
 * A function that is NULL has nothing to do; only score is mandatory. All but clear, archive and bytes are
 * called only while one of the members runs. Results depend on the calls alone: work prepared on another
 * thread is adopted at a fixed sample number, and waited for there. */
#ifndef SVI_MEMBER_OPS_H
#define SVI_MEMBER_OPS_H

#include "base/archive.h"
#include "base/follower.h"
#include "bank/standardiser.h"
#include "learner/learner_held.h"
#include "svmstream/learner.h"

struct svi_member_ops;
struct svi_member_part;

/* What members can see of the bank. */
struct svi_member_context {
    const svs_options *host; /* its max_features and max_classes are the upper bounds of d and classes */
    uint64_t seed;
    bool regress;
    bool threads;   /* work may be prepared on a thread */
    double cost;    /* nanoseconds a sample of all members that run, by the table of costs */
    int d, classes; /* of every member; a regression has 0 classes */
    int stride;     /* distance between the scores of two members; `rows` of them are used */
    const struct svi_member_part *part;
    int part_count;

    svi_follower *helper; /* for work that a member needs some samples later; NULL: none */

    /* the current row */
    const double *x; /* raw, d values; valid in score only */
    float *z;        /* standardised, zeros up to a multiple of SVI_FLOATS_PAD; valid in learn too */
    int rows, class_count;

    /* targets of a regression before the current row: their mean, and the last one */
    double center, last;
};

/* One table as part of a bank. */
struct svi_member_part {
    const struct svi_member_ops *ops;
    const struct svi_member_context *c;
    void *self;
    int first;   /* index of its first member in svi_members */
    uint32_t on; /* running members, as bits: bit 0 is the first */
};

/* A labelled sample that the host has learned. */
struct svi_member_lesson {
    const svs_learner *host;
    const svs_sample *sample;
    const struct svi_held_sample *held;
    double time;
};

/* A member as a model in raw units. */
struct svi_member_model {
    int rows, d; /* the shape asked for */
    const struct svi_standardiser *standard;
    double *own;     /* in: rows x (d + 1) values for weights that exist nowhere else, or NULL: none left */
    const double *W; /* out: rows x d; NULL: no linear model, or not of this shape */
    const double *b; /* out: its constants, one a row */
    int fourier;     /* out: Fourier features it is a model on; 0: none */
};

struct svi_member_ops {
    size_t size;
    const void *options; /* constants of this table, for tables that share functions */
    uint8_t held_bit;    /* a bit unique to this table, required where `held` is set; else 0 */

    /* Initialises the members of p->on, with nothing learned, for at least d features: grow follows.
     * SVS_NO_MEMORY. */
    svs_code (*init)(const struct svi_member_part *p, int d, svs_error *err);
    /* Frees the memory of members without a bit in p->on; on = 0 frees everything. */
    void (*clear)(const struct svi_member_part *p);
    /* Forgets everything learned; features, classes and memory stay. */
    void (*reset)(const struct svi_member_part *p);

    /* Rows have d features from now on; new ones were 0 so far. On failure it may have either number; the
     * call is repeated. */
    svs_code (*grow)(const struct svi_member_part *p, int d, svs_error *err);
    /* Forgets what was learned of a feature, as far as the model allows. */
    void (*renew)(const struct svi_member_part *p, int feature);
    /* The class count is now c->classes. Not called in a regression. */
    void (*add_classes)(const struct svi_member_part *p);

    /* Scores the current row: `rows` scores a member, `stride` apart, on a model's scale: for class 1 of
     * two classes, for each class, or the value of a regression. */
    void (*score)(const struct svi_member_part *p, double *scores);
    /* Learns the label of the row scored last. SVS_NO_MEMORY: part of it is not learned, and the member
     * remains usable. */
    svs_code (*learn)(const struct svi_member_part *p, const struct svi_member_lesson *l, svs_error *err);
    /* Waits for what the helper does for it. */
    void (*join)(const struct svi_member_part *p);
    /* True if it learned the last sample in a way that take_back can undo, given number and row alone. */
    bool (*held)(const struct svi_member_part *p);
    /* The host forgets this sample. Of a table with a held_bit, called only for samples for which `held`
     * was true. */
    void (*take_back)(const struct svi_member_part *p, const struct svi_held_sample *s);

    /* Describes member i as a model; pointers are valid until the next call. */
    void (*model)(const struct svi_member_part *p, int i, struct svi_member_model *m);

    /* Saves or loads; called also where no member runs. Loading: after init, for c->d features. */
    void (*archive)(struct svi_archive *a, const struct svi_member_part *p);
    /* True if it has the features and classes of c. */
    bool (*fits)(const struct svi_member_part *p);
    /* For tests: NULL, or a text that names the violation, as in svi_bank_check. */
    const char *(*check)(const struct svi_member_part *p, const svs_learner *host, double error);
    /* Bytes at most, without `self`, with all members, for c->d features and c->classes. Only ops is set
     * in p, and in c only host, seed, regress, d and classes. */
    double (*bytes)(const struct svi_member_part *p);
};

/* The part of this table in the bank; NULL: the bank does not have it. */
static inline const struct svi_member_part *svi_member_part_of(const struct svi_member_context *c,
                                                               const struct svi_member_ops *ops) {
    for (int i = 0; i < c->part_count; i++)
        if (c->part[i].ops == ops)
            return &c->part[i];
    return NULL;
}

#endif
