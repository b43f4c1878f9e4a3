/* The merged prior: what the keys of all machines hold, for new keys of this one (merge/prior_merge.h).
 *
 * A merger sends it as a record, which is in the journal. The keys that begin after it take it, in
 * every replay. The fleet keeps the record as it arrived. It makes a prior of the record where it
 * makes its own: at a coupling, and when the record is taken. There the keys here decide by what
 * they hold which of the two priors new keys take (learner/prior_agree.h). A merged prior that is
 * damaged, not like the keys here, or worse than a constant on their rows is passed over. Keys then
 * begin with what is known here. At worst, another machine is thus of no use.
 *
 * Bounds are applied again. The bounds of the keys here limit rows and levels where these are
 * known, and the bounds of the record do elsewhere. The features of the keys here keep their
 * coordinates, because the traits of keys refer to them. A level that is too far from the keys here
 * is replaced by theirs.
 *
 * Read svi_fleet_merged_take first, then svi_fleet_merged_make. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/fleet_internal.h"
#include "learner/prior_agree.h"
#include "merge/prior_record.h"

struct svi_fleet_merged {
    struct svi_prior_record r;
    struct svi_bytes map; /* that it was read from */
    enum svi_prior_verdict verdict;
    bool taken; /* new keys take it */
};

static void merged_free(struct svi_fleet_merged **m) {
    if (!*m)
        return;
    svi_prior_record_clear(&(*m)->r);
    svi_bytes_clear(&(*m)->map);
    svi_free(*m);
    *m = NULL;
}

void svi_fleet_merged_free(struct svi_fleet *f) {
    merged_free(&f->merged);
}

static svs_code merged_read(const struct svi_fleet *f, const void *map, size_t size,
                            struct svi_fleet_merged **made, svs_error *err) {
    struct svi_fleet_merged *m = svi_alloc(sizeof *m);
    if (!m)
        return svi_fail_memory(err, "the merged prior");
    svs_code code = svi_prior_record_decode(&m->r, f->stream.root->s->task == SVS_REGRESS, map, size, err);
    if (code == SVS_OK && (code = svi_bytes_append(&m->map, map, size)) != SVS_OK)
        svi_fail_memory(err, "the merged prior");
    if (code != SVS_OK)
        merged_free(&m);
    *made = m;
    return code;
}

static svs_code merged_fits(const struct svi_fleet *f, svs_error *err) {
    return f && f->prior ? SVS_OK
                         : svi_fail(err, SVS_UNAVAILABLE,
                                    "a merged prior is for a stream with keys and with key.prior above 0");
}

svs_code svi_fleet_merged_check(svi_stream *s, const void *map, size_t size, bool *again, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_prior_record r = {0};
    SVI_TRY(merged_fits(f, err));
    const struct svi_bytes *last = f->merged ? &f->merged->map : NULL;
    *again = last && last->size == size && memcmp(last->data, map, size) == 0;
    if (*again)
        return SVS_OK;
    const svs_code code = svi_prior_record_decode(&r, f->stream.root->s->task == SVS_REGRESS, map, size, err);
    svi_prior_record_clear(&r);
    return code;
}

svs_code svi_fleet_merged_take(svi_stream *s, const void *map, size_t size, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    SVI_TRY(merged_fits(f, err));
    svi_workers_settle(f);
    struct svi_fleet_merged *made, *old = f->merged;
    SVI_TRY(merged_read(f, map, size, &made, err));
    f->merged = made;
    const svs_code code = svi_fleet_prior_again(f, err);
    if (code != SVS_OK)
        f->merged = old;
    merged_free(code == SVS_OK ? &old : &made);
    return code;
}

bool svi_fleet_merged_known(const svi_stream *s) {
    return svi_fleet_of((svi_stream *)s)->merged;
}

bool svi_fleet_merged_taken(const struct svi_fleet *f) {
    return f->merged && f->merged->taken;
}

/* ---- a prior of it */

/* Its sums, by coordinates that begin with those of the keys here. */
static svs_code merged_sums(const struct svi_fleet_merged *m, const struct svi_prior_sums *own,
                            struct svi_prior_sums *sums, svs_error *err) {
    svi_prior_sums_init(sums, own->regress);
    SVI_TRY(svi_prior_sums_follow(sums, own, err));
    return svi_prior_sums_join(sums, &m->r.sums, 1, err);
}

static bool bound_is_known(const struct svi_prior_bounds *b, int at) {
    return at < b->n && b->usual[at] < INFINITY;
}

/* The bounds of the keys here; where they know nothing, those of the record. */
static svs_code merged_bounds(const struct svi_fleet_merged *m, const struct svi_prior_sums *sums,
                              const struct svi_prior_bounds *own, struct svi_prior_bounds *b,
                              svs_error *err) {
    const struct svi_prior_bounds *theirs = &m->r.bounds;
    const struct svi_prior_sums *of = &m->r.sums;
    SVI_TRY(svi_prior_bounds_unknown(b, sums->n, err));
    b->weight = own->n > 0 && own->weight < INFINITY ? own->weight : theirs->weight;
    for (int j = 0; j < b->n; j++) {
        const int at = j == 0      ? 0
                       : of->n > 1 ? svi_prior_find(of->identity + 1, of->n - 1, sums->identity[j], j - 1) + 1
                                   : theirs->n;
        const struct svi_prior_bounds *from = bound_is_known(own, j) ? own : theirs;
        const int i = from == own ? j : at;
        if (i >= from->n || (from == theirs && !(theirs->usual[i] > 0)))
            continue;
        b->usual[j] = from->usual[i];
        b->middle[j] = from->middle[i];
        b->apart[j] = from->apart[i];
    }
    return SVS_OK;
}

/* Levels that are not near those of the keys here are theirs, or not known. */
static void merged_levels(struct svi_prior *p, const struct svi_prior *own,
                          const struct svi_prior_bounds *bounds) {
    for (int j = 0; j < p->d; j++) {
        if (!bound_is_known(bounds, j + 1) || svi_prior_near(bounds, j + 1, p->level[j]))
            continue;
        const uint16_t at = own ? svi_prior_feature(own, p->identity[j], j) : SVI_PRIOR_NONE;
        p->level[j] = at == SVI_PRIOR_NONE ? 0 : own->level[at];
        p->between[j] = at == SVI_PRIOR_NONE ? INFINITY : own->between[at];
    }
}

static svs_code merged_make(const struct svi_fleet *f, const struct svi_prior_sums *own_sums,
                            const struct svi_prior_bounds *own_bounds, const struct svi_prior *own,
                            uint64_t number, struct svi_prior **made, svs_error *err) {
    struct svi_prior_sums sums;
    struct svi_prior_bounds bounds = {0};
    svs_code code = merged_sums(f->merged, own_sums, &sums, err);
    if (code == SVS_OK)
        code = merged_bounds(f->merged, &sums, own_bounds, &bounds, err);
    if (code == SVS_OK)
        code = svi_prior_make(&sums, &bounds, number, made, err);
    if (code == SVS_OK && *made)
        merged_levels(*made, own, own_bounds);
    if (code == SVS_OK && *made)
        code = svi_prior_assess(*made, own, &f->merged->verdict, err);
    svi_prior_bounds_clear(&bounds);
    svi_prior_sums_clear(&sums);
    return code;
}

svs_code svi_fleet_merged_make(struct svi_fleet *f, const struct svi_prior_sums *own_sums,
                               const struct svi_prior_bounds *own_bounds, struct svi_prior **made,
                               uint64_t number, svs_error *err) {
    struct svi_prior *merged = NULL;
    if (!f->merged)
        return SVS_OK;
    f->merged->taken = false;
    if (!svi_settings_merges(f->stream.root->s)) /* it is not asked for any more */
        return SVS_OK;
    const svs_code code = merged_make(f, own_sums, own_bounds, *made, number, &merged, err);
    f->merged->taken = code == SVS_OK && merged && f->merged->verdict == SVI_PRIOR_GOOD;
    if (f->merged->taken) {
        svi_prior_release(made);
        *made = merged;
    } else
        svi_prior_release(&merged);
    return code;
}

/* ---- in the state */

void svi_fleet_merged_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    int64_t size = f->merged ? (int64_t)f->merged->map.size : 0;
    svi_archive_int64(a, "bytes", &size, 0, INT64_MAX / 4);
    if (!svi_archive_loading(a)) {
        svi_archive_bytes(a, "prior", f->merged->map.data, size);
        return;
    }
    uint8_t *map = svi_archive_check(a, size <= svi_archive_left(a), "the merged prior is truncated")
                       ? svi_alloc((size_t)size + 1)
                       : NULL;
    if (svi_archive_ok(a) && !map)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the merged prior");
    if (svi_archive_ok(a))
        svi_archive_bytes(a, "prior", map, size);
    if (svi_archive_ok(a))
        merged_read(f, map, (size_t)size, &f->merged, a->err);
    svi_free(map);
}
