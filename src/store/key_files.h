/* key_files.h: append-only files with the states of keys, next to the checkpoints. A file is a sequence of
 * records (key_record.h); the last record of a key replaces the earlier ones. A checkpoint lists its files
 * and the length of each; bytes appended later do not belong to it.
 *
 * Files are named keys-<16 hex digits>, with ascending numbers. The oldest file is removed once its live
 * records have been appended again at the end. A process never appends to a file of an earlier process.
 *
 * One thread appends, reads and removes; svi_key_files_sync may run on another thread while no other call
 * does. */
#ifndef SVI_KEY_FILES_H
#define SVI_KEY_FILES_H

#include "base/archive.h"
#include "store/key_record.h"
#include "store/state_dir.h"

#define SVI_KEY_FILES     "key files" /* the section of a checkpoint that lists them */
#define SVI_KEY_FILES_MAX 4096        /* in a list */

typedef struct svi_key_files svi_key_files;

/* The place of a record. */
struct svi_key_place {
    uint32_t file;   /* number of the file; 0: the key has no record */
    uint32_t size;   /* bytes of the record */
    uint64_t offset; /* bytes */
};

/* An empty list. `dir` may be closed before it: the list opens the directory again. NULL: SVS_NO_MEMORY,
 * SVS_IO. */
svi_key_files *svi_key_files_new(const struct svi_state_dir *dir, svs_error *err);
void svi_key_files_free(svi_key_files **f);

/* Archives the list of files as a section of a checkpoint. Loading (into an empty list) opens every file and
 * checks that it has at least its length. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
void svi_key_files_archive(struct svi_archive *a, svi_key_files *f);

/* Loads the list from a checkpoint; it stays empty if the checkpoint has none. */
struct svi_checkpoint;
svs_code svi_key_files_of(svi_key_files *f, const struct svi_checkpoint *c, svs_error *err);

/* Visits all records in the order in which they were written. A result other than SVS_OK ends the visit and
 * is returned. The record is valid during the call only. SVS_DAMAGED with file and byte; SVS_IO;
 * SVS_NO_MEMORY. */
typedef svs_code svi_key_visitor(void *user, const struct svi_key_record *r, const struct svi_key_place *at,
                                 svs_error *err);
svs_code svi_key_files_visit(svi_key_files *f, svi_key_visitor *visit, void *user, svs_error *err);
/* Visits records of the oldest file (there must be one) from *offset on, until at least `budget` bytes were
 * visited or the file ends; *offset moves past them. */
svs_code svi_key_files_visit_oldest(svi_key_files *f, uint64_t *offset, uint64_t budget,
                                    svi_key_visitor *visit, void *user, svs_error *err);

/* Reads the record at this place; *r points into `buffer`. SVS_DAMAGED, SVS_IO, SVS_NO_MEMORY. */
svs_code svi_key_files_read(svi_key_files *f, const struct svi_key_place *at, struct svi_bytes *buffer,
                            struct svi_key_record *r, svs_error *err);

/* Appends whole records to one file, and begins a new file if the current one has `max_length` bytes or more.
 * *at: the place of the first record (without its size); the others follow it. SVS_DISK_FULL, SVS_IO,
 * SVS_NO_MEMORY: nothing was appended. */
svs_code svi_key_files_append(svi_key_files *f, const struct svi_bytes *records, uint64_t max_length,
                              struct svi_key_place *at, svs_error *err);

/* The i-th file of the list, from 0. False: there are not as many. */
struct svi_key_extent {
    uint32_t number;
    uint64_t length; /* bytes that count */
};
bool svi_key_files_extent(const svi_key_files *f, int i, struct svi_key_extent *part);
/* Reads `size` of its bytes as they are. SVS_DAMAGED: there are not as many; SVS_IO. */
svs_code svi_key_files_copy(const svi_key_files *f, int i, uint64_t offset, void *to, size_t size,
                            svs_error *err);

/* Makes everything appended durable, with the names of new files. SVS_IO: it may not be. */
svs_code svi_key_files_sync(svi_key_files *f, svs_error *err);

uint64_t svi_key_files_bytes(const svi_key_files *f);  /* of all listed files */
uint32_t svi_key_files_newest(const svi_key_files *f); /* its number; 0: the list is empty */
/* The number of the oldest file, and its length; 0: the list is empty, or that file is still appended to. */
uint32_t svi_key_files_oldest(const svi_key_files *f, uint64_t *length);
/* Drops the oldest file from the list. The file stays on disk, because earlier checkpoints need it. */
void svi_key_files_leave_oldest(svi_key_files *f);

/* Is the file of this number in the list? */
bool svi_key_files_has(const svi_key_files *f, uint64_t number);

#endif
