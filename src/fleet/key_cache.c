/* States of keys, as bytes by number, in LMDB. It serves for its B+ tree alone: one writer, no syncs, no
 * locks, and no name in the folder. What is in it does not survive the process, and need not.
 *
 * Pages are written with write, not through the map: a full disk is an error then, and no signal. The map is
 * address space, of which the file takes what is used. Where the map is full it is doubled, and the whole
 * transaction is repeated. One read transaction is kept and renewed after each put, so that reading a key
 * starts none.
 *
 * Pages that were read through the map count as memory of the process until they are unmapped. They are,
 * before they can exceed SVI_KEY_CACHE_RESIDENT; the system keeps them in its page cache.
 *
 * Each value ends with a checksum seeded with its number: damage, and bytes of another key, are found when
 * they are read. */
#include "fleet/key_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"

#define CHECK     sizeof(uint64_t)  /* bytes behind a value: its XXH3, seeded with its number */
#define MAP_FIRST ((size_t)1 << 28) /* bytes */
#define PROBE     (1 << 20)         /* bytes: more than there is space for where none existed */
/* Bytes that one item can add at most, approximately, to the resident part of the map. The system
 * maps up to 64 KiB around a page that is read, and an item is in one leaf or in pages of its own.
 */
#define ITEM_TOUCHES ((size_t)128 << 10)
#define FLAGS        (MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMEMINIT)

struct svi_key_cache {
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *reader; /* NULL: none */
    bool reading;    /* it is of the newest state */
    size_t map;
    size_t touched; /* bytes of the map that may be resident; at most SVI_KEY_CACHE_RESIDENT */
    size_t others;  /* bytes of other files that were resident at the start */
    uintptr_t low,
        high;          /* the part of the map that is known: from the first value read to the last; 0: none */
    uint64_t *removed; /* numbers to be removed at the next put */
    int64_t removed_count, removed_capacity;
    char path[256];
};

static svs_code fail_cache(svs_error *err, const svi_key_cache *c, const char *what, int error) {
    /* Which code it is decides what happens next: a full disk lets keys stay in memory, anything else is
     * reported as damage or as a failing device. */
    const svs_code code = error == ENOMEM                                        ? SVS_NO_MEMORY
                          : error == ENOSPC || error == EDQUOT || error == EFBIG ? SVS_DISK_FULL
                          : error == MDB_PAGE_NOTFOUND || error == MDB_CORRUPTED ? SVS_DAMAGED
                                                                                 : SVS_IO;
    return svi_fail(err, code, "the keys on disk cannot be %s in %.150s: %s", what, c->path,
                    mdb_strerror(error));
}

/* LMDB reports a short write as EIO. Was it a full disk? The answer comes from asking for more than a page
 * of room at the end of the file. */
static int full_or_io(const svi_key_cache *c) {
    struct stat s;
    int fd;
    const bool asked = mdb_env_get_fd(c->env, &fd) == 0 && fstat(fd, &s) == 0;
    const int error = asked ? posix_fallocate(fd, s.st_size, PROBE) : 0;
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? error : EIO;
}

/* Bytes of files that are resident in this process; 0: not known. */
static size_t resident_files(void) {
    char line[100] = "";
    unsigned long pages = 0;
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0 || sscanf(line, "%*u %*u %lu", &pages) != 1)
        return 0;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The file has a name only while it is opened: when the process ends, however it ends, the system frees it.
 */
static int cache_open(svi_key_cache *c) {
    const int fd = open(c->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (!error)
        error = mdb_env_create(&c->env);
    if (!error)
        error = mdb_env_set_mapsize(c->env, c->map = MAP_FIRST);
    if (!error)
        error = mdb_env_open(c->env, c->path, FLAGS, 0600);
    if (fd >= 0)
        (void)unlink(c->path);
    return error;
}

/* Numbers in native byte order are the keys of the tree (MDB_INTEGERKEY). */
static int cache_make_table(svi_key_cache *c) {
    MDB_txn *txn;
    int error = mdb_txn_begin(c->env, NULL, 0, &txn);
    if (error)
        return error;
    error = mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &c->table);
    if (!error)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return error;
}

svi_key_cache *svi_key_cache_new(const char *folder, svs_error *err) {
    svi_key_cache *c = svi_alloc(sizeof *c);
    const char *temporary = getenv("TMPDIR");
    if (!c) {
        svi_fail_memory(err, "the keys that are out of memory");
        return NULL;
    }
    if (!folder)
        folder = temporary && temporary[0] ? temporary : "/tmp";
    /* Should the process end just here: names of this kind are removed from a folder of states. */
    const uint64_t number = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)c;
    const int length = snprintf(c->path, sizeof c->path, "%s/keys-%016" PRIx64 ".tmp", folder, number);
    int error = length < (int)sizeof c->path ? 0 : ENAMETOOLONG;
    if (!error)
        error = cache_open(c);
    if (!error)
        error = cache_make_table(c);
    c->others = resident_files();
    if (error) {
        fail_cache(err, c, "kept", error);
        svi_key_cache_free(&c);
    }
    return c;
}

void svi_key_cache_free(svi_key_cache **c) {
    if (!*c)
        return;
    if ((*c)->reader)
        mdb_txn_abort((*c)->reader);
    if ((*c)->env)
        mdb_env_close((*c)->env);
    svi_free((*c)->removed);
    svi_free(*c);
    *c = NULL;
}

static void cache_stop_reading(svi_key_cache *c) {
    if (c->reading)
        mdb_txn_reset(c->reader);
    c->reading = false;
}

static int cache_read(svi_key_cache *c) {
    int error = 0;
    if (!c->reading)
        error = c->reader ? mdb_txn_renew(c->reader) : mdb_txn_begin(c->env, NULL, MDB_RDONLY, &c->reader);
    c->reading = !error;
    return error;
}

/* ---- the resident part */

static double cache_file(const svi_key_cache *c) {
    MDB_envinfo info;
    MDB_stat stat;
    return mdb_env_info(c->env, &info) == 0 && mdb_env_stat(c->env, &stat) == 0
               ? ((double)info.me_last_pgno + 1) * stat.ms_psize
               : 0;
}

double svi_key_cache_memory(const svi_key_cache *c) {
    const double file = cache_file(c);
    return file < SVI_KEY_CACHE_RESIDENT ? file : SVI_KEY_CACHE_RESIDENT;
}

/* LMDB does not say where its map is. But the map is one block, so all between two of its values belongs to
 * it. */
static void cache_saw(svi_key_cache *c, const MDB_val *value) {
    const uintptr_t begin = (uintptr_t)value->mv_data, end = begin + value->mv_size;
    c->low = c->low == 0 || begin < c->low ? begin : c->low;
    c->high = end > c->high ? end : c->high;
}

/* The place of a new item. A failure is left to the call that reads it. */
static void cache_see(svi_key_cache *c, uint64_t number) {
    MDB_val key = {sizeof number, &number}, value;
    if (cache_read(c) == 0 && mdb_get(c->reader, c->table, &key, &value) == 0)
        cache_saw(c, &value);
    else /* a transaction that failed states no reason any more */
        cache_stop_reading(c);
}

/* Before `items` are read or written: unmaps the pages if their number could exceed the bound. `touched`
 * assumes the worst of each item, so the system is asked how much it really is. Pages are never written
 * through the map, so nothing is lost; bytes that svi_key_cache_get returned stay valid and are mapped again
 * when they are read. */
static void cache_bound(svi_key_cache *c, size_t items) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t more = items * ITEM_TOUCHES;
    c->touched += more;
    if (c->touched <= SVI_KEY_CACHE_RESIDENT)
        return;
    const size_t resident = resident_files();
    c->touched = (resident > c->others ? resident - c->others : 0) + more;
    /* Near the bound every item would ask, so the last part of it is left. */
    if (resident > 0 && c->touched <= SVI_KEY_CACHE_RESIDENT / 16 * 15)
        return;
    c->touched = more;
    const uintptr_t first = (c->low + page - 1) / page * page, end = c->high / page * page;
    if (first < end && cache_file(c) > SVI_KEY_CACHE_RESIDENT)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

/* ---- writing */

/* Removals first: a number that was removed and is put again must end with its new bytes. All of it is one
 * transaction: a failure leaves the table as it was, and `removed` for the next try. */
static int cache_write(svi_key_cache *c, const struct svi_key_bytes *items, int count, const uint8_t *bytes) {
    MDB_txn *txn;
    int error = mdb_txn_begin(c->env, NULL, 0, &txn);
    if (error)
        return error;
    for (int64_t i = 0; i < c->removed_count && !error; i++) {
        MDB_val key = {sizeof c->removed[i], &c->removed[i]};
        error = mdb_del(txn, c->table, &key, NULL);
        error = error == MDB_NOTFOUND ? 0 : error;
    }
    for (int i = 0; i < count && !error; i++) {
        uint64_t number = items[i].number;
        const uint8_t *from = bytes + items[i].offset;
        const uint64_t check = XXH3_64bits_withSeed(from, items[i].size, number);
        MDB_val key = {sizeof number, &number}, value = {items[i].size + CHECK, NULL};
        /* Reserved in the page and copied there: the bytes and their checksum are not put together elsewhere
         * first. */
        if ((error = mdb_put(txn, c->table, &key, &value, MDB_RESERVE)) == 0) {
            memcpy(value.mv_data, from, items[i].size);
            memcpy((uint8_t *)value.mv_data + items[i].size, &check, CHECK);
        }
    }
    if (!error)
        return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return error;
}

/* Doubles the map. LMDB unmaps the old one first and cannot go on without any, so it is tried before whether
 * the addresses are there (a process may be limited in them: ulimit -v). */
static int cache_grow(svi_key_cache *c) {
    if (c->map > SIZE_MAX / 4)
        return ENOSPC;
    void *space = mmap(NULL, 2 * c->map, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return errno;
    (void)munmap(space, 2 * c->map);
    c->low = c->high = 0; /* it moves */
    const int error = mdb_env_set_mapsize(c->env, 2 * c->map);
    c->map *= error ? 1 : 2;
    return error;
}

svs_code svi_key_cache_put(svi_key_cache *c, const struct svi_key_bytes *items, int count,
                           const uint8_t *bytes, svs_error *err) {
    int error;
    cache_bound(c, (size_t)count + (size_t)c->removed_count);
    /* A read transaction that stays open would pin the pages that this one replaces, and the map may only be
     * resized without one. */
    cache_stop_reading(c);
    while ((error = cache_write(c, items, count, bytes)) == MDB_MAP_FULL)
        if ((error = cache_grow(c)) != 0)
            break;
    if (error)
        return fail_cache(err, c, "written", error == EIO ? full_or_io(c) : error);
    c->removed_count = 0;
    if (count > 0)
        cache_see(c, items[0].number);
    return SVS_OK;
}

void svi_key_cache_drop(svi_key_cache *c, uint64_t number) {
    if (!svi_grow(&c->removed, c->removed_count, &c->removed_capacity, 64, sizeof *c->removed))
        return; /* its bytes stay in the cache, and nothing refers to them */
    c->removed[c->removed_count++] = number;
}

/* ---- reading */

/* The bytes are in the map: valid until the next put. */
svs_code svi_key_cache_get(svi_key_cache *c, uint64_t number, const uint8_t **bytes, size_t *size,
                           svs_error *err) {
    MDB_val key = {sizeof number, &number}, value;
    cache_bound(c, 1);
    int error = cache_read(c);
    if (!error)
        error = mdb_get(c->reader, c->table, &key, &value);
    if (error) {
        cache_stop_reading(c);
        return fail_cache(err, c, "read", error);
    }
    cache_saw(c, &value);
    uint64_t check;
    *bytes = value.mv_data;
    *size = value.mv_size < CHECK ? 0 : value.mv_size - CHECK;
    if (value.mv_size >= CHECK)
        memcpy(&check, *bytes + *size, CHECK);
    if (value.mv_size < CHECK || check != XXH3_64bits_withSeed(*bytes, *size, number))
        return svi_fail(err, SVS_DAMAGED, "the keys on disk are damaged in %.150s", c->path);
    return SVS_OK;
}
