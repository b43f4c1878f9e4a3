/* What all keys hold, as a prior of each (prior/prior.h; learner/learner_prior.h).
 *
 * Keys are dealt out to parts by their hash, and each thread has whole parts: what its keys learn and let go
 * is added up in the part, in the order of the elements, whatever other threads do. Where keys are coupled
 * (fleet_count) the parts are moved into the sums of all, one after the other, and a new prior is made
 * of them; so neither the sums nor what a key takes depend on the number of threads.
 *
 * A key that goes takes with it what it holds, which is read from the disk for it if need be. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_prior.h"

struct svi_fleet_prior {
    struct svi_prior_sums part[SVI_FLEET_PARTS], all;
    struct svi_prior *newest; /* NULL: nothing is held */
};

svs_code svi_fleet_prior_new(struct svi_fleet *f, svs_error *err) {
    const bool regress = f->stream.root->s->task == SVS_REGRESS;
    svs_code code = SVS_OK;
    if (!(f->stream.root->s->key_prior > 0))
        return SVS_OK;
    if (!(f->prior = svi_alloc(sizeof *f->prior)))
        return svi_fail_memory(err, "the model of all keys");
    svi_prior_sums_init(&f->prior->all, regress);
    for (int i = 0; i < SVI_FLEET_PARTS && code == SVS_OK; i++) {
        svi_prior_sums_init(&f->prior->part[i], regress);
        code = svi_prior_sums_ready(&f->prior->part[i], err);
    }
    return code;
}

void svi_fleet_prior_free(struct svi_fleet *f) {
    if (!f->prior)
        return;
    svi_prior_leave(&f->prior->newest);
    svi_prior_sums_clear(&f->prior->all);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_prior_sums_clear(&f->prior->part[i]);
    svi_free(f->prior);
    f->prior = NULL;
}

svs_code svi_fleet_prior_join(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_engine *e,
                              svs_error *err) {
    if (!f->prior)
        return SVS_OK;
    struct svi_prior_sums *part = &f->prior->part[svi_fleet_part(entry->hash)];
    return svi_learner_set_prior(e->learner, e->s->key_prior, part, &f->prior->newest, err);
}

svs_code svi_fleet_prior_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    if (!f->prior)
        return SVS_OK;
    svi_workers_settle(f);
    return entry->engine ? SVS_OK : svi_fleet_return(f, entry, err);
}

/* Each prior that some key goes by takes memory: the more keys there are, the fewer are made, after numbers
 * of elements that are powers of 2, and multiples of the one that is 16 a key or more. */
static bool prior_is_due(const struct svi_fleet *f) {
    int64_t every = SVI_FLEET_COUPLE;
    while (every < 16 * svi_key_table_count(f->table))
        every *= 2;
    return (f->taken & (f->taken - 1)) == 0 || f->taken % every == 0;
}

void svi_fleet_prior_couple(struct svi_fleet *f) {
    struct svi_fleet_prior *p = f->prior;
    struct svi_prior *made = NULL;
    bool touched = false;
    svs_code code = SVS_OK;
    if (!p || !prior_is_due(f))
        return;
    for (int i = 0; i < SVI_FLEET_PARTS && code == SVS_OK; i++) {
        touched = touched || p->part[i].touched;
        code = svi_prior_sums_move(&p->all, &p->part[i], NULL);
    }
    if (touched && code == SVS_OK)
        code = svi_prior_make(&p->all, (uint64_t)f->taken, &made, NULL);
    f->stream.root->out_of_memory = f->stream.root->out_of_memory || code != SVS_OK;
    if (!touched || code != SVS_OK)
        return;
    svi_prior_leave(&p->newest);
    p->newest = made;
}

void svi_fleet_prior_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_fleet_prior *p = f->prior;
    uint64_t number = p->newest ? p->newest->number : 0;
    svi_archive_uint64(a, "number", &number);
    svi_prior_sums_archive(a, &p->all);
    for (int i = 0; i < SVI_FLEET_PARTS && svi_archive_ok(a); i++)
        svi_prior_sums_archive(a, &p->part[i]);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_prior_make(&p->all, number, &p->newest, a->err);
}
