/* key_stack.h: the small ensemble of one stream key among many (`method auto` with `key.shared`).
 *
 * Members:
 *  - the key's own learner, which begins with the prior of all keys;
 *  - a learner of all of its samples;
 *  - how often each class occurs (a regression: the mean target);
 *  - the last label;
 *  - the score of the row by the bank of all keys.
 * A stack combines them by online Newton steps. It is a logistic model with one weight a member,
 * shared by the classes (a regression: least squares). Its weights are those with which keys begin
 * (struct svi_stack_start) and a difference of the key's own. The first rows of all keys teach the
 * former.
 *
 * SHAPES. Scores of classes are logits of K classes, at least two; of a regression one value. What
 * svi_key_stack returns has the shape of svs_step.scores: half the log odds, log probabilities, or a value.
 *
 * One thread at a time. Results depend on the calls alone. */
#ifndef SVI_KEY_STACK_H
#define SVI_KEY_STACK_H

#include "bank/stack_start.h"
#include "base/archive.h"
#include "svmstream/learner.h"

#define SVI_SHARED_CLASSES 64 /* a shared score of more classes is not passed on */

/* What the bank of all keys says of a row, and what it did with a request to forget one. */
struct svi_shared_score {
    bool known;
    int removed;                      /* samples of the id to forget that it held; else 0 */
    int class_count;                  /* regression: 1 */
    const svs_value *classes;         /* of the values; stays valid and unchanged */
    double value[SVI_SHARED_CLASSES]; /* log probabilities; regression: the value */
};

struct svi_key_stack;

/* A stack for at most max_classes classes. NULL: SVS_NO_MEMORY. Owner: the caller. */
struct svi_key_stack *svi_key_stack_new(bool regress, int max_classes, svs_error *err);
void svi_key_stack_free(struct svi_key_stack **s);
void svi_key_stack_reset(struct svi_key_stack *s);

/* A row, as its members see it before it is learned. */
struct svi_stack_row {
    const double *host, *whole;            /* scores of the two learners */
    int rows, class_count;                 /* of both, as in svs_step */
    const svs_value *classes;              /* of the learner, class_count of them */
    const struct svi_shared_score *shared; /* NULL: none */
};

/* Doubles that `inputs` of svi_key_stack_score needs. */
int svi_key_stack_inputs(int max_classes);

/* The answer to the row in out[r->rows], by the weights of `start` and of the key. `inputs` keeps what
 * svi_key_stack_learn needs of the row. Changes nothing. */
void svi_key_stack_score(const struct svi_key_stack *s, const struct svi_stack_start *start,
                         const struct svi_stack_row *r, double *inputs, double *out);

/* Learns the label (class index; regression: the target) of the row whose inputs these are. part: learns it,
 * too, while the key is young; NULL: none. */
void svi_key_stack_learn(struct svi_key_stack *s, const struct svi_stack_start *start,
                         struct svi_stack_start *part, const double *inputs, int class_count, int label,
                         double target);

void svi_key_stack_archive(struct svi_archive *a, struct svi_key_stack *s);
double svi_key_stack_memory(int classes); /* bytes */

#endif
