/* redis_scripts.h: the scripts that Redis runs for us, and the names of the keys.
 *
 * Each script is one atomic step: it checks whether it may write, and writes. Repeating one with the same
 * arguments changes nothing more, so a command may be sent again after a broken connection. Scripts of an
 * owner check the fence first: the lease must be held by this worker, with this epoch. If it is not, they
 * write nothing and answer "fenced". */
#ifndef REDIS_SCRIPTS_H
#define REDIS_SCRIPTS_H

#include <inttypes.h>

#include "redis_client.h"

#define REDIS_NAME_BYTES  64 /* of a stream's name */
#define REDIS_KEY_BYTES   112
#define REDIS_SCRIPT_ARGS 800

enum redis_script {
    REDIS_TAKE,    /* lease, epoch: id, ms -> [epoch or 0, holder, ms left] */
    REDIS_RENEW,   /* fence: ms -> 1 */
    REDIS_RELEASE, /* fence -> 1 */
    REDIS_PIECE,   /* fence, side: number of the piece, bytes -> 1 */
    REDIS_STORE,   /* fence, state, side, other, in: name of the side, pieces, size, at, next, hash, epoch of
                      the stream, id below which the log is trimmed or "" -> 1, or "incomplete" */
    REDIS_OUT,     /* fence, out, seq: entries to keep, (topic, order, payload) ... -> number written */
    REDIS_SUMS,    /* fence, sums: payload -> 1 */
    REDIS_ADD,     /* src, in: src, n, count, message, sources, force -> [1 added, 0 there already, -1 gap;
                      next] */
    REDIS_BEAT,    /* workers: id, ms -> [workers, rank] */
    REDIS_SCRIPT_COUNT
};

/* The parts of a partition's name after `{STREAM:P}:`, and those of the stream after `{STREAM}:`. */
enum redis_key {
    REDIS_KEY_IN,
    REDIS_KEY_SRC,
    REDIS_KEY_LEASE,
    REDIS_KEY_EPOCH,
    REDIS_KEY_STATE,
    REDIS_KEY_STATE_A,
    REDIS_KEY_STATE_B,
    REDIS_KEY_SUMS,
    REDIS_KEY_OUT,
    REDIS_KEY_SEQ,
    REDIS_KEY_COUNT,
    REDIS_KEY_WORKERS = REDIS_KEY_COUNT, /* of the stream */
    REDIS_KEY_PARTITIONS,
    REDIS_KEY_ALL
};

struct redis_names {
    char key[REDIS_KEY_ALL][REDIS_KEY_BYTES];
};

/* The keys of a partition of the stream. */
void redis_names_make(struct redis_names *n, const char *stream, int partition);

/* A text or bytes as an argument. */
static inline struct redis_word redis_bytes(const void *bytes, size_t size) {
    return (struct redis_word){bytes, size};
}
struct redis_word redis_text(const char *text);

/* Runs a script. `keys`: those of the comment above, in that order. A fence is the keys lease and epoch and
 * the arguments worker and epoch, which the caller puts first in both. */
void redis_script_send(struct redis_client *r, int lane, enum redis_script script, const char *const *keys,
                       int key_count, const struct redis_word *arguments, int count, redis_answer *done,
                       void *user);

/* Did the fence refuse the write? */
bool redis_fenced(const redisReply *reply);

#endif
