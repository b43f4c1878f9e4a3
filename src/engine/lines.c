#include "engine/lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "wire/json.h"

static svs_code key_value(struct svi_bytes *out, const char *key, svs_value v) {
    svs_code code = svi_json_text(out, key);
    return code == SVS_OK ? svi_json_value(out, v) : code;
}

static svs_code scores(struct svi_bytes *out, const double *values, int count) {
    svs_code code = svi_json_text(out, ",\"scores\":[");
    for (int i = 0; i < count && code == SVS_OK; i++) {
        code = i > 0 ? svi_json_text(out, ",") : SVS_OK;
        if (code == SVS_OK)
            code = svi_json_number(out, values[i]);
    }
    return code == SVS_OK ? svi_json_text(out, "]") : code;
}

static svs_code score_line(struct svi_bytes *out, const struct svi_event *e, int64_t row) {
    svs_code code = svi_json_text(out, "{");
    if (code == SVS_OK && e->as.score.id.kind != SVS_NONE)
        code = key_value(out, "\"id\":", e->as.score.id);
    if (code == SVS_OK)
        code = key_value(out, e->as.score.id.kind != SVS_NONE ? ",\"yhat\":" : "\"yhat\":", e->as.score.yhat);
    if (code == SVS_OK)
        code = scores(out, e->as.score.scores, e->as.score.rows);
    if (code == SVS_OK && e->as.score.y.kind != SVS_NONE)
        code = key_value(out, ",\"y\":", e->as.score.y);
    if (code == SVS_OK && e->as.score.judged)
        code = key_value(out, ",\"novelty\":", svs_real(e->as.score.novelty));
    if (code == SVS_OK && e->as.score.judged)
        code = key_value(out, ",\"p\":", svs_real(e->as.score.p));
    if (code == SVS_OK)
        code = key_value(out, ",\"model\":", svs_int((int64_t)e->as.score.version));
    if (code == SVS_OK)
        code = key_value(out, ",\"row\":", svs_int(row));
    return code == SVS_OK ? svi_json_text(out, "}\n") : code;
}

svs_code svi_lines_score(struct svi_lines *l, const struct svi_event *e, int64_t row) {
    size_t before = l->text.size;
    if (l->fd < 0 || l->closed)
        return SVS_OK;
    svs_code code = score_line(&l->text, e, row);
    if (code != SVS_OK)
        l->text.size = before;
    return code;
}

/* Waits until PIPE_BUF bytes can be written without blocking. False: told to stop. */
static bool writable(const struct svi_lines *l, int stop_fd) {
    struct pollfd items[2] = {{l->fd, POLLOUT, 0}, {stop_fd, POLLIN, 0}};
    while (poll(items, 2, -1) < 0 && errno == EINTR)
        ;
    return items[0].revents != 0;
}

svs_code svi_lines_flush(struct svi_lines *l, int stop_fd, svs_error *err) {
    svs_code code = SVS_OK;
    size_t at = 0;
    while (at < l->text.size && !l->closed && code == SVS_OK) {
        size_t left = l->text.size - at;
        ssize_t n = -1;
        if (!writable(l, stop_fd))
            l->closed = true;
        else
            n = write(l->fd, l->text.data + at, left < PIPE_BUF ? left : PIPE_BUF);
        if (n > 0)
            at += (size_t)n;
        else if (!l->closed && errno == EPIPE)
            l->closed = true;
        else if (!l->closed && errno != EINTR && errno != EAGAIN)
            code = svi_fail(err, SVS_IO, "the scores cannot be written: %s", strerror(errno));
    }
    l->text.size = 0;
    return code;
}
