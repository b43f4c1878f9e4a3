/* windows.h: the exact least-squares members of a bank: learners (svmstream/learner.h) of the same stream as
 * the host, with other windows or the other rule. They see the same calls in the same order, so that classes
 * and features have the same indices everywhere; each is exact on what it holds. None of them waits for
 * labels. */
#ifndef SVI_WINDOWS_H
#define SVI_WINDOWS_H

#include "bank/member_ops.h"

#define SVI_WINDOWS_MAX 8

struct svi_window_kind {
    int64_t window; /* samples; 0 = all */
    svs_rule rule;
    double forget; /* as svs_options has it */
};

struct svi_windows_options {
    int count[2]; /* by task: the first of the kinds */
    int all;      /* that which learns all and forgets nothing, and can take a sample back */
    struct svi_window_kind kind[SVI_WINDOWS_MAX];
};

struct svi_windows {
    int count;
    svs_learner *of[SVI_WINDOWS_MAX]; /* NULL: not in the bank */
    svs_step step[SVI_WINDOWS_MAX];   /* of the sample at hand */
};

/* Its state is a struct svi_windows. `check`: each member has the host's features and classes, holds the
 * newest of the rows that the host holds and no others, and has w and P to `error` of what follows from what
 * it holds (INFINITY: that is not asked). */
extern const struct svi_member_ops svi_member_windows;

/* The next member that there is, from number *i on; NULL: no more. What the host gets to know of features,
 * classes and the clock, all do. */
static inline svs_learner *svi_windows_next(const struct svi_windows *w, int *i) {
    while (*i < w->count && !w->of[*i])
        ++*i;
    return *i < w->count ? w->of[(*i)++] : NULL;
}

/* Takes held samples of that id out of those that hold them. */
void svi_windows_forget(struct svi_windows *w, svs_value id, double time);

#endif
