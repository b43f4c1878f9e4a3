/* What the keys take of memory, and how many of them may be in it: keys.memory says so, or else half of what
 * the machine, or the cgroup of the process, has. Keys out of memory take some of it, too: their names,
 * figures and places; what is left is for those in memory, as large as they are once all is full. */
#include <math.h>

#include "base/machine_memory.h"
#include "config/settings.h"
#include "fleet/fleet_internal.h"
#include "learner/prior_bounds.h"

#define KEYS_SHARE    0.5 /* of the memory of the machine or cgroup */
#define KEYS_FEATURES 10  /* columns that a prediction assumes before the first row */

double svi_key_memory(const struct svi_settings *s, int d, int contexts, int classes) {
    /* A name of a quarter of the maximal length is assumed. */
    return svi_engine_key_memory(s, d, contexts, classes) + sizeof(struct svi_key_entry) + SVS_KEY_MAX / 4;
}

/* Columns that are named as context, of d. */
static int memory_contexts(const struct svi_settings *s, int d) {
    int contexts = s->context[0] != '\0';
    for (const char *c = s->context; *c; c++)
        contexts += *c == ',';
    return contexts < d ? contexts : d;
}

int svi_keys_features(const struct svi_settings *s) {
    const int named = svi_settings_feature_count(s);
    return named > 0 ? named : s->max_features < KEYS_FEATURES ? (int)s->max_features : KEYS_FEATURES;
}

/* Of a key that is on disk its name, its place, and with key.prior its traits stay. */
static double memory_entry(const struct svi_settings *s, int d) {
    const int traits = d < SVI_PRIOR_FEATURES ? d : SVI_PRIOR_FEATURES;
    return SVI_KEY_ENTRY + (s->key_prior > 0 ? (traits + 1.0) * sizeof(struct svi_prior_trait) : 0);
}

void svi_keys_memory(const struct svi_settings *s, int d, int classes, struct svi_keys_memory *m) {
    const struct svi_machine_memory machine = svi_machine_memory();
    *m = (struct svi_keys_memory){.each = svi_key_memory(s, d, memory_contexts(s, d), classes),
                                  .entry = memory_entry(s, d),
                                  .share = KEYS_SHARE * machine.bytes,
                                  .machine = machine.bytes,
                                  .of = machine.of};
    m->most = svi_keys_in_memory(s, m, 0);
}

/* Every key takes an entry, in memory or not; what is left of the share is divided by the size of an engine.
 * At least one key is in memory, or none could learn. Without a known share nothing is limited. */
int64_t svi_keys_in_memory(const struct svi_settings *s, const struct svi_keys_memory *m, int64_t keys) {
    if (s->keys_memory > 0)
        return s->keys_memory;
    const double left = m->share - (double)keys * m->entry;
    return !(m->share > 0) ? s->keys_max : (int64_t)fmin((double)s->keys_max, fmax(1, left / m->each));
}

/* The sizes are predicted for the largest key that was seen, when that has grown, and not measured key by
 * key: this is asked after each message. */
static void memory_learn(struct svi_fleet *f) {
    const int d = f->largest.columns, classes = f->largest.classes;
    if (d == f->largest.known_columns && classes == f->largest.known_classes)
        return;
    svi_keys_memory(f->stream.root->s, d, classes, &f->largest.memory);
    f->largest.known_columns = d;
    f->largest.known_classes = classes;
}

void svi_fleet_measure(struct svi_fleet *f, int d, int classes) {
    f->largest.columns = d > f->largest.columns ? d : f->largest.columns;
    f->largest.classes = classes > f->largest.classes ? classes : f->largest.classes;
}

int64_t svi_fleet_memory_most(struct svi_fleet *f) {
    memory_learn(f);
    return svi_keys_in_memory(f->stream.root->s, &f->largest.memory, svi_key_table_count(f->table));
}

double svi_fleet_memory(const svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of((svi_stream *)s);
    memory_learn(f);
    return (double)svi_key_table_in_memory(f->table) * f->largest.memory.each +
           (double)svi_key_table_count(f->table) * f->largest.memory.entry +
           (f->cache ? svi_key_cache_memory(f->cache) : 0) + svi_fleet_shared_memory(f) +
           svi_fleet_sums_memory(f);
}
