/* The keys of a stream out of memory, and in its state.
 *
 * An engine that was packed and made again continues with the same bits, so which keys are in memory decides
 * about time and memory alone. Keys unused the longest leave memory, into a cache on disk
 * (fleet/key_cache.h), and come back when they are asked for.
 *
 * The state of a key as bytes: how many of them are hashed and how many there are in all (4 bytes each,
 * little-endian), then the sections of its engine, zeros packed (wire/archive_file.h). Its hash is XXH3
 * (128 bits) of what the record says of it and of the sections that are hashed. The fingerprint of the
 * stream has the sum of these hashes, which does not depend on the order of writing.
 *
 * Invariant: a key without an engine has its state in exactly one valid place: its record in the files where
 * svi_fleet_written says so, else the cache. In the order of reading: key_pack and key_unpack (one key as
 * bytes), svi_fleet_evict and svi_fleet_return (out of memory and back), svi_fleet_record and the archive
 * functions (the state). */
#define XXH_STATIC_LINKING_ONLY /* states on the stack: no memory except through the gate */
#include <endian.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/fleet_internal.h"
#include "store/checkpoint_file.h"
#include "store/key_record.h"
#include "wire/archive_file.h"

#define MAX_EVICTIONS_AT_ONCE 128               /* keys that leave memory at once */
#define EXTRA_EVICTIONS       24                /* than are too many */
#define PATIENCE              4096              /* calls after a failure */
#define MAX_STATE_BYTES       ((size_t)1 << 31) /* bytes of a key */
#define STATE_HEAD            8

/* ---- one key as bytes */

static void hash_number(XXH3_state_t *state, uint64_t v) {
    v = htole64(v);
    XXH3_128bits_update(state, &v, sizeof v);
}

/* Hashes what does not change while the key is not touched. Left out is what two runs over the same samples
 * may differ in: figures, times, and how many notes and departures of sources the key has processed, since
 * each start of a process is a note. What these did to the key is in its engine. */
static void key_hash(const struct svi_key_entry *n, const uint8_t *hashed, size_t size, uint8_t out[16]) {
    XXH3_state_t state;
    XXH128_canonical_t hash;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    /* The NUL is hashed too: it separates the name from the numbers behind it. */
    XXH3_128bits_update(&state, n->name, n->head.length + 1u);
    hash_number(&state, n->head.number);
    hash_number(&state, n->head.owner);
    hash_number(&state, (uint64_t)n->head.begun);
    hash_number(&state, n->head.again);
    hash_number(&state, n->head.published);
    XXH3_128bits_update(&state, hashed, size);
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(&state));
    memcpy(out, hash.digest, sizeof hash.digest);
}

/* Appends the key's state to `out`, by way of f->raw; hash may be NULL. */
static svs_code key_pack(struct svi_fleet *f, struct svi_key_entry *n, struct svi_bytes *out, uint8_t *hash,
                         svs_error *err) {
    size_t hashed;
    f->raw.size = 0;
    svs_code code = svi_engine_pack(n->engine, &f->raw, &hashed, err);
    const uint32_t head[2] = {htole32((uint32_t)hashed), htole32((uint32_t)f->raw.size)};
    if (code == SVS_OK && f->raw.size > MAX_STATE_BYTES)
        code = svi_fail(err, SVS_TOO_LARGE, "the state of key %s has %zu bytes", n->name, f->raw.size);
    if (code != SVS_OK)
        return code;
    if (svi_bytes_append(out, head, sizeof head) != SVS_OK ||
        svi_pack_zeros(f->raw.data, f->raw.size, out) != SVS_OK)
        return svi_fail_memory(err, "the state of a key");
    if (hash)
        key_hash(n, f->raw.data, hashed, hash);
    return SVS_OK;
}

/* Unpacks the sections into f->raw. The lengths come from a file and are checked before they are believed:
 * `raw` decides about an allocation. */
static svs_code key_open(struct svi_fleet *f, const uint8_t *bytes, size_t size, size_t *hashed,
                         svs_error *err) {
    uint32_t head[2];
    if (size < STATE_HEAD)
        return svi_fail(err, SVS_DAMAGED, "the state of a key is truncated");
    memcpy(head, bytes, sizeof head);
    const size_t raw = le32toh(head[1]);
    svs_code code = raw > MAX_STATE_BYTES
                        ? SVS_DAMAGED
                        : svi_unpack_zeros(bytes + STATE_HEAD, size - STATE_HEAD, raw, &f->raw);
    *hashed = le32toh(head[0]);
    if (code == SVS_NO_MEMORY)
        return svi_fail_memory(err, "the state of a key");
    if (code != SVS_OK || f->raw.size != raw || *hashed > raw)
        return svi_fail(err, SVS_DAMAGED, "the state of a key has the wrong length");
    return SVS_OK;
}

/* Makes the engine under the settings that the key has (its note's, not those of now), and fills it. The
 * sections stay in f->raw, of which the caller may make the hash. */
static svs_code key_unpack(struct svi_fleet *f, struct svi_key_entry *n, const uint8_t *bytes, size_t size,
                           size_t *hashed, svs_error *err) {
    svs_code code = key_open(f, bytes, size, hashed, err);
    if (code != SVS_OK)
        return code;
    struct svi_engine *e = svi_fleet_make(f, svi_fleet_settings(f, n), n, err);
    code = e ? svi_engine_unpack(e, f->raw.data, f->raw.size, err) : err->code;
    if (code != SVS_OK)
        svi_engine_free(&e);
    n->engine = e;
    return code;
}

/* ---- out of memory and back */

svs_code svi_fleet_return(struct svi_fleet *f, struct svi_key_entry *n, svs_error *err) {
    struct svi_key_record r;
    size_t hashed;
    if (svi_fleet_written(n)) {
        if (svi_key_files_read(f->kept.files, &n->place, &f->packed, &r, err) != SVS_OK)
            return err->code;
    } else if (svi_key_cache_get(f->cache, n->head.number, &r.state, &r.size, err) != SVS_OK) {
        return err->code;
    }
    return key_unpack(f, n, r.state, r.size, &hashed, err);
}

/* `in_cache` says that the cache has bytes of this key, `cached` that they are its state now. The bytes are
 * removed at the next put. */
void svi_fleet_uncache(struct svi_fleet *f, struct svi_key_entry *n) {
    if (n->in_cache)
        svi_key_cache_drop(f->cache, n->head.number);
    n->in_cache = n->cached = false;
}

/* Moves `count` keys to the cache with one write. All are packed before any is freed: if the write fails,
 * every one of them stays. */
static svs_code evict_some(struct svi_fleet *f, int count, svs_error *err) {
    struct svi_key_bytes put[MAX_EVICTIONS_AT_ONCE];
    struct svi_key_entry *leaving[MAX_EVICTIONS_AT_ONCE], *n;
    svs_code code = f->cache || (f->cache = svi_key_cache_new(f->folder, err)) ? SVS_OK : err->code;
    int puts = 0, out = 0;
    f->packed.size = 0;
    while (out < count && code == SVS_OK && (n = svi_key_table_oldest(f->table))) {
        const size_t offset = f->packed.size;
        svi_key_table_leave(f->table, n);
        svi_fleet_measure(f, svi_engine_features(n->engine), svi_engine_classes(n->engine));
        leaving[out++] = n;
        /* Its state is on disk already: nothing to write. */
        if (n->cached || svi_fleet_written(n))
            continue;
        code = key_pack(f, n, &f->packed, NULL, err);
        /* Set before the write, which may fail: that costs the removal of a number that is not there. */
        n->in_cache = true;
        put[puts++] = (struct svi_key_bytes){n->head.number, offset, f->packed.size - offset};
    }
    if (code == SVS_OK && puts > 0)
        code = svi_key_cache_put(f->cache, put, puts, f->packed.data, err);
    for (int i = 0; i < out; i++) {
        if (code != SVS_OK) {
            svi_key_table_use(f->table, leaving[i]); /* it stays */
            continue;
        }
        leaving[i]->cached = !svi_fleet_written(leaving[i]);
        svi_engine_free(&leaving[i]->engine);
    }
    return code;
}

void svi_fleet_evict(struct svi_fleet *f) {
    const int64_t most = svi_fleet_memory_most(f);
    /* Some more than are too many leave at once: the next new key should not need a write of its own. */
    const int64_t some = most / 16 < EXTRA_EVICTIONS ? most / 16 : EXTRA_EVICTIONS; /* not one by one */
    svs_error err = {0};
    /* After a failure (a full disk) the next PATIENCE calls do not try: keys stay in memory, and learning
     * continues. */
    if (svi_key_table_in_memory(f->table) <= most || (f->patience > 0 && --f->patience > 0))
        return;
    svi_workers_settle(f);
    while (svi_key_table_in_memory(f->table) > most) {
        const int64_t beyond = svi_key_table_in_memory(f->table) - most + some;
        if (evict_some(f, beyond < MAX_EVICTIONS_AT_ONCE ? (int)beyond : MAX_EVICTIONS_AT_ONCE, &err) ==
            SVS_OK) {
            f->reported_full = false;
            continue;
        }
        if (!f->reported_full)
            svi_publish_error(f->stream.root, err.code, err.text, NULL, 0, f->now);
        f->reported_full = true;
        f->patience = PATIENCE;
        return;
    }
}

/* ---- in the state */

/* Sums of 128 bits in two halves of 64: addition commutes, so the order in which keys are written does not
 * show. */
void svi_key_sum_add(struct svi_key_sum *sum, const uint8_t hash[16]) {
    uint64_t part[2];
    memcpy(part, hash, sizeof part);
    sum->low += le64toh(part[0]);
    sum->high += le64toh(part[1]) + (sum->low < le64toh(part[0]));
}

void svi_key_sum_take(struct svi_key_sum *sum, const uint8_t hash[16]) {
    uint64_t part[2];
    /* The borrow is taken from `low` before it is changed. */
    memcpy(part, hash, sizeof part);
    sum->high -= le64toh(part[1]) + (sum->low < le64toh(part[0]));
    sum->low -= le64toh(part[0]);
}

/* The key's state as it is, and its hash, wherever the state is: in the engine, in the files, or in
 * the cache. For a state in the files the entry keeps the hash. *r points into f->state or into the
 * cache, and is valid until the next call. */
static svs_code key_state(struct svi_fleet *f, struct svi_key_entry *n, struct svi_key_record *r,
                          svs_error *err) {
    size_t hashed;
    svs_code code = SVS_OK;
    if (n->engine) {
        f->state.size = 0;
        code = key_pack(f, n, &f->state, r->hash, err);
        r->state = f->state.data;
        r->size = f->state.size;
        return code;
    }
    if (svi_fleet_written(n)) {
        struct svi_key_record read;
        code = svi_key_files_read(f->kept.files, &n->place, &f->state, &read, err);
        r->state = read.state;
        r->size = read.size;
        memcpy(r->hash, n->kept_hash, sizeof r->hash);
        return code;
    }
    if ((code = svi_key_cache_get(f->cache, n->head.number, &r->state, &r->size, err)) == SVS_OK &&
        (code = key_open(f, r->state, r->size, &hashed, err)) == SVS_OK)
        key_hash(n, f->raw.data, hashed, r->hash);
    return code;
}

svs_code svi_fleet_record(struct svi_fleet *f, struct svi_key_entry *n, struct svi_bytes *out,
                          uint8_t hash[16], svs_error *err) {
    struct svi_key_record r = {.head = n->head, .last_arrival = n->last_arrival, .last = n->last};
    memcpy(r.name, n->name, n->head.length + 1u);
    svs_code code = key_state(f, n, &r, err);
    memcpy(hash, r.hash, sizeof r.hash);
    f->common.size = 0;
    /* With a bank of all keys what that knows of the key comes first. */
    if (code == SVS_OK && ((f->shared && svi_key_share_pack(&n->share, &f->common) != SVS_OK) ||
                           svi_prior_key_pack(&n->common, &f->common) != SVS_OK))
        code = svi_fail_memory(err, "the record of a key");
    r.common = f->common.data;
    r.common_size = f->common.size;
    return code == SVS_OK ? svi_key_record_append(out, &r, err) : code;
}

/* Keys whose record is on disk cost nothing: their hash is known. */
svs_code svi_fleet_add_up(svi_stream *s, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    svs_code code = SVS_OK;
    f->sum = (struct svi_key_sum){0};
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after) {
        struct svi_key_record r;
        if (svi_fleet_written(n))
            memcpy(r.hash, n->kept_hash, sizeof r.hash);
        else
            code = key_state(f, n, &r, err);
        if (code == SVS_OK)
            svi_key_sum_add(&f->sum, r.hash);
    }
    return code;
}

svs_code svi_fleet_restore_entry(const struct svi_fleet *f, struct svi_key_entry *n,
                                 const struct svi_key_record *r, svs_error *err) {
    const uint8_t *common = r->common;
    size_t size = r->common_size;
    n->head = r->head;
    n->last = r->last;
    n->last_arrival = r->last_arrival;
    if (f->shared)
        SVI_TRY(svi_key_share_unpack(&n->share, &common, &size, err));
    return svi_prior_key_unpack(&n->common, common, size, err);
}

/* The note must be one that the list still has, and the number one that was given out. */
svs_code svi_fleet_join_entered(struct svi_fleet *f, struct svi_key_entry *n, svs_error *err) {
    if (n->head.number >= f->begun || n->head.note <= f->dropped || n->head.note > f->noted)
        return svi_fail(err, SVS_DAMAGED, "key %s does not belong here", n->name);
    svi_fleet_join(f, n, n->head.note);
    return svi_fleet_settings(f, n)
               ? SVS_OK
               : svi_fail(err, SVS_DAMAGED, "the settings of key %s are missing", n->name);
}

/* Loads one key of a state that holds all of them. The hash is made again from what was read and must be
 * that of the record. Where there are too many keys for the memory, some leave it again during the load. */
static svs_code fleet_load_record(struct svi_fleet *f, const struct svi_key_record *r, svs_error *err) {
    uint8_t hash[16];
    const size_t length = strlen(r->name);
    size_t hashed;
    if (r->removed || length > SVS_KEY_MAX || svi_key_table_find(f->table, r->name, length))
        return svi_fail(err, SVS_DAMAGED, "key %s is a duplicate, or not valid", r->name);
    struct svi_key_entry *n = svi_key_table_add(f->table, r->name, length, r->head.owner, err);
    if (!n)
        return SVS_NO_MEMORY;
    SVI_TRY(svi_fleet_restore_entry(f, n, r, err));
    SVI_TRY(svi_fleet_join_entered(f, n, err));
    SVI_TRY(key_unpack(f, n, r->state, r->size, &hashed, err));
    svi_key_table_use(f->table, n);
    key_hash(n, f->raw.data, hashed, hash);
    if (memcmp(hash, r->hash, sizeof hash) != 0)
        return svi_fail(err, SVS_DAMAGED, "the hash of key %s is wrong", r->name);
    svi_key_sum_add(&f->sum, hash);
    svi_fleet_evict(f);
    return SVS_OK;
}

static void fleet_archive_one(struct svi_archive *a, struct svi_fleet *f, struct svi_key_entry *n) {
    struct svi_bytes record = {0};
    struct svi_key_record r;
    uint8_t hash[16];
    size_t length;
    if (n && svi_fleet_record(f, n, &record, hash, a->err) == SVS_OK)
        svi_key_sum_add(&f->sum, hash);
    /* SVI_TRY has no place here: an archive keeps its first error, and every call after it does nothing. */
    if (svi_archive_block(a, "size", "key", &record, SVI_KEY_RECORD_MAX, "a key is truncated",
                          "no memory for a key") &&
        !n && svi_key_record_read(record.data, record.size, &r, &length, a->err) == SVS_OK)
        fleet_load_record(f, &r, a->err);
    svi_bytes_clear(&record);
}

void svi_fleet_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    svi_archive_int64(a, "seen", &f->stream.others.seen, 0, INT64_MAX / 4);
    svi_archive_int64(a, "taken", &f->taken, 0, INT64_MAX / 4);
    svi_archive_uint64(a, "begun", &f->begun);
    svi_fleet_pool_archive(a, f);
    svi_archive_uint64(a, "gone", &f->removed);
    if (svi_archive_loading(a)) /* unless the section of the sums follows */
        svi_fleet_sums_renew(f);
}

/* Not hashed: times of arrival, and notes, of which each start of a process adds one with its time. It stands
 * behind the groups, whose times it has, and before the states, which refer to the notes. */
void svi_fleet_clock_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    svi_archive_uint64(a, "rests", &f->rests);
    svi_fleet_notes_archive(a, f);
    svi_alert_groups_clock_archive(a, f->groups);
}

void svi_fleet_totals_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_stream_total *t = &f->stream.others;
    svi_archive_int64(a, "labelled", &t->labelled, 0, INT64_MAX / 4);
    svi_archive_int64(a, "refused", &t->refused, 0, INT64_MAX / 4);
    svi_archive_int64(a, "judged", &t->judged, 0, INT64_MAX / 4);
    svi_archive_int64(a, "right", &t->right, 0, INT64_MAX / 4);
    svi_archive_int64(a, "alerts", &t->alerts, 0, INT64_MAX / 4);
    svi_archive_int64(a, "open", &t->open, 0, INT64_MAX / 4);
    svi_archive_double(a, "squares", &t->squares);
}

/* While saving, f->sum is added up on the way; the section "key sum" that follows writes it, and while
 * loading compares it. */
void svi_fleet_states_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_key_entry *n = svi_key_table_first(f->table);
    int64_t count = svi_key_table_count(f->table);
    svi_archive_int64(a, "keys", &count, 0, INT64_MAX);
    f->sum = (struct svi_key_sum){0};
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++) {
        fleet_archive_one(a, f, svi_archive_loading(a) ? NULL : n);
        n = n ? n->after : NULL;
    }
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    /* The order of the records means nothing: keys are sorted by their numbers, and the queue is rebuilt.
     */
    svi_key_table_sort(f->table);
    (void)svi_fleet_queue_all(f, a->err);
}

void svi_fleet_sum_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_key_sum sum = f->sum;
    svi_archive_uint64(a, "low", &sum.low);
    svi_archive_uint64(a, "high", &sum.high);
    svi_archive_check(a, memcmp(&sum, &f->sum, sizeof sum) == 0, "keys are missing");
}
