/* windows.h: the exact least-squares members of a bank: learners (svmstream/learner.h) of the same stream
 * as the host, with other windows or the other rule. They get the same calls in the same order, so classes
 * and features have the same indices everywhere; each is exact on what it holds. None of them keeps
 * samples that wait for labels. */
#ifndef SVI_WINDOWS_H
#define SVI_WINDOWS_H

#include "bank/member_ops.h"

#define SVI_WINDOWS_MAX 8

struct svi_window_kind {
    int64_t window; /* samples; 0 = all */
    svs_rule rule;
    double forget; /* as in svs_options */
};

struct svi_windows_options {
    int count[2]; /* by task: how many of the kinds are used, from the first on */
    int all;      /* index of the kind that learns every sample, forgets nothing, and can take samples back */
    struct svi_window_kind kind[SVI_WINDOWS_MAX];
};

struct svi_windows {
    int count;
    svs_learner *of[SVI_WINDOWS_MAX]; /* NULL: not in the bank */
    svs_step step[SVI_WINDOWS_MAX];   /* result of the last sample learned */
};

/* Its state is a struct svi_windows. `check` verifies that each member has the host's features and
 * classes, holds the newest of the host's rows and no others, and that w and P differ by at most `error`
 * from a fresh solve on them (INFINITY: not checked). */
extern const struct svi_member_ops svi_member_windows;

/* Iterator: the next existing member from index *i on; NULL at the end. Changes of features, classes and
 * the clock go to all of them. */
static inline svs_learner *svi_windows_next(const struct svi_windows *w, int *i) {
    while (*i < w->count && !w->of[*i])
        ++*i;
    return *i < w->count ? w->of[(*i)++] : NULL;
}

/* Removes the samples of this id from the windows that hold them, at engine time `time`. */
void svi_windows_forget(struct svi_windows *w, svs_value id, double time);

#endif
