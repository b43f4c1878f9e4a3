#include "net/reply_quota.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"

#define WHOLE_BYTES ((size_t)256 * 1024 * 1024) /* that may wait; the reply that exceeds it is still sent */
#define PEERS       256                         /* places; peers that share one share its part */

struct svi_reply_quota {
    atomic_size_t users; /* the owner, and each reply that waits */
    atomic_size_t bytes;
    atomic_size_t of[PEERS];
};

/* A reply that libzmq holds. */
struct waiting_reply {
    struct svi_reply_quota *quota;
    size_t place, length;
    uint8_t bytes[];
};

struct svi_reply_quota *svi_reply_quota_new(void) {
    struct svi_reply_quota *q = svi_alloc(sizeof *q);
    if (q)
        atomic_store(&q->users, 1);
    return q;
}

static void reply_quota_drop(struct svi_reply_quota *q) {
    if (atomic_fetch_sub(&q->users, 1) == 1)
        svi_free(q);
}

void svi_reply_quota_leave(struct svi_reply_quota **q) {
    if (*q)
        reply_quota_drop(*q);
    *q = NULL;
}

bool svi_reply_quota_admits(const struct svi_reply_quota *q, uint64_t peer) {
    const size_t bytes = atomic_load(&q->bytes), left = bytes < WHOLE_BYTES ? WHOLE_BYTES - bytes : 0;
    return left > 0 && atomic_load(&q->of[peer % PEERS]) <= left / 2;
}

/* Called by libzmq, on any thread, when the reply was sent or dropped. */
static void reply_quota_release(void *bytes, void *hint) {
    struct waiting_reply *w = hint;
    struct svi_reply_quota *q = w->quota;
    (void)bytes;
    atomic_fetch_sub(&q->of[w->place], w->length);
    atomic_fetch_sub(&q->bytes, w->length);
    svi_free(w);
    reply_quota_drop(q);
}

bool svi_reply_quota_send(struct svi_reply_quota *q, uint64_t peer, void *router, struct svi_request *r,
                          const void *bytes, size_t length) {
    zmq_msg_t m;
    struct waiting_reply *w = svi_alloc_plain(sizeof *w + length);
    if (!w)
        return false;
    *w = (struct waiting_reply){.quota = q, .place = peer % PEERS, .length = length};
    memcpy(w->bytes, bytes, length);
    atomic_fetch_add(&q->users, 1);
    atomic_fetch_add(&q->bytes, length);
    atomic_fetch_add(&q->of[w->place], length);
    if (zmq_msg_init_data(&m, w->bytes, length, reply_quota_release, w) != 0) {
        reply_quota_release(w->bytes, w);
        return false;
    }
    if (svi_request_reply_message(router, r, &m))
        return true;
    zmq_msg_close(&m);
    return false;
}
