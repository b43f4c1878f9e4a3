/* Checkpoints as records, and back.
 *
 * Pieces are written to a file as they come, in order: a piece that does not follow the one before makes the
 * checkpoint torn. The closing record compares the number of pieces, the bytes and the hash of the file as it
 * is read back. Only then does the checkpoint replace the one that was whole before, so a state topic that is
 * damaged at its end still gives the older one. At most STATE_OPEN checkpoints are incomplete at a time:
 * memory and files do not depend on what the topic holds.
 *
 * Closing records and keys are text, so that kcat shows what there is.
 *
 * Begin with state_reader_take: each record of the topic passes it, first to last. It relies on epochs that
 * rise, and on an owner's records being in their order. Damage is no error: it costs one checkpoint, which
 * state_bad notes. Only our own disk or memory fails a call. */
#include "state_topic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"

/* A checkpoint has fewer pieces. A key may come from anybody; below this bound its offset in the file,
 * piece * STATE_PIECE, does not overflow. */
#define STATE_PIECES ((int64_t)1 << 32)
#define CLOSING_FORMAT                                                                                       \
    "pieces %" PRId64 " bytes %" PRId64 " hash %016" PRIx64 " at %" PRId64 " out %" PRId64 " state %s"
#define CLOSING_SCAN                                                                                         \
    "pieces %" SCNd64 " bytes %" SCNd64 " hash %" SCNx64 " at %" SCNd64 " out %" SCNd64 " state %32s%n"

void state_key(int part, uint64_t epoch, int64_t piece, char out[STATE_KEY]) {
    if (piece < 0)
        snprintf(out, STATE_KEY, "%d/%" PRIu64 "/%s", part, epoch, piece == STATE_END ? "end" : "claim");
    else
        snprintf(out, STATE_KEY, "%d/%" PRIu64 "/%" PRId64, part, epoch, piece);
}

int state_closing_text(const struct state_closing *c, char out[STATE_CLOSING]) {
    return snprintf(out, STATE_CLOSING, CLOSING_FORMAT, c->pieces, c->bytes, c->hash, c->at, c->out,
                    c->state);
}

/* Anybody may have written the record: it counts only if the format fills it to its last byte.
 * `out` may be -1 and is not tested. */
static bool state_closing_read(const void *value, size_t size, struct state_closing *c) {
    char text[STATE_CLOSING];
    int end = 0;
    if (!value || size >= sizeof text)
        return false;
    memcpy(text, value, size); /* sscanf needs the NUL, which a record lacks */
    text[size] = '\0';
    return sscanf(text, CLOSING_SCAN, &c->pieces, &c->bytes, &c->hash, &c->at, &c->out, c->state, &end) ==
               6 &&
           (size_t)end == size && c->pieces >= 0 && c->bytes >= 0 && c->at >= 0;
}

/* False: no key of ours. */
static bool state_key_read(const void *key, size_t size, int *part, uint64_t *epoch, int64_t *piece) {
    char text[STATE_KEY];
    int at = 0, end = 0;
    if (!key || size >= sizeof text)
        return false;
    memcpy(text, key, size);
    text[size] = '\0';
    if (sscanf(text, "%d/%" SCNu64 "/%n", part, epoch, &at) != 2 || at == 0)
        return false;
    if (strcmp(text + at, "end") == 0 || strcmp(text + at, "claim") == 0)
        return *piece = text[at] == 'e' ? STATE_END : STATE_CLAIM, true;
    return sscanf(text + at, "%" SCNd64 "%n", piece, &end) == 1 && !text[at + end] && *piece >= 0 &&
           *piece < STATE_PIECES;
}

bool state_is_claim(const void *key, size_t size, uint64_t *epoch) {
    int part;
    int64_t piece;
    return state_key_read(key, size, &part, epoch, &piece) && piece == STATE_CLAIM;
}

static void state_path(const struct state_reader *r, uint64_t epoch, char *out, size_t size) {
    snprintf(out, size, "%.200s/p%d-%" PRIu64 ".state", r->folder, r->part, epoch);
}

/* ---- incomplete checkpoints */

/* Removes what is incomplete. A checkpoint that became whole has left its place before (state_close), so the
 * file of `best` is never removed here. */
static void state_drop(struct state_reader *r, int i) {
    char path[300];
    if (r->open[i].epoch == 0)
        return;
    state_path(r, r->open[i].epoch, path, sizeof path);
    close(r->open[i].fd);
    unlink(path);
    r->open[i].epoch = 0;
}

/* The newest one counts: whether it is a loss shows only at the end of the topic, when `best` is known. */
static void state_bad(struct state_reader *r, uint64_t epoch, const char *why) {
    r->bad_epoch = epoch > r->bad_epoch ? epoch : r->bad_epoch;
    snprintf(r->why, sizeof r->why, "checkpoint %" PRIu64 " of partition %d is not whole: %s", epoch, r->part,
             why);
}

/* The place of an epoch; the oldest incomplete one gives way, since the newest whole checkpoint wins anyway.
 * -1: its file cannot be made. */
static int state_place(struct state_reader *r, uint64_t epoch, svs_error *err) {
    char path[300];
    int oldest = 0;
    for (int i = 0; i < STATE_OPEN; i++) {
        if (r->open[i].epoch == epoch)
            return i;
        oldest = r->open[i].epoch < r->open[oldest].epoch ? i : oldest;
    }
    /* A free place has epoch 0, so it is the oldest, and nothing is lost by taking it. */
    if (r->open[oldest].epoch > 0)
        state_bad(r, r->open[oldest].epoch, "its closing record is missing");
    state_drop(r, oldest);
    state_path(r, epoch, path, sizeof path);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        svi_fail(err, SVS_IO, "%s: %s", path, strerror(errno));
        return -1;
    }
    r->open[oldest].epoch = epoch;
    r->open[oldest].fd = fd;
    r->open[oldest].pieces = r->open[oldest].bytes = 0;
    r->open[oldest].torn = false;
    return oldest;
}

static svs_code state_take_piece(struct state_reader *r, uint64_t epoch, int64_t piece, const void *value,
                                 size_t size, svs_error *err) {
    const int i = state_place(r, epoch, err);
    if (i < 0)
        return err->code;
    /* Pieces but the last have the full size, so each one's place in the file is known. A piece that
     * arrives twice is a tear as well: without a fence two owners may have written under one epoch, and their
     * pieces do not fit together. */
    if (piece != r->open[i].pieces || r->open[i].bytes != piece * (int64_t)STATE_PIECE ||
        size > STATE_PIECE) {
        r->open[i].torn = true;
        return SVS_OK;
    }
    /* A write that fails is an error and not a tear: the topic is whole, so an older checkpoint would be the
     * wrong answer to a full disk. */
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(r->open[i].fd, (const char *)value + done, size - done);
        if (n < 0 && errno != EINTR)
            return svi_fail(err, SVS_IO, "a checkpoint cannot be written to %s: %s", r->folder,
                            strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    r->open[i].pieces++;
    r->open[i].bytes += (int64_t)size;
    return SVS_OK;
}

/* The writer hashes the file that it sends, and the reader the one that it has assembled: what is compared is
 * what a model will be started on. */
svs_code state_file_hash(const char *path, uint64_t *hash, int64_t *bytes, svs_error *err) {
    XXH3_state_t *state = XXH3_createState();
    char *piece = svi_alloc_plain(STATE_PIECE);
    FILE *f = state && piece ? fopen(path, "re") : NULL;
    svs_code code = !state || !piece ? svi_fail_memory(err, "a checkpoint")
                    : !f             ? svi_fail(err, SVS_IO, "%.200s: %s", path, strerror(errno))
                                     : SVS_OK;
    *bytes = 0;
    if (f) {
        size_t n;
        XXH3_64bits_reset(state);
        while ((n = fread(piece, 1, STATE_PIECE, f)) > 0) {
            XXH3_64bits_update(state, piece, n);
            *bytes += (int64_t)n;
        }
        *hash = XXH3_64bits_digest(state);
        if (ferror(f))
            code = svi_fail(err, SVS_IO, "%.200s: %s", path, strerror(errno));
        fclose(f);
    }
    XXH3_freeState(state);
    svi_free(piece);
    return code;
}

/* ---- what the topic holds */

/* Pieces are noted in their order only, so what is deleted later is no more than what was read.
 * A gap ends the range: what follows it is left for a later takeover. */
static void state_note(struct state_reader *r, uint64_t epoch, int64_t piece, bool present) {
    int i = 0;
    /* A deletion of what was never noted leaves nothing to delete. An epoch without a place is found at a
     * later takeover, once the topic has lost these. */
    while (i < r->left_count && r->left[i].epoch != epoch)
        i++;
    if (i == r->left_count && (!present || i == STATE_LEFT))
        return;
    struct state_left *l = r->left + i;
    if (i == r->left_count) {
        *l = (struct state_left){.epoch = epoch};
        r->left_count++;
    }
    if (piece < 0) {
        *(piece == STATE_END ? &l->end : &l->claim) = present;
    } else if (present && l->from == l->to) {
        l->from = piece;
        l->to = piece + 1;
    } else if (present) {
        l->to += l->to == piece;
    } else { /* in the order in which they were written */
        l->from += l->from == piece && l->from < l->to;
    }
    /* Nothing is left of this epoch: the last one takes its place, as their order has no meaning. */
    if (!l->end && !l->claim && l->from == l->to)
        *l = r->left[--r->left_count];
}

/* ---- records */

/* The tests stand in the order of their cost, and nothing of the older checkpoint is touched before the last
 * one: a damaged newer one must leave it as it is. */
static svs_code state_close(struct state_reader *r, uint64_t epoch, const void *value, size_t size,
                            svs_error *err) {
    struct state_closing c;
    uint64_t hash = 0;
    int64_t bytes = 0;
    char path[300];
    int i = 0;
    if (epoch == r->best.epoch) /* repeated */
        return SVS_OK;
    while (i < STATE_OPEN && r->open[i].epoch != epoch)
        i++;
    if (i == STATE_OPEN || !state_closing_read(value, size, &c) || r->open[i].torn ||
        r->open[i].pieces != c.pieces || r->open[i].bytes != c.bytes) {
        state_bad(r, epoch, "a piece is missing");
        if (i < STATE_OPEN)
            state_drop(r, i);
        return SVS_OK;
    }
    /* Pieces went through write(2), so the file can be read by its path while it is open. */
    state_path(r, epoch, path, sizeof path);
    SVI_TRY(state_file_hash(path, &hash, &bytes, err));
    if (hash != c.hash || bytes != c.bytes) {
        state_bad(r, epoch, "its hash differs");
        state_drop(r, i);
        return SVS_OK;
    }
    /* The newest whole one wins; records of an earlier owner may come late. */
    if (epoch < r->best.epoch) {
        state_drop(r, i);
        return SVS_OK;
    }
    /* From here on the new one is the best; the place is free and its file stays. */
    if (r->best.epoch > 0)
        unlink(r->best.path);
    close(r->open[i].fd);
    r->open[i].epoch = 0;
    r->best.epoch = epoch;
    r->best.closing = c;
    snprintf(r->best.path, sizeof r->best.path, "%s", path);
    return SVS_OK;
}

svs_code state_reader_take(struct state_reader *r, const void *key, size_t key_size, const void *value,
                           size_t size, svs_error *err) {
    int part;
    uint64_t epoch;
    int64_t piece;
    /* Other programs may write to the topic. Epoch 0 means a free place here, so no record may have it. */
    if (!state_key_read(key, key_size, &part, &epoch, &piece) || part != r->part || epoch == 0)
        return SVS_OK;
    /* The next owner begins above `highest`: one foreign number near the end of the range would leave it no
     * epochs. */
    if (epoch > r->highest && epoch - r->highest > STATE_LEAP) {
        r->foreign++;
        return SVS_OK;
    }
    /* This and the note stand before the limit, and serve deletions and claims too: a number that was ever
     * used is not used again, and records of a refused checkpoint must be deleted as well. */
    r->highest = epoch > r->highest ? epoch : r->highest;
    state_note(r, epoch, piece, value);
    if (r->limit > 0 && epoch >= r->limit)
        return SVS_OK;
    /* A deletion, a claim, or the repetition of a checkpoint that is whole already. */
    if (!value || piece == STATE_CLAIM || (piece >= 0 && epoch == r->best.epoch))
        return SVS_OK;
    return piece == STATE_END ? state_close(r, epoch, value, size, err)
                              : state_take_piece(r, epoch, piece, value, size, err);
}

void state_reader_end(struct state_reader *r) {
    for (int i = 0; i < STATE_OPEN; i++) {
        /* An older one that never ended is no loss: a newer checkpoint is whole. */
        if (r->open[i].epoch > r->best.epoch)
            state_bad(r, r->open[i].epoch, "its closing record is missing");
        state_drop(r, i);
    }
}
