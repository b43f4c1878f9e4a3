/* member_ops.h: what a member of the bank is made of. One table of functions runs one or several members (a
 * block of first-order models has several heads); members.c lists the tables and their members.
 *
 * STATE. `self` is `size` bytes that the bank allocates, zeroed, and keeps as long as it lives. What init
 * allocates, clear frees.
 *
 * ORDER. The bank goes through the tables in the order of members.c where they change: init, grow, learn,
 * archive. It goes backward where they score a row and where they take a sample back. So a table that reads
 * what another one made of the row stands before it: it finds that made when it scores, and not yet changed
 * by the label when it learns.
 *
 * A function that is NULL has nothing to do; only score is always there. All but clear, archive and bytes are
 * called only while one of the members runs. Results depend on the calls alone: what is prepared on another
 * thread is taken up at a fixed sample number, and waited for there. */
#ifndef SVI_MEMBER_OPS_H
#define SVI_MEMBER_OPS_H

#include "base/archive.h"
#include "bank/standardiser.h"
#include "learner/learner_held.h"
#include "svmstream/learner.h"

struct svi_member_ops;
struct svi_member_part;

/* What the bank shows its members. */
struct svi_member_context {
    const svs_options *host; /* its max_features and max_classes bound everything */
    uint64_t seed;
    bool regress;
    int d, classes; /* that every member has; 0 classes in a regression */
    int stride;     /* scores of one member: this far from those of the next, `rows` of them used */
    const struct svi_member_part *part;
    int part_count;

    /* the row at hand */
    const double *x; /* raw, d values; only in score */
    float *z;        /* standardised, padded with zeros to a multiple of SVI_FLOATS_PAD; in learn too */
    int rows, class_count;

    /* the targets of a regression before it: their mean and the last one */
    double center, last;
};

/* One table in a bank. */
struct svi_member_part {
    const struct svi_member_ops *ops;
    const struct svi_member_context *c;
    void *self;
    int first;   /* the place of its first member in svi_members */
    uint32_t on; /* its members that run, as bits, the first is bit 0 */
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
    int rows, d; /* asked for */
    const struct svi_standardiser *standard;
    double *own;     /* rows x (d + 1) values, for weights that are nowhere else; NULL: they are used up */
    const double *W; /* rows x d; NULL: it is none, or not of this shape */
    const double *b; /* its `rows` constants */
    int fourier;     /* Fourier features that it is a model of; 0: none */
};

struct svi_member_ops {
    size_t size;
    const void *options; /* its own: what tables with the same functions differ in */
    uint8_t took;        /* a bit of its own, with `held` below; 0 = it needs none */

    /* Members of p->on begin, with nothing learned, for at least d features: grow follows. SVS_NO_MEMORY. */
    svs_code (*init)(const struct svi_member_part *p, int d, svs_error *err);
    /* Frees what belongs to members that have no bit in p->on; 0 = everything. */
    void (*clear)(const struct svi_member_part *p);
    /* Nothing learned; features, classes and memory stay. */
    void (*reset)(const struct svi_member_part *p);

    /* Rows have d features from now on; the new ones were 0. Failing may leave it with either number. */
    svs_code (*grow)(const struct svi_member_part *p, int d, svs_error *err);
    /* What was learned of a feature is forgotten, as far as that can be. */
    void (*renew)(const struct svi_member_part *p, int feature);
    /* There are c->classes now; not called in a regression. */
    void (*add_classes)(const struct svi_member_part *p);

    /* Scores of the row at hand, `rows` a member, as a model's: for class 1 of two classes, or each class, or
     * the value of a regression. */
    void (*score)(const struct svi_member_part *p, double *scores);
    /* The label of the row scored last. SVS_NO_MEMORY: some of it is not learned, and it goes on. */
    svs_code (*learn)(const struct svi_member_part *p, const struct svi_member_lesson *l, svs_error *err);
    /* Has it learned the last sample so that it can take it back, known by its number and row alone? */
    bool (*held)(const struct svi_member_part *p);
    /* The host forgets this sample. With a bit in `took`: only where `held` said so of it. */
    void (*take_back)(const struct svi_member_part *p, const struct svi_held_sample *s);

    /* The model of member i; what it points to is valid until the next call. */
    void (*model)(const struct svi_member_part *p, int i, struct svi_member_model *m);

    /* State; also of a part none of whose members runs. Loading: after init, for c->d features. */
    void (*archive)(struct svi_archive *a, const struct svi_member_part *p);
    /* Has it the features and classes of c? */
    bool (*fits)(const struct svi_member_part *p);
    /* For tests: NULL, or what is wrong, as svi_bank_check has it. */
    const char *(*check)(const struct svi_member_part *p, const svs_learner *host, double error);
    /* Bytes at most besides `self`, with all members, for c->d features and c->classes. Of the rest only ops,
     * and in c host, seed and regress, are set. */
    double (*bytes)(const struct svi_member_part *p);
};

/* The part that a table is in this bank; NULL: no bank has it. */
static inline const struct svi_member_part *svi_member_part_of(const struct svi_member_context *c,
                                                               const struct svi_member_ops *ops) {
    for (int i = 0; i < c->part_count; i++)
        if (c->part[i].ops == ops)
            return &c->part[i];
    return NULL;
}

#endif
