/* bank.h: a learner without settings (`method auto`): many cheap learners side by side, the members, and
 * exact stacks that weigh them.
 *
 * The host is the svs_learner of the stream: it owns ids, classes, features and samples that wait for a
 * label, and is a member itself (window SVI_AUTO_WINDOW). The bank has the others:
 *
 *  - windows.c: ALSVM over windows of 50, 200, 1000 and all, exact on what they hold; FALSVM over all; for a
 *    regression ALSVM over all that fades;
 *  - member_block.c: first-order models (passive-aggressive, AdaGrad; NLMS for a regression) of the row, of
 *    its products, of random Fourier features;
 *  - member_fourier_exact.c: least squares on Fourier features and the row, over all samples;
 *  - member_nearest.c: the nearest of the last 200 and of the last 5000 rows;
 *  - member_last.c: for a regression, the last target.
 *
 * What the members say of a row becomes one score a class: by stacks (stack.h) with windows of all, 1000 and
 * 200; by a share over the members by their mistakes (of a regression, by the member that was best recently);
 * and at last by a share over these four by the probability that they gave the truth (share.h). Scores of the
 * bank are half the log odds of the second of two classes, log probabilities of three or more, the value of a
 * regression.
 *
 * Which members there are depends on the number of features, the classes known when features came, and the
 * budget, by the fixed costs of members.c, never by measured time. Results depend on the calls alone, bit for
 * bit on one instruction set.
 *
 * SHAPES. A row has d raw values, finite and at most 1e100 in size. Scores are `rows` doubles: one for up to
 * two classes and for a regression, else one a class, in the order in which the host met the classes.
 *
 * LIFETIMES. A bank copies its options, class weights too; host, samples and rows are used during the call
 * only. What it returns belongs to the bank: scores are valid until the next call that may change it,
 * learners until it is freed, loaded or grown. One object, one thread at a time.
 *
 * MEMORY AND ERRORS. svi_bank_memory bytes at most. Nothing is allocated in a step but for rings that grow,
 * and when features or classes come. SVS_NO_MEMORY leaves a bank that may be used, and that catches up; what
 * breaks a rule of this page is a mistake of the caller and is not looked for. `err` may be NULL. */
#ifndef SVI_BANK_H
#define SVI_BANK_H

#include "base/archive.h"
#include "learner/learner_held.h"
#include "svmstream/learner.h"

typedef struct svi_bank svi_bank;

struct svi_bank_options {
    svs_options host;
    double budget; /* microseconds a sample; 0 = by d (svi_members_budget) */
    uint64_t seed;
};

/* For a host of d features that has learned nothing. SVS_NO_MEMORY. Owner: the caller. */
svi_bank *svi_bank_new(const struct svi_bank_options *o, int d, svs_error *err);
void svi_bank_free(svi_bank **b);
void svi_bank_reset(svi_bank *b); /* as svs_learner_reset */

/* What the host gets to know. svi_bank_grow: after the host has grown; where it fails parts of the bank have
 * fewer features, and it may be asked again. */
bool svi_bank_follows(const svi_bank *b, const svs_learner *host); /* it has its features and classes */
svs_code svi_bank_grow(svi_bank *b, int d, svs_error *err);
void svi_bank_unscaled(svi_bank *b, int feature);
void svi_bank_renew(svi_bank *b, int feature);
void svi_bank_scale_from(svi_bank *b, int first);

/* A class that the host knows, in its order. SVS_NO_MEMORY. */
svs_code svi_bank_meet_class(svi_bank *b, svs_value y, svs_error *err);

/* What the bank says of a row, made before it is learned. Pointers are valid until the next call. */
struct svi_bank_scored {
    const double *scores;             /* rows */
    int rows, class_count, predicted; /* as in svs_step */
};

/* x: d raw values; host: what the host said of it before it learned it, `rows` scores for class_count
 * classes. */
void svi_bank_score(svi_bank *b, const double *x, const double *host, int rows, int class_count,
                    struct svi_bank_scored *out);

/* After svi_bank_score of the same row, and after the host has learned it: `held` is the host's newest
 * sample, under the number by which it will be forgotten. SVS_NO_MEMORY: part of the bank has not learned it,
 * and the bank goes on. */
svs_code svi_bank_learn(svi_bank *b, const svs_learner *host, const svs_sample *s,
                        const struct svi_held_sample *held, double time, svs_error *err);

/* The clock was moved (learner/learner_times.h). */
void svi_bank_move_times(svi_bank *b, double from, double step);

/* Before the host takes its samples of this id out: every member that can take a sample back does: windows,
 * neighbours, ALSVM over all, Fourier least squares where the row is still among the neighbours, stacks where
 * it is among the rows that they hold. First-order members, FALSVM and fading least squares keep what they
 * learned, and so do members over all samples where classes are balanced, whose factors are not known any
 * more. Not between svi_bank_score and svi_bank_learn. */
void svi_bank_forget(svi_bank *b, const svs_learner *host, svs_value id, double time);

/* The member whose linear model is the best recently: its place in the table, and its learner, one of the
 * bank's or `host`. */
svs_learner *svi_bank_best_linear(svi_bank *b, svs_learner *host, int *member);

/* What a member said of the row at hand: *rows scores for *class_count classes (both may be NULL). NULL: it
 * does not run. */
const double *svi_bank_member_scores(const svi_bank *b, int member, int *rows, int *class_count);

/* For tests: NULL when each part has the features and classes of the host, holds nothing that the host has
 * let go, and is to `error` what follows from what it holds (INFINITY: that is not asked); else what is
 * wrong. */
const char *svi_bank_check(svi_bank *b, const svs_learner *host, double error);

/* The state. Loading goes into one from svi_bank_new with the same options, after that of the host. */
void svi_bank_archive(struct svi_archive *a, svi_bank *b);

double svi_bank_memory(const struct svi_bank_options *o, int d, int classes); /* bytes at most */

#endif
