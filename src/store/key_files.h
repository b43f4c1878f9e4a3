/* key_files.h: the states of keys in files beside the checkpoints: records (key_record.h), one after another,
 * each in the place of earlier ones of its key. A checkpoint names the files that it is of and how long each
 * of them was; what was appended later is not of it.
 *
 * keys-<16 hex digits>: numbers ascend. The oldest file goes when what is alive of it was written again at
 * the end. A process never goes on with a file of another.
 *
 * Appending, reading and removing are for one thread; svi_key_files_sync may be called by another while
 * nothing else is. */
#ifndef SVI_KEY_FILES_H
#define SVI_KEY_FILES_H

#include "base/archive.h"
#include "store/key_record.h"
#include "store/state_dir.h"

#define SVI_KEY_FILES "key files" /* the section of a checkpoint that names them */

typedef struct svi_key_files svi_key_files;

/* Where a record is. file 0: nowhere. */
struct svi_key_place {
    uint32_t file, size;
    uint64_t offset;
};

/* None yet; the directory may be closed before. NULL: SVS_NO_MEMORY, SVS_IO. */
svi_key_files *svi_key_files_new(const struct svi_state_dir *dir, svs_error *err);
void svi_key_files_free(svi_key_files **f);

/* The list of files as a part of a checkpoint, into files that are new: then they are there, and as long as
 * they should be. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
void svi_key_files_archive(struct svi_archive *a, svi_key_files *f);

/* The same from a checkpoint that was read; none where it names none. */
struct svi_checkpoint;
svs_code svi_key_files_of(svi_key_files *f, const struct svi_checkpoint *c, svs_error *err);

/* Gives all records in the order in which they were written; what is not SVS_OK ends it. SVS_DAMAGED with
 * file and byte. */
typedef svs_code svi_key_visitor(void *user, const struct svi_key_record *r, const struct svi_key_place *at,
                                 svs_error *err);
svs_code svi_key_files_visit(svi_key_files *f, svi_key_visitor *visit, void *user, svs_error *err);
/* Of the oldest file (there is one), from *offset on, which moves on: until `budget` bytes were given. */
svs_code svi_key_files_visit_oldest(svi_key_files *f, uint64_t *offset, uint64_t budget,
                                    svi_key_visitor *visit, void *user, svs_error *err);

/* The record there, which points into `room`. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_key_files_read(svi_key_files *f, const struct svi_key_place *at, struct svi_bytes *buffer,
                            struct svi_key_record *r, svs_error *err);

/* Appends whole records; *at: the first of them, and so on. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY: they are
 * not there. `most`: bytes after which a new file begins. */
svs_code svi_key_files_append(svi_key_files *f, const struct svi_bytes *records, uint64_t most,
                              struct svi_key_place *at, svs_error *err);

/* What was appended is on disk, with its names. SVS_IO: it may not be. */
svs_code svi_key_files_sync(svi_key_files *f, svs_error *err);

uint64_t svi_key_files_bytes(const svi_key_files *f);  /* of all that are named */
uint32_t svi_key_files_newest(const svi_key_files *f); /* 0: there is none */
/* The oldest, and its length; 0: there is none, or it is the one that is appended to. */
uint32_t svi_key_files_oldest(const svi_key_files *f, uint64_t *length);
/* It is named no more; checkpoints of before need it. */
void svi_key_files_leave_oldest(svi_key_files *f);

/* Is the file of this number named? */
bool svi_key_files_has(const svi_key_files *f, uint64_t number);

#endif
