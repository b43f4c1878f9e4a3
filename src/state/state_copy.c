/* A kept state as one file, and back.
 *
 * The checkpoint of the file differs from the one in the directory only by its place in the
 * journal. The file has no journal, so the segment of its next record is marked as not begun. The
 * process that continues from the file begins that segment. The hash is of the sections, and the
 * same.
 *
 * Export reads while a process may write and remove. Files of keys that the checkpoint needs are
 * held open from the moment it was read. If one has vanished before that, so has the checkpoint,
 * and the next newest is tried.
 *
 * Import writes files of keys under their unfinished names, which the next start removes. It writes
 * the checkpoint last: without one the directory has no state. Before that it loads the content as
 * a start would, which finds all that could be wrong with it. */
#include "state/state_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "state/recovery.h"
#include "store/io.h"
#include "store/key_files.h"
#include "store/export_file.h"

#define PIECE SVI_EXPORT_PIECE

/* ---- export */

struct exporting {
    const struct svi_state_dir *dir;
    struct svi_checkpoint checkpoint;
    svi_key_files *keys;
};

static void export_clear(struct exporting *x) {
    svi_key_files_free(&x->keys);
    svi_checkpoint_clear(&x->checkpoint);
}

static svs_code export_open(struct exporting *x, uint64_t number, svs_error *err) {
    export_clear(x);
    SVI_TRY(svi_checkpoint_read(x->dir, number, &x->checkpoint, err));
    if (!(x->keys = svi_key_files_new(x->dir, err)))
        return err->code;
    return svi_key_files_of(x->keys, &x->checkpoint, err);
}

/* Opens one of the listed checkpoints, from the newest on. *again: one has vanished meanwhile, so the list is
 * old. */
static svs_code export_newest(struct exporting *x, bool *again, FILE *log, svs_error *err) {
    uint64_t *numbers = NULL;
    char name[SVI_FILE_NAME];
    int count = 0;
    svs_code code = svi_state_dir_list(x->dir, SVI_CHECKPOINT, &numbers, &count, err);
    *again = false;
    if (code == SVS_OK && count == 0)
        code = svi_state_dir_begun(x->dir->path)
                   ? svi_fail(err, SVS_UNAVAILABLE,
                              "there is no checkpoint in %.150s yet: write one with `svmstream ctl save`, or "
                              "by ending the process",
                              x->dir->path)
                   : svi_fail(err, SVS_EMPTY, "no state is kept in %.150s", x->dir->path);
    for (int i = count - 1; i >= 0 && code == SVS_OK; i--) {
        code = export_open(x, numbers[i], err);
        if (code == SVS_OK)
            break;
        *again = faccessat(x->dir->fd, svi_state_dir_name(name, SVI_CHECKPOINT, numbers[i]), F_OK, 0) != 0;
        if ((code != SVS_DAMAGED && code != SVS_IO) || *again || i == 0)
            break;
        if (log)
            fprintf(log, "state: skipping a checkpoint that cannot be exported: %s\n", err->text);
        code = SVS_OK;
    }
    svi_free(numbers);
    return code;
}

static svs_code export_named(struct exporting *x, uint64_t number, svs_error *err) {
    char name[SVI_FILE_NAME];
    if (faccessat(x->dir->fd, svi_state_dir_name(name, SVI_CHECKPOINT, number), F_OK, 0) != 0)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "there is no checkpoint after record %" PRIu64
                        " in %.150s: `svmstream state show` lists those that are kept",
                        number, x->dir->path);
    return export_open(x, number, err);
}

static svs_code export_keys(struct exporting *x, struct svi_export_writer *w, svs_error *err) {
    struct svi_key_extent part;
    uint8_t *piece = svi_alloc_plain(PIECE);
    svs_code code = piece ? SVS_OK : svi_fail_memory(err, "a piece of the state");
    for (int i = 0; code == SVS_OK && svi_key_files_extent(x->keys, i, &part); i++)
        for (uint64_t at = 0; at < part.length && code == SVS_OK; at += PIECE) {
            const size_t size = part.length - at < PIECE ? (size_t)(part.length - at) : PIECE;
            code = svi_key_files_copy(x->keys, i, at, piece, size, err);
            if (code == SVS_OK)
                code = svi_export_writer_put(w, SVI_KEYS, part.number, piece, size, err);
        }
    svi_free(piece);
    return code;
}

static svs_code export_write(struct exporting *x, struct svi_export_writer *w, svs_error *err) {
    struct svi_checkpoint *c = &x->checkpoint;
    struct svi_bytes bytes = {0};
    SVI_TRY(svi_export_writer_begin(w, err));
    SVI_TRY(export_keys(x, w, err));
    /* Its segment is yet to be begun; its chain continues. */
    c->position.segment = c->position.number;
    c->position.offset = c->position.secret = 0;
    svs_code code = svi_checkpoint_encode(c, &bytes, err);
    if (code == SVS_OK)
        code = svi_export_writer_put(w, SVI_CHECKPOINT, c->position.number, bytes.data, bytes.size, err);
    svi_bytes_clear(&bytes);
    return code == SVS_OK ? svi_export_writer_end(w, err) : code;
}

static void copy_facts(const struct svi_checkpoint *c, struct svi_state_copied *copied) {
    copied->checkpoint = c->position.number;
    copied->epoch = c->epoch;
    svi_hash_text(c->hash, copied->hash);
}

svs_code svi_state_export(const struct svi_state_dir *dir, const uint64_t *number, int fd, FILE *log,
                          struct svi_state_copied *copied, svs_error *err) {
    struct exporting x = {.dir = dir};
    struct svi_export_writer w = {.fd = fd};
    struct svi_key_extent part;
    bool again = true;
    svs_code code = SVS_OK;
    *copied = (struct svi_state_copied){0};
    for (int i = 0; again && i < SVI_READ_TRIES; i++) {
        again = false;
        code = number ? export_named(&x, *number, err) : export_newest(&x, &again, log, err);
    }
    if (code == SVS_OK)
        code = export_write(&x, &w, err);
    copy_facts(&x.checkpoint, copied);
    copied->bytes = w.bytes;
    while (x.keys && svi_key_files_extent(x.keys, copied->key_files, &part))
        copied->key_files++;
    svi_bytes_clear(&w.object);
    export_clear(&x);
    return code;
}

/* ---- import */

struct importing {
    struct svi_state_dir dir;
    uint64_t *keys; /* numbers of the files of keys so far, ascending; owned */
    int files;
    int64_t capacity;
    int fd;                 /* of the last of them; -1: closed */
    struct svi_bytes bytes; /* of the checkpoint */
    uint64_t number;        /* of the checkpoint */
};

static char *import_name(char *name, size_t size, uint64_t number) {
    char plain[SVI_FILE_NAME];
    snprintf(name, size, "%s" SVI_UNFINISHED, svi_state_dir_name(plain, SVI_KEYS, number));
    return name;
}

/* A directory with a checkpoint or a journal has a state. Files of keys alone are what an import left that
 * did not end. */
static svs_code import_open(struct importing *m, const char *path, svs_error *err) {
    struct svi_state_dir_ends checkpoints, journal;
    uint64_t *numbers = NULL;
    int count = 0;
    SVI_TRY(svi_state_dir_open(&m->dir, path, true, err));
    SVI_TRY(svi_state_dir_find(&m->dir, SVI_CHECKPOINT, &checkpoints, err));
    SVI_TRY(svi_state_dir_find(&m->dir, SVI_JOURNAL, &journal, err));
    if (checkpoints.any || journal.any)
        return svi_fail(err, SVS_INVALID, "%.150s already has a state: name another directory for the import",
                        path);
    svs_code code = svi_state_dir_list(&m->dir, SVI_KEYS, &numbers, &count, err);
    if (code == SVS_OK)
        code = svi_state_dir_clear(&m->dir, SVI_KEYS, numbers, count, err);
    svi_free(numbers);
    return code;
}

/* What was written of the last file of keys is complete: on disk before it gets its name. */
static svs_code import_close(struct importing *m, svs_error *err) {
    char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED];
    if (m->fd < 0)
        return SVS_OK;
    const int error = svi_sync_file(m->fd);
    close(m->fd);
    m->fd = -1;
    return error ? svi_fail_write(err, m->dir.path, import_name(name, sizeof name, m->keys[m->files - 1]), 0,
                                  "synced", error)
                 : SVS_OK;
}

static svs_code import_keys(struct importing *m, const struct svi_export_piece *piece, svs_error *err) {
    char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED];
    const uint64_t last = m->files > 0 ? m->keys[m->files - 1] : 0;
    import_name(name, sizeof name, piece->number);
    if (piece->number < last || piece->number < 1 || piece->number > UINT32_MAX || m->bytes.size > 0)
        return svi_fail(err, SVS_DAMAGED, "the state is damaged: its key files are out of order");
    if (piece->number > last) {
        if (m->files == SVI_KEY_FILES_MAX)
            return svi_fail(err, SVS_DAMAGED, "the state is damaged: it has too many key files");
        SVI_TRY(import_close(m, err));
        if (!svi_grow(&m->keys, m->files, &m->capacity, 16, sizeof *m->keys))
            return svi_fail_memory(err, "the files of keys");
        m->fd = openat(m->dir.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (m->fd < 0)
            return svi_fail_write(err, m->dir.path, name, piece->size, "opened", errno);
        m->keys[m->files++] = piece->number;
    }
    const int error = svi_write_all(m->fd, piece->body, piece->size);
    return error ? svi_fail_write(err, m->dir.path, name, piece->size, "written", error) : SVS_OK;
}

static svs_code import_checkpoint(struct importing *m, const struct svi_export_piece *piece, svs_error *err) {
    if (m->bytes.size > 0 && piece->number != m->number)
        return svi_fail(err, SVS_DAMAGED, "the state is damaged: it has two checkpoints");
    m->number = piece->number;
    return svi_bytes_append(&m->bytes, piece->body, piece->size) == SVS_OK
               ? SVS_OK
               : svi_fail_memory(err, "the checkpoint");
}

static svs_code import_read(struct importing *m, struct svi_export_reader *r, svs_error *err) {
    struct svi_export_piece piece = {.end = false};
    do {
        SVI_TRY(svi_export_reader_next(r, &piece, err));
        if (!piece.end)
            SVI_TRY(piece.keys ? import_keys(m, &piece, err) : import_checkpoint(m, &piece, err));
    } while (!piece.end);
    return import_close(m, err);
}

/* The files of keys get their names, which no checkpoint refers to yet. */
static svs_code import_name_keys(struct importing *m, svs_error *err) {
    char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED], plain[SVI_FILE_NAME];
    for (int i = 0; i < m->files; i++) {
        svi_state_dir_name(plain, SVI_KEYS, m->keys[i]);
        if (renameat(m->dir.fd, import_name(name, sizeof name, m->keys[i]), m->dir.fd, plain) != 0)
            return svi_fail_write(err, m->dir.path, name, 0, "renamed", errno);
    }
    return svi_state_dir_sync(&m->dir, err);
}

/* Does the checkpoint name just these files, with these lengths, and can a start load all of it? */
static svs_code import_assess(struct importing *m, struct svi_checkpoint *c, svs_error *err) {
    struct svi_key_extent part;
    int named = 0;
    SVI_TRY(svi_checkpoint_parse(m->bytes.data, m->bytes.size, NULL, "the checkpoint", c, err));
    c->dir = &m->dir;
    if (c->position.number != m->number || c->position.segment != m->number || c->position.offset != 0)
        return svi_fail(err, SVS_DAMAGED, "the state is damaged: its checkpoint has another position");
    svi_key_files *keys = svi_key_files_new(&m->dir, err);
    svs_code code = keys ? svi_key_files_of(keys, c, err) : err->code;
    while (code == SVS_OK && svi_key_files_extent(keys, named, &part))
        named++;
    if (code == SVS_OK && named != m->files)
        code = svi_fail(err, SVS_DAMAGED, "the state is damaged: its checkpoint needs other key files");
    svi_key_files_free(&keys);
    return code == SVS_OK ? svi_recovery_loads(c, err) : code;
}

static void import_undo(struct importing *m) {
    char name[SVI_FILE_NAME + sizeof SVI_UNFINISHED];
    for (int i = 0; i < m->files; i++) {
        svi_state_dir_remove(&m->dir, SVI_KEYS, m->keys[i], NULL);
        (void)unlinkat(m->dir.fd, import_name(name, sizeof name, m->keys[i]), 0);
    }
}

svs_code svi_state_import(const char *path, int fd, struct svi_state_copied *copied, svs_error *err) {
    struct svi_export_reader r = {.fd = fd};
    struct importing m = {.dir = {.fd = -1, .lock = -1}, .fd = -1};
    struct svi_checkpoint c = {0};
    *copied = (struct svi_state_copied){0};
    /* What is no state at all leaves no directory. */
    svs_code code = svi_export_reader_begin(&r, err);
    if (code == SVS_OK)
        code = import_open(&m, path, err);
    if (code == SVS_OK)
        code = import_read(&m, &r, err);
    if (code == SVS_OK)
        code = import_name_keys(&m, err);
    if (code == SVS_OK)
        code = import_assess(&m, &c, err);
    if (code == SVS_OK)
        code = svi_checkpoint_write(&m.dir, &c, NULL, err);
    if (code != SVS_OK)
        import_undo(&m);
    copy_facts(&c, copied);
    copied->key_files = m.files;
    copied->bytes = (int64_t)(r.start + r.at);
    if (m.fd >= 0)
        close(m.fd);
    svi_checkpoint_clear(&c);
    svi_bytes_clear(&m.bytes);
    svi_bytes_clear(&r.buffer);
    svi_free(m.keys);
    if (m.dir.path)
        svi_state_dir_close(&m.dir);
    return code;
}
