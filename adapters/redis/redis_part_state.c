/* Checkpoints of a partition in Redis.
 *
 * A checkpoint is a file of the process (`svmstream state export`), cut into pieces of PIECE bytes.
 * They go one after another into the hash :state:a or :state:b, whichever does not hold the present
 * checkpoint. The last step (script STORE) checks that all pieces are there and names their side in
 * :state. It then removes the other hash, and trims the log below the place of the checkpoint. So
 * Redis always has a whole checkpoint, and the log everything after it. Each write is one step of
 * Redis, with the fence.
 *
 * Fetching: redis_part_fetch, state_meta, state_piece for each piece, state_start. Saving:
 * redis_part_save, redis_part_saved, state_next_piece for each piece, state_store, state_stored.
 * Read them in this order. Both rely on redis_part_leave: it forgets answers for a lost partition.
 *
 * Redis gets the events of the samples in a checkpoint before its pieces, in the same lane. So
 * whatever is stored has been published. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "redis_log.h"
#include "redis_part_internal.h"

#define PIECE       ((size_t)256 << 10)
#define RETRY       5.0 /* seconds after a checkpoint that could not be fetched */
#define FIELDS      "side", "pieces", "size", "at", "next", "hash"
#define FIELD_COUNT 6

static void state_ask_piece(struct redis_part *p);

void redis_part_state_clear(struct redis_part *p) {
    if (p->save.file)
        fclose(p->save.file);
    /* The fetched file was for one start of the process; the next start fetches again. */
    if (p->checkpoint[0])
        unlink(p->checkpoint);
    p->checkpoint[0] = 0;
    p->save = (struct redis_part_saving){.stored_next = -1};
}

/* ---- fetching */

/* The process begins; without a checkpoint from nothing. */
static void state_start(struct redis_part *p) {
    static const struct partition_calls calls = {
        .event = redis_part_out_event, .refused = redis_part_read_refused, .saved = redis_part_saved};
    const struct redis_shared *s = p->shared;
    const char **words = redis_need((size_t)s->argument_count + 5, sizeof *words);
    char part[REDIS_NAME_BYTES + 16];
    svs_error err;
    int n = 0;
    snprintf(part, sizeof part, "%.*s-%d", REDIS_NAME_BYTES, s->stream, p->number);
    /* Ours come after the user's and win: stream and part must be those of the keys. The fifth place is the
     * NULL at the end. */
    for (; n < s->argument_count; n++)
        words[n] = s->arguments[n];
    words[n++] = "--stream";
    words[n++] = s->stream;
    words[n++] = "--merge.part";
    words[n++] = part;
    const struct partition_options o = {.program = s->program,
                                        .folder = s->folder,
                                        .partition = p->number,
                                        .arguments = words,
                                        .fresh = true,
                                        .checkpoint = p->checkpoint[0] ? p->checkpoint : NULL,
                                        .topics = s->topics,
                                        .context = s->context,
                                        .calls = &calls,
                                        .user = p};
    p->child = partition_child_new(&o, &err);
    svi_free(words); /* it has copied them */
    if (!p->child) {
        redis_log("partition %d: its process cannot be started: %s", p->number, err.text);
        redis_part_leave(p, RETRY);
        return;
    }
    /* An end that was asked for while pieces arrived stays asked for. */
    p->state = p->state == REDIS_PART_CLOSING ? REDIS_PART_CLOSING : REDIS_PART_RUNNING;
    p->save.due = svi_monotonic() + s->save;
    redis_part_read_begin(p);
    redis_log("partition %d: ours (epoch %s), from %s", p->number, p->epoch,
              p->save.stored[0] ? p->save.stored : "the beginning of the log");
}

/* Nothing is begun in its place: the log below the checkpoint may be trimmed, and what was learned of it
 * would be lost. A person decides. */
static void state_unusable(struct redis_part *p, const char *why) {
    redis_log(
        "partition %d: the checkpoint in %s cannot be used: %s. Remove the key to begin without one, or "
        "restore it; trying again",
        p->number, p->names.key[REDIS_KEY_STATE], why);
    redis_part_leave(p, RETRY);
}

static void state_piece(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    struct redis_part_saving *s = &p->save;
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_part_lost(p, reply);
        return;
    }
    if (reply->type != REDIS_REPLY_STRING) {
        state_unusable(p, "a piece of it is missing");
        return;
    }
    if (fwrite(reply->str, 1, reply->len, s->file) != reply->len) {
        state_unusable(p, strerror(errno));
        return;
    }
    /* The size is counted down to 0. The number of pieces alone would not show one that is too short. */
    s->size -= (int64_t)reply->len;
    if (++s->piece < s->pieces)
        state_ask_piece(p);
    else if (fclose(s->file) != 0 || s->size != 0) { /* the last bytes meet a full disk only here */
        s->file = NULL;
        state_unusable(p, s->size != 0 ? "its size is wrong" : strerror(errno));
    } else {
        s->file = NULL;
        state_start(p);
    }
}

/* Only the owner writes these keys, and the fence keeps earlier owners from it: pieces that arrive one by one
 * still belong to the fields that were read before. */
static void state_ask_piece(struct redis_part *p) {
    const char *key = p->names.key[p->save.stored_side[0] == 'a' ? REDIS_KEY_STATE_A : REDIS_KEY_STATE_B];
    char piece[24];
    snprintf(piece, sizeof piece, "%" PRId64, p->save.piece);
    const struct redis_word words[] = {redis_text("HGET"), redis_text(key), redis_text(piece)};
    redis_client_send(p->shared->client, REDIS_LANE_WRITE, key, words, 3, state_piece, p);
}

/* Redis has lost the checkpoint that it had (a restart without its data, FLUSHALL), and the lease with it.
 * `reached` shows it: redis_part_leave keeps that place. */
static void state_removed(struct redis_part *p) {
    char where[160];
    const char *number = strchr(p->reached, ' ');
    snprintf(where, sizeof where,
             "the checkpoint at %s is missing from Redis, and the model starts from nothing", p->reached);
    redis_part_read_rewound(p, where, number ? atoll(number) : 0);
    p->reached[0] = 0;
}

static void state_meta(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    struct redis_part_saving *s = &p->save;
    const char *value[FIELD_COUNT];
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != FIELD_COUNT) {
        redis_part_lost(p, reply);
        return;
    }
    for (int i = 0; i < FIELD_COUNT; i++)
        value[i] = reply->element[i]->type == REDIS_REPLY_STRING ? reply->element[i]->str : NULL;
    /* Both absent: no checkpoint. One absent: a damaged one, which must not pass for none. */
    if (!value[0] && !value[3]) {
        if (p->reached[0])
            state_removed(p);
        state_start(p);
        return;
    }
    for (int i = 0; i < FIELD_COUNT; i++)
        if (!value[i]) {
            state_unusable(p, "a field is missing");
            return;
        }
    snprintf(s->stored_side, sizeof s->stored_side, "%s", value[0]);
    s->pieces = atoll(value[1]);
    s->size = atoll(value[2]);
    snprintf(s->stored, sizeof s->stored, "%s", value[3]);
    s->stored_next = atoll(value[4]);
    strcpy(p->reached, s->stored);
    s->piece = 0;
    snprintf(p->checkpoint, sizeof p->checkpoint, "%s/checkpoint-%d", p->shared->folder, p->number);
    if (s->pieces < 1 || !(s->file = fopen(p->checkpoint, "wbe"))) {
        state_unusable(p, s->pieces < 1 ? "it has no pieces" : strerror(errno));
        return;
    }
    state_ask_piece(p);
}

void redis_part_fetch(struct redis_part *p) {
    static const char *const fields[] = {FIELDS};
    const char *key = p->names.key[REDIS_KEY_STATE];
    struct redis_word words[2 + FIELD_COUNT] = {redis_text("HMGET"), redis_text(key)};
    redis_part_state_clear(p); /* stored_next is -1 again until state_meta knows better */
    for (int i = 0; i < FIELD_COUNT; i++)
        words[2 + i] = redis_text(fields[i]);
    /* The script STORE writes these fields in one step, and HMGET reads them in one. */
    p->state = REDIS_PART_FETCHING;
    redis_client_send(p->shared->client, REDIS_LANE_WRITE, key, words, 2 + FIELD_COUNT, state_meta, p);
}

/* ---- saving */

bool redis_part_save(struct redis_part *p) {
    /* A quiet partition writes nothing: its stored checkpoint holds all that it has learned. */
    if (partition_child_next(p->child) <= p->save.stored_next)
        return false;
    p->save.begun = true;
    partition_child_save(p->child);
    return true;
}

/* However a save ends, the file is closed and the next one is due after the whole interval. */
static void state_end(struct redis_part *p, bool good) {
    struct redis_part_saving *s = &p->save;
    s->failed = !good;
    if (s->file)
        fclose(s->file);
    s->file = NULL;
    s->begun = false;
    s->due = svi_monotonic() + p->shared->save;
}

static void state_stored(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    struct redis_part_saving *s = &p->save;
    if (redis_part_lost(p, reply))
        return;
    /* The script answers with a text where pieces are missing. The stored checkpoint is then untouched, and
     * its side stays the one that is not written. */
    state_end(p, reply->type == REDIS_REPLY_INTEGER);
    if (reply->type != REDIS_REPLY_INTEGER) {
        redis_log("partition %d: the checkpoint did not arrive whole at Redis; the next one follows",
                  p->number);
        return;
    }
    snprintf(s->stored, sizeof s->stored, "%s", s->at);
    s->stored_next = s->next;
    strcpy(s->stored_side, s->side);
    strcpy(p->reached, s->at);
    p->errors = 0; /* pauses after errors begin with the shortest again */
    p->shared->checkpoints++;
}

/* Everything before the entry at which the checkpoint stands is in it; that entry itself is kept, so the log
 * shows where the model stands. */
static void state_store(struct redis_part *p) {
    struct redis_part_saving *s = &p->save;
    const bool a = s->side[0] == 'a';
    const enum redis_key keys[] = {REDIS_KEY_STATE, a ? REDIS_KEY_STATE_A : REDIS_KEY_STATE_B,
                                   a ? REDIS_KEY_STATE_B : REDIS_KEY_STATE_A, REDIS_KEY_IN};
    char pieces[24], size[24], next[24], epoch[24], id[REDIS_AT_BYTES];
    snprintf(pieces, sizeof pieces, "%" PRId64, s->pieces);
    snprintf(size, sizeof size, "%" PRId64, s->size);
    snprintf(next, sizeof next, "%" PRId64, s->next);
    snprintf(epoch, sizeof epoch, "%" PRIu64, s->epoch);
    /* The id is the first word of the place; with an empty one the script trims nothing. */
    snprintf(id, sizeof id, "%.*s", p->shared->trim ? (int)strcspn(s->at, " ") : 0, s->at);
    const struct redis_word words[] = {redis_text(s->side), redis_text(pieces), redis_text(size),
                                       redis_text(s->at),   redis_text(next),   redis_text(s->hash),
                                       redis_text(epoch),   redis_text(id)};
    redis_part_script(p, REDIS_LANE_WRITE, REDIS_STORE, keys, 4, words, 8, state_stored);
}

static void state_next_piece(struct redis_part *p);

static void state_written(void *user, const redisReply *reply) {
    struct redis_part *p = user;
    if (redis_part_lost(p, reply))
        return;
    p->save.piece++;
    state_next_piece(p);
}

/* One piece is under way at a time: events and renewals pass between them, and memory stays small. */
static void state_next_piece(struct redis_part *p) {
    struct redis_part_saving *s = &p->save;
    const enum redis_key keys[] = {s->side[0] == 'a' ? REDIS_KEY_STATE_A : REDIS_KEY_STATE_B};
    if (s->piece == s->pieces) {
        state_store(p);
        return;
    }
    /* The script removes the side with piece 0, so pieces of an attempt that failed are not counted. */
    char *bytes = redis_need(1, PIECE), number[24];
    const size_t n = fread(bytes, 1, PIECE, s->file);
    snprintf(number, sizeof number, "%" PRId64, s->piece);
    if (n == 0) {
        redis_log("partition %d: the checkpoint cannot be read: %s", p->number, strerror(errno));
        state_end(p, false);
    } else
        redis_part_script(p, REDIS_LANE_WRITE, REDIS_PIECE, keys, 1,
                          (struct redis_word[]){redis_text(number), redis_bytes(bytes, n)}, 2, state_written);
    svi_free(bytes); /* the request has a copy */
}

void redis_part_saved(void *part, const struct partition_saved *saved, const char *why) {
    struct redis_part *p = part;
    struct redis_part_saving *s = &p->save;
    /* All events of these samples have arrived by now; those still collected go into the lane first. */
    redis_part_out_flush(p);
    if (!saved) {
        redis_log_few(++p->refusals, "partition %d: no checkpoint: %s", p->number, why);
        state_end(p, false);
        return;
    }
    /* The path is valid until the next save, and `begun` permits none until the last piece is written. */
    s->file = fopen(saved->path, "rbe");
    if (!s->file || fseeko(s->file, 0, SEEK_END) != 0 || (s->size = ftello(s->file)) <= 0 ||
        fseeko(s->file, 0, SEEK_SET) != 0) {
        redis_log("partition %d: the checkpoint %s cannot be read: %s", p->number, saved->path,
                  strerror(errno));
        state_end(p, false);
        return;
    }
    /* The other side, so that the stored checkpoint stays whole until the last step; without one it is a. */
    s->piece = 0;
    s->pieces = (s->size + (int64_t)PIECE - 1) / (int64_t)PIECE;
    strcpy(s->side, s->stored_side[0] == 'a' ? "b" : "a");
    snprintf(s->at, sizeof s->at, "%.*s", (int)saved->at_size, (const char *)saved->at);
    snprintf(s->hash, sizeof s->hash, "%s", saved->hash);
    s->next = saved->next;
    s->epoch = saved->epoch;
    state_next_piece(p);
}
