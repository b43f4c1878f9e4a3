/* state_topic.h: checkpoints of a partition as records of the topic STREAM.state.
 *
 * A checkpoint is a file. It is written in pieces of 256 kB with the keys PART/EPOCH/0, PART/EPOCH/1, ... and
 * a closing record PART/EPOCH/end with their number, size and hash. Epochs rise with every checkpoint, so
 * compaction removes nothing of a checkpoint until its pieces are deleted by name, two checkpoints later.
 * Reading the topic from its beginning gives the newest checkpoint that is whole. An owner that begins on an
 * old checkpoint claims an epoch (PART/EPOCH/claim), so that no two owners have the same one. It deletes what
 * earlier owners left: without that the topic would grow with every one that is killed. */
#ifndef STATE_TOPIC_H
#define STATE_TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

#define STATE_PIECE   ((size_t)256 << 10)
#define STATE_KEY     64  /* bytes of a key, with NUL */
#define STATE_CLOSING 300 /* bytes of a closing record, with NUL */
#define STATE_OPEN    2   /* checkpoints that may be incomplete at a time */
#define STATE_LEFT    200 /* epochs whose records are noted, to be deleted: others are at a later takeover */
#define STATE_LEAP    (UINT64_C(1) << 32) /* an epoch further above the one before is not ours */

/* The content of a closing record. */
struct state_closing {
    int64_t pieces, bytes;
    uint64_t hash;  /* XXH3 of the file */
    int64_t at;     /* offset in the topic of entries from which reading continues */
    int64_t out;    /* offset in STREAM.out behind the last event that is surely before the checkpoint; -1 */
    char state[33]; /* hash of the state, hexadecimal: equal for models that learned the same */
};

struct state_whole {
    uint64_t epoch; /* 0: none */
    struct state_closing closing;
    char path[300];
};

/* What the topic holds of an epoch: pieces from..to-1, a closing record, a claim. */
struct state_left {
    uint64_t epoch;
    int64_t from, to;
    bool end, claim;
};

/* Assembles what a partition's records hold; zero-initialised but for the first three. */
struct state_reader {
    int part;
    const char *folder; /* the files p<part>-<epoch>.state lie here; must exist */
    uint64_t limit;     /* checkpoints from this epoch on are not used; 0: none */
    struct {
        uint64_t epoch; /* 0: free */
        int fd;
        int64_t pieces, bytes;
        bool torn; /* a piece is missing */
    } open[STATE_OPEN];
    struct state_whole best;
    uint64_t highest;   /* epoch seen, of any record */
    int64_t foreign;    /* records whose epochs leap: ignored */
    uint64_t bad_epoch; /* the newest checkpoint that is not whole; 0: none. After `best`, that is a loss */
    char why[300];      /* of the last such one */
    struct state_left left[STATE_LEFT];
    int left_count;
};

/* Makes a key; `piece` -1: the closing record, -2: a claim. */
enum { STATE_END = -1, STATE_CLAIM = -2 };
void state_key(int part, uint64_t epoch, int64_t piece, char out[STATE_KEY]);

/* Is this the key of a claim, and of which epoch? */
bool state_is_claim(const void *key, size_t size, uint64_t *epoch);

/* Makes a closing record; returns its length. */
int state_closing_text(const struct state_closing *c, char out[STATE_CLOSING]);

/* Takes one record of the topic (value NULL: a deletion). SVS_IO: a file cannot be written. */
svs_code state_reader_take(struct state_reader *r, const void *key, size_t key_size, const void *value,
                           size_t size, svs_error *err);

/* Closes and removes what is not whole. The file of `best` stays. */
void state_reader_end(struct state_reader *r);

/* Hash of a file, and its size. SVS_IO, SVS_NO_MEMORY. */
svs_code state_file_hash(const char *path, uint64_t *hash, int64_t *bytes, svs_error *err);

#endif
