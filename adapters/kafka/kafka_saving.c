#include "kafka_saving.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

#define WAITING_MAX ((size_t)4 << 20) /* bytes that may wait in the publisher */

svs_code kafka_saving_begin(struct kafka_saving *s, const char *path, uint64_t epoch,
                            const struct state_closing *what, svs_error *err) {
    struct state_closing c = *what;
    SVI_TRY(state_file_hash(path, &c.hash, &c.bytes, err));
    c.pieces = (c.bytes + (int64_t)STATE_PIECE - 1) / (int64_t)STATE_PIECE;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return svi_fail(err, SVS_IO, "%.200s: %s", path, strerror(errno));
    s->active = true;
    s->fd = fd;
    s->epoch = epoch;
    s->closing = c;
    s->piece = 0;
    return SVS_OK;
}

static svs_code saving_piece(struct kafka_saving *s, struct kafka_publisher *p, char *buffer,
                             svs_error *err) {
    char key[STATE_KEY];
    size_t size = 0;
    ssize_t n = 1;
    while (size < STATE_PIECE && (n = read(s->fd, buffer + size, STATE_PIECE - size)) != 0) {
        if (n < 0 && errno != EINTR)
            return svi_fail(err, SVS_IO, "a checkpoint cannot be read: %s", strerror(errno));
        size += n > 0 ? (size_t)n : 0;
    }
    state_key(p->partition, s->epoch, s->piece++, key);
    return kafka_publisher_put(p, KAFKA_TOPIC_STATE, key, buffer, size, err);
}

static svs_code saving_delete(struct kafka_publisher *p, uint64_t epoch, int64_t piece, svs_error *err) {
    char key[STATE_KEY];
    state_key(p->partition, epoch, piece, key);
    return kafka_publisher_put(p, KAFKA_TOPIC_STATE, key, NULL, 0, err);
}

/* Checkpoints that are no longer kept are deleted by name, closing record first: a reader never sees one
 * without its pieces. */
static svs_code saving_forget(struct kafka_saving *s, struct kafka_publisher *p, svs_error *err) {
    const uint64_t epoch = s->kept[KAFKA_KEPT].epoch;
    if (epoch == 0)
        return SVS_OK;
    for (int64_t piece = STATE_END; piece < s->kept[KAFKA_KEPT].pieces; piece++)
        SVI_TRY(saving_delete(p, epoch, piece, err));
    return SVS_OK;
}

svs_code kafka_saving_tidy(struct kafka_publisher *p, const struct state_reader *found, svs_error *err) {
    for (int i = 0; i < found->left_count; i++) {
        const struct state_left *l = found->left + i;
        if (l->epoch == found->best.epoch)
            continue;
        if (l->end)
            SVI_TRY(saving_delete(p, l->epoch, STATE_END, err));
        if (l->claim)
            SVI_TRY(saving_delete(p, l->epoch, STATE_CLAIM, err));
        for (int64_t piece = l->from; piece < l->to; piece++)
            SVI_TRY(saving_delete(p, l->epoch, piece, err));
    }
    return SVS_OK;
}

void kafka_saving_found(struct kafka_saving *s, uint64_t epoch, int64_t pieces) {
    memmove(s->kept + 1, s->kept, KAFKA_KEPT * sizeof *s->kept);
    s->kept[0].epoch = epoch;
    s->kept[0].pieces = pieces;
}

static svs_code saving_close(struct kafka_saving *s, struct kafka_publisher *p, svs_error *err) {
    char key[STATE_KEY], text[STATE_CLOSING];
    state_key(p->partition, s->epoch, STATE_END, key);
    const int length = state_closing_text(&s->closing, text);
    close(s->fd);
    s->fd = -1;
    SVI_TRY(kafka_publisher_put(p, KAFKA_TOPIC_STATE, key, text, (size_t)length, err));
    s->until = p->put;
    kafka_saving_found(s, s->epoch, s->closing.pieces);
    return saving_forget(s, p, err);
}

svs_code kafka_saving_turn(struct kafka_saving *s, struct kafka_publisher *p, bool *stored, svs_error *err) {
    *stored = false;
    if (!s->active)
        return SVS_OK;
    if (s->fd >= 0) {
        char *buffer = svi_alloc_plain(STATE_PIECE);
        svs_code code = buffer ? SVS_OK : svi_fail_memory(err, "a checkpoint");
        while (code == SVS_OK && s->piece < s->closing.pieces && kafka_publisher_waiting(p) < WAITING_MAX)
            code = saving_piece(s, p, buffer, err);
        svi_free(buffer);
        if (code == SVS_OK && s->piece == s->closing.pieces)
            code = saving_close(s, p, err);
        SVI_TRY(code);
    }
    if (s->fd < 0 && p->safe >= s->until) {
        *stored = true;
        s->active = false;
    }
    return SVS_OK;
}

void kafka_saving_end(struct kafka_saving *s) {
    if (s->active && s->fd >= 0)
        close(s->fd);
    *s = (struct kafka_saving){0};
}
