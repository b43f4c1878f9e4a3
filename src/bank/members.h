/* members.h: the members that a bank can have, and which of them run: a fixed table. */
#ifndef SVI_MEMBERS_H
#define SVI_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/model.h"

enum svi_member {
    SVI_MEMBER_HOST, /* ALSVM over SVI_AUTO_WINDOW */
    SVI_MEMBER_WINDOW_50,
    SVI_MEMBER_WINDOW_200,
    SVI_MEMBER_WINDOW_1000,
    SVI_MEMBER_WINDOW_ALL,
    SVI_MEMBER_FADING, /* ALSVM over all, forget 0.99: recursive least squares */
    SVI_MEMBER_FALSVM,
    SVI_MEMBER_PA, /* passive-aggressive, C = 1 and .01; a regression: NLMS, step 1 and .1 */
    SVI_MEMBER_PA_SLOW,
    SVI_MEMBER_ADAGRAD,
    SVI_MEMBER_PRODUCTS,
    SVI_MEMBER_PRODUCTS_SLOW,
    SVI_MEMBER_NEAREST,
    SVI_MEMBER_NEAREST_5,
    SVI_MEMBER_FOURIER_ADAGRAD,
    SVI_MEMBER_FOURIER_PA,
    SVI_MEMBER_FOURIER_PA_SLOW,
    SVI_MEMBER_FOURIER_EXACT,
    SVI_MEMBER_LAST, /* the last target of a regression */
    SVI_MEMBERS
};

#define SVI_MEMBER_BIT(m) (1u << (m))

struct svi_member_kind {
    const char *name;    /* as it is published */
    const char *kind[2]; /* by task */
    int64_t window;      /* samples that it holds; 0 = all, -1 = it holds none */
    bool linear;         /* has weights in raw units */
};

extern const struct svi_member_kind svi_member_table[SVI_MEMBERS];

/* Microseconds a sample that `auto.budget` 0 stands for: 10 up to ten features, 25 at 54 and on in that line,
 * times half the classes from three on. */
double svi_members_budget(int d, int classes);

/* Which members fit into a budget, as bits: the host always, then in the order of the table's gain as long as
 * they fit. A function of the arguments alone. budget 0: svi_members_budget. */
uint32_t svi_members_choose(svs_task task, int d, int classes, double budget);

/* Microseconds a sample that the table of costs counts for these members, with what combines them. */
double svi_members_estimate(uint32_t members, int d, int classes);

#endif
