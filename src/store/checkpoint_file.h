/* checkpoint_file.h: checkpoints as files: a header and named sections, each with its own check, written
 * atomically.
 *
 * A file is msgpack objects one after another:
 *
 *   header   {format: "svmstream-checkpoint", v: layout, program, isa, stream, epoch, number, segment,
 *             offset, chain, secret, settings (text), sections: count of these objects, check}
 *   section  [name, hashed, body (bin), check] body: one msgpack map (wire/archive_file.h); one of more than
 *            2 GiB is in several such, one after another, each with a piece of it
 *   end      ["end", hash (bin, 16), check]
 *
 * Each check is XXH3 (64 bits) of the object's bytes before it, seeded with the check before (the header's:
 * 0); hash is XXH3 (128 bits, its bytes from the highest) over the sections that are `hashed`, of each its
 * name, a NUL, the length of its body (64 bits, big-endian) and its body: the fingerprint of the state. */
#ifndef SVI_CHECKPOINT_FILE_H
#define SVI_CHECKPOINT_FILE_H

#include "base/archive.h"
#include "base/bytes.h"
#include "store/journal.h"

#define SVI_SECTIONS_MAX   32
#define SVI_OBJECTS_MAX    1024                  /* pieces of sections */
#define SVI_CHECKPOINT_MAX ((uint64_t)256 << 30) /* bytes; more is not written, and not believed */
#define SVI_HASH_TEXT      33                    /* 32 hex digits and NUL */

struct svi_section {
    char name[16];
    bool hashed;
    size_t offset, size; /* of its body in `bodies` */
};

/* A checkpoint in memory. Zero-initialised is empty. */
struct svi_checkpoint {
    const struct svi_state_dir *dir; /* from which it was read, where the files are that it names; or NULL */
    char program[16], isa[16];       /* version of the program, instruction set of its kernels */
    char stream[65];
    uint64_t epoch;
    struct svi_position position; /* after which record; all before it is on disk when this is written */
    struct svi_bytes settings;    /* YAML text */
    struct svi_bytes bodies;      /* one after another; keeps its room from one use to the next */
    struct svi_section section[SVI_SECTIONS_MAX];
    int sections;
    uint8_t hash[16]; /* made when written, checked when read */
};
void svi_checkpoint_clear(struct svi_checkpoint *c); /* frees */

/* The section of this name, or NULL. */
const struct svi_section *svi_checkpoint_find(const struct svi_checkpoint *c, const char *name);

/* A buffer of bytes preceded by its size, at most `most`. Loading allocates, with a NUL behind the bytes; of
 * none, data may be NULL. `truncated` and `no_memory` are the texts of the errors. False: the archive has
 * failed. */
bool svi_archive_block(struct svi_archive *a, const char *size_name, const char *name, struct svi_bytes *b,
                       int64_t most, const char *truncated, const char *no_memory);

/* Writes checkpoint-<number>: NAME.tmp, fsync, rename, fsync of the directory. May be called from another
 * thread than the journal's. SVS_DISK_FULL, SVS_IO (a failed fsync too: the old files are untouched),
 * SVS_NO_MEMORY, SVS_TOO_LARGE (256 GiB).
 */
svs_code svi_checkpoint_write(const struct svi_state_dir *dir, struct svi_checkpoint *c, int64_t *size,
                              svs_error *err);
/* The same with at most `piece` bytes of a section in one object. */
svs_code svi_checkpoint_write_pieces(const struct svi_state_dir *dir, struct svi_checkpoint *c, size_t piece,
                                     int64_t *size, svs_error *err);

/* Reads and checks one. SVS_DAMAGED with file and place; SVS_IO; SVS_UNAVAILABLE: of another layout. */
svs_code svi_checkpoint_read(const struct svi_state_dir *dir, uint64_t number, struct svi_checkpoint *c,
                             svs_error *err);
/* The same from memory (`dir`, a path or NULL, and `name` for error texts). */
svs_code svi_checkpoint_parse(const uint8_t *bytes, size_t size, const char *dir, const char *name,
                              struct svi_checkpoint *c, svs_error *err);

/* The layout of the checkpoint that begins with these bytes; SVI_STATE_LAYOUT where they do not tell. */
uint64_t svi_checkpoint_layout(const uint8_t *bytes, size_t size);

/* XXH3-128 of the hashed sections, as svi_checkpoint_write stores it. */
void svi_checkpoint_hash(struct svi_checkpoint *c);
char *svi_hash_text(const uint8_t hash[16], char out[SVI_HASH_TEXT]);

#endif
