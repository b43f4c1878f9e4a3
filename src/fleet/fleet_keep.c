/* The keys in files next to the checkpoints, so that a checkpoint writes only what has changed.
 *
 * A checkpoint is the state at its mark. There the keys that have changed become pending, which takes no
 * time. They are then written piece by piece between turns, and a pending key that is about to change is
 * written first. When all are written, the checkpoint gets the list of files and the sum of the hashes. If a
 * write fails it is given up; what is pending stays so, and the next mark adds to it. Where much of the files
 * is dead, the oldest is tidied before a mark: what is alive of it is appended again.
 *
 * Invariants: a key is in one of the two lists (slot > 0), or its last record is its state
 * (svi_fleet_written). `alive` counts the bytes of the last records of the keys that exist, `stale` those of
 * keys in a list. `sum` adds up the hashes of these records; it loses that of a removed key only when the
 * removal is written.
 *
 * Read svi_stream_save_begin, svi_stream_save_on and svi_fleet_change first, then svi_stream_tidy_keys. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_prior.h"
#include "store/key_record.h"

#define BATCH          16                    /* keys of one write */
#define LIST_FIRST     256                   /* places */
#define MIN_FILE_BYTES ((uint64_t)1 << 20)   /* bytes */
#define FILE_SHARE     16                    /* files for what is alive */
#define TIDY_PIECE     ((uint64_t)128 << 10) /* bytes that are looked at at once */

static void list_free(struct svi_key_list *l) {
    svi_free(l->at);
    *l = (struct svi_key_list){0};
}

void svi_fleet_kept_clear(struct svi_fleet *f) {
    struct svi_fleet_kept *k = &f->kept;
    svi_key_files_free(&k->files);
    list_free(&k->changed);
    list_free(&k->pending);
    svi_bytes_clear(&k->removed.records);
    svi_bytes_clear(&k->removed_pending.records);
}

static svs_code list_reserve(struct svi_key_list *l, size_t capacity, svs_error *err) {
    if (capacity <= l->capacity)
        return SVS_OK;
    struct svi_key_entry **at = svi_realloc(l->at, l->capacity * sizeof(void *), capacity * sizeof(void *));
    if (!at)
        return svi_fail_memory(err, "the list of keys that have changed");
    l->at = at;
    l->capacity = capacity;
    return SVS_OK;
}

/* Appends the key. `slot` is its place counted from 1, so that list_leave finds it without a search;
 * `generation` says which of the two lists it is in (key_pending). */
static svs_code list_add(struct svi_key_list *l, struct svi_key_entry *n, uint32_t generation,
                         svs_error *err) {
    if (l->count == l->capacity && list_reserve(l, l->capacity ? 2 * l->capacity : LIST_FIRST, err) != SVS_OK)
        return SVS_NO_MEMORY;
    l->at[l->count++] = n;
    n->slot = (uint32_t)l->count;
    n->generation = generation;
    return SVS_OK;
}

/* Keys of the current generation are in `changed`. The mark raises the generation, which turns all of them
 * into pending ones without touching any. */
static bool key_pending(const struct svi_fleet_kept *k, const struct svi_key_entry *n) {
    return n->slot > 0 && n->generation != k->generation;
}

/* The place stays, as NULL: the slots of the others must not move while the list is being written. */
static void list_leave(struct svi_fleet_kept *k, struct svi_key_entry *n) {
    struct svi_key_list *l = key_pending(k, n) ? &k->pending : &k->changed;
    if (n->slot == 0)
        return;
    l->at[n->slot - 1] = NULL;
    n->slot = 0;
    k->stale -= n->place.size;
}

/* ---- records */

struct keep_batch {
    struct svi_key_entry *key[BATCH];
    size_t size[BATCH];
    uint8_t hash[BATCH][16];
    int count;
};

/* Adds a key to the batch: this record of it, which already exists, or one made of its state now. */
static svs_code batch_add(struct svi_fleet *f, struct keep_batch *b, struct svi_key_entry *n,
                          const struct svi_key_record *r, svs_error *err) {
    const size_t before = f->packed.size;
    if (r)
        memcpy(b->hash[b->count], r->hash, sizeof r->hash);
    SVI_TRY(r ? svi_key_record_append(&f->packed, r, err)
              : svi_fleet_record(f, n, &f->packed, b->hash[b->count], err));
    b->key[b->count] = n;
    b->size[b->count++] = f->packed.size - before;
    return SVS_OK;
}

static void batch_begin(struct svi_fleet *f, struct keep_batch *b) {
    b->count = 0;
    f->packed.size = 0;
}

/* The key's last record is at `at` now. The record of before is dead: its bytes and its hash leave the
 * totals. `stale` follows the size of a key that is in a list. */
static void keep_place(struct svi_fleet_kept *k, struct svi_key_entry *n, const struct svi_key_place *at,
                       const uint8_t hash[16]) {
    if (n->slot > 0)
        k->stale += (uint64_t)at->size - n->place.size;
    if (n->place.file > 0) {
        svi_key_sum_take(&k->sum, n->kept_hash);
        k->alive -= n->place.size;
    }
    n->place = *at;
    memcpy(n->kept_hash, hash, sizeof n->kept_hash);
    svi_key_sum_add(&k->sum, hash);
    k->alive += at->size;
}

/* What was gathered is written. */
static svs_code batch_write(struct svi_fleet *f, struct keep_batch *b, svs_error *err) {
    struct svi_fleet_kept *k = &f->kept;
    /* Files hold about a sixteenth of what is alive: the oldest can be tidied in a short time, and there are
     * not too many of them. The records of a batch lie one after the other, so each place is the one before
     * plus its size. */
    const uint64_t share = k->alive / FILE_SHARE;
    struct svi_key_place at;
    if (f->packed.size == 0)
        return SVS_OK;
    svs_code code =
        svi_key_files_append(k->files, &f->packed, share > MIN_FILE_BYTES ? share : MIN_FILE_BYTES, &at, err);
    for (int i = 0; i < b->count && code == SVS_OK; i++) {
        at.size = (uint32_t)b->size[i];
        keep_place(k, b->key[i], &at, b->hash[i]);
        /* The record on disk is as good as the copy in the cache, whose place is needed. */
        svi_fleet_uncache(f, b->key[i]);
        at.offset += b->size[i];
    }
    return code;
}

/* ---- changes */

/* Writes a pending key as it is now, which is still its state at the mark. A failure cannot stop the change
 * that is coming: it makes the checkpoint fail instead. */
static void keep_image(struct svi_fleet *f, struct svi_key_entry *n) {
    struct keep_batch b;
    svs_error err = {0};
    batch_begin(f, &b);
    svs_code code = batch_add(f, &b, n, NULL, &err);
    if (code == SVS_OK)
        code = batch_write(f, &b, &err);
    if (code == SVS_OK)
        list_leave(&f->kept, n);
    else
        f->kept.failed = code;
}

/* A key is going to change or to be removed. If the checkpoint in progress has yet to write it, that must
 * happen now. */
static void keep_pending(struct svi_fleet *f, struct svi_key_entry *n) {
    if (!f->kept.saving || f->kept.failed != SVS_OK || !key_pending(&f->kept, n))
        return;
    /* The key's worker may be in the midst of an element: the record is made of an idle engine. */
    svi_workers_settle(f); /* its thread may be at work where it does */
    keep_image(f, n);
}

svs_code svi_fleet_change(struct svi_fleet *f, struct svi_key_entry *n, svs_error *err) {
    struct svi_fleet_kept *k = &f->kept;
    keep_pending(f, n);
    if (k->files && n->slot == 0) {
        /* Noted before the change: a key that changed and is on no list would be missing in the next
         * checkpoint. */
        if (list_add(&k->changed, n, k->generation, err) != SVS_OK)
            return SVS_NO_MEMORY;
        k->stale += n->place.size;
    }
    /* The cached copy is of the state before. */
    n->cached = false;
    return SVS_OK;
}

/* A key is going to be removed. The order: bring it into memory, write it for the checkpoint in progress,
 * and only then close its alerts, which changes it. */
svs_code svi_fleet_end(struct svi_fleet *f, struct svi_key_entry *n, svs_error *err) {
    struct svi_fleet_kept *k = &f->kept;
    struct svi_key_record r = {.head = {.number = n->head.number}, .removed = true};
    if (svi_fleet_prior_end(f, n, err) != SVS_OK)
        return err->code;
    keep_pending(f, n);
    if (svi_fleet_end_alerts(f, n, err) != SVS_OK)
        return err->code;
    /* Its record is in a file: one that says "removed" must follow it, or loading would bring the key back.
     * Its hash leaves `sum` when that is written (keep_removed): until then the checkpoint in progress counts
     * the key. */
    if (k->files && n->place.file > 0) {
        memcpy(r.name, n->name, n->head.length + 1u);
        if (svi_key_record_append(&k->removed.records, &r, err) != SVS_OK)
            return err->code;
        svi_key_sum_add(&k->removed.sum, n->kept_hash);
        k->alive -= n->place.size;
    }
    list_leave(k, n);
    /* What the key has learned leaves the sums of the prior. */
    if (f->prior)
        svi_learner_count_held(n->engine->learner, -1);
    return SVS_OK;
}

/* ---- a checkpoint */

/* From here on states of keys are in files of this directory. Keys that are in none yet are on the list of
 * changed ones, so the first checkpoint writes all of them. */
svs_code svi_stream_keep_keys(svi_stream *s, const struct svi_state_dir *dir, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    const size_t length = strlen(dir->path) + 1;
    if (!f)
        return SVS_OK;
    struct svi_fleet_kept *k = &f->kept;
    if (!f->folder && (f->folder = svi_alloc(length)))
        memcpy(f->folder, dir->path, length);
    if (!f->folder)
        return svi_fail_memory(err, "the folder of keys");
    if (!k->files && !(k->files = svi_key_files_new(dir, err)))
        return err->code;
    s->in_files = true;
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n; n = n->after)
        if (n->slot == 0 && n->place.file == 0)
            SVI_TRY(list_add(&k->changed, n, k->generation, err));
    return SVS_OK;
}

/* The mark: what has changed becomes pending. The normal case swaps two lists. After a checkpoint that was
 * given up, what it left pending must be kept too: the lists are joined, with the memory for it reserved
 * first, as no step after `generation++` may fail. */
static svs_code keep_mark(struct svi_fleet_kept *k, svs_error *err) {
    const struct svi_key_list spare = k->pending;
    const struct svi_keys_removed unused = k->removed_pending;
    /* From k->next on: what comes before has been written. */
    bool left = k->removed_pending.records.size > 0;
    for (size_t i = k->next; i < spare.count && !left; i++)
        left = spare.at[i] != NULL;
    if (left && (list_reserve(&k->pending, k->pending.count + k->changed.count, err) != SVS_OK ||
                 svi_bytes_reserve(&k->removed_pending.records, k->removed.records.size) != SVS_OK))
        return svi_fail_memory(err, "the keys of two checkpoints");
    k->generation++; /* those changed are pending from here on */
    if (!left) {
        k->pending = k->changed;
        k->changed = (struct svi_key_list){spare.at, 0, spare.capacity};
        k->removed_pending = k->removed;
        k->removed = (struct svi_keys_removed){.records = unused.records};
        k->removed.records.size = 0;
    } else {
        for (size_t i = 0; i < k->changed.count; i++)
            if (k->changed.at[i])
                /* They were of the generation before, and are pending by it. */
                (void)list_add(&k->pending, k->changed.at[i], k->generation - 1, err); /* reserved */
        k->changed.count = 0;
        (void)svi_bytes_append(&k->removed_pending.records, k->removed.records.data,
                               k->removed.records.size);
        /* A sum of 128 bits in two halves: the low half has wrapped where it is smaller than a summand. */
        const uint64_t low = k->removed_pending.sum.low + k->removed.sum.low;
        k->removed_pending.sum.high += k->removed.sum.high + (low < k->removed.sum.low);
        k->removed_pending.sum.low = low;
        k->removed.records.size = 0;
        k->removed.sum = (struct svi_key_sum){0};
    }
    k->next = 0;
    k->saving = true;
    k->failed = SVS_OK;
    return SVS_OK;
}

svs_code svi_stream_save_begin(svi_stream *s, struct svi_checkpoint *c, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    if (!f || !f->stream.in_files)
        return svi_stream_save(s, c, err);
    svs_code code = svi_stream_save_early(s, c, err);
    return code == SVS_OK ? keep_mark(&f->kept, err) : code;
}

/* The records of removed keys, before all others of a checkpoint. No new file is begun for their size, and
 * their hashes leave the sum. */
static svs_code keep_removed(struct svi_fleet *f, svs_error *err) {
    struct svi_fleet_kept *k = &f->kept;
    struct svi_key_place at;
    if (k->removed_pending.records.size == 0)
        return SVS_OK;
    if (svi_key_files_append(k->files, &k->removed_pending.records, UINT64_MAX, &at, err) != SVS_OK)
        return err->code;
    /* The borrow is taken from `low` as it was before the subtraction. */
    k->sum.high -= k->removed_pending.sum.high + (k->sum.low < k->removed_pending.sum.low);
    k->sum.low -= k->removed_pending.sum.low;
    k->removed_pending.records.size = 0;
    k->removed_pending.sum = (struct svi_key_sum){0};
    return SVS_OK;
}

/* Writes a batch of pending keys, as many as the time allows. k->next moves only after all of them are
 * written: a batch that failed is tried again as a whole. */
static svs_code keep_some(struct svi_fleet *f, double until, svs_error *err) {
    struct svi_fleet_kept *k = &f->kept;
    struct keep_batch b;
    svs_code code = SVS_OK;
    size_t at = k->next;
    batch_begin(f, &b);
    for (; code == SVS_OK && at < k->pending.count && b.count < BATCH && svi_monotonic() < until; at++)
        if (k->pending.at[at])
            code = batch_add(f, &b, k->pending.at[at], NULL, err);
    if (code == SVS_OK)
        code = batch_write(f, &b, err);
    /* Written: from here on these keys are in no list, and their records are their state. */
    for (int i = 0; i < b.count && code == SVS_OK; i++)
        list_leave(k, b.key[i]);
    k->next = code == SVS_OK ? at : k->next;
    return code;
}

svs_code svi_stream_save_on(svi_stream *s, double seconds, bool *done, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    const double until = svi_monotonic() + seconds;
    *done = !f || !f->kept.saving;
    if (*done)
        return SVS_OK;
    struct svi_fleet_kept *k = &f->kept;
    /* Engines are packed below, none of which may be learning. */
    svi_workers_settle(f);
    svs_code code =
        k->failed == SVS_OK ? keep_removed(f, err) : svi_fail(err, k->failed, "a key could not be written");
    while (code == SVS_OK && k->next < k->pending.count && svi_monotonic() < until)
        code = keep_some(f, until, err);
    /* A failure ends the checkpoint (saving is false), while the lists stay as they are. */
    *done = code == SVS_OK && k->next == k->pending.count;
    k->saving = code == SVS_OK;
    return code;
}

/* All pending keys are written: the checkpoint gets the list of files (`apart`), and the sum that belongs to
 * it. */
svs_code svi_stream_save_end(svi_stream *s, struct svi_checkpoint *c, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    if (!f || !f->stream.in_files)
        return SVS_OK;
    struct svi_fleet_kept *k = &f->kept;
    k->saving = false;
    k->pending.count = k->next = 0;
    f->sum = k->sum;
    k->apart = true;
    const svs_code code = svi_stream_save_part(s, true, c, err);
    k->apart = false;
    return code;
}

svs_code svi_stream_sync_keys(svi_stream *s, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    return f && f->kept.files ? svi_key_files_sync(f->kept.files, err) : SVS_OK;
}

/* ---- tidying */

/* Bytes that the files may have before a mark, in a form that subtracts no larger number from a smaller one.
 * Files that a checkpoint has replaced are kept until the checkpoint after the next, and each of the two
 * appends what has changed. The bound keeps all of that within twice the bytes that are alive, but never
 * below those of the keys that have not changed. */
static uint64_t keep_most(const struct svi_fleet_kept *k) {
    const uint64_t twice = 2 * k->alive, others = k->alive - k->stale, capacity = 2 * k->stale + k->alive / 4;
    return (capacity < twice && twice - capacity > others ? twice - capacity : others) + MIN_FILE_BYTES;
}

struct tidying {
    struct svi_fleet *f;
    struct keep_batch b;
};

/* One record of the oldest file. It is alive if the table still points to this very place; a key that is in
 * a list will be written anyway, and the place of the record says whether it is the newest of its key. */
static svs_code tidy_one(void *user, const struct svi_key_record *r, const struct svi_key_place *at,
                         svs_error *err) {
    struct tidying *t = user;
    struct svi_fleet *f = t->f;
    struct svi_key_entry *n = r->removed ? NULL : svi_key_table_find(f->table, r->name, strlen(r->name));
    if (!n || n->slot > 0 || n->place.file != at->file || n->place.offset != at->offset)
        return SVS_OK;
    if (t->b.count == BATCH) {
        if (batch_write(f, &t->b, err) != SVS_OK)
            return err->code;
        batch_begin(f, &t->b);
    }
    return batch_add(f, &t->b, n, r, err);
}

svs_code svi_stream_tidy_keys(svi_stream *s, double seconds, bool *done, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    const double until = svi_monotonic() + seconds;
    svs_code code = SVS_OK;
    uint64_t length = 0;
    *done = !f || !f->stream.in_files;
    while (!*done && code == SVS_OK && svi_monotonic() < until) {
        struct svi_fleet_kept *k = &f->kept;
        struct tidying t = {.f = f};
        /* A file that is half done is finished even where there is no longer too much: k->tidied > 0. */
        const bool much = svi_key_files_bytes(k->files) > keep_most(k);
        *done = svi_key_files_oldest(k->files, &length) == 0 || (k->tidied == 0 && !much);
        if (*done)
            break;
        batch_begin(f, &t.b);
        uint64_t visited = k->tidied; /* moves on only when the copies are written */
        code = svi_key_files_visit_oldest(k->files, &visited, TIDY_PIECE, tidy_one, &t, err);
        if (code == SVS_OK)
            code = batch_write(f, &t.b, err);
        k->tidied = code == SVS_OK ? visited : k->tidied;
        /* All that was alive in the oldest file has been appended elsewhere. */
        if (code == SVS_OK && k->tidied >= length) {
            svi_key_files_leave_oldest(k->files);
            k->tidied = 0;
        }
    }
    return code;
}

/* ---- loading */

/* One record of a state that is read, in the order of writing: a later record of a key takes the place of
 * the earlier one. */
static svs_code keep_restore(void *user, const struct svi_key_record *r, const struct svi_key_place *at,
                             svs_error *err) {
    struct svi_fleet *f = user;
    const size_t length = strlen(r->name);
    struct svi_key_entry *n = svi_key_table_find(f->table, r->name, length);
    /* The key was removed and began again: what is recorded of its former number is out of date. */
    if (n && n->head.number > r->head.number)
        return SVS_OK;
    /* What the earlier record added to the totals is taken back. With file 0 keep_place will not take it
     * back a second time. */
    if (n) {
        svi_key_sum_take(&f->kept.sum, n->kept_hash);
        f->kept.alive -= n->place.size;
        n->place.file = 0;
    }
    /* Another owner cannot be changed in the table, which counts the keys of each. */
    if (n && (r->removed || n->head.owner != r->head.owner))
        svi_key_table_remove(f->table, n);
    if (r->removed)
        return SVS_OK;
    if (length > SVS_KEY_MAX)
        return svi_fail(err, SVS_DAMAGED, "the name of a key is too long");
    n = svi_key_table_find(f->table, r->name, length);
    if (!n && !(n = svi_key_table_add(f->table, r->name, length, r->head.owner, err)))
        return SVS_NO_MEMORY;
    if (svi_fleet_restore_entry(f, n, r, err) != SVS_OK)
        return err->code;
    keep_place(&f->kept, n, at, r->hash);
    return SVS_OK;
}

void svi_fleet_files_archive(struct svi_archive *a, svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_fleet_kept *k = &f->kept;
    if (svi_archive_loading(a) && !s->from) {
        svi_archive_fail(a, SVS_UNAVAILABLE, "the states of keys are in files, and this is not one");
        return;
    }
    if (svi_archive_loading(a) && !(k->files = svi_key_files_new(s->from, a->err)))
        return;
    svi_key_files_archive(a, k->files);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    /* All records first; then the keys in the order in which they began, which no record says by its place;
     * then their notes, as only the last record of a key counts. */
    svs_code code = svi_key_files_visit(k->files, keep_restore, f, a->err);
    svi_key_table_sort(f->table);
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after)
        code = svi_fleet_join_entered(f, n, a->err);
    if (code == SVS_OK)
        (void)svi_fleet_queue_all(f, a->err);
    f->sum = k->sum;
}
