/* stack_start.h: with which weights the small stacks of stream keys begin (key_stack.h): what the first rows
 * of all keys have taught. */
#ifndef SVI_STACK_START_H
#define SVI_STACK_START_H

#include "base/archive.h"

#define SVI_STACK_MEMBERS 5
#define SVI_STACK_EXPERTS 3 /* the key's learner alone, the bank of all keys alone, the stack */

/* Members: the learner with the prior of all keys, the one of all samples, how often each class occurred, the
 * last label, and the bank of all keys. */
enum svi_stack_member { SVI_STACK_HOST, SVI_STACK_WHOLE, SVI_STACK_RATE, SVI_STACK_LAST, SVI_STACK_SHARED };

/* Weights with which keys begin, and the information behind them: the sum of the Hessians of `rows` rows. */
struct svi_stack_start {
    double w[SVI_STACK_MEMBERS];
    double H[SVI_STACK_MEMBERS][SVI_STACK_MEMBERS];
    double rows;
    double loss[SVI_STACK_EXPERTS], losses; /* sum of losses of each expert; rows that it is of */
};

void svi_stack_start_init(struct svi_stack_start *s);
void svi_stack_start_archive(struct svi_archive *a, struct svi_stack_start *s);

/* Merges what each part has learned since it was last a copy of *s, then makes the parts copies of it. */
void svi_stack_start_merge(struct svi_stack_start *s, struct svi_stack_start *part, int parts);

/* Learns one row of a young key, of which these are gradient and Hessian of the loss. */
void svi_stack_start_teach(struct svi_stack_start *s, const double *g,
                           double H[SVI_STACK_MEMBERS][SVI_STACK_MEMBERS]);

/* A Newton step: w -= H^-1 g where H is positive definite, else nothing. H is destroyed. */
void svi_stack_step(double *w, double H[SVI_STACK_MEMBERS][SVI_STACK_MEMBERS], const double *g);

#endif
