/* bench_acked.h: numbered samples through a DEALER, each acknowledged, and what the benchmarks of kept state
 * need beside it: folders on a disk, a bare echo, the rate and the lags of acknowledgements. */
#ifndef BENCH_ACKED_H
#define BENCH_ACKED_H

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "bench.h"

#define ACKED_LATEST 30000 /* ms without a reply */

/* ---- samples */

/* Maps {src, n, ts, x, y}; n and ts are put in where they are sent. */
struct acked_stream {
    int count;
    size_t n_at, ts_at; /* of their eight bytes, in every frame */
    struct {
        uint8_t *bytes;
        size_t size;
    } * frame;
};

static inline void acked_pack(struct acked_stream *s, int i, int d, uint64_t *seed) {
    msgpack_sbuffer b;
    msgpack_packer to;
    double x[512], sum = 0;
    for (int j = 0; j < d; j++) {
        x[j] = bench_gauss(seed);
        sum += j % 3 == 0 ? x[j] : 0;
    }
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&to, &b, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 5);
    bench_pack_text(&to, "src");
    bench_pack_text(&to, "bench");
    bench_pack_text(&to, "n");
    msgpack_pack_fix_uint64(&to, 0);
    s->n_at = b.size - 8;
    bench_pack_text(&to, "ts");
    msgpack_pack_double(&to, 0);
    s->ts_at = b.size - 8;
    bench_pack_text(&to, "x");
    msgpack_pack_ext_with_body(&to, x, 8 * (size_t)d, 2);
    bench_pack_text(&to, "y");
    msgpack_pack_int(&to, sum + bench_gauss(seed) > 0);
    s->frame[i].bytes = (uint8_t *)b.data;
    s->frame[i].size = b.size;
}

static inline struct acked_stream acked_stream(int count, int d) {
    struct acked_stream s = {.count = count, .frame = calloc((size_t)count, sizeof *s.frame)};
    uint64_t seed = 1;
    for (int i = 0; i < count; i++)
        acked_pack(&s, i, d, &seed);
    return s;
}

/* After a fork each page of the frames is copied when it is first written to, 20 us and more at a time: not
 * while something is measured. */
static inline void acked_stream_touch(const struct acked_stream *s) {
    for (int i = 0; i < s->count; i++)
        ((volatile uint8_t *)s->frame[i].bytes)[s->n_at] = 0;
}

static inline void acked_stream_free(struct acked_stream *s) {
    for (int i = 0; i < s->count; i++)
        free(s->frame[i].bytes);
    free(s->frame);
}

/* ---- a producer */

struct acked_client {
    void *context, *socket;
    const struct acked_stream *stream;
    int64_t next, taken; /* numbers sent, acknowledged */
    double began;        /* time stamps grow from here by a microsecond each */
};

static inline struct acked_client acked_open(const char *address, const struct acked_stream *s,
                                             int64_t next) {
    struct acked_client c = {.stream = s, .next = next, .taken = next, .began = (double)time(NULL)};
    int many = 100000, none = 0, patience = ACKED_LATEST, soon = 1;
    c.context = zmq_ctx_new();
    c.socket = zmq_socket(c.context, ZMQ_DEALER);
    zmq_setsockopt(c.socket, ZMQ_SNDHWM, &many, sizeof many);
    zmq_setsockopt(c.socket, ZMQ_RCVHWM, &many, sizeof many);
    zmq_setsockopt(c.socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(c.socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    zmq_setsockopt(c.socket, ZMQ_RECONNECT_IVL, &soon, sizeof soon);
    if (zmq_connect(c.socket, address) != 0)
        bench_die("no connection");
    acked_stream_touch(s);
    return c;
}

static inline void acked_close(struct acked_client *c) {
    zmq_close(c->socket);
    zmq_ctx_term(c->context);
}

static inline void acked_send(struct acked_client *c) {
    const int i = (int)(c->next % c->stream->count);
    uint8_t *bytes = c->stream->frame[i].bytes;
    const double ts = c->began + 1e-6 * (double)c->next;
    uint64_t word = htobe64((uint64_t)c->next);
    memcpy(bytes + c->stream->n_at, &word, sizeof word);
    memcpy(&word, &ts, sizeof word);
    word = htobe64(word);
    memcpy(bytes + c->stream->ts_at, &word, sizeof word);
    if (zmq_send(c->socket, bytes, c->stream->frame[i].size, 0) < 0)
        bench_die("cannot send");
    c->next++;
}

/* Takes a reply; false: there is none (with ZMQ_DONTWAIT). */
static inline bool acked_take(struct acked_client *c, int flags) {
    char reply[512];
    int size = zmq_recv(c->socket, reply, sizeof reply, flags);
    if (size < 0 && (flags & ZMQ_DONTWAIT) && zmq_errno() == EAGAIN)
        return false;
    if (size < 0)
        bench_die("no reply");
    if (!memmem(reply, (size_t)size, "\xa2ok\xc3", 4)) {
        fprintf(stderr, "%.*s\n", size, reply);
        bench_die("refused");
    }
    c->taken++;
    return true;
}

/* Acknowledged samples a second with `window` on the way. */
static inline double acked_rate(struct acked_client *c, long messages, long window) {
    const int64_t end = c->next + messages;
    const double start = bench_now();
    while (c->taken < end) {
        for (; c->next < end && c->next - c->taken < window;)
            acked_send(c);
        acked_take(c, 0);
    }
    return (double)messages / (bench_now() - start);
}

/* ---- a bare echo */

struct acked_echo {
    pid_t pid;
    char address[128];
};

#define ECHO_TURN 512 /* messages, as svmstream takes them */

struct echo_queue {
    int count;
    size_t size; /* of all bodies, one behind the other */
    struct {
        char id[32];
        size_t length;
    } peer[ECHO_TURN];
    char bodies[ECHO_TURN * 8192];
};

static inline bool echo_take(void *router, struct echo_queue *q) {
    int flags = q->count ? ZMQ_DONTWAIT : 0;
    int n = zmq_recv(router, q->peer[q->count].id, sizeof q->peer->id, flags);
    int size = n < 0 ? -1 : zmq_recv(router, q->bodies + q->size, 8192, 0);
    if (size < 0)
        return false;
    q->peer[q->count++].length = (size_t)n;
    q->size += (size_t)size;
    return q->count < ECHO_TURN;
}

/* Answers until it is killed; with `folder`, what came in a turn is written and synced before. */
static inline void acked_echo_run(int tell, const char *folder) {
    static struct echo_queue q;
    static const char reply[] = "\x85\xa2ok\xc3\xa1n\x01\xa7"
                                "durable\x01\xa7"
                                "applied\x01\xa6"
                                "credit\x01";
    void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER);
    int many = 100000, fd = -1;
    char address[128] = "", name[128];
    size_t size = sizeof address;
    if (folder) {
        snprintf(name, sizeof name, "%s/echo", folder);
        fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    zmq_setsockopt(router, ZMQ_SNDHWM, &many, sizeof many);
    if (zmq_bind(router, BENCH_ANY) != 0 || zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, address, &size) != 0 ||
        write(tell, address, sizeof address) != sizeof address)
        _exit(1);
    for (;; q.count = 0, q.size = 0) {
        while (echo_take(router, &q))
            ;
        if (folder && (write(fd, q.bodies, q.size) != (ssize_t)q.size || fdatasync(fd) != 0))
            _exit(1);
        for (int i = 0; i < q.count; i++) {
            zmq_send(router, q.peer[i].id, q.peer[i].length, ZMQ_SNDMORE);
            zmq_send(router, reply, sizeof reply - 1, 0);
        }
    }
}

static inline struct acked_echo acked_echo_start(const char *folder) {
    struct acked_echo e;
    int tell[2];
    if (pipe(tell) != 0)
        bench_die("pipe");
    e.pid = fork();
    if (e.pid == 0)
        acked_echo_run(tell[1], folder);
    if (read(tell[0], e.address, sizeof e.address) != sizeof e.address)
        bench_die("the echo did not start");
    close(tell[0]);
    close(tell[1]);
    return e;
}

static inline void acked_echo_stop(struct acked_echo *e) {
    kill(e->pid, SIGKILL);
    waitpid(e->pid, NULL, 0);
}

/* ---- folders */

/* On a disk: /tmp may be memory, where a sync costs nothing. */
static inline void acked_folder(char path[64]) {
    snprintf(path, 64, "/var/tmp/svmstream-bench-XXXXXX");
    if (!mkdtemp(path))
        bench_die("no folder");
}

static inline void acked_folder_remove(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

/* Bytes of the newest file whose name begins so. */
static inline double acked_file_size(const char *path, const char *prefix) {
    DIR *d = opendir(path);
    char newest[256] = "";
    struct stat s = {.st_size = 0};
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && !strchr(e->d_name, '.') &&
            strcmp(e->d_name, newest) > 0)
            snprintf(newest, sizeof newest, "%s", e->d_name);
    if (d && *newest)
        fstatat(dirfd(d), newest, &s, 0);
    if (d)
        closedir(d);
    return (double)s.st_size;
}

#endif
