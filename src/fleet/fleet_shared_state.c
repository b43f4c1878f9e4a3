/* The state of the bank of all keys, and what the record of a key has of it. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "fleet/fleet_shared_internal.h"
#include "learner/learner_archive.h"

static void shared_archive_slots(struct svi_archive *a, const char *name, struct svi_shared_slot *slot,
                                 int64_t count) {
    int64_t used = 0;
    for (int64_t i = 0; i < count; i++)
        used += slot[i].key > 0;
    svi_archive_int64(a, name, &used, 0, count);
    for (int64_t i = 0, at = -1; i < used && svi_archive_ok(a); i++) {
        for (at++; !a->loading && slot[at].key == 0; at++)
            ;
        int64_t place = at;
        svi_archive_int64(a, "place", &place, at, count - 1);
        if (!svi_archive_ok(a))
            return;
        at = place;
        svi_archive_uint64(a, "key", &slot[at].key);
        svi_archive_bytes(a, "id", slot[at].id, sizeof slot[at].id);
        svi_archive_check(a, slot[at].key > 0, "a sample of the bank of all keys has no key");
    }
}

/* Features that are no columns. */
static int shared_extras(const struct svi_fleet_shared *sh) {
    return SVI_SHARED_KEY_BITS + (sh->regress ? 2 : sh->wide ? SVI_SHARED_KEY_LABELS : 1);
}

static void shared_archive_features(struct svi_archive *a, struct svi_fleet_shared *sh) {
    int features = sh->features;
    svi_archive_int(a, "features", &features, 1, sh->max_features + SVI_SHARED_EXTRAS);
    if (!svi_archive_ok(a))
        return;
    svi_archive_ints(a, "sources", sh->source, features, SVI_SHARED_LABEL(SVI_SHARED_KEY_LABELS - 1),
                     sh->max_features - 1);
    if (!a->loading || !svi_archive_ok(a))
        return;
    sh->features = features;
    sh->placed = 0;
    for (int i = 0; i < features; i++)
        if (sh->source[i] >= 0 &&
            svi_archive_check(a, sh->source[i] == sh->placed, "columns are out of order"))
            sh->place[sh->placed++] = i;
}

/* What it knows of a key, in the record of the key: five numbers, and whether it is out. */
#define SHARE_BYTES (5 * sizeof(float) + 1)

svs_code svi_key_share_pack(const struct svi_key_share *k, struct svi_bytes *out) {
    uint8_t bytes[SHARE_BYTES];
    memcpy(bytes, &k->n, sizeof k->n);
    memcpy(bytes + sizeof k->n, k->v, sizeof k->v);
    bytes[SHARE_BYTES - 1] = k->out;
    return svi_bytes_append(out, bytes, sizeof bytes);
}

svs_code svi_key_share_unpack(struct svi_key_share *k, const uint8_t **bytes, size_t *size, svs_error *err) {
    bool good = *size >= SHARE_BYTES && (*bytes)[SHARE_BYTES - 1] < 2;
    if (good) {
        memcpy(&k->n, *bytes, sizeof k->n);
        memcpy(k->v, *bytes + sizeof k->n, sizeof k->v);
        k->out = (*bytes)[SHARE_BYTES - 1];
        good = k->n >= 0 && isfinite(k->n);
        for (int i = 0; i < SVI_SHARED_KEY_LABELS; i++)
            good = good && isfinite(k->v[i]);
        *bytes += SHARE_BYTES;
        *size -= SHARE_BYTES;
    }
    return good ? SVS_OK : svi_fail(err, SVS_DAMAGED, "what the bank of all keys knows of a key is damaged");
}

void svi_fleet_shared_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet_shared *sh = svi_fleet_of(s)->shared;
    bool columns = svi_schema_archived(&sh->schema);
    svi_shape_archive(a, &sh->schema.shape);
    svi_archive_bool(a, "has columns", &columns);
    if (columns)
        svi_schema_archive(a, &sh->schema);
    shared_archive_features(a, sh);
    if (!svi_archive_ok(a))
        return;
    svi_learner_archive(a, sh->host);
    svi_bank_archive(a, sh->bank);
    if (!svi_archive_check(
            a, svs_learner_dimension(sh->host) <= sh->features && svi_bank_follows(sh->bank, sh->host),
            "the bank of all keys is not one of its learner"))
        return;
    shared_archive_slots(a, "held", sh->held, SVI_AUTO_WINDOW);
    shared_archive_slots(a, "waiting", sh->waiting, SVI_SHARED_WAITING);
    svi_archive_int64(a, "learned", &sh->learned, 0, SVI_COUNT_MAX);
    svi_archive_int64(a, "taken", &sh->taken, 0, SVI_COUNT_MAX);
    svi_archive_double(a, "time", &sh->time);
    for (int i = 0; i < SVI_SHARE_ROWS; i++)
        svi_archive_uint64(a, "recent", &sh->recent[i]);
    svi_archive_bool(a, "knew bounds", &sh->knew_bounds);
    double *const early[] = {&sh->early_weight, &sh->early_low, &sh->early_high};
    for (int i = 0; i < 3; i++)
        svi_archive_finite(a, "early labels", early[i], 1);
    svi_archive_bool(a, "wide", &sh->wide);
    /* Its arrays have places for these features and max_features columns. */
    svi_archive_check(a, sh->features - sh->placed == shared_extras(sh),
                      "the bank of all keys has other features than it makes");
    svi_archive_floats(a, "labels", &sh->all.n, 1);
    svi_archive_floats(a, "of classes", sh->all.v, SVI_SHARED_KEY_LABELS);
    svi_stack_start_archive(a, &sh->start);
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        svi_stack_start_archive(a, &sh->part[i]);
    svi_archive_check(a, !isnan(sh->time), "the time is not valid");
    if (a->loading && svi_archive_ok(a))
        svi_fleet_shared_note_classes(sh);
}
