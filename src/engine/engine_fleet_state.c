/* The keys of a stream in its state: what each engine holds, in the order in which the keys began. */
#include <string.h>

#include "base/fail.h"
#include "engine/engine_internal.h"

/* One key that is read is there already when it is the rest of it that is read. */
static struct svi_key_entry *fleet_load_entry(struct svi_archive *a, struct svi_engine *root,
                                              const char *name, uint64_t owner, bool hashed) {
    struct svi_fleet *f = root->of->fleet;
    const size_t length = strlen(name);
    struct svi_key_entry *n = svi_key_table_find(f->table, name, length);
    if (!svi_archive_check(a, length > 0 && !n == hashed, "a key is there twice, or not at all"))
        return NULL;
    if (!hashed)
        return n;
    n = svi_key_table_add(f->table, name, length, owner, a->err);
    if (n && !(n->engine = svi_engine_new_key(root, n->name, a->err)))
        svi_key_table_remove(f->table, n);
    if (svi_archive_ok(a))
        svi_key_table_use(f->table, n);
    return svi_archive_ok(a) ? n : NULL;
}

static void fleet_archive_one(struct svi_archive *a, struct svi_engine *root, struct svi_key_entry *n,
                              bool hashed, struct svi_bytes *packed) {
    char name[SVS_KEY_MAX + 1] = "";
    uint64_t owner = n ? n->owner : 0;
    packed->size = 0;
    if (n) {
        memcpy(name, n->name, n->length + 1u);
        if (svi_engine_pack(n->engine, hashed, packed, a->err) != SVS_OK)
            return;
    }
    int64_t size = (int64_t)packed->size;
    svi_archive_text(a, "key", name, sizeof name);
    svi_archive_uint64(a, "owner", &owner);
    svi_archive_int64(a, "size", &size, 0, INT64_MAX);
    if (svi_archive_loading(a) && svi_archive_ok(a)) {
        if (!svi_archive_check(a, size <= svi_archive_left(a), "a key is truncated") ||
            !(n = fleet_load_entry(a, root, name, owner, hashed)))
            return;
        if (svi_bytes_reserve(packed, (size_t)size) != SVS_OK) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a key");
            return;
        }
    }
    svi_archive_bytes(a, "state", packed->data, size);
    if (!svi_archive_ok(a))
        return;
    if (svi_archive_loading(a))
        svi_engine_unpack(n->engine, hashed, packed->data, (size_t)size, a->err);
    if (!svi_archive_ok(a))
        return;
    if (hashed) {
        svi_archive_int64(a, "begun", &n->begun, 0, INT64_MAX);
        svi_fleet_figures(n->engine, &n->last);
    } else {
        svi_archive_double(a, "heard", &n->heard);
    }
}

void svi_fleet_archive(struct svi_archive *a, struct svi_engine *root, bool hashed) {
    struct svi_fleet *f = root->of->fleet;
    struct svi_bytes packed = {0};
    struct svi_key_entry *n = svi_key_table_first(f->table);
    int64_t count = svi_key_table_count(f->table);
    svi_archive_int64(a, "keys", &count, 0, root->s->keys_max);
    if (hashed)
        svi_archive_int64(a, "seen", &f->seen, 0, INT64_MAX / 4);
    if (hashed)
        svi_archive_int64(a, "taken", &f->taken, 0, INT64_MAX / 4);
    if (!hashed) {
        svi_archive_int64s(a, "totals", &f->total.labelled, 6, 0, INT64_MAX / 4);
        svi_archive_double(a, "squares", &f->total.squares);
    }
    for (int64_t i = 0; i < count && svi_archive_ok(a); i++) {
        fleet_archive_one(a, root, svi_archive_loading(a) ? NULL : n, hashed, &packed);
        n = n ? n->after : NULL;
    }
    svi_bytes_clear(&packed);
}
