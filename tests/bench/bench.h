/* bench.h: what the benchmarks over sockets share: a running svmstream, a process that sends to it, medians.
 * Failures end the program: a measurement has nobody to report to. */
#ifndef BENCH_H
#define BENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <msgpack.h>
#include <zmq.h>

#include "result.h"

#define BENCH_ANY "tcp://127.0.0.1:*"

static inline void bench_die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline double bench_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. */
static inline double bench_quantile(double *v, int n, double q) {
    qsort(v, (size_t)n, sizeof *v, bench_compare);
    int at = (int)(q * n);
    return n ? v[at < n ? at : n - 1] : 0;
}

/* ---- messages ---- */

struct bench_frames {
    int count, samples; /* messages, and samples in each */
    struct {
        uint8_t *bytes;
        size_t size;
        size_t id_at; /* of the four bytes of its id; 0 = none */
    } * frame;
};

static inline double bench_gauss(uint64_t *seed) {
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 11) / 9007199254740992.0;
    }
    return sum - 6;
}

static inline void bench_pack_text(msgpack_packer *to, const char *text) {
    msgpack_pack_str_with_body(to, text, strlen(text));
}

/* One sample; returns where its id lies in the buffer. */
static inline size_t bench_pack_sample(msgpack_packer *to, msgpack_sbuffer *b, int d, bool packed, bool id,
                                       bool label, uint64_t *seed) {
    double x[512], sum = 0;
    size_t at = 0;
    for (int j = 0; j < d; j++) {
        x[j] = bench_gauss(seed);
        sum += j % 3 == 0 ? x[j] : 0;
    }
    msgpack_pack_map(to, 1 + (size_t)id + (size_t)label);
    bench_pack_text(to, "x");
    if (packed)
        msgpack_pack_ext_with_body(to, x, 8 * (size_t)d, 2);
    else
        msgpack_pack_array(to, (size_t)d);
    for (int j = 0; !packed && j < d; j++)
        msgpack_pack_double(to, x[j]);
    if (label) {
        bench_pack_text(to, "y");
        msgpack_pack_int(to, sum + bench_gauss(seed) > 0);
    }
    if (id) {
        bench_pack_text(to, "id");
        msgpack_pack_fix_uint32(to, 0);
        at = b->size - 4;
    }
    return at;
}

/* `count` different messages of Gaussian features and a noisy linear label, which every `unlabelled`-th lacks
 * (0: none). */
static inline struct bench_frames bench_frames(int count, int samples, int d, bool packed, bool id,
                                               int unlabelled) {
    struct bench_frames f = {count, samples, calloc((size_t)count, sizeof *f.frame)};
    uint64_t seed = 1;
    for (int i = 0; i < count; i++) {
        msgpack_sbuffer b;
        msgpack_packer to;
        msgpack_sbuffer_init(&b);
        msgpack_packer_init(&to, &b, msgpack_sbuffer_write);
        if (samples > 1)
            msgpack_pack_array(&to, (size_t)samples);
        for (int k = 0; k < samples; k++)
            f.frame[i].id_at =
                bench_pack_sample(&to, &b, d, packed, id, !unlabelled || i % unlabelled, &seed);
        f.frame[i].bytes = (uint8_t *)b.data;
        f.frame[i].size = b.size;
    }
    return f;
}

static inline void bench_frames_free(struct bench_frames *f) {
    for (int i = 0; i < f->count; i++)
        free(f->frame[i].bytes);
    free(f->frame);
}

/* ---- processes ---- */

/* A child that sends `messages` messages flat out and ends; its clock at the first one is written to the
 * pipe. With `last` a message follows that is refused: its error event tells that all before it is done. */
static inline pid_t bench_sender(const char *address, const struct bench_frames *f, long messages, bool last,
                                 int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH);
    if (zmq_connect(push, address) != 0)
        bench_die("the sender cannot connect");
    double start = bench_now();
    for (long i = 0; i < messages; i++)
        zmq_send(push, f->frame[i % f->count].bytes, f->frame[i % f->count].size, 0);
    if (last)
        zmq_send(push, "\xc1", 1, 0);
    if (write(tell, &start, sizeof start) != sizeof start)
        bench_die("pipe");
    zmq_close(push);
    zmq_ctx_term(context);
    _exit(0);
}

struct bench_run {
    pid_t pid;
    char in[128], out[128], ctl[128];
    FILE *log;
    void *context, *request;
};

/* svmstream run with more flags (NULL-terminated); waits until it told its addresses. No context is open
 * while it forks. */
static inline void bench_run_start(struct bench_run *r, const char *const *flags) {
    const char *argv[64] = {getenv("SVMSTREAM"), "run",   "--in",   BENCH_ANY, "--out",
                            BENCH_ANY,           "--ctl", BENCH_ANY};
    int pipe_ends[2], n = 8;
    if (!argv[0] || pipe(pipe_ends) != 0)
        bench_die("SVMSTREAM names no program");
    while (*flags && n < 63)
        argv[n++] = *flags++;
    memset(r, 0, sizeof *r);
    r->pid = fork();
    if (r->pid == 0) {
        dup2(pipe_ends[1], 2);
        close(pipe_ends[0]);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(pipe_ends[1]);
    r->log = fdopen(pipe_ends[0], "r");
    char line[256], kind[16], address[128];
    while ((!*r->in || !*r->out || !*r->ctl) && fgets(line, sizeof line, r->log))
        if (sscanf(line, "%15s %127s", kind, address) == 2)
            strcpy(strcmp(kind, "in") == 0 ? r->in : strcmp(kind, "out") == 0 ? r->out : r->ctl, address);
    if (!*r->in || !*r->out || !*r->ctl)
        bench_die("svmstream run did not start");
}

/* Sends {op: name} and returns the number under `key` of the reply (0 when it has none). */
static inline double bench_ask(struct bench_run *r, const char *op, const char *key) {
    msgpack_sbuffer b;
    msgpack_packer to;
    zmq_msg_t reply;
    double value = 0;
    if (!r->request) {
        int patience = 10000, none = 0;
        r->context = zmq_ctx_new();
        r->request = zmq_socket(r->context, ZMQ_REQ);
        zmq_setsockopt(r->request, ZMQ_RCVTIMEO, &patience, sizeof patience);
        zmq_setsockopt(r->request, ZMQ_LINGER, &none, sizeof none);
        zmq_connect(r->request, r->ctl);
    }
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&to, &b, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 1);
    bench_pack_text(&to, "op");
    bench_pack_text(&to, op);
    zmq_msg_init(&reply);
    if (zmq_send(r->request, b.data, b.size, 0) < 0 || zmq_msg_recv(&reply, r->request, 0) < 0)
        bench_die("svmstream run does not answer");
    msgpack_sbuffer_destroy(&b);
    msgpack_unpacked u;
    msgpack_unpacked_init(&u);
    if (msgpack_unpack_next(&u, zmq_msg_data(&reply), zmq_msg_size(&reply), NULL) == MSGPACK_UNPACK_SUCCESS)
        for (uint32_t i = 0; u.data.type == MSGPACK_OBJECT_MAP && i < u.data.via.map.size; i++) {
            const msgpack_object_kv *e = &u.data.via.map.ptr[i];
            if (e->key.via.str.size == strlen(key) && memcmp(e->key.via.str.ptr, key, strlen(key)) == 0)
                value = e->val.type == MSGPACK_OBJECT_FLOAT64 ? e->val.via.f64 : (double)e->val.via.i64;
        }
    msgpack_unpacked_destroy(&u);
    zmq_msg_close(&reply);
    return value;
}

static inline void bench_run_stop(struct bench_run *r) {
    bench_ask(r, "stop", "ok");
    zmq_close(r->request);
    zmq_ctx_term(r->context);
    waitpid(r->pid, NULL, 0);
    fclose(r->log);
}

#endif
