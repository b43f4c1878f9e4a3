/* The plain sums over the windows of all keys: what the fleet adds to a model of many processes
 * (merge/sums.h). They are kept while the setting publish.sums asks for them, and cost nothing else.
 *
 * As with the prior, keys are assigned to parts by their hash. What a key learns and forgets is
 * added up in its part, in the order of the elements. The number of threads therefore changes no
 * bit. What is published gathers the parts in their order. Rows are summed as they are, because a
 * bound would make another problem of it. The merger leaves out a part as a whole if it finds the
 * part bad.
 *
 * A removed row leaves nothing behind as long as it was not too large (sums_worn). After a larger
 * one, a walk over all keys, evicted ones too, makes the sums again (sums_renew). The same walk
 * makes them where they begin with keys that hold rows already. The sums are a part of the state,
 * but not of its hash, because what is published does not change what is learned.
 *
 * Read svi_fleet_sums_keep first, then svi_fleet_sums_record. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fnv.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_prior.h"
#include "merge/prior_record.h"

/* A sum has about 31 digits of the largest that was ever in it. Where a row that has left was larger than the
 * variance by this factor, the digits of the variance that a double shows are no longer all right. */
#define MAX_REMOVED 1e15

struct svi_fleet_sums {
    struct svi_plain_sums part[SVI_FLEET_PARTS], all;
    uint64_t version;               /* rises with each change of the sums that was seen */
    struct svi_bytes prior, schema; /* of the record made last */
    bool renew;                     /* they are to be made again */
    const char **name;              /* of features, and ... */
    int32_t *unscaled;              /* ... the unscaled ones: of the record made last; `capacity` each */
    int capacity;
};

static void sums_free(struct svi_fleet_sums **p) {
    struct svi_fleet_sums *s = *p;
    if (!s)
        return;
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_plain_sums_clear(&s->part[i]);
    svi_plain_sums_clear(&s->all);
    svi_bytes_clear(&s->prior);
    svi_bytes_clear(&s->schema);
    svi_free(s->name);
    svi_free(s->unscaled);
    svi_free(s);
    *p = NULL;
}

static struct svi_fleet_sums *sums_new(const struct svi_fleet *f, svs_error *err) {
    const bool regress = f->stream.root->s->task == SVS_REGRESS;
    struct svi_fleet_sums *s = svi_alloc(sizeof *s);
    if (!s) {
        svi_fail_memory(err, "the sums of all keys");
        return NULL;
    }
    svi_plain_sums_init(&s->all, regress);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_plain_sums_init(&s->part[i], regress);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        if (svi_prior_sums_ready(&s->part[i].sums, err) != SVS_OK) {
            sums_free(&s);
            return NULL;
        }
    return s;
}

/* ---- which keys count */

/* Engines find the plain sums through those of their part. */
static void sums_reach(struct svi_fleet *f) {
    for (int i = 0; f->prior && i < SVI_FLEET_PARTS; i++)
        svi_fleet_prior_part(f, i)->plain = f->sums ? &f->sums->part[i] : NULL;
}

svs_code svi_fleet_sums_follow(struct svi_fleet *f, svs_error *err) {
    for (int i = 0; f->sums && i < SVI_FLEET_PARTS; i++)
        SVI_TRY(svi_prior_sums_follow(&f->sums->part[i].sums, svi_fleet_prior_part(f, i), err));
    return SVS_OK;
}

/* Keys that hold rows are counted by a walk, at the first record. */
svs_code svi_fleet_sums_keep(struct svi_fleet *f, bool on, svs_error *err) {
    if (on == (f->sums != NULL) || (on && !f->prior))
        return SVS_OK;
    svi_workers_settle(f);
    if (!on) {
        struct svi_fleet_sums *old = f->sums;
        f->sums = NULL;
        sums_reach(f);
        sums_free(&old);
        return SVS_OK;
    }
    if (!(f->sums = sums_new(f, err)) || svi_fleet_sums_follow(f, err) != SVS_OK) {
        sums_free(&f->sums);
        return SVS_NO_MEMORY;
    }
    f->sums->renew = svi_key_table_count(f->table) > 0;
    sums_reach(f);
    return SVS_OK;
}

double svi_fleet_sums_memory(const struct svi_fleet *f) {
    const struct svi_fleet_sums *s = f->sums;
    double bytes = s ? (double)(sizeof *s + svi_prior_sums_bytes(&s->all.sums)) : 0;
    for (int i = 0; s && i < SVI_FLEET_PARTS; i++)
        bytes += (double)svi_prior_sums_bytes(&s->part[i].sums);
    return bytes;
}

void svi_fleet_sums_free(struct svi_fleet *f) {
    sums_free(&f->sums);
}

/* ---- made again */

static svs_code sums_gather(struct svi_fleet_sums *s, svs_error *err) {
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        SVI_TRY(svi_plain_sums_move(&s->all, &s->part[i], err));
    return SVS_OK;
}

/* Is what removed rows left in the rounding of the sums more than the last digits of a variance? What is held
 * now is never larger than its own sum, so only removed rows are found. */
static bool sums_worn(const struct svi_plain_sums *s) {
    const double total = s->sums.touched ? svi_prior_sums_at(&s->sums, 0, 0).high : 0;
    for (int i = 0; s->sums.touched && i < s->sums.n; i++) {
        const struct svi_dd sum = svi_prior_sums_at(&s->sums, i, 0),
                            square = svi_prior_sums_at(&s->sums, i, i);
        const double mean = total > 0 ? sum.high / total : 0,
                     about =
                         i > 0 ? svi_dd_add(square, svi_dd_minus(svi_dd_times(sum, mean))).high : square.high;
        if (s->sums.peak[i] > square.high && s->sums.peak[i] > MAX_REMOVED * (about > 0 ? about : 0))
            return true;
    }
    return s->sums.touched && s->sums.target_peak > MAX_REMOVED * s->target_square.high;
}

static svs_code sums_count_key(struct svi_fleet *f, struct svi_key_entry *n, svs_error *err) {
    if (!n->engine)
        SVI_TRY(svi_fleet_return(f, n, err));
    svi_key_table_use(f->table, n);
    for (int j = 0; j < svs_learner_dimension(n->engine->learner); j++)
        SVI_TRY(svi_learner_plain_name(n->engine->learner, j,
                                       svs_features_name(n->engine->schema.shape.names, j), err));
    svi_learner_count_plain(n->engine->learner, 1);
    return SVS_OK;
}

/* A walk that fails leaves sums that are not whole: `renew` stays, and the next record walks again. */
static svs_code sums_renew(struct svi_fleet *f, svs_error *err) {
    struct svi_fleet_sums *s = f->sums;
    svs_code code = SVS_OK;
    s->renew = true;
    svi_plain_sums_empty(&s->all);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_plain_sums_empty(&s->part[i]);
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after) {
        code = sums_count_key(f, n, err);
        svi_fleet_evict(f);
    }
    if (code == SVS_OK)
        code = sums_gather(s, err);
    s->renew = code != SVS_OK;
    return code;
}

/* ---- the record */

static svs_code record_reserve_names(struct svi_fleet_sums *s, int d, svs_error *err) {
    if (d <= s->capacity)
        return SVS_OK;
    const size_t from = (size_t)s->capacity, to = (size_t)d;
    const char **name = svi_realloc((void *)s->name, from * sizeof *name, to * sizeof *name);
    s->name = name ? name : s->name;
    int32_t *unscaled =
        name ? svi_realloc(s->unscaled, from * sizeof *unscaled, to * sizeof *unscaled) : NULL;
    s->unscaled = unscaled ? unscaled : s->unscaled;
    if (!unscaled)
        return svi_fail_memory(err, "the names of features");
    s->capacity = d;
    return SVS_OK;
}

/* Keys have names for all of their columns or for none; both kinds in one stream cannot be joined. */
static svs_code record_names(struct svi_fleet_sums *s, int *named, svs_error *err) {
    const int d = s->all.sums.n - 1;
    *named = 0;
    SVI_TRY(record_reserve_names(s, d, err));
    for (int j = 0; j < d; j++) {
        s->name[j] = j + 1 < s->all.capacity ? s->all.name[j + 1] : NULL;
        *named += s->name[j] != NULL;
    }
    return *named == 0 || *named == d
               ? SVS_OK
               : svi_fail(err, SVS_UNAVAILABLE,
                          "the sums of all keys cannot be published: %d of %d columns have names; drop the "
                          "keys whose columns have none, or name them",
                          *named, d);
}

static svs_code record_is_whole(const struct svi_fleet_sums *s, svs_error *err) {
    if (s->all.crowded)
        return svi_fail(err, SVS_LIMIT,
                        "the sums of all keys cannot be published: they take %d columns and %d classes at "
                        "most, and the keys have more; drop keys, or use streams of their own",
                        SVI_PRIOR_FEATURES, SVI_PRIOR_LABELS);
    return SVS_OK;
}

/* The engine that says what all keys have in common: that of the last sample, or of any key. */
static svi_engine *record_engine(struct svi_fleet *f, svs_error *err) {
    const struct svi_engine *latest = svi_fleet_latest(&f->stream);
    struct svi_key_entry *n = svi_key_table_first(f->table);
    for (; n && (latest ? n->engine != latest : n->common.weight == 0);)
        n = n->after;
    if (!n) {
        svi_fail(err, SVS_UNAVAILABLE, "no key holds a sample yet");
        return NULL;
    }
    return n->engine || svi_fleet_return(f, n, err) == SVS_OK ? n->engine : NULL;
}

static void record_unscaled(struct svi_fleet_sums *s, struct svi_sums *r) {
    r->unscaled = s->unscaled;
    r->unscaled_count = 0;
    for (int j = 1; j < s->all.sums.n; j++)
        if (j < s->all.capacity && s->all.unscaled[j])
            s->unscaled[r->unscaled_count++] = j - 1;
}

/* Of the last coupling: it is a part of what is learned, and must not be moved on by a publication. */
static svs_code record_prior(struct svi_fleet *f, struct svi_sums *r, svs_error *err) {
    struct svi_fleet_sums *s = f->sums;
    const struct svi_prior_bounds *bounds;
    int64_t keys;
    const struct svi_prior_sums *sums = svi_fleet_prior_sums(f, &bounds, &keys);
    s->prior.size = 0;
    if (!sums->touched)
        return SVS_OK;
    SVI_TRY(svi_prior_record_encode(sums, bounds, keys, &s->prior, err));
    r->prior = s->prior.data;
    r->prior_size = s->prior.size;
    return SVS_OK;
}

svs_code svi_fleet_sums_numbers(struct svi_fleet *f, struct svi_window_sums *out, svs_error *err) {
    struct svi_fleet_sums *s = f->sums;
    svi_workers_settle(f);
    SVI_TRY(s->renew ? SVS_OK : sums_gather(s, err));
    if (s->renew || sums_worn(&s->all))
        SVI_TRY(sums_renew(f, err));
    SVI_TRY(record_is_whole(s, err));
    return svi_plain_sums_window(&s->all, out, err);
}

svs_code svi_fleet_sums_record(struct svi_fleet *f, struct svi_sums *r, svs_error *err) {
    struct svi_window_sums sums = {0};
    int named;
    SVI_TRY(svi_fleet_sums_keep(f, true, err));
    svs_code code = svi_fleet_sums_numbers(f, &sums, err);
    struct svi_fleet_sums *s = f->sums;
    svi_engine *e = code == SVS_OK ? record_engine(f, err) : NULL;
    if (code == SVS_OK)
        code = e ? svi_engine_sums(e, r, err) : err->code;
    if (code == SVS_OK)
        code = record_names(s, &named, err);
    if (code != SVS_OK) {
        svi_window_sums_clear(&sums);
        return code;
    }
    record_unscaled(s, r);
    svi_window_sums_clear(&r->sums);
    r->sums = sums;
    r->part_epoch = f->stream.epoch;
    r->offset = svi_stream_seen(&f->stream);
    r->features = named > 0 ? s->name : NULL;
    r->classes = s->all.sums.label;
    SVI_TRY(svi_fleet_sums_schema(e, r, &s->schema, err));
    return record_prior(f, r, err);
}

/* What changes the sums touches a part, and what changes the rest of a record is in the root's settings. */
uint64_t svi_fleet_sums_mark(struct svi_fleet *f) {
    struct svi_fleet_sums *s = f->sums;
    bool changed = !s || s->renew;
    svi_workers_settle(f);
    for (int i = 0; i < SVI_FLEET_PARTS && !changed; i++)
        changed = s->part[i].sums.touched;
    if (s)
        s->version += changed;
    const struct svi_prior *prior = svi_fleet_prior_newest(f);
    const uint64_t of[] = {svi_engine_sums_mark(f->stream.root), (uint64_t)svi_stream_seen(&f->stream),
                           s ? s->version : 0, f->noted, prior ? prior->number : 0};
    return svi_fnv(SVI_FNV_SEED, of, sizeof of);
}

/* ---- in the state */

void svi_fleet_sums_renew(struct svi_fleet *f) {
    if (f->sums)
        f->sums->renew = true;
}

/* Not hashed. A process without publish.sums reads and drops them. */
void svi_fleet_sums_archive(struct svi_archive *a, svi_stream *stream) {
    struct svi_fleet *f = svi_fleet_of(stream);
    struct svi_fleet_sums *s = f->sums ? f->sums : sums_new(f, a->err);
    if (!s)
        return;
    svi_archive_bool(a, "renew", &s->renew);
    svi_plain_sums_archive(a, &s->all);
    for (int i = 0; i < SVI_FLEET_PARTS && svi_archive_ok(a); i++)
        svi_plain_sums_archive(a, &s->part[i]);
    if (s != f->sums)
        sums_free(&s);
}
