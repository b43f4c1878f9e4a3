/* bank.h: a learner without settings (`method auto`): an ensemble of many cheap learners, the members,
 * combined by exact stacking.
 *
 * The host is the svs_learner of the stream. It owns ids, classes, features and the samples that
 * wait for a label, and is itself the first member (window SVI_AUTO_WINDOW). The bank owns the
 * others:
 *
 *  - windows.c: ALSVM over windows of 50, 200, 1000 and all samples, exact on what they hold.
 *    FALSVM over all. For a regression also ALSVM over all samples with forgetting.
 *  - member_block.c: first-order models (passive-aggressive, AdaGrad; NLMS for a regression) on the
 *    row, on its products, and on random Fourier features.
 *  - member_fourier_exact.c: least squares on Fourier features and the row, over all samples.
 *  - member_nearest.c: the nearest of the last 200, 1000 and 5000 rows.
 *  - member_last.c: for a regression, the last target.
 *  - member_trees.c: boosted trees fitted to the last 5000 rows, and to all kept, refitted on a
 *    worker.
 *  - member_gaussian.c: for classes, a normal density for each class.
 *
 * Layers combine the members' scores of a row into one score a class. The first has four experts.
 * Three are stacks (stack.h) with windows of all, 1000 and 200 samples. The fourth is a vote of the
 * members, weighted by their mistakes (for a regression, the member with the lowest recent loss).
 * The second is a share over these four (share.h), by the probability that each gave to the true
 * class (for a regression, by its squared error). For classes a third layer follows (mixture.h).
 * Its experts are that answer, two logistic stacks on the members' scores and two base rates,
 * shared by their log loss. Scores of the bank are half the log odds of the second of two classes,
 * log probabilities of three or more, or the value of a regression.
 *
 * Which members run depends on the number of features, on the classes known when features were
 * added, and on the budget. The budget counts the fixed costs of members.c, never measured time.
 * Results depend on the calls alone, bit for bit on one instruction set.
 *
 * SHAPES. A row has d raw values, finite and at most 1e100 in size. Scores are `rows` doubles: one for up
 * to two classes and for a regression, else one a class, in the order in which the host met the classes.
 *
 * LIFETIMES. A bank copies its options, class weights included. Host, samples and rows are used
 * during the call only. What it returns belongs to the bank. Scores are valid until the next call
 * that may change it, learners until it is freed, loaded or grown. One object, one thread at a
 * time.
 *
 * MEMORY AND ERRORS. A bank takes svi_bank_memory bytes at most. A step allocates only where a ring
 * grows, or where features or classes are added. After SVS_NO_MEMORY the bank remains usable, and
 * catches up later. Breaking a rule of this page is a mistake of the caller and is not checked.
 * `err` may be NULL. */
#ifndef SVI_BANK_H
#define SVI_BANK_H

#include "bank/tree_fits.h"
#include "base/archive.h"
#include "base/follower.h"
#include "learner/learner_held.h"
#include "svmstream/learner.h"

typedef struct svi_bank svi_bank;

struct svi_bank_options {
    svs_options host;
    double budget; /* microseconds a sample; 0 = by d (svi_members_budget) */
    uint64_t seed;
    bool in_place; /* no threads: one of very many banks. Results are the same */
};

/* A bank for a host of d features that has learned nothing. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_bank *svi_bank_new(const struct svi_bank_options *o, int d, svs_error *err);
void svi_bank_free(svi_bank **b);
void svi_bank_reset(svi_bank *b); /* as svs_learner_reset */

/* While samples follow each other, `helper` may do some of the members' work, all of whose tasks are the
 * bank's. What a row gives does not depend on it. NULL: no longer, and all it had to do is done; so before
 * the helper ends. */
void svi_bank_help(svi_bank *b, svi_follower *helper);

/* Changes of the host, which it passes on. svi_bank_grow is called after the host has grown to d features;
 * where it fails with SVS_NO_MEMORY, parts of the bank have fewer features, and the call may be repeated. */
bool svi_bank_follows(const svi_bank *b, const svs_learner *host); /* same features and classes as the host */
svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err);
void svi_bank_unscaled(svi_bank *b, int feature); /* this one is never standardised: a column of 0 and 1 */
void svi_bank_renew(svi_bank *b, int feature);    /* as svi_learner_renew: it starts again with weight 0 */
void svi_bank_scale_from(svi_bank *b, int first); /* as svi_learner_scale_from */

/* Adds a class that the host knows already; the order is the host's. SVS_NO_MEMORY. */
svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err);

/* The bank's answer to a row, before the row is learned. Pointers are valid until the next call. */
struct svi_bank_scored {
    const double *scores;             /* rows */
    int rows, class_count, predicted; /* as in svs_step */
};

/* x: d raw values. host: the host's scores of the row before it learned it, `rows` values for class_count
 * classes. */
void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out);

/* Learns the row of the last svi_bank_score, after the host has learned it: `held` is the host's newest
 * sample, whose number identifies it when it is forgotten. SVS_NO_MEMORY: part of the bank has not learned
 * the row, and the bank remains usable. */
svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err);

/* The clock was moved: times after `from` move by `step` seconds (learner/learner_times.h). */
void svi_bank_move_times(svi_bank *b, double from, double step);

/* Called before the host removes its samples of this id. Every member that can take a sample back does so:
 * windows, neighbours, ALSVM over all, Fourier least squares where the row is still among the neighbours,
 * stacks where they still hold the row. First-order members, FALSVM, least squares with forgetting,
 * Gaussian densities, logistic stacks and base rates keep what they learned. So do members over all samples
 * where classes are balanced, because the weight with which a sample was learned is no longer known. Not
 * between svi_bank_score and svi_bank_learn. */
void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time);

/* The windowed member (or the host) with the lowest recent loss. *member: its place in svi_members.
 * Returns its learner, which belongs to the bank or is `host`. */
svs_learner *svi_bank_best_linear(svi_bank *b, svs_learner *host, int *member);

/* The learner of the running least-squares member (or host) that holds `window` samples (0: all) and forgets
 * nothing else. NULL: none runs; `text` then lists the windows of those that do. */
svs_learner *svi_bank_window(const svi_bank *b, svs_learner *host, int64_t window, char *text, size_t size);

/* A member's scores of the last row scored: *rows values for *class_count classes (both may be NULL).
 * NULL: the member does not run. */
const double *svi_bank_member_scores(const svi_bank *b, int member, int *rows, int *class_count);

/* The waits of the stream for fits of boosted trees, since the bank was made. */
struct svi_tree_waits svi_bank_tree_waits(const svi_bank *b);

/* For tests: each fit of boosted trees takes at least so long from now on. */
void svi_bank_delay_fits(svi_bank *b, int microseconds);

/* For tests. Returns NULL or a text that names the violation. Each part must have the host's
 * features and classes, and hold no sample that the host has removed. It must differ by at most
 * `error` from a fresh solve on what it holds (INFINITY: not checked). */
const char *svi_bank_check(svi_bank *b, const svs_learner *host, double error);

/* Saves or loads the state. Load into a bank from svi_bank_new with the same options, after the host's
 * state. */
void svi_bank_archive(struct svi_archive *a, svi_bank *b);

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes); /* bytes at most */

#endif
