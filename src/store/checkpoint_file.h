/* checkpoint_file.h: checkpoint files, written atomically: a header and named sections, each with a check.
 *
 * A file is msgpack objects one after another:
 *
 *   header   {format: "svmstream-checkpoint", v: layout, program, isa, stream, epoch, number, segment,
 *             offset, chain, secret, settings (text), sections: count of these objects, check}
 *   section  [name, hashed, body (bin), check] body: one msgpack map (wire/archive_file.h); a body above
 *            2 GiB is split over consecutive objects of the same name
 *   end      ["end", hash (bin, 16), check]
 *
 * Each check is XXH3 (64 bits) of the object's bytes before it, seeded with the previous check (the header:
 * with 0). The hash is the fingerprint of the state: XXH3 (128 bits, most significant byte first) over the
 * `hashed` sections, each as name, NUL, length of the body (64 bits, big-endian) and body. */
#ifndef SVI_CHECKPOINT_FILE_H
#define SVI_CHECKPOINT_FILE_H

#include "base/archive.h"
#include "base/bytes.h"
#include "store/journal.h"

#define SVI_SECTIONS_MAX   40
#define SVI_OBJECTS_MAX    1024                  /* pieces of sections */
#define SVI_CHECKPOINT_MAX ((uint64_t)256 << 30) /* bytes; a larger file is neither written nor accepted */
#define SVI_HASH_TEXT      33                    /* 32 hex digits and NUL */

struct svi_section {
    char name[16];
    bool hashed;
    size_t offset, size; /* of its body in `bodies` */
};

/* A checkpoint in memory. Zero-initialised is empty. */
struct svi_checkpoint {
    const struct svi_state_dir *dir; /* where it was read and where the files it names are; NULL: neither */
    char program[16], isa[16];       /* version of the program, instruction set of its kernels */
    char stream[65];
    uint64_t epoch;
    struct svi_position
        position;              /* of the next record; all before it must be on disk before this is written */
    struct svi_bytes settings; /* YAML text */
    struct svi_bytes bodies;   /* of all sections, concatenated; its capacity survives reuse */
    struct svi_section section[SVI_SECTIONS_MAX];
    int sections;
    uint8_t hash[16]; /* computed on writing, verified on reading */
};
void svi_checkpoint_clear(struct svi_checkpoint *c); /* frees */

/* The section of this name, or NULL. */
const struct svi_section *svi_checkpoint_find(const struct svi_checkpoint *c, const char *name);

/* Archives a byte buffer as two fields: its size (0 to `max_size`) and its bytes. Loading allocates and puts
 * a NUL after the bytes; data may stay NULL for an empty buffer. `truncated` and `no_memory` are the error
 * texts. Returns false when the archive has failed. */
bool svi_archive_block(struct svi_archive *a, const char *size_name, const char *name, struct svi_bytes *b,
                       int64_t max_size, const char *truncated, const char *no_memory);

/* Writes checkpoint-<number>: NAME.tmp, fsync, rename, fsync of the directory. Callable from a thread other
 * than the journal's. *size (may be NULL): bytes of the file. SVS_DISK_FULL; SVS_IO (also when fsync fails:
 * older files are untouched); SVS_NO_MEMORY; SVS_TOO_LARGE (256 GiB). */
svs_code svi_checkpoint_write(const struct svi_state_dir *dir, struct svi_checkpoint *c, int64_t *size,
                              svs_error *err);
/* The same with at most `piece` bytes of a section in one object, for tests. */
svs_code svi_checkpoint_write_pieces(const struct svi_state_dir *dir, struct svi_checkpoint *c, size_t piece,
                                     int64_t *size, svs_error *err);

/* Appends the bytes of such a file to `out`, for svi_checkpoint_parse. SVS_TOO_LARGE, SVS_NO_MEMORY: `out` is
 * unchanged. */
svs_code svi_checkpoint_encode(struct svi_checkpoint *c, struct svi_bytes *out, svs_error *err);

/* Reads and verifies a checkpoint. SVS_DAMAGED with file and byte; SVS_IO; SVS_NO_MEMORY; SVS_UNAVAILABLE: it
 * has another layout. */
svs_code svi_checkpoint_read(const struct svi_state_dir *dir, uint64_t number, struct svi_checkpoint *c,
                             svs_error *err);
/* The same from memory (`dir`, a path or NULL, and `name` for error texts). */
svs_code svi_checkpoint_parse(const uint8_t *bytes, size_t size, const char *dir, const char *name,
                              struct svi_checkpoint *c, svs_error *err);

/* The layout of the checkpoint that begins with these bytes; SVI_STATE_LAYOUT if its header is damaged. */
uint64_t svi_checkpoint_layout(const uint8_t *bytes, size_t size);

/* Sets c->hash to the XXH3-128 of the hashed sections, as svi_checkpoint_write stores it. */
void svi_checkpoint_hash(struct svi_checkpoint *c);
/* The hash as 32 hex digits. Returns out. */
char *svi_hash_text(const uint8_t hash[16], char out[SVI_HASH_TEXT]);

#endif
