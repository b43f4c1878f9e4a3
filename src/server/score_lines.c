/* Score events become lines of text in memory; svi_score_lines_flush writes them, once a turn. Nothing here
 * blocks without also watching for the signal to stop: a reader that pauses must not keep the process alive.
 */
#include "server/score_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "wire/json.h"
#include "wire/pack.h"

static void put_class_name(struct svi_pack *p, const struct svi_event *e, int k) {
    char name[SVS_NAME_MAX + 1];
    const svs_value class = e->as.score.classes[k];
    const int length =
        class.kind == SVS_STR ? (int)class.length : snprintf(name, sizeof name, "%" PRId64, class.as.i);
    svi_pack_name(p, class.kind == SVS_STR ? class.as.s : name, (size_t)length);
}

/* Scores as a map by class name, so that the meaning does not depend on which class was seen first. A model
 * with a single row scores the second class; the first gets the opposite sign. */
static void put_scores_by_class(struct svi_pack *p, const struct svi_event *e) {
    const int count = e->as.score.class_count;
    svi_put_map(p, "scores", (size_t)count);
    for (int k = 0; k < count; k++) {
        put_class_name(p, e, k);
        svi_pack_real(p, e->as.score.rows > 1 ? e->as.score.scores[k]
                         : k == 1             ? e->as.score.scores[0]
                                              : 0 - e->as.score.scores[0]);
    }
    if (e->as.score.proba_count == 0)
        return;
    svi_put_map(p, "proba", (size_t)e->as.score.proba_count);
    for (int k = 0; k < e->as.score.proba_count; k++) {
        put_class_name(p, e, k);
        svi_pack_real(p, e->as.score.proba[k]);
    }
}

svs_code svi_score_lines_score(struct svi_score_lines *l, const struct svi_event *e, int64_t row) {
    const size_t before = l->text.size;
    struct svi_pack p;
    if (l->fd < 0 || l->closed)
        return SVS_OK;
    l->event.size = 0;
    svi_pack_begin(&p, &l->event);
    const struct svi_open_map map = svi_pack_open(&p);
    if (e->key)
        svi_put_text(&p, "key", e->key);
    if (e->as.score.id.kind != SVS_NONE)
        svi_put_value(&p, "id", e->as.score.id);
    svi_put_score(&p, e, e->as.score.classes ? put_scores_by_class : NULL);
    svi_put_int(&p, "row", row);
    svi_pack_close(&p, map);
    svs_code code = svi_pack_end(&p);
    if (code == SVS_OK)
        code = svi_json_msgpack(&l->text, l->event.data, l->event.size, NULL);
    if (code == SVS_OK)
        code = svi_json_text(&l->text, "\n");
    if (code != SVS_OK)
        /* a half-written line must not reach the output */
        l->text.size = before;
    return code;
}

/* Waits until PIPE_BUF bytes can be written without blocking. False: stop was requested. */
static bool score_lines_writable(const struct svi_score_lines *l, int stop_fd) {
    struct pollfd items[2] = {{l->fd, POLLOUT, 0}, {stop_fd, POLLIN, 0}};
    while (poll(items, 2, -1) < 0 && errno == EINTR)
        ;
    return items[0].revents != 0;
}

svs_code svi_score_lines_flush(struct svi_score_lines *l, int stop_fd, svs_error *err) {
    svs_code code = SVS_OK;
    size_t at = 0;
    /* At most PIPE_BUF bytes a write: a pipe takes them whole once poll reports it writable, so the process
     * never blocks in write(2) and stays able to stop. */
    while (at < l->text.size && !l->closed && code == SVS_OK) {
        size_t left = l->text.size - at;
        ssize_t n = -1;
        if (!score_lines_writable(l, stop_fd))
            l->closed = true;
        else
            n = write(l->fd, l->text.data + at, left < PIPE_BUF ? left : PIPE_BUF);
        if (n > 0)
            at += (size_t)n;
        else if (!l->closed && errno == EPIPE)
            l->closed = true;
        else if (!l->closed && errno != EINTR && errno != EAGAIN)
            code = svi_fail(err, SVS_IO, "cannot write the scores: %s", strerror(errno));
    }
    l->text.size = 0;
    return code;
}
