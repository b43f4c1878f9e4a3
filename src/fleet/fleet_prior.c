/* What all keys hold, as a prior of each (learner/prior.h; learner/learner_prior.h).
 *
 * Keys are dealt out to parts by their hash, and each thread has whole parts: what its keys learn and forget
 * is added up in the part, in the order of the elements, whatever other threads do. Where keys are coupled
 * (fleet_count) the parts are moved into the sums of all, one after the other, and a new prior is made of
 * them. So neither the sums nor what a key takes depend on the number of threads.
 *
 * The bounds of the prior describe what is normal among keys. They are made at the same time; keys that
 * judged their rows by very different bounds judge them again, silent keys too. Where subtraction may have
 * cost digits, all keys are added up again. A key that is removed takes what it holds out of the sums, and is
 * read from the disk for it if need be.
 *
 * Read svi_fleet_prior_join first, then prior_couple (the four steps), prior_apply_bounds and prior_renew. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_prior.h"

struct svi_fleet_prior {
    struct svi_prior_sums part[SVI_FLEET_PARTS], all;
    struct svi_prior_sums guest;                          /* what it would add, which counts for nothing */
    struct svi_prior_bounds bounds;                       /* as of the last coupling */
    struct svi_prior *newest;                             /* NULL: nothing is held */
    uint16_t up[SVI_FLEET_PARTS][SVI_PRIOR_FEATURES + 1]; /* svi_prior_sums_map */
    uint64_t number;                                      /* of the newest prior */
    int64_t keys_out;                                     /* that do not enter, as of the last coupling */
    bool renew;                                           /* the sums are to be made again */
};

svs_code svi_fleet_prior_new(struct svi_fleet *f, svs_error *err) {
    const bool regress = f->stream.root->s->task == SVS_REGRESS;
    svs_code code = SVS_OK;
    if (!(f->stream.root->s->key_prior > 0))
        return SVS_OK;
    if (!(f->prior = svi_alloc(sizeof *f->prior)))
        return svi_fail_memory(err, "the model of all keys");
    svi_prior_sums_init(&f->prior->all, regress);
    svi_prior_sums_init(&f->prior->guest, regress);
    for (int i = 0; i < SVI_FLEET_PARTS && code == SVS_OK; i++) {
        svi_prior_sums_init(&f->prior->part[i], regress);
        code = svi_prior_sums_ready(&f->prior->part[i], err);
    }
    return code;
}

void svi_fleet_prior_free(struct svi_fleet *f) {
    if (!f->prior)
        return;
    svi_prior_release(&f->prior->newest);
    svi_prior_bounds_clear(&f->prior->bounds);
    svi_prior_sums_clear(&f->prior->all);
    svi_prior_sums_clear(&f->prior->guest);
    if (f->guest)
        svi_prior_key_clear(&f->guest->common);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_prior_sums_clear(&f->prior->part[i]);
    svi_free(f->prior);
    f->prior = NULL;
}

bool svi_fleet_prior_known(const struct svi_fleet *f) {
    return f->prior && f->prior->newest;
}

const struct svi_prior *svi_fleet_prior_newest(const struct svi_fleet *f) {
    return f->prior ? f->prior->newest : NULL;
}

/* The engine adds to the part of its key, and takes the newest prior by a pointer to the place where it
 * stands: a coupling reaches all engines by one assignment. The guest of a score adds to sums of its own,
 * which are emptied each time and enter nothing. */
svs_code svi_fleet_prior_join(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_engine *e,
                              svs_error *err) {
    if (!f->prior)
        return SVS_OK;
    struct svi_prior_sums *part = &f->prior->part[svi_fleet_part(entry->hash)];
    if (entry == f->guest) {
        part = &f->prior->guest;
        svi_prior_sums_clear(part);
        svi_prior_key_clear(&entry->common);
        if (svi_prior_sums_ready(part, err) != SVS_OK)
            return SVS_NO_MEMORY;
    }
    return svi_learner_set_prior(e->learner, e->s->key_prior, part, &entry->common, &f->prior->newest, err);
}

/* Bringing the key back makes an engine, which takes part in the prior again; a key can only take out of the
 * sums what an engine of it holds. */
svs_code svi_fleet_prior_end(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    if (!f->prior)
        return SVS_OK;
    svi_workers_settle(f);
    return entry->engine ? SVS_OK : svi_fleet_return(f, entry, err);
}

/* Each prior that some key still uses takes memory: the more keys, the fewer priors are made. They are due
 * after numbers of elements that are powers of 2, and at multiples of the smallest SVI_FLEET_COUPLE * 2^k
 * that is 16 elements a key or more. */
static bool prior_is_due(const struct svi_fleet *f) {
    int64_t every = SVI_FLEET_COUPLE;
    while (every < 16 * svi_key_table_count(f->table))
        every *= 2;
    return (f->taken & (f->taken - 1)) == 0 || f->taken % every == 0;
}

/* The coordinates of its features. */
static const uint16_t *prior_up(const struct svi_fleet *f, const struct svi_key_entry *entry) {
    return f->prior->up[svi_fleet_part(entry->hash)];
}

static bool prior_touched(const struct svi_fleet_prior *p) {
    bool touched = false;
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        touched = touched || p->part[i].touched;
    return touched;
}

/* In the order of the parts, always all of them: the order of additions decides about the last bits. */
static svs_code prior_gather(struct svi_fleet_prior *p) {
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        SVI_TRY(svi_prior_sums_move(&p->all, &p->part[i], NULL));
    return SVS_OK;
}

/* Makes the bounds from the traits of all keys that hold something. The coordinates of a part are mapped to
 * those of the sums first, as each part numbers its features by itself. The old bounds stay where memory is
 * short. */
static svs_code prior_bound_keys(struct svi_fleet *f) {
    struct svi_fleet_prior *p = f->prior;
    const size_t most = (size_t)svi_key_table_count(f->table) + 1;
    const struct svi_prior_key **key = svi_alloc_array(most, sizeof *key);
    const uint16_t **up = svi_alloc_array(most, sizeof *up);
    struct svi_prior_bounds made = {0};
    int64_t count = 0;
    svs_code code = key && up ? SVS_OK : SVS_NO_MEMORY;
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_prior_sums_map(&p->all, &p->part[i], p->up[i]);
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after)
        if (n->common.weight > 0) {
            key[count] = &n->common;
            up[count++] = prior_up(f, n);
        }
    if (code == SVS_OK)
        code = svi_prior_bounds_make(&made, p->all.n, key, up, count, NULL);
    svi_free(key);
    svi_free(up);
    if (code != SVS_OK)
        return code;
    svi_prior_bounds_clear(&p->bounds);
    p->bounds = made;
    return SVS_OK;
}

/* The engine of a key, which may have to come back for it. */
static struct svi_engine *prior_engine(struct svi_fleet *f, struct svi_key_entry *n) {
    svs_error err = {0};
    if (!n->engine && svi_fleet_return(f, n, &err) != SVS_OK) {
        f->stream.root->out_of_memory = f->stream.root->out_of_memory || err.code == SVS_NO_MEMORY;
        svi_fleet_lose(f, n, &err);
        return NULL;
    }
    svi_key_table_use(f->table, n);
    return n->engine;
}

/* Keys whose rows were judged by bounds that have changed much judge them again, silent keys too: returns
 * how many. Each may come back from the disk, so keys leave memory as the walk continues. `keys_out` counts
 * the keys whose factor is 0: the prior has nothing of them. */
static int64_t prior_apply_bounds(struct svi_fleet *f, const struct svi_prior *of) {
    int64_t judged = 0, out = 0;
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n; n = n->after) {
        if (n->common.weight > 0 && svi_prior_outdated(&of->bounds, &n->common, prior_up(f, n))) {
            struct svi_engine *e = prior_engine(f, n);
            if (e && svi_fleet_change(f, n, NULL) == SVS_OK)
                svi_learner_apply_bounds(e->learner, of);
            svi_fleet_evict(f);
            judged++;
        }
        out += n->common.weight > 0 && n->common.factor == 0;
    }
    f->prior->keys_out = out;
    return judged;
}

/* Subtraction has cost digits (svi_prior_sums_inexact): the sums are made again from what the keys hold.
 * `renew` stays set until that has succeeded, so a failure, after which the sums are incomplete, is repeated
 * at the next coupling. */
static svs_code prior_renew(struct svi_fleet *f) {
    struct svi_fleet_prior *p = f->prior;
    svs_code code = SVS_OK;
    p->renew = true;
    svi_prior_sums_empty(&p->all);
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after) {
        struct svi_engine *e = prior_engine(f, n);
        code = e ? SVS_OK : SVS_UNAVAILABLE;
        if (e)
            svi_learner_count_bounded(e->learner, 1);
        svi_fleet_evict(f);
    }
    /* What the walk had added to the parts before it failed must not be counted as well next time. */
    for (int i = 0; i < SVI_FLEET_PARTS && code != SVS_OK; i++)
        svi_prior_sums_empty(&p->part[i]);
    if (code == SVS_OK && (code = prior_gather(p)) == SVS_OK)
        p->renew = false;
    return code;
}

/* Keys that have a prior of the same number share one: a merged prior that comes between couplings makes
 * another of the same element. */
static uint64_t prior_next(const struct svi_fleet *f) {
    const uint64_t taken = (uint64_t)f->taken;
    return taken > f->prior->number ? taken : f->prior->number + 1;
}

static svs_code prior_make(struct svi_fleet *f, struct svi_prior **made) {
    struct svi_fleet_prior *p = f->prior;
    svi_prior_release(made);
    return svi_prior_make(&p->all, &p->bounds, prior_next(f), made, NULL);
}

static void prior_replace(struct svi_fleet_prior *p, struct svi_prior *made) {
    svi_prior_release(&p->newest);
    p->newest = made;
    p->number = made ? made->number : p->number;
}

/* Four steps. The parts are gathered and the bounds made; a prior is made by them, because judging needs
 * one; keys judge their rows again, which changes the parts; worn sums are renewed. If any of the last two
 * changed the sums, the prior is made once more. */
static svs_code prior_couple(struct svi_fleet *f, struct svi_prior **made) {
    struct svi_fleet_prior *p = f->prior;
    svs_code code = prior_gather(p);
    if (code == SVS_OK)
        code = prior_bound_keys(f);
    if (code == SVS_OK)
        code = prior_make(f, made);
    const bool judged = code == SVS_OK && *made && prior_apply_bounds(f, *made) > 0;
    if (code == SVS_OK && judged)
        code = prior_gather(p);
    const bool worn = code == SVS_OK && (p->renew || svi_prior_sums_inexact(&p->all, p->bounds.usual[0]));
    if (code == SVS_OK && worn)
        code = prior_renew(f);
    return code == SVS_OK && (judged || worn) ? prior_make(f, made) : code;
}

/* Nothing is made where nothing was learned or forgotten. On failure the newest prior stays: keys go on by
 * an older one, and no key is left without. */
void svi_fleet_prior_couple(struct svi_fleet *f) {
    struct svi_fleet_prior *p = f->prior;
    struct svi_prior *made = NULL;
    if (!p || !prior_is_due(f) || !(p->renew || prior_touched(p)))
        return;
    svs_code code = prior_couple(f, &made);
    if (code == SVS_OK)
        code = svi_fleet_merged_make(f, &p->all, &p->bounds, &made, prior_next(f), NULL);
    if (code != SVS_OK) {
        f->stream.root->out_of_memory = true;
        svi_prior_release(&made);
        return;
    }
    prior_replace(p, made);
}

svs_code svi_fleet_prior_again(struct svi_fleet *f, svs_error *err) {
    struct svi_fleet_prior *p = f->prior;
    struct svi_prior *made = NULL;
    SVI_TRY(svi_prior_make(&p->all, &p->bounds, prior_next(f), &made, err));
    const svs_code code = svi_fleet_merged_make(f, &p->all, &p->bounds, &made, prior_next(f), err);
    if (code == SVS_OK)
        prior_replace(p, made);
    else
        svi_prior_release(&made);
    return code;
}

struct svi_prior_sums *svi_fleet_prior_part(const struct svi_fleet *f, int part) {
    return &f->prior->part[part];
}

const struct svi_prior_sums *svi_fleet_prior_sums(const struct svi_fleet *f,
                                                  const struct svi_prior_bounds **bounds, int64_t *keys) {
    *keys = 0;
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n; n = n->after)
        *keys += n->common.weight > 0;
    *bounds = &f->prior->bounds;
    return &f->prior->all;
}

void svi_fleet_prior_out(const struct svi_fleet *f, int64_t *keys, int64_t *rows) {
    const struct svi_fleet_prior *p = f->prior;
    *keys = p ? p->keys_out : 0;
    *rows = p ? p->all.out : 0;
    for (int i = 0; p && i < SVI_FLEET_PARTS; i++)
        *rows += p->part[i].out;
}

/* The prior itself is not in the state. The sums of all change at couplings alone: made of them again, under
 * its number, the prior has the same bits. */
void svi_fleet_prior_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_fleet_prior *p = f->prior;
    svi_archive_uint64(a, "number", &p->number);
    svi_archive_bool(a, "renew", &p->renew);
    svi_archive_int64(a, "keys out", &p->keys_out, 0, INT64_MAX / 4);
    svi_prior_bounds_archive(a, &p->bounds);
    svi_prior_sums_archive(a, &p->all);
    for (int i = 0; i < SVI_FLEET_PARTS && svi_archive_ok(a); i++)
        svi_prior_sums_archive(a, &p->part[i]);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        svi_fleet_sums_follow(f, a->err);
    if (!svi_archive_loading(a) || !svi_archive_ok(a) ||
        svi_prior_make(&p->all, &p->bounds, p->number, &p->newest, a->err) != SVS_OK)
        return;
    svi_fleet_merged_make(f, &p->all, &p->bounds, &p->newest, p->number, a->err);
}
