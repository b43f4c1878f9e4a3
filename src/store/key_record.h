/* key_record.h: the state of one key as a record of bytes.
 *
 *   length   4 bytes, little-endian: of the whole record
 *   head     as wire/archive_file.h packs it: name, number, owner, begun, note,
 *            rests, again, heard, reported, turn, figures, hash, gone, length of
 *            `common`
 *   common   what the key is among others, with key.prior (learner/prior_bounds.h)
 *   state    what is left: the key's own bytes (fleet/fleet_state.c);
 *            none of a key that is gone
 *   check    8 bytes, little-endian: XXH3 (64 bits) of all before it */
#ifndef SVI_KEY_RECORD_H
#define SVI_KEY_RECORD_H

#include <stdbool.h>

#include "base/bytes.h"
#include "svmstream/value.h"

#define SVI_KEY_RECORD_MAX ((uint32_t)1 << 31) /* bytes */
#define SVI_KEY_NAME       72                  /* room for a name: SVS_KEY_MAX bytes and NUL */

/* What a key's policy found, as if it were alone (alerts/budget.h). */
struct svi_key_finds {
    double found, days; /* the last one; days that it has been looking */
    int64_t count;
};

/* What the engine of a key says of it after each of its elements, for those who do not ask it: it may be at
 * work on the next one. */
struct svi_key_figures {
    int64_t rows, labelled, refused; /* samples of its own; of these with a label; what was not taken */
    int64_t judged, right;           /* since its last reset: of these with a score before, right ones */
    double squares;                  /* of errors, in a regression */
    double quality;                  /* accuracy or, of a regression, rmse over the window; NAN: none yet */
    double worse; /* lower bound of its error above that of "the same as before" (quality/baseline.h); NAN */
    int32_t alerts, open;   /* of all kinds: opened so far, open now */
    double deadline, quiet; /* svi_engine_deadline; seconds after its last row */
    struct svi_key_finds finds;
    bool out_of_memory;   /* svi_engine_out_of_memory */
    int columns, classes; /* that its engine has; not in its record */
};

/* What the stream knows of a key, besides. */
struct svi_key_head {
    uint64_t number; /* of keys that began before it */
    uint64_t owner;  /* hash of the source that began it; 0: of messages without src */
    uint64_t note;   /* of what reaches all keys: those that it knows of */
    uint64_t again; /* keys that had gone when it began: its events count from 0 again, under an epoch that is
                       larger by that many */
    uint64_t told;  /* alert events that went out in its name */
    uint64_t turn;  /* number of its last sample, counted over all keys */
    int64_t begun;  /* sample of the stream, from 0, that began it */
    uint32_t rests; /* times that all sources had gone, of those that it knows of */
    uint8_t length; /* bytes of its name */
};

struct svi_key_record {
    char name[SVI_KEY_NAME];
    struct svi_key_head head;
    double heard; /* arrival clock of the last one */
    struct svi_key_figures last;
    uint8_t hash[16];
    bool gone; /* the key is no more */
    const uint8_t *state, *common;
    size_t size, common_size;
};

/* Appends it. SVS_NO_MEMORY, SVS_TOO_LARGE: nothing is appended. */
svs_code svi_key_record_append(struct svi_bytes *out, const struct svi_key_record *r, svs_error *err);

/* Reads the one that begins `bytes`, into which r->state and r->common point; *length: its own. SVS_DAMAGED:
 * there is none, or it is not whole. */
svs_code svi_key_record_read(const uint8_t *bytes, size_t size, struct svi_key_record *r, size_t *length,
                             svs_error *err);

#endif
