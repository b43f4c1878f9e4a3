/* members.h: the members that a bank can have, and which of them run: a fixed table.
 *
 * To add a member, write a file that defines a table of functions (bank/member_ops.h), and add its row in
 * members.c. */
#ifndef SVI_MEMBERS_H
#define SVI_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "bank/member_ops.h"
#include "svmstream/model.h"

#define SVI_MEMBERS_MAX 32 /* those that run are bits of a uint32_t */
#define SVI_MEMBER_HOST 0  /* index of the host, ALSVM over SVI_AUTO_WINDOW, which is not part of the bank */

/* Cost of a labelled sample in nanoseconds: base + feature f + square (d + 1)^2 + rows (row + row_feature
 * f), where f is d, or the number of products of d if `products` is 1. */
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
    const char *name;                 /* published name */
    const char *kind[2];              /* by task: its learning rule, as published; NULL: as the first */
    int64_t window[2];                /* by task: samples it holds; 0 = all, -1 = it keeps no samples */
    const struct svi_member_ops *ops; /* members of one table are adjacent; NULL: the host */
    const struct svi_member_ops
        *requires; /* runs only where a member of this table, of an earlier turn, does; NULL: no condition */
    int tasks;     /* bits 1 << svs_task: tasks that have it */
    int turn;      /* order of selection, from 1 on; members of one turn run together or not at all */
    int features_max;       /* largest number of features it runs with; 0 = any */
    double cost[SVI_COSTS]; /* of all members of its turn; the others of the turn have 0 */
};

extern const struct svi_member svi_members[];
extern const int svi_member_count;

/* The tables in working order (bank/member_ops.h). The first one sees raw rows, the others standardised
 * rows. */
#define SVI_PARTS_MAX 12
extern const struct svi_member_ops *const svi_member_parts[];
extern const int svi_member_part_count;

/* Microseconds a sample that `auto.budget` 0 stands for: 10 up to ten features, growing linearly to 25 at
 * 54 features and beyond; times half the classes from three classes on. */
double svi_members_budget(int d, int classes);

/* Members that fit into a budget of microseconds a sample, as bits: the host always, then turn by turn
 * while they fit. A function of the arguments alone. budget 0: svi_members_budget. */
uint32_t svi_members_choose(svs_task task, int d, int classes, double budget);

/* Estimated microseconds a sample of these members and of combining them, by the table of costs. */
double svi_members_estimate(uint32_t members, int d, int classes);

#endif
