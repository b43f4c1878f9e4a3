#include "store/journal.h"

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
#include "store/segment.h"
#include "svmstream/svmstream.h"

#define FIRST_ROOM 4096
#define RECOVER    "the disk's content is unknown now: end the process, the next start recovers"

struct svi_journal {
    const struct svi_folder *folder;
    struct svi_journal_options options;
    char stream[65];
    int fd;                      /* of the segment being written, opened for appending */
    struct svi_position written; /* behind what is in files */
    struct svi_position next;    /* behind what is gathered */
    struct svi_bytes gathered;
    size_t header;             /* bytes of `gathered` that are the header of a new segment; 0 = none begins */
    struct svi_position begun; /* behind that header */
    uint64_t durable, syncs;
    uint64_t secret; /* from which the new segments' are made */
    int64_t bytes;
    double since;  /* when svi_journal_due first saw what is unsynced */
    bool waiting;  /* `since` is set */
    svs_code dead; /* not SVS_OK: after a failure that leaves the files unknown */
    svs_error cause;
};

/* ---- failures */

/* From now on every call fails with this text. */
static svs_code die(svi_journal *j, svs_error *err) {
    j->dead = SVS_IO;
    if (err)
        *err = j->cause;
    return SVS_IO;
}

static svs_code die_of(svi_journal *j, const char *name, const char *what, int error, svs_error *err) {
    svi_fail_file(&j->cause, SVS_IO, j->folder, name, "cannot be %s: %s; " RECOVER, what,
                  svi_errno_text(error));
    return die(j, err);
}

static svs_code still_dead(const svi_journal *j, svs_error *err) {
    if (err && j->dead != SVS_OK)
        *err = j->cause;
    return j->dead;
}

static const char *segment_name(const svi_journal *j, char name[SVI_FILE_NAME]) {
    return svi_folder_name(name, SVI_JOURNAL, j->written.segment);
}

/* ---- syncing */

/* A sync is never tried again: what could not be written may have been dropped meanwhile, and the next one
 * would find nothing left to fail on. */
static svs_code sync_segment(svi_journal *j, svs_error *err) {
    char name[SVI_FILE_NAME];
    int error = svi_sync_data(j->fd);
    if (error)
        return die_of(j, segment_name(j, name), "made durable", error, err);
    j->durable = j->written.number;
    j->syncs++;
    j->waiting = false;
    return SVS_OK;
}

svs_code svi_journal_sync(svi_journal *j, svs_error *err) {
    if (j->dead != SVS_OK || j->durable == j->written.number)
        return still_dead(j, err);
    return sync_segment(j, err);
}

bool svi_journal_due(svi_journal *j, double time, double *due) {
    *due = INFINITY;
    if (j->dead != SVS_OK) {
        *due = time;
        return true;
    }
    if (j->options.fsync != SVI_FSYNC_INTERVAL || j->durable == j->written.number)
        return false;
    if (!j->waiting)
        j->since = time;
    j->waiting = true;
    *due = j->since + j->options.interval;
    return time - j->since >= j->options.interval;
}

svs_code svi_journal_sync_begin(svi_journal *j, struct svi_journal_sync *s, svs_error *err) {
    char name[SVI_FILE_NAME];
    *s = (struct svi_journal_sync){.fd = -1, .segment = j->written.segment, .number = j->written.number};
    if (j->dead != SVS_OK || j->durable == j->written.number)
        return still_dead(j, err);
    s->fd = openat(j->folder->fd, segment_name(j, name), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0 && svi_no_room(errno)) /* too many files are open: there is this one */
        return sync_segment(j, err);
    if (s->fd < 0)
        return die_of(j, name, "opened", errno, err);
    j->waiting = false;
    return SVS_OK;
}

void svi_journal_sync_run(struct svi_journal_sync *s) {
    const double began = svi_monotonic();
    s->error = s->fd < 0 ? 0 : svi_sync_data(s->fd);
    s->seconds = svi_monotonic() - began;
}

svs_code svi_journal_sync_end(svi_journal *j, struct svi_journal_sync *s, svs_error *err) {
    char name[SVI_FILE_NAME];
    if (s->fd < 0)
        return still_dead(j, err);
    close(s->fd);
    s->fd = -1;
    if (j->dead != SVS_OK)
        return still_dead(j, err);
    if (s->error)
        return die_of(j, svi_folder_name(name, SVI_JOURNAL, s->segment), "made durable", s->error, err);
    if (s->number > j->durable) {
        j->durable = s->number;
        j->syncs++;
    }
    return SVS_OK;
}

/* ---- gathering */

void svi_journal_drop(svi_journal *j) {
    j->gathered.size = 0;
    j->header = 0;
    j->next = j->written;
}

/* Room for n bytes more. */
static svs_code make_room(struct svi_bytes *b, size_t n, svs_error *err) {
    size_t capacity = b->capacity ? b->capacity : FIRST_ROOM;
    while (capacity - b->size < n)
        capacity *= 2;
    if (capacity == b->capacity)
        return SVS_OK;
    void *grown = svi_realloc(b->data, b->size, capacity);
    if (!grown)
        return svi_fail_memory(err, "the records that wait for the journal");
    b->data = grown;
    b->capacity = capacity;
    return SVS_OK;
}

/* The header of the segment that begins with the next record; `next` moves behind it. Its secret comes from
 * one that was drawn at the start: what fails there cannot fail here. */
static svs_code put_header(svi_journal *j, svs_error *err) {
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

/* Asked before anything is gathered for it: a commit is one write into one file. A segment holds one record
 * at least, for its name is the number of the first. */
static bool is_full(const svi_journal *j) {
    return j->written.offset >= (uint64_t)j->options.segment && j->written.number > j->written.segment;
}

svs_code svi_journal_append(svi_journal *j, int kind, double now, const void *payload, size_t size,
                            svs_error *err) {
    if (j->dead != SVS_OK)
        return still_dead(j, err);
    if (kind < 0 || kind > 127)
        return svi_fail(err, SVS_INVALID, "a journal has no records of kind %d", kind);
    if (size > SVI_PAYLOAD_MAX)
        return svi_fail(err, SVS_TOO_LARGE, "a record of %zu bytes is too large for a journal", size);
    if (make_room(&j->gathered, SVI_HEADER_MAX + SVI_RECORD_BARE + size, err) != SVS_OK)
        return SVS_NO_MEMORY;
    if (j->gathered.size == 0 && is_full(j) && put_header(j, err) != SVS_OK)
        return SVS_NO_MEMORY;
    struct svi_record r = {j->next.number, kind, now, j->durable, payload, size};
    svi_record_write(j->gathered.data + j->gathered.size, &r, j->next.secret, &j->next.chain);
    j->gathered.size += SVI_RECORD_BARE + size;
    j->next.offset += SVI_RECORD_BARE + size;
    j->next.number++;
    return SVS_OK;
}

/* ---- writing */

static int close_failed(int fd) {
    close(fd);
    return -1;
}

/* Creates the segment that `gathered` has the header of; returns its descriptor, or -1 with the failure told:
 * the journal is dead, or nothing of the file is left. */
static int create_segment(svi_journal *j, svs_error *err) {
    char name[SVI_FILE_NAME];
    svi_folder_name(name, SVI_JOURNAL, j->begun.segment);
    int fd = openat(j->folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : svi_write_all(fd, j->gathered.data, j->header);
    if (!error) {
        error = svi_sync_data(fd);
        if (!error)
            error = svi_folder_flush(j->folder);
        if (!error)
            return fd;
        die_of(j, name, "made durable", error, err);
        return close_failed(fd);
    }
    if (!svi_no_room(error))
        die_of(j, name, "begun", error, err);
    else if (fd >= 0 && unlinkat(j->folder->fd, name, 0) != 0)
        die_of(j, name, "removed", errno, err);
    else
        svi_fail_full(err, j->folder, name, j->header, error);
    return fd < 0 ? -1 : close_failed(fd);
}

/* The old segment is synced whatever the policy says: damage in any but the last can then only be damage. */
static svs_code rotate(svi_journal *j, svs_error *err) {
    svs_error failure = {0};
    if (j->durable != j->written.number && sync_segment(j, err) != SVS_OK)
        return SVS_IO;
    int fd = create_segment(j, &failure);
    if (fd < 0) {
        if (err)
            *err = failure;
        return failure.code;
    }
    close(j->fd);
    j->fd = fd;
    j->written = j->begun;
    j->bytes += (int64_t)j->header;
    return SVS_OK;
}

/* Nothing of a commit that failed may stay in the file. */
static svs_code take_back(svi_journal *j, size_t wanted, int error, svs_error *err) {
    char name[SVI_FILE_NAME];
    segment_name(j, name);
    if (!svi_no_room(error))
        return die_of(j, name, "written", error, err);
    int truncated = svi_truncate(j->fd, j->written.offset);
    if (truncated)
        return die_of(j, name, "cut back", truncated, err);
    svi_journal_drop(j);
    return svi_fail_full(err, j->folder, name, wanted, error);
}

svs_code svi_journal_write(svi_journal *j, svs_error *err) {
    if (j->dead != SVS_OK || j->gathered.size == 0)
        return still_dead(j, err);
    size_t header = j->header, size = j->gathered.size - header;
    svs_code code = header ? rotate(j, err) : SVS_OK;
    if (code != SVS_OK) {
        svi_journal_drop(j);
        return code;
    }
    int error = svi_write_all(j->fd, j->gathered.data + header, size);
    if (error)
        return take_back(j, size, error, err);
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

/* Removes the segments behind this place, newest first: what is left has no gap whenever that is interrupted.
 */
static svs_code remove_behind(const struct svi_folder *f, const struct svi_position *at, svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_folder_list(f, SVI_JOURNAL, &numbers, &count, err);
    for (int i = count - 1; i >= 0 && code == SVS_OK; i--) {
        if (at->offset ? numbers[i] <= at->segment : numbers[i] < at->number)
            break;
        code = svi_folder_remove(f, SVI_JOURNAL, numbers[i], err);
    }
    svi_free(numbers);
    return code == SVS_OK ? svi_folder_sync(f, err) : code;
}

static svs_code begin_segment(svi_journal *j, const struct svi_position *at, svs_error *err) {
    j->written = j->next = (struct svi_position){at->number, at->number, 0, at->chain, 0};
    if (put_header(j, err) != SVS_OK)
        return SVS_NO_MEMORY;
    svs_error failure = {0};
    j->fd = create_segment(j, &failure);
    if (j->fd < 0)
        return svi_fail(err, failure.code, "%s", failure.text);
    j->bytes = (int64_t)j->header;
    j->written = j->next;
    svi_journal_drop(j);
    return SVS_OK;
}

/* A failure was of what the last process wrote: it is lost, and read as such from here on. */
svs_code svi_journal_forget(const struct svi_folder *f, svs_error *err) {
    char name[SVI_FILE_NAME];
    uint64_t *numbers;
    int count;
    svs_code code = svi_folder_list(f, SVI_JOURNAL, &numbers, &count, err);
    if (count > 0) {
        int fd = openat(f->fd, svi_folder_name(name, SVI_JOURNAL, numbers[count - 1]),
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0) {               /* else reading it tells why */
            (void)svi_sync_data(fd); /* what is not clean would stay */
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            close(fd);
        }
    }
    svi_free(numbers);
    return code;
}

/* What was read back may never have been on disk: it is from here on. */
static svs_code continue_segment(svi_journal *j, const struct svi_position *at, svs_error *err) {
    char name[SVI_FILE_NAME];
    struct stat s;
    svi_folder_name(name, SVI_JOURNAL, at->segment);
    j->fd = openat(j->folder->fd, name, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (j->fd < 0)
        return svi_fail_io(err, j->folder, name, "opened", errno);
    if (fstat(j->fd, &s) != 0)
        return svi_fail_io(err, j->folder, name, "read", errno);
    if ((uint64_t)s.st_size < at->offset)
        return svi_fail_file(err, SVS_DAMAGED, j->folder, name, "ends at byte %lld, before byte %llu",
                             (long long)s.st_size, (unsigned long long)at->offset);
    int error = (uint64_t)s.st_size > at->offset ? svi_truncate(j->fd, at->offset) : 0;
    if (error)
        return svi_fail_io(err, j->folder, name, "cut off behind its last sound record", error);
    error = svi_sync_data(j->fd);
    if (error)
        return svi_fail_io(err, j->folder, name, "made durable", error);
    j->written = j->next = *at;
    return SVS_OK;
}

static svs_code draw_secret(svi_journal *j, svs_error *err) {
    int error = svi_random(&j->secret, sizeof j->secret);
    return error ? svi_fail_io(err, j->folder, "", "given a journal, for lack of random numbers", error)
                 : SVS_OK;
}

svi_journal *svi_journal_new(const struct svi_folder *f, const struct svi_journal_options *o,
                             const struct svi_position *at, svs_error *err) {
    svi_journal *j = svi_alloc(sizeof *j);
    if (!j) {
        svi_fail_memory(err, "the journal");
        return NULL;
    }
    j->folder = f;
    j->options = *o;
    j->fd = -1;
    snprintf(j->stream, sizeof j->stream, "%s", o->stream ? o->stream : "");
    /* Before anything is appended: else the next start would take what lies behind for what follows. */
    svs_code code = draw_secret(j, err);
    if (code == SVS_OK)
        code = remove_behind(f, at, err);
    if (code == SVS_OK)
        code = at->offset ? continue_segment(j, at, err) : begin_segment(j, at, err);
    if (code != SVS_OK)
        svi_journal_free(&j);
    else
        j->durable = at->number;
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

/* Oldest first, so that what is left has no gap. */
svs_code svi_journal_trim(const struct svi_folder *f, uint64_t number, uint64_t current, svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_folder_list(f, SVI_JOURNAL, &numbers, &count, err);
    int old = 0;
    while (old + 1 < count && numbers[old + 1] <= number && numbers[old] < current)
        old++;
    if (code == SVS_OK)
        code = svi_folder_clear(f, SVI_JOURNAL, numbers, old, err);
    svi_free(numbers);
    return code;
}
