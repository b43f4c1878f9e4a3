/* From socket to socket: how many samples a second a running svmstream takes, beside what the same machine
 * moves and unpacks (msgpack-c) with no learning at all; and how long a score takes, beside a bare echo over
 * ZeroMQ. Sender and receiver are processes of their own on both sides; both sides are measured in turns,
 * medians of ROUNDS. */
#include <math.h>
#include <stdarg.h>

#include "bench.h"

enum { ROUNDS = 3 /* at most */, DIFFERENT = 2048, QUEUE = 100000 };

static int rounds(void) {
    return bench_pick(1, 3, ROUNDS);
}

/* ---- throughput ---- */

/* A child that receives and unpacks `messages` messages and tells its clock at the last. */
static pid_t ceiling_receiver(long messages, int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    char address[128];
    size_t size = sizeof address;
    void *context = zmq_ctx_new(), *pull = zmq_socket(context, ZMQ_PULL);
    msgpack_zone *zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
    zmq_msg_t m;
    memset(address, 0, sizeof address);
    if (zmq_bind(pull, BENCH_ANY) != 0 || zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, address, &size) != 0)
        bench_die("the receiver cannot bind");
    if (write(tell, address, sizeof address) != sizeof address)
        bench_die("pipe");
    zmq_msg_init(&m);
    long good = 0;
    for (long i = 0; i < messages; i++) {
        msgpack_object object;
        size_t offset = 0;
        if (zmq_msg_recv(&m, pull, 0) < 0)
            bench_die("receive");
        good += msgpack_unpack(zmq_msg_data(&m), zmq_msg_size(&m), &offset, zone, &object) ==
                MSGPACK_UNPACK_SUCCESS;
        msgpack_zone_clear(zone);
    }
    double end = good == messages ? bench_now() : 0;
    if (write(tell, &end, sizeof end) != sizeof end)
        bench_die("pipe");
    _exit(0);
}

static void take(int from, void *out, size_t size) {
    if (read(from, out, size) != (ssize_t)size)
        bench_die("a child ended early");
}

/* Samples a second without any learning. */
static double ceiling(const struct bench_frames *f, long messages) {
    int receiver[2], sender[2];
    char address[128];
    double start, end;
    if (pipe(receiver) != 0 || pipe(sender) != 0)
        bench_die("pipe");
    pid_t a = ceiling_receiver(messages, receiver[1]);
    take(receiver[0], address, sizeof address);
    pid_t b = bench_sender(address, f, messages, false, sender[1]);
    take(sender[0], &start, sizeof start);
    take(receiver[0], &end, sizeof end);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(receiver[i]);
        close(sender[i]);
    }
    return (double)messages * f->samples / (end - start);
}

/* A child that reads all scores until it is killed; tells when it is subscribed. */
static pid_t subscriber(const char *address, int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    void *context = zmq_ctx_new(), *sub = zmq_socket(context, ZMQ_SUB);
    zmq_msg_t m;
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "score.", 6);
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "stats.", 6);
    if (zmq_connect(sub, address) != 0)
        bench_die("the subscriber cannot connect");
    zmq_msg_init(&m);
    for (bool told = false; zmq_msg_recv(&m, sub, 0) >= 0; told = true)
        if (!told && write(tell, "s", 1) != 1)
            bench_die("pipe");
    _exit(1);
}

/* A child that tells when it is subscribed, and the clock at each error event. */
static pid_t listener(const char *address, int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    void *context = zmq_ctx_new(), *sub = zmq_socket(context, ZMQ_SUB);
    zmq_msg_t m;
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "error.", 6);
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "stats.", 6);
    if (zmq_connect(sub, address) != 0)
        bench_die("the listener cannot connect");
    zmq_msg_init(&m);
    for (bool told = false; zmq_msg_recv(&m, sub, 0) >= 0; told = true) {
        double now = bench_now();
        bool topic = zmq_msg_more(&m), error = topic && *(char *)zmq_msg_data(&m) == 'e';
        if ((!told || error) && write(tell, &now, sizeof now) != sizeof now)
            bench_die("pipe");
    }
    _exit(1);
}

static void end_child(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* Samples a second of the real process, from the first sent to the last seen. */
static double real(const struct bench_frames *f, long messages, const char *novelty, const char *scores,
                   bool subscribed) {
    struct bench_run run;
    int tell[2], ready[2], event_time[2];
    char byte;
    double start, end;
    pid_t reader = 0;
    if (pipe(tell) != 0 || pipe(ready) != 0 || pipe(event_time) != 0)
        bench_die("pipe");
    bench_run_start(
        &run, (const char *const[]){"--window", "1000", "--novelty", novelty, "--scores", scores, NULL});
    pid_t ear = listener(run.out, event_time[1]);
    take(event_time[0], &end, sizeof end);
    if (subscribed) {
        reader = subscriber(run.out, ready[1]);
        take(ready[0], &byte, 1);
    }
    pid_t sender = bench_sender(run.in, f, messages, true, tell[1]);
    take(tell[0], &start, sizeof start);
    take(event_time[0], &end, sizeof end); /* the last message is refused: all before it is done */
    waitpid(sender, NULL, 0);
    end_child(ear);
    if (reader)
        end_child(reader);
    bench_run_stop(&run);
    for (int i = 0; i < 2; i++) {
        close(tell[i]);
        close(ready[i]);
        close(event_time[i]);
    }
    return (double)messages * f->samples / (end - start);
}

/* Returns the median rate of the real process without scores. */
static double throughput(int d, bool packed) {
    struct bench_frames f =
        bench_frames(packed ? DIFFERENT / 8 : DIFFERENT, packed ? 64 : 1, d, packed, false, 0);
    double top[ROUNDS], none[ROUNDS], all[ROUNDS], judged[ROUNDS];
    long messages =
        (long)((bench_quick() ? 0.05 : 0.6) *
               ceiling(&f, bench_pick(1000, packed ? 5000 : 200000, packed ? 5000 : 200000)) / f.samples);
    for (int i = 0; i < rounds(); i++) {
        top[i] = ceiling(&f, messages);
        none[i] = real(&f, messages, "none", "none", false);
        all[i] = real(&f, messages / 4, "none", "all", true); /* much slower: a quarter will do */
        judged[i] = real(&f, messages / 16, "fosvm1", "all", true);
    }
    double ratio[2]
                [ROUNDS]; /* each with its own round's ceiling: neighbours share what else the machine does */
    for (int i = 0; i < rounds(); i++) {
        ratio[0][i] = none[i] / top[i];
        ratio[1][i] = all[i] / top[i];
    }
    double a = bench_quantile(top, rounds(), 0.5), b = bench_quantile(none, rounds(), 0.5),
           c = bench_quantile(all, rounds(), 0.5), j = bench_quantile(judged, rounds(), 0.5);
    const char *const form = packed ? "packed, 64 a message" : "array, 1 a message";
    printf("%3d  %-22s %10.0f %10.0f %6.0f %% %10.0f %6.0f %% %12.0f   %s\n", d,
           packed ? "ext 2, 64 a message" : "array, 1 a message", a, b,
           100 * bench_quantile(ratio[0], rounds(), 0.5), c, 100 * bench_quantile(ratio[1], rounds(), 0.5), j,
           packed ? ">= 50 %" : ">= 60 %");
    bench_row(
        (struct bench_row){
            .ours = b, .peer = a, .unit = "/s", .ratio = bench_quantile(ratio[0], rounds(), 0.5)},
        "run without novelty and scores / unpacking alone, d %d, %s", d, form);
    bench_row(
        (struct bench_row){
            .ours = c, .peer = a, .unit = "/s", .ratio = bench_quantile(ratio[1], rounds(), 0.5)},
        "run without novelty, one subscriber / unpacking alone, d %d, %s", d, form);
    bench_row((struct bench_row){.ours = j, .peer = a, .unit = "/s", .ratio = j / a},
              "run with novelty, one subscriber / unpacking alone, d %d, %s", d, form);
    bench_frames_free(&f);
    return b;
}

/* ---- JSON ---- */

enum form { MSGPACK_MAP, JSON_ARRAY, JSON_OBJECT, JSON_FLAT, FORMS };

static void put_text(msgpack_sbuffer *b, const char *format, ...) {
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    msgpack_sbuffer_write(b, text, (size_t)n);
}

/* The same sample in each form: values of six digits, as logs have them. */
static void put_form(msgpack_sbuffer *b, enum form form, int d, uint64_t *seed) {
    double x[512], sum = 0;
    char text[32];
    msgpack_packer to;
    msgpack_packer_init(&to, b, msgpack_sbuffer_write);
    for (int j = 0; j < d; j++) {
        snprintf(text, sizeof text, "%.6g", bench_gauss(seed));
        x[j] = strtod(text, NULL);
        sum += j % 3 == 0 ? x[j] : 0;
    }
    const int y = sum + bench_gauss(seed) > 0;
    if (form != MSGPACK_MAP) {
        put_text(b, form == JSON_ARRAY ? "{\"x\": [" : form == JSON_OBJECT ? "{\"x\": {" : "{");
        for (int j = 0; j < d; j++) {
            if (form != JSON_ARRAY)
                put_text(b, "\"f%d\": ", j);
            put_text(b, "%.6g%s", x[j], j < d - 1 ? ", " : "");
        }
        put_text(b, "%s\"%s\": %d}",
                 form == JSON_FLAT    ? ", "
                 : form == JSON_ARRAY ? "], "
                                      : "}, ",
                 form == JSON_FLAT ? "label" : "y", y);
        return;
    }
    msgpack_pack_map(&to, 2);
    bench_pack_text(&to, "x");
    msgpack_pack_map(&to, (size_t)d);
    for (int j = 0; j < d; j++) {
        snprintf(text, sizeof text, "f%d", j);
        bench_pack_text(&to, text);
        msgpack_pack_double(&to, x[j]);
    }
    bench_pack_text(&to, "y");
    msgpack_pack_int(&to, y);
}

static struct bench_frames frames_of(enum form form, int d) {
    struct bench_frames f = {DIFFERENT, 1, calloc(DIFFERENT, sizeof *f.frame)};
    uint64_t seed = 1;
    for (int i = 0; i < f.count; i++) {
        msgpack_sbuffer b;
        msgpack_sbuffer_init(&b);
        put_form(&b, form, d, &seed);
        f.frame[i].bytes = (uint8_t *)b.data;
        f.frame[i].size = b.size;
    }
    return f;
}

/* Samples a second of each form, a message each. */
static void json_throughput(int d, long messages) {
    static const char *const names[FORMS] = {"msgpack map of names", "JSON, x an array", "JSON, x an object",
                                             "JSON, a flat row"};
    double rate[FORMS][ROUNDS], ratio[FORMS][ROUNDS];
    struct bench_frames f[FORMS];
    for (int k = 0; k < FORMS; k++)
        f[k] = frames_of((enum form)k, d);
    for (int i = 0; i < rounds(); i++)
        for (int k = 0; k < FORMS; k++) {
            rate[k][i] = real(&f[k], messages, "none", "none", false);
            ratio[k][i] = rate[k][i] / rate[MSGPACK_MAP][i];
        }
    for (int k = 0; k < FORMS; k++) {
        printf("%3d  %-22s %10.0f %10.0f %%   %s\n", d, names[k], bench_quantile(rate[k], rounds(), 0.5),
               100 * bench_quantile(ratio[k], rounds(), 0.5), k == MSGPACK_MAP ? "" : ">= 200000");
        if (k != MSGPACK_MAP)
            bench_row((struct bench_row){.ours = rate[k][rounds() / 2],
                                         .peer = rate[MSGPACK_MAP][rounds() / 2],
                                         .unit = "/s",
                                         .ratio = ratio[k][rounds() / 2]},
                      "%s / msgpack map of names, d %d", names[k], d);
        bench_frames_free(&f[k]);
    }
}

/* ---- latency ---- */

/* A child that sends back what it gets, as an event of two frames. Its addresses come through the pipe. */
static pid_t echo(int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    char address[2][128];
    void *context = zmq_ctx_new(), *pull = zmq_socket(context, ZMQ_PULL),
         *out = zmq_socket(context, ZMQ_XPUB);
    size_t size = sizeof address[0];
    int queue = QUEUE;
    memset(address, 0, sizeof address);
    zmq_setsockopt(out, ZMQ_SNDHWM, &queue, sizeof queue);
    int no_limit = 0;
    zmq_setsockopt(out, ZMQ_SNDHWM, &no_limit, sizeof no_limit);
    if (zmq_bind(pull, BENCH_ANY) != 0 || zmq_bind(out, BENCH_ANY) != 0)
        bench_die("the echo cannot bind");
    zmq_getsockopt(pull, ZMQ_LAST_ENDPOINT, address[0], &size);
    size = sizeof address[1];
    zmq_getsockopt(out, ZMQ_LAST_ENDPOINT, address[1], &size);
    if (write(tell, address, sizeof address) != sizeof address)
        bench_die("pipe");
    zmq_msg_t m;
    zmq_msg_init(&m);
    for (int subscriptions = 0; subscriptions < 2; subscriptions++)
        zmq_msg_recv(&m, out, 0);
    zmq_send(out, "stats.default.", 14, ZMQ_SNDMORE);
    zmq_send(out, "", 0, 0);
    while (zmq_msg_recv(&m, pull, 0) >= 0) {
        zmq_send(out, "score.default.", 14, ZMQ_SNDMORE);
        zmq_msg_send(&m, out, 0);
    }
    _exit(1);
}

/* The id in a score event, or in a sample that came back. -1: none. */
static long id_of(const uint8_t *p, size_t size) {
    const uint8_t *at = memmem(p, size, "\xa2id", 3), *end = p + size;
    if (!at || at + 4 > end)
        return -1;
    int bytes = at[3] < 0x80 ? 0 : at[3] == 0xcc ? 1 : at[3] == 0xcd ? 2 : at[3] == 0xce ? 4 : -1;
    if (bytes <= 0 || at + 4 + bytes > end)
        return bytes == 0 ? at[3] : -1;
    long id = 0;
    for (int i = 0; i < bytes; i++)
        id = id << 8 | at[4 + i];
    return id;
}

static void put_id(struct bench_frames *f, long i) {
    uint8_t *at = f->frame[i % f->count].bytes + f->frame[i % f->count].id_at;
    for (int k = 0; k < 4; k++)
        at[k] = (uint8_t)(i >> (24 - 8 * k));
}

/* What is asked: `count` messages at a steady rate; every `of`-th is answered on the topic. */
struct question {
    double rate;
    long count, of;
    const char *topic;
};

/* Takes what has come; returns how many answers. */
static int take_answers(void *sub, const double *sent, double *lag, const struct question *q) {
    int taken = 0;
    zmq_msg_t m;
    zmq_msg_init(&m);
    while (zmq_msg_recv(&m, sub, ZMQ_DONTWAIT) >= 0) {
        if (zmq_msg_more(&m))
            continue;
        long id = id_of(zmq_msg_data(&m), zmq_msg_size(&m));
        if (id >= 0 && id < q->count && id % q->of == 0 && isinf(lag[id])) {
            lag[id] = bench_now() - sent[id];
            taken++;
        }
    }
    zmq_msg_close(&m);
    return taken;
}

struct lags {
    double p50, p99;
};

/* Looks for answers all the time; the first tenth does not count. */
static struct lags client(const char *in, const char *out, struct bench_frames *f, struct question q) {
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *sub = zmq_socket(context, ZMQ_SUB);
    long count = q.count, next = 0, taken = 0, wanted = (count + q.of - 1) / q.of;
    const double rate = q.rate;
    double *sent = calloc((size_t)count, sizeof *sent), *lag = calloc((size_t)count, sizeof *lag);
    zmq_msg_t m;
    int none = 0;
    zmq_msg_init(&m);
    zmq_setsockopt(sub, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, q.topic, strlen(q.topic));
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "stats.", 6);
    int queue = QUEUE;
    for (long i = 0; i < count; i++)
        lag[i] = INFINITY; /* a score that never comes is late, not early */
    zmq_setsockopt(sub, ZMQ_RCVHWM, &queue, sizeof queue);
    zmq_connect(push, in);
    zmq_connect(sub, out);
    zmq_msg_recv(&m, sub, 0); /* stats: the subscription is in force */
    double start = bench_now(), limit = start + (double)count / rate + 9;
    while (taken < wanted && bench_now() < limit) {
        if (next < count && bench_now() - start >= (double)next / rate) {
            put_id(f, next);
            sent[next] = bench_now();
            zmq_send(push, f->frame[next % f->count].bytes, f->frame[next % f->count].size, 0);
            next++;
        }
        taken += take_answers(sub, sent, lag, &q);
    }
    if (taken < wanted)
        printf("(%ld of %ld answers never came) ", wanted - taken, wanted);
    int kept = 0;
    for (long i = count / 10 / q.of * q.of; i < count; i += q.of)
        lag[kept++] = lag[i];
    struct lags l = {bench_quantile(lag, kept, 0.5), 0};
    l.p99 = bench_quantile(lag, kept, 0.99);
    zmq_setsockopt(push, ZMQ_LINGER, &none, sizeof none);
    zmq_msg_close(&m);
    zmq_close(push);
    zmq_close(sub);
    zmq_ctx_term(context);
    free(sent);
    free(lag);
    return l;
}

static struct lags echo_lags(struct bench_frames *f, struct question q) {
    int tell[2];
    char address[2][128];
    if (pipe(tell) != 0)
        bench_die("pipe");
    pid_t child = echo(tell[1]);
    take(tell[0], address, sizeof address);
    struct lags l = client(address[0], address[1], f, q);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(tell[0]);
    close(tell[1]);
    return l;
}

static struct lags real_lags(struct bench_frames *f, struct question q, const char *const *flags) {
    struct bench_run run;
    bench_run_start(&run, flags);
    struct lags l = client(run.in, run.out, f, q);
    bench_run_stop(&run);
    return l;
}

/* The echo answers on the score topic to every message. */
static void latency(const char *what, int d, struct bench_frames *f, struct question q,
                    const char *const *flags) {
    double bare[2][ROUNDS], ours[2][ROUNDS];
    struct question plain = q;
    plain.topic = "score.";
    plain.of = 1;
    for (int i = 0; i < rounds(); i++) {
        struct lags a = echo_lags(f, plain), b = real_lags(f, q, flags);
        bare[0][i] = a.p50, bare[1][i] = a.p99;
        ours[0][i] = b.p50, ours[1][i] = b.p99;
    }
    double m[4] = {bench_quantile(bare[0], rounds(), 0.5), bench_quantile(ours[0], rounds(), 0.5),
                   bench_quantile(bare[1], rounds(), 0.5), bench_quantile(ours[1], rounds(), 0.5)};
    printf("%-24s %3d %10.0f %10.0f %10.0f %6.1fx %10.0f %10.0f %6.1fx   <= 3x\n", what, d, q.rate,
           1e6 * m[0], 1e6 * m[1], m[1] / m[0], 1e6 * m[2], 1e6 * m[3], m[3] / m[2]);
    for (int k = 0; k < 2; k++)
        bench_row((struct bench_row){.ours = 1e6 * m[2 * k + 1],
                                     .peer = 1e6 * m[2 * k],
                                     .unit = "us",
                                     .ratio = m[2 * k + 1] / m[2 * k]},
                  "%s / bare echo, d %d, %.0f/s: %s", what, d, q.rate, k ? "p99" : "median");
}

static void score_latency(const char *what, int d, double rate, const char *const *flags) {
    struct bench_frames f = bench_frames(DIFFERENT, 1, d, false, true, 0);
    latency(what, d, &f, (struct question){rate, (long)rate / bench_pick(5, 1, 1), 1, "score."}, flags);
    bench_frames_free(&f);
}

#define SELDOM 50 /* one sample in so many is new */

/* Adds 100 to the first feature of every SELDOM-th message. */
static void make_new(struct bench_frames *f) {
    for (int i = 0; i < f->count; i += SELDOM) {
        uint8_t *at = memchr(f->frame[i].bytes, 0xcb, f->frame[i].size);
        memcpy(at + 1, "\x40\x59\0\0\0\0\0\0", 8); /* 100.0 */
    }
}

/* 2 % of the samples are new and open an alert each; alert.p is above that share, so that they stay new. The
 * first tenth is what the detector needs before its p-values are so small. */
static void alert_latency(int d, double rate) {
    struct bench_frames f = bench_frames(DIFFERENT / SELDOM * SELDOM, 1, d, false, true, 0);
    make_new(&f);
    latency("sample to alert", d, &f, (struct question){rate, (long)(3 * rate), SELDOM, "alert."},
            (const char *const[]){"--method", "none", "--alert.p", "0.04", "--alert.clear", "0.04",
                                  "--alert.cooldown", "0", NULL});
    bench_frames_free(&f);
}

int main(void) {
    double rate[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("samples a second over tcp loopback, W = 1000, medians of %d\n", rounds());
    printf("  d  message                   ceiling  novelty none        scores all          novelty, all\n");
    printf("                                        no scores           + 1 subscriber      + 1 subscriber   "
           "asked\n");
    rate[0] = throughput(10, false);
    if (bench_quick()) {
        json_throughput(8, 5000);
        score_latency("to score", 10, 2000, (const char *const[]){NULL});
        return bench_end();
    }
    rate[1] = throughput(54, false);
    throughput(10, true);
    throughput(54, true);
    printf("JSON beside msgpack, a sample a message, no novelty, no scores\n");
    printf("  d  message                 samples/s  of msgpack   asked\n");
    json_throughput(8, 300000);
    static const char *const without[] = {"--novelty", "none", NULL}, *const with[] = {NULL};
    printf("microseconds from send to answer, steady rate\n");
    printf("                           d    rate/s   echo p50  svmstream           echo p99  svmstream       "
           "    "
           "asked\n");
    score_latency("to score, no novelty", 10, rate[0] / 10, without);
    score_latency("to score, no novelty", 54, rate[1] / 10, without);
    score_latency("to score", 10, 20000, with);
    score_latency("to score", 54, 20000, with);
    alert_latency(38, 10000);
    return bench_end();
}
