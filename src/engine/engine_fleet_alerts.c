/* Alerts of all keys together. */
#include "engine/engine_internal.h"

/* The number changes where nobody is at work: threads of keys only read it. */
void svi_fleet_share(struct svi_engine *e) {
    if (e->of->fleet && e->novelty != &e->of->no_novelty)
        svi_novelty_stage_share(e->novelty, (double)e->of->fleet->desks);
}

double svi_fleet_budget(const struct svi_engine *e, double a_day) {
    const struct svi_fleet *f = svi_engine_is_root(e) ? NULL : e->of->fleet;
    return f && f->desks > 1 ? a_day / (double)f->desks : a_day;
}

void svi_fleet_share_out(struct svi_engine *root) {
    struct svi_fleet *f = root->of->fleet;
    f->desks = svi_key_table_count(f->table) + (root->counters.of[SVI_COUNTER_SEEN].count > 0);
}
