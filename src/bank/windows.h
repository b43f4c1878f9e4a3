/* windows.h: the exact least-squares members of a bank: learners (svmstream/learner.h) of the same stream as
 * the host, with other windows or the other rule. They see the same calls in the same order, so that classes
 * and features have the same indices everywhere; each is exact on what it holds. None of them waits for
 * labels. */
#ifndef SVI_WINDOWS_H
#define SVI_WINDOWS_H

#include "base/archive.h"
#include "svmstream/learner.h"

#define SVI_WINDOWS_MAX 8

struct svi_window_kind {
    int64_t window; /* samples; 0 = all */
    svs_rule rule;
    double forget; /* as svs_options has it */
};

struct svi_windows {
    int count;
    svs_learner *of[SVI_WINDOWS_MAX]; /* NULL: not in the bank */
    svs_step step[SVI_WINDOWS_MAX];   /* of the sample at hand */
};

/* `host`: the options of the host; kinds: `count` of them, made where its bit is in `on`. SVS_NO_MEMORY. */
svs_code svi_windows_init(struct svi_windows *w, const svs_options *host, const struct svi_window_kind *kinds,
                          int count, uint32_t on, int d, svs_error *err);
void svi_windows_keep(struct svi_windows *w, uint32_t on); /* those without a bit are freed */
void svi_windows_reset(struct svi_windows *w);

/* The next member that there is, from number *i on; NULL: no more. What the host gets to know of features,
 * classes and the clock, all do. */
static inline svs_learner *svi_windows_next(const struct svi_windows *w, int *i) {
    while (*i < w->count && !w->of[*i])
        ++*i;
    return *i < w->count ? w->of[(*i)++] : NULL;
}
svs_code svi_windows_grow(struct svi_windows *w, int d, svs_error *err);

/* The scores of a raw row, `rows` of them each: those of member i begin at scores + i * stride. A member that
 * lacked the memory for the newest classes says 0 of all. */
void svi_windows_score(struct svi_windows *w, const double *x, double *scores, int stride, int rows);

/* A labelled sample that the host has learned. A member whose own window makes the row too large to be
 * computed with leaves it out. SVS_NO_MEMORY: some have not learned it; what these lack in classes and
 * features they are given before the next one. */
svs_code svi_windows_learn(struct svi_windows *w, const svs_learner *host, const svs_sample *s, double time,
                           svs_error *err);

/* Takes held samples of that id out of those that hold them. */
void svi_windows_forget(struct svi_windows *w, svs_value id, double time);

/* Loading: after svi_windows_init. */
void svi_windows_archive(struct svi_archive *a, struct svi_windows *w);

/* For tests: NULL when each member has the host's features and classes, holds the newest of the rows that the
 * host holds and no others, and has w and P to `error` of what follows from what it holds (INFINITY: that is
 * not asked); else what is wrong. */
const char *svi_windows_check(struct svi_windows *w, const svs_learner *host, double error);

double svi_windows_memory(const svs_options *host, const struct svi_window_kind *kinds, int count,
                          uint32_t on, int d, int classes);

#endif
