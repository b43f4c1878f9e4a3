/* key_record.h: the state of one key as a record of bytes.
 *
 *   length   4 bytes, little-endian: of the whole record, with length and check
 *   head     as wire/archive_file.h packs it: name, number, owner, begun, note,
 *            rests, again, heard, reported, turn, figures, hash, gone, length of
 *            `common`
 *   common   with key.prior: the key's figures for the bounds of the prior (learner/prior_bounds.h)
 *   state    the rest: the packed state of the key (fleet/fleet_state.c);
 *            empty for a removed key
 *   check    8 bytes, little-endian: XXH3 (64 bits) of all before it */
#ifndef SVI_KEY_RECORD_H
#define SVI_KEY_RECORD_H

#include <stdbool.h>

#include "base/bytes.h"
#include "svmstream/value.h"

#define SVI_KEY_RECORD_MAX ((uint32_t)1 << 31) /* bytes */
#define SVI_KEY_NAME       72                  /* capacity of a name: SVS_KEY_MAX bytes and NUL */

/* The evidence of a key's alert policy, as if the key were alone (alerts/budget.h). */
struct svi_key_finds {
    double found; /* the last finding */
    double days;  /* days of observation */
    int64_t count;
};

/* Figures that the engine of a key publishes after each element. Other threads read them here, because the
 * engine may be working on the next element. */
struct svi_key_figures {
    int64_t rows, labelled, refused; /* samples of this key; those with a label; elements refused */
    int64_t judged, right; /* since its last reset: labelled rows with an earlier score; correct ones */
    double squares;        /* sum of squared errors (regression) */
    double quality;        /* accuracy, or rmse (regression), over the window; NAN: not known yet */
    double worse; /* lower bound of its error above that of "the same as before" (quality/baseline.h); NAN */
    int32_t alerts, open; /* of all kinds: opened so far, open now */
    double deadline;      /* svi_engine_deadline */
    double quiet;         /* seconds after its last row */
    struct svi_key_finds finds;
    bool out_of_memory;   /* svi_engine_out_of_memory */
    int columns, classes; /* of its engine; not in its record, like the next one */
    double ts;            /* event time of its last sample */
};

/* The stream's own data about a key. */
struct svi_key_head {
    uint64_t number; /* keys that began before it */
    uint64_t owner;  /* hash of the source that began it; 0: messages without src */
    uint64_t note;   /* number of notes to all keys that it has processed */
    uint64_t again;  /* keys removed before it began: its events count from 0 again, so their epoch is larger
                        by  this number */
    uint64_t published; /* alert events published for it */
    uint64_t turn;      /* number of its last sample, counted over all keys */
    int64_t begun;      /* sample of the stream, from 0, that began it */
    uint32_t rests;     /* times that all sources had left, as far as it has processed them */
    uint8_t length;     /* bytes of its name */
};

struct svi_key_record {
    char name[SVI_KEY_NAME];
    struct svi_key_head head;
    double last_arrival;           /* arrival clock of its last sample, seconds */
    struct svi_key_figures last;   /* after that sample */
    uint8_t hash[16];              /* of its state */
    bool removed;                  /* the key was removed: this record ends its earlier ones */
    const uint8_t *state, *common; /* not owned */
    size_t size, common_size;      /* bytes of state and common */
};

/* Appends the record. SVS_NO_MEMORY, SVS_TOO_LARGE: nothing is appended. */
svs_code svi_key_record_append(struct svi_bytes *out, const struct svi_key_record *r, svs_error *err);

/* Reads the record at the start of `bytes`, into which r->state and r->common then point; *length: its bytes.
 * SVS_DAMAGED: the record is truncated or its check is wrong. */
svs_code svi_key_record_read(const uint8_t *bytes, size_t size, struct svi_key_record *r, size_t *length,
                             svs_error *err);

#endif
