/* The journal's writer: records are gathered in memory, written with one write, and synced by policy.
 *
 * Three positions move along the journal: `durable` <= `written` <= `next`. Append moves `next` (and adds the
 * bytes to `gathered`), commit moves `written`, a sync moves `durable`. Abort moves `next` back to `written`:
 * a batch is in the file whole or not at all, even when the disk is full, because the file is then truncated
 * to `written`.
 *
 * A failure that leaves the files unknown (a failed sync or truncation) kills the journal: every later call
 * returns `dead` and `cause`, and the process must end. A sync is never repeated (see sync_segment).
 *
 * When the current segment is full, the next append begins a new one, whose header is gathered before the
 * record. The old one is synced whatever the policy, so that only the last segment can be torn. The mark
 * begun-<segment> moves to the newest segment once that is on disk, and is removed before its segment is. In
 * the order of the file: failures, syncing, gathering, writing, beginning and end. */
#include "store/journal_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "store/io.h"
#include "svmstream/svmstream.h"

#define RECOVER "the content of the disk is unknown: restart the process, which recovers it"

struct svi_journal {
    const struct svi_state_dir *dir;
    struct svi_journal_options options;
    char stream[65];
    int fd;                      /* of the segment being written, opened for appending */
    struct svi_position written; /* end of what is in files */
    struct svi_position next;    /* end of what is gathered */
    struct svi_bytes gathered;   /* records, after the header of a new segment if one begins */
    size_t header;               /* bytes of that header in `gathered`; 0: no segment begins */
    struct svi_position begun;   /* end of that header */
    uint64_t durable;            /* records below this number are on disk */
    uint64_t syncs;              /* number of them */
    uint64_t secret;             /* seed for the secrets of new segments */
    int64_t bytes;               /* written by this process */
    bool marked;                 /* the mark exists and names the segment `mark` */
    uint64_t mark;
    double since;    /* when svi_journal_due first saw unsynced records, seconds */
    bool waiting;    /* `since` is set */
    svs_code dead;   /* SVS_OK, or the code of the failure that left the files unknown */
    svs_error cause; /* its text */
};

/* ---- failures */

static svs_code journal_dead(const svi_journal *j, svs_error *err) {
    if (err && j->dead != SVS_OK)
        *err = j->cause;
    return j->dead;
}

/* Kills the journal: every later call fails with this text. */
static svs_code journal_die(svi_journal *j, const char *name, const char *what, int error, svs_error *err) {
    j->dead = svi_fail_file(&j->cause, SVS_IO, j->dir->path, name, "cannot be %s: %s; " RECOVER, what,
                            svi_errno_text(error));
    return journal_dead(j, err);
}

/* Fails if the current segment was removed (no link is left): its records could not be read back. Only this
 * process removes segments, and never the current one, so a person or another program did it. */
static svs_code check_there(svi_journal *j, svs_error *err) {
    struct stat s;
    char name[SVI_FILE_NAME];
    if (fstat(j->fd, &s) != 0 || s.st_nlink > 0)
        return SVS_OK;
    svi_state_dir_name(name, SVI_JOURNAL, j->written.segment);
    j->dead = svi_fail_file(&j->cause, SVS_IO, j->dir->path, name,
                            "was removed while in use, and no input is kept any more: end the process, and "
                            "restore the directory from a copy or use another one");
    return journal_dead(j, err);
}

static const char *segment_name(const svi_journal *j, char name[SVI_FILE_NAME]) {
    return svi_state_dir_name(name, SVI_JOURNAL, j->written.segment);
}

/* ---- syncing */

/* A failed sync is final: the kernel may drop the pages that it could not write and mark them clean, so that
 * a second sync would succeed without the data being on disk. */
static svs_code sync_segment(svi_journal *j, svs_error *err) {
    char name[SVI_FILE_NAME];
    if (check_there(j, err) != SVS_OK)
        return SVS_IO;
    int error = svi_sync_data(j->fd);
    if (error)
        return journal_die(j, segment_name(j, name), "made durable", error, err);
    j->durable = j->written.number;
    j->syncs++;
    j->waiting = false;
    return SVS_OK;
}

svs_code svi_journal_sync(svi_journal *j, svs_error *err) {
    if (j->dead != SVS_OK || j->durable == j->written.number)
        return journal_dead(j, err);
    return sync_segment(j, err);
}

bool svi_journal_due(svi_journal *j, double time, double *due) {
    *due = INFINITY;
    if (j->dead != SVS_OK) { /* wakes the owner, whose next call returns the cause */
        *due = time;
        return true;
    }
    if (j->options.fsync != SVI_FSYNC_INTERVAL || j->durable == j->written.number)
        return false;
    /* The interval counts from the first check of unsynced records, not from the last sync: a quiet stream
     * does not pay for a sync at once. */
    if (!j->waiting)
        j->since = time;
    j->waiting = true;
    *due = j->since + j->options.interval;
    return time - j->since >= j->options.interval;
}

svs_code svi_journal_sync_begin(svi_journal *j, struct svi_journal_sync *s, svs_error *err) {
    char name[SVI_FILE_NAME];
    *s = (struct svi_journal_sync){.fd = -1, .segment = j->written.segment, .number = j->written.number};
    if (j->dead != SVS_OK || j->durable == j->written.number || check_there(j, err) != SVS_OK)
        return journal_dead(j, err);
    s->fd = openat(j->dir->fd, segment_name(j, name), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0 && svi_no_space(errno)) /* too many open files: sync through the open descriptor, now */
        return sync_segment(j, err);
    if (s->fd < 0)
        return journal_die(j, name, "opened", errno, err);
    j->waiting = false;
    return SVS_OK;
}

void svi_journal_sync_run(void *sync) {
    struct svi_journal_sync *s = sync;
    const double began = svi_monotonic();
    s->error = s->fd < 0 ? 0 : svi_sync_data(s->fd);
    s->seconds = svi_monotonic() - began;
}

svs_code svi_journal_sync_end(svi_journal *j, struct svi_journal_sync *s, svs_error *err) {
    char name[SVI_FILE_NAME];
    if (s->fd < 0)
        return journal_dead(j, err);
    close(s->fd);
    s->fd = -1;
    if (j->dead != SVS_OK)
        return journal_dead(j, err);
    if (s->error)
        return journal_die(j, svi_state_dir_name(name, SVI_JOURNAL, s->segment), "made durable", s->error,
                           err);
    if (s->number > j->durable) { /* a rotation may have synced more in the meantime */
        j->durable = s->number;
        j->syncs++;
    }
    return SVS_OK;
}

/* ---- gathering */

void svi_journal_release(svi_journal *j) {
    if (j->gathered.size == 0)
        svi_bytes_clear(&j->gathered);
}

void svi_journal_abort(svi_journal *j) {
    j->gathered.size = 0;
    j->header = 0;
    j->next = j->written;
}

/* Gathers the header of the segment that begins with the next record, and moves `next` past it. Its secret is
 * derived from one drawn at the start, so that random numbers cannot fail in the middle of a stream. */
static svs_code gather_header(svi_journal *j, svs_error *err) {
    struct svi_segment_header h = {
        .epoch = j->options.epoch, .first = j->next.number, .chain = j->next.chain};
    h.secret = XXH3_64bits_withSeed(&h.first, sizeof h.first, j->secret);
    snprintf(h.program, sizeof h.program, "%s", SVS_VERSION);
    snprintf(h.stream, sizeof h.stream, "%s", j->stream);
    if (svi_segment_header_write(&h, &j->gathered) != SVS_OK)
        return svi_fail_memory(err, "the header of a journal's segment");
    j->header = h.size;
    j->next = j->begun = (struct svi_position){h.first, h.first, h.size, h.check, h.secret};
    return SVS_OK;
}

/* Asked only while nothing is gathered, because a commit is one write to one file. A segment holds at least
 * one record: two segments with the same first number would have the same name. */
static bool segment_is_full(const svi_journal *j) {
    return j->written.offset >= (uint64_t)j->options.segment && j->written.number > j->written.segment;
}

svs_code svi_journal_append(svi_journal *j, int kind, double now, const void *payload, size_t size,
                            svs_error *err) {
    if (j->dead != SVS_OK)
        return journal_dead(j, err);
    if (kind < 0 || kind > 127)
        return svi_fail(err, SVS_INVALID, "a journal cannot hold records of kind %d", kind);
    if (size > SVI_PAYLOAD_MAX)
        return svi_fail(err, SVS_TOO_LARGE, "a record of %zu bytes is too large for a journal", size);
    /* Reserved for header and record before anything changes: what follows cannot fail halfway. */
    if (svi_bytes_reserve(&j->gathered, SVI_HEADER_MAX + SVI_RECORD_BARE + size) != SVS_OK)
        return svi_fail_memory(err, "the records that wait for the journal");
    if (j->gathered.size == 0 && segment_is_full(j) && gather_header(j, err) != SVS_OK)
        return SVS_NO_MEMORY;
    struct svi_record r = {j->next.number, kind, now, j->durable, payload, size};
    svi_record_write(j->gathered.data + j->gathered.size, &r, j->next.secret, &j->next.chain);
    j->gathered.size += SVI_RECORD_BARE + size;
    j->next.offset += SVI_RECORD_BARE + size;
    j->next.number++;
    return SVS_OK;
}

/* ---- writing */

/* Moves the mark to this segment, whose name must be on disk already: a mark without its segment would read
 * as damage. Returns 0 or an errno; *unknown: the name of the mark was changed, and the failure leaves open
 * which one is on disk. */
static int move_mark(svi_journal *j, uint64_t segment, bool *unknown) {
    char from[SVI_FILE_NAME], to[SVI_FILE_NAME];
    int error = 0;
    *unknown = false;
    if (j->marked && j->mark == segment)
        return 0;
    svi_state_dir_name(to, SVI_BEGUN, segment);
    if (j->marked) {
        if (renameat(j->dir->fd, svi_state_dir_name(from, SVI_BEGUN, j->mark), j->dir->fd, to) != 0)
            error = errno;
    } else {
        const int fd = openat(j->dir->fd, to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        error = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
    }
    if (error)
        return error;
    j->marked = *unknown = true;
    j->mark = segment;
    return svi_state_dir_flush(j->dir);
}

/* Creates the segment whose header is in `gathered` and makes it the current one. After a failure either the
 * journal is dead, or the new file is removed and the old segment stays current. */
static svs_code create_segment(svi_journal *j, svs_error *err) {
    char name[SVI_FILE_NAME];
    svs_code code = SVS_OK;
    svi_state_dir_name(name, SVI_JOURNAL, j->begun.segment);
    int fd = openat(j->dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : svi_write_all(fd, j->gathered.data, j->header);
    bool unknown = !error; /* from the first sync on, a failure leaves the disk's content open */
    /* Content, name, mark: each is durable before the next refers to it. */
    if (!error && !(error = svi_sync_data(fd)) && !(error = svi_state_dir_flush(j->dir)))
        error = move_mark(j, j->begun.segment, &unknown);
    if (error && (unknown || !svi_no_space(error)))
        code = journal_die(j, name, unknown ? "made durable" : "begun", error, err);
    else if (error && fd >= 0 && unlinkat(j->dir->fd, name, 0) != 0)
        code = journal_die(j, name, "removed", errno, err);
    else if (error)
        code = svi_fail_full(err, j->dir->path, name, j->header, error);
    const int old = code == SVS_OK ? j->fd : fd; /* the descriptor that is not needed any more */
    if (old >= 0)
        close(old);
    if (code != SVS_OK)
        return code;
    j->fd = fd;
    j->written = j->begun;
    j->bytes += (int64_t)j->header;
    return SVS_OK;
}

/* The old segment is synced whatever the policy: a bad record in any segment but the last is then certainly
 * damage, never a torn write. */
static svs_code rotate_segment(svi_journal *j, svs_error *err) {
    if (j->durable != j->written.number && sync_segment(j, err) != SVS_OK)
        return SVS_IO;
    return create_segment(j, err);
}

/* Removes a partly written batch from the file: its records must not be replayed, because they were refused.
 * A failure other than a lack of space leaves the file unknown. */
static svs_code undo_write(svi_journal *j, size_t wanted, int error, svs_error *err) {
    char name[SVI_FILE_NAME];
    segment_name(j, name);
    if (!svi_no_space(error))
        return journal_die(j, name, "written", error, err);
    int truncated = svi_truncate(j->fd, j->written.offset);
    if (truncated)
        return journal_die(j, name, "truncated", truncated, err);
    svi_journal_abort(j);
    return svi_fail_full(err, j->dir->path, name, wanted, error);
}

svs_code svi_journal_write(svi_journal *j, svs_error *err) {
    if (j->dead != SVS_OK || j->gathered.size == 0)
        return journal_dead(j, err);
    /* The header of a new segment goes to a new file, the records after it: so a rotation and a batch are two
     * writes, and `written` moves after each. */
    size_t header = j->header, size = j->gathered.size - header;
    svs_code code = header ? rotate_segment(j, err) : SVS_OK;
    if (code != SVS_OK) {
        svi_journal_abort(j);
        return code;
    }
    int error = svi_write_all(j->fd, j->gathered.data + header, size);
    if (error)
        return undo_write(j, size, error, err);
    j->bytes += (int64_t)size;
    j->written = j->next;
    j->gathered.size = 0;
    j->header = 0;
    return SVS_OK;
}

svs_code svi_journal_commit(svi_journal *j, svs_error *err) {
    const bool any = j->gathered.size > 0;
    svs_code code = svi_journal_write(j, err);
    if (code != SVS_OK || !any)
        return code;
    return j->options.fsync == SVI_FSYNC_ALWAYS ? sync_segment(j, err) : SVS_OK;
}

/* ---- beginning and end */

/* Does the segment of this number begin after the place `at`, so that it is to be removed? With offset 0 the
 * segment at->number itself does not exist yet, so one of that name is removed too. */
static bool stands_after(uint64_t number, const struct svi_position *at) {
    return at->offset ? number > at->segment : number >= at->number;
}

/* Adopts the newest mark of a segment that stays, and removes all others. They are removed durably before
 * remove_after removes their segments: a mark without its segment would read as damage. */
static svs_code take_mark(svi_journal *j, const struct svi_position *at, svs_error *err) {
    uint64_t *numbers;
    int count;
    bool removed = false;
    svs_code code = svi_state_dir_list(j->dir, SVI_BEGUN, &numbers, &count, err);
    for (int i = count - 1; i >= 0 && code == SVS_OK; i--) {
        if (!j->marked && !stands_after(numbers[i], at)) {
            j->marked = true;
            j->mark = numbers[i];
            continue;
        }
        code = svi_state_dir_remove(j->dir, SVI_BEGUN, numbers[i], err);
        removed = true;
    }
    svi_free(numbers);
    return code == SVS_OK && removed ? svi_state_dir_sync(j->dir, err) : code;
}

/* Removes the segments after this place, newest first: whenever it is interrupted, the rest has no gap. */
static svs_code remove_after(const struct svi_state_dir *dir, const struct svi_position *at, svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_state_dir_list(dir, SVI_JOURNAL, &numbers, &count, err);
    for (int i = count - 1; i >= 0 && code == SVS_OK; i--) {
        if (!stands_after(numbers[i], at))
            break;
        code = svi_state_dir_remove(dir, SVI_JOURNAL, numbers[i], err);
    }
    svi_free(numbers);
    return code == SVS_OK ? svi_state_dir_sync(dir, err) : code;
}

static svs_code begin_journal(svi_journal *j, const struct svi_position *at, svs_error *err) {
    /* A segment whose name is the number of its first record; its header continues the chain of the place. */
    j->written = j->next = (struct svi_position){at->number, at->number, 0, at->chain, 0};
    if (gather_header(j, err) != SVS_OK)
        return SVS_NO_MEMORY;
    svs_code code = create_segment(j, err);
    svi_journal_abort(j); /* the header is written: `gathered` starts empty */
    return code;
}

/* The sync below fails only for data of the previous process. That data is lost, and reading the file from
 * the disk shows it; so the failure itself is ignored. */
svs_code svi_journal_forget(const struct svi_state_dir *dir, svs_error *err) {
    char name[SVI_FILE_NAME];
    struct svi_state_dir_ends there;
    const svs_code code = svi_state_dir_find(dir, SVI_JOURNAL, &there, err);
    const int fd = there.any ? openat(dir->fd, svi_state_dir_name(name, SVI_JOURNAL, there.last),
                                      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                             : -1;
    if (fd >= 0) {               /* otherwise the reader fails to open it and reports why */
        (void)svi_sync_data(fd); /* the kernel drops clean pages only */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return code;
}

/* Continues in an existing segment: truncates it after the last sound record, syncs it (what was read back
 * may never have reached the disk), and marks it as the newest. */
static svs_code continue_journal(svi_journal *j, const struct svi_position *at, svs_error *err) {
    char name[SVI_FILE_NAME];
    struct stat s;
    svi_state_dir_name(name, SVI_JOURNAL, at->segment);
    j->fd = openat(j->dir->fd, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (j->fd < 0)
        return svi_fail_io(err, j->dir->path, name, "opened", errno);
    if (fstat(j->fd, &s) != 0)
        return svi_fail_io(err, j->dir->path, name, "read", errno);
    /* Appending to a file that is too short would leave a gap in front of the next record. */
    if ((uint64_t)s.st_size < at->offset)
        return svi_fail_file(err, SVS_DAMAGED, j->dir->path, name, "ends at byte %lld, before byte %llu",
                             (long long)s.st_size, (unsigned long long)at->offset);
    int error = (uint64_t)s.st_size > at->offset ? svi_truncate(j->fd, at->offset) : 0;
    if (error)
        return svi_fail_io(err, j->dir->path, name, "truncated after its last intact record", error);
    error = svi_sync_data(j->fd);
    if (error)
        return svi_fail_io(err, j->dir->path, name, "made durable", error);
    bool unknown;
    error = move_mark(j, at->segment, &unknown);
    if (error)
        return svi_fail_write(err, j->dir->path, name, 0, "marked as the newest", error);
    j->written = j->next = *at;
    return SVS_OK;
}

svi_journal *svi_journal_new(const struct svi_state_dir *dir, const struct svi_journal_options *o,
                             const struct svi_position *at, svs_error *err) {
    svi_journal *j = svi_alloc(sizeof *j);
    if (!j) {
        svi_fail_memory(err, "the journal");
        return NULL;
    }
    j->dir = dir;
    j->options = *o;
    j->fd = -1;
    snprintf(j->stream, sizeof j->stream, "%s", o->stream ? o->stream : "");
    const int error = svi_random(&j->secret, sizeof j->secret);
    svs_code code =
        error ? svi_fail_io(err, dir->path, "", "given a journal, for lack of random numbers", error)
              : SVS_OK;
    if (code == SVS_OK)
        code = take_mark(j, at, err);
    /* Before anything is appended: otherwise the next start would read old segments as the continuation. */
    if (code == SVS_OK)
        code = remove_after(dir, at, err);
    if (code == SVS_OK)
        code = at->offset ? continue_journal(j, at, err) : begin_journal(j, at, err);
    if (code != SVS_OK)
        svi_journal_free(&j);
    else
        j->durable = at->number; /* continue_journal and begin_journal have synced everything before it */
    return j;
}

void svi_journal_free(svi_journal **j) {
    if (!*j)
        return;
    if ((*j)->fd >= 0)
        close((*j)->fd);
    svi_bytes_clear(&(*j)->gathered);
    svi_free(*j);
    *j = NULL;
}

/* ---- asking */

struct svi_position svi_journal_position(const svi_journal *j) {
    return j->next;
}

uint64_t svi_journal_durable(const svi_journal *j) {
    return j->durable;
}

uint64_t svi_journal_syncs(const svi_journal *j) {
    return j->syncs;
}

int64_t svi_journal_bytes(const svi_journal *j) {
    return j->bytes;
}

/* Oldest first, so that the rest has no gap. A segment ends where the next one begins: it may be removed if
 * the next one's first record is at most `number`. */
svs_code svi_journal_trim(const struct svi_state_dir *dir, uint64_t number, uint64_t current,
                          svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_state_dir_list(dir, SVI_JOURNAL, &numbers, &count, err);
    int old = 0;
    while (old + 1 < count && numbers[old + 1] <= number && numbers[old] < current)
        old++;
    if (code == SVS_OK)
        code = svi_state_dir_clear(dir, SVI_JOURNAL, numbers, old, err);
    svi_free(numbers);
    return code;
}
