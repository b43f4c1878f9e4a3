/* member_trees.h: the members that are boosted trees. */
#ifndef SVI_MEMBER_TREES_H
#define SVI_MEMBER_TREES_H

#include "bank/member_ops.h"
#include "bank/tree_fits.h"
#include "bank/tree_schedule.h"

extern const struct svi_member_ops svi_member_trees;

/* The worker's part of the table of costs, in nanoseconds: a fit takes SVI_TREE_UPDATE for each bin update
 * (svi_boost_cost), and SVI_TREE_ROW for each row of each tree, whose gradient and leaf it computes. */
#define SVI_TREE_UPDATE 0.5
#define SVI_TREE_ROW    10.0

/* A forest in use, for its description. */
struct svi_member_forest {
    const struct svi_forest *of; /* `rows` 0: none yet */
    int64_t version;
    const uint8_t *masked; /* by column; NULL: none is masked */
    const double *origin;  /* of the columns that have one */
    int columns, origins;
    double target_origin, sure; /* sure: limit of a score */
};
void svi_member_trees_forest(const struct svi_member_context *c, int kind, struct svi_member_forest *out);

/* The waits of the stream for fits. */
struct svi_tree_waits svi_member_trees_waits(const struct svi_member_context *c);

/* For tests: each fit that begins from now on sleeps so long first. */
void svi_member_trees_delay(const struct svi_member_context *c, int microseconds);

#endif
