/* members.h: the members that a bank can have, and which of them run: a fixed table.
 *
 * A new member is a file that defines a table of functions (bank/member_ops.h), and in members.c its row. */
#ifndef SVI_MEMBERS_H
#define SVI_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "bank/member_ops.h"
#include "svmstream/model.h"

#define SVI_MEMBERS_MAX 32 /* those that run are bits of a uint32_t */
#define SVI_MEMBER_HOST 0  /* ALSVM over SVI_AUTO_WINDOW, which is no part of the bank */

/* Of a labelled sample, in nanoseconds: base + feature f + square (d + 1)^2 + rows (row + row_feature f), f
 * features of its own: d, or with a last 1 the products of d. */
enum svi_member_cost {
    SVI_COST_BASE,
    SVI_COST_FEATURE,
    SVI_COST_SQUARE,
    SVI_COST_ROW,
    SVI_COST_ROW_FEATURE,
    SVI_COST_PRODUCTS,
    SVI_COSTS
};

struct svi_member {
    const char *name;                 /* as it is published */
    const char *kind[2];              /* by task: the rule that it learns by; NULL: as the first */
    int64_t window[2];                /* by task: samples that it holds; 0 = all, -1 = it holds none */
    const struct svi_member_ops *ops; /* members of one table are neighbours; NULL: the host */
    const struct svi_member_ops
        *beside;            /* it runs only where a member of this table, of an earlier turn, does */
    int tasks;              /* 1 << svs_task, of those that have it */
    int turn;               /* in this order they are taken, from 1 on; all of one turn run, or none */
    int features_max;       /* it runs up to this number of features; 0 = any */
    double cost[SVI_COSTS]; /* of all of its turn, with the first of them */
};

extern const struct svi_member svi_members[];
extern const int svi_member_count;

/* The tables, in the order of their work (bank/member_ops.h). The first one sees raw rows, the others rows
 * that are standardised. */
#define SVI_PARTS_MAX 12
extern const struct svi_member_ops *const svi_member_parts[];
extern const int svi_member_part_count;

/* Microseconds a sample that `auto.budget` 0 stands for: 10 up to ten features, 25 at 54 and on in that line,
 * times half the classes from three on. */
double svi_members_budget(int d, int classes);

/* Which members fit into a budget, as bits: the host always, then turn by turn as long as they fit. A
 * function of the arguments alone. budget 0: svi_members_budget. */
uint32_t svi_members_choose(svs_task task, int d, int classes, double budget);

/* Microseconds a sample that the table of costs counts for these members, with what combines them. */
double svi_members_estimate(uint32_t members, int d, int classes);

#endif
