/* Alerts of all keys together: alert.budget is that of the stream.
 *
 * Each key's policy follows its own past, as if it were alone, with a factor above it that all of them share
 * (alerts/budget.h). What it has found comes with its figures after each element, in the order in which
 * they arrived; the factor and the number of policies change where keys are coupled. A policy sets its levels
 * at numbers of its own samples, by what holds then: so nothing has to be visited, and no result depends on
 * which keys are in memory or on threads. */
#include "fleet/fleet_internal.h"

void svi_fleet_finds(const struct svi_engine *e, struct svi_key_finds *out) {
    const struct svi_budget_share *s = &e->novelty->policy.budget.share;
    *out = (struct svi_key_finds){.found = s->found, .days = s->days, .count = s->count};
}

/* The differences since the last call go into the pool: days observed, and whether something was found.
 * After a reset `days` is smaller than before, and nothing is taken back. */
void svi_fleet_find_alike(struct svi_fleet *f, const struct svi_key_finds *before,
                          const struct svi_key_finds *now) {
    const double a_day = f->stream.root->novelty->policy.o.a_day;
    if (now->days > before->days) /* less after a reset */
        svi_budget_pool_pass(&f->pool, now->days - before->days, (double)f->policies, a_day);
    if (now->count > before->count && a_day > 0)
        svi_budget_pool_find(&f->pool, now->found, a_day);
}

/* Before the first coupling each has the budget to itself. */
void svi_fleet_share(struct svi_fleet *f) {
    f->stream.common.policies = f->policies > 0 ? (double)f->policies : 1;
    f->stream.common.asked = f->asked;
}

/* Coupling: the number of policies that share alert.budget, and the factor that all levels get. The root
 * counts as one of them once it has seen a sample. */
void svi_fleet_share_out(struct svi_fleet *f) {
    const double a_day = f->stream.root->novelty->policy.o.a_day;
    f->policies = svi_key_table_count(f->table) + (f->stream.root->kept[SVI_KEPT_SEEN] > 0);
    f->asked = a_day > 0 ? svi_budget_pool_factor(&f->pool, a_day) : 0;
    svi_fleet_share(f);
}

void svi_fleet_pool_archive(struct svi_archive *a, struct svi_fleet *f) {
    svi_archive_int64(a, "desks", &f->policies, 0, INT64_MAX / 4);
    svi_archive_finite(a, "asked", &f->asked, 1);
    svi_archive_finite(a, "found", &f->found.found, 1);
    svi_archive_finite(a, "found in days", &f->found.days, 1);
    svi_archive_int64(a, "finds", &f->found.count, 0, INT64_MAX / 4);
    svi_budget_pool_archive(a, &f->pool);
    svi_fleet_share(f);
}
