/* Acknowledged input with CURVE and without: one producer, a window of messages on the way, every one of them
 * learned and acknowledged; the same through a bare ROUTER that only answers. What CURVE costs is the ratio.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_acked.h"
#include "net/acl.h"
#include "net/transport.h"

#define ROUNDS    3 /* at most */
#define DIFFERENT 256
#define LATEST    30.0 /* seconds without a reply */

static char folder[] = "/tmp/svmstream-curve-XXXXXX";

static void in_folder(const char *name, char out[128]) {
    snprintf(out, 128, "%s/%s", folder, name);
}

static void make_keys(struct svi_identity *client) {
    char server[128], mine[128], allow[128], public[SVI_KEY_LENGTH + 1];
    struct svi_client row = {.name = "bench", .roles = "ingest,control"};
    if (!mkdtemp(folder))
        bench_die("no folder");
    in_folder("server.key", server);
    in_folder("mine.key", mine);
    in_folder("allow", allow);
    if (svi_keys_new(server, public, NULL) != SVS_OK || svi_keys_new(mine, row.key, NULL) != SVS_OK ||
        svi_acl_add(allow, &row, NULL) != SVS_OK || svi_keys_read(mine, client, NULL) != SVS_OK)
        bench_die("no keys can be made");
    memcpy(client->server_key, public, sizeof public);
}

static void remove_keys(void) {
    static const char *const names[] = {"server.key", "server.key.pub", "mine.key", "mine.key.pub", "allow"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        in_folder(names[i], path);
        unlink(path);
    }
    rmdir(folder);
}

static void *open_socket(void *context, const char *address, const struct svi_identity *id) {
    const struct svi_socket_plan plan = {"in", ZMQ_DEALER, false, 100000, 0, -1, 0};
    int patience = (int)(1000 * LATEST);
    void *socket = svi_socket_new(context, &plan, NULL);
    if (!socket || svi_socket_connect(socket, &plan, id, address, NULL) != SVS_OK)
        bench_die("no socket");
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    return socket;
}

static void take_reply(void *socket, bool learned) {
    zmq_msg_t m;
    zmq_msg_init(&m);
    if (zmq_msg_recv(&m, socket, 0) < 0)
        bench_die("no reply");
    if (learned && !memmem(zmq_msg_data(&m), zmq_msg_size(&m), "\xa2ok\xc3", 4))
        bench_die("refused");
    zmq_msg_close(&m);
}

/* Messages a second, all acknowledged. */
static double acked(const char *address, const struct svi_identity *id, const struct bench_frames *f,
                    long messages, long window, bool learned) {
    void *context = zmq_ctx_new(), *socket = open_socket(context, address, id);
    long sent = 0;
    zmq_send(socket, f->frame[0].bytes, f->frame[0].size, 0); /* the handshake is not part of it */
    take_reply(socket, learned);
    double start = bench_now();
    for (long taken = 0; taken < messages; taken++) {
        for (; sent < messages && sent - taken < window; sent++)
            zmq_send(socket, f->frame[sent % f->count].bytes, f->frame[sent % f->count].size, 0);
        take_reply(socket, learned);
    }
    double rate = (double)messages / (bench_now() - start);
    zmq_close(socket);
    zmq_ctx_term(context);
    return rate;
}

/* Everything by default, but for `more` (NULL-terminated, 8 at most). */
static double run_with(const struct svi_identity *id, const struct bench_frames *f, long messages,
                       long window, const char *const *more) {
    struct bench_run run;
    char server[128], allow[128];
    in_folder("server.key", server);
    in_folder("allow", allow);
    const char *flags[16] = {"--in.mode",     "router", "--curve", id->on ? server : "off",
                             "--curve.allow", allow};
    for (int n = 6; *more; n++)
        flags[n] = *more++;
    bench_run_start(&run, flags);
    double rate = acked(run.in, id, f, messages, window, true);
    kill(run.pid, SIGTERM);
    waitpid(run.pid, NULL, 0);
    fclose(run.log);
    return rate;
}

static double usual(const struct svi_identity *id, const struct bench_frames *f, long messages, long window) {
    return run_with(id, f, messages, window, (const char *const[]){NULL});
}

static double bare_learner(const struct svi_identity *id, const struct bench_frames *f, long messages,
                           long window) {
    return run_with(id, f, messages, window, (const char *const[]){"--novelty", "none", NULL});
}

static double durable(const struct svi_identity *id, const struct bench_frames *f, long messages,
                      long window) {
    char path[64];
    acked_folder(path);
    double rate = run_with(id, f, messages, window,
                           (const char *const[]){"--state.dir", path, "--delivery", "durable", NULL});
    acked_folder_remove(path);
    return rate;
}

/* A child that answers each message at once, with the server's key and without asking who it is. */
static double bare_router(const struct svi_identity *id, const struct bench_frames *f, long messages,
                          long window) {
    char address[128], secret[41], public[41];
    struct svi_identity client = *id;
    int tell[2], one = 1, many = 100000;
    if (pipe(tell) != 0 || zmq_curve_keypair(public, secret) != 0)
        bench_die("pipe");
    pid_t child = fork();
    if (child == 0) {
        void *context = zmq_ctx_new(), *router = zmq_socket(context, ZMQ_ROUTER);
        struct svi_request r;
        size_t size = sizeof address;
        if (id->on) {
            zmq_setsockopt(router, ZMQ_CURVE_SERVER, &one, sizeof one);
            zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, secret, strlen(secret));
        }
        zmq_setsockopt(router, ZMQ_SNDHWM, &many, sizeof many);
        zmq_bind(router, BENCH_ANY);
        zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, address, &size);
        if (write(tell[1], address, sizeof address) != sizeof address)
            _exit(1);
        for (zmq_pollitem_t item = {router, 0, ZMQ_POLLIN, 0};; zmq_poll(&item, 1, -1))
            while (svi_request_receive(router, &r)) {
                svi_request_reply(router, &r, "\x81\xa2ok\xc3", 5);
                svi_request_close(&r);
            }
    }
    if (read(tell[0], address, sizeof address) != sizeof address)
        bench_die("the bare loop did not start");
    memcpy(client.server_key, public, sizeof public);
    double rate = acked(address, &client, f, messages, window, false);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(tell[0]);
    close(tell[1]);
    return rate;
}

typedef double measure(const struct svi_identity *, const struct bench_frames *, long, long);

static const struct {
    const char *name;
    measure *run;
    int samples; /* in one message */
} subjects[] = {{"svmstream run", usual, 1},          {"durable", durable, 1},
                {"without novelty", bare_learner, 1}, {"without novelty", bare_learner, 64},
                {"bare ROUTER", bare_router, 1},      {"bare ROUTER", bare_router, 64}};

static void compare(int subject, const struct svi_identity *keys, long window) {
    const struct svi_identity off = {.on = false};
    double with[ROUNDS], without[ROUNDS];
    const int rounds = bench_pick(1, 3, ROUNDS);
    int samples = subjects[subject].samples;
    struct bench_frames f = bench_frames(DIFFERENT, samples, 10, true, false, 0);
    long messages = (window == 1 ? 5000 : bench_pick(5000, 40000, 100000)) / (samples > 1 ? 8 : 1);
    for (int i = 0; i < rounds; i++) {
        without[i] = subjects[subject].run(&off, &f, messages, window);
        with[i] = subjects[subject].run(keys, &f, messages, window);
    }
    double a = bench_quantile(without, rounds, 0.5), b = bench_quantile(with, rounds, 0.5);
    printf("%-16s %2d sample%s a message, window %4ld: plain %8.0f  CURVE %8.0f samples/s  ratio %.2f\n",
           subjects[subject].name, samples, samples > 1 ? "s" : " ", window, samples * a, samples * b, b / a);
    bench_row((struct bench_row){.ours = samples * b,
                                 .peer = samples * a,
                                 .unit = "/s",
                                 .ratio = b / a,
                                 .bar = subject == 0 ? ">= 0.5" : NULL},
              "CURVE / plain, %s, %d a message, window %ld", subjects[subject].name, samples, window);
    bench_frames_free(&f);
}

int main(void) {
    static const long windows[] = {1, 64, 1000};
    struct svi_identity keys;
    make_keys(&keys);
    for (int s = 0; s < bench_pick(1, (int)(sizeof subjects / sizeof *subjects),
                                   (int)(sizeof subjects / sizeof *subjects));
         s++)
        for (int i = bench_pick(1, 0, 0); i < bench_pick(2, 3, 3); i++)
            compare(s, &keys, windows[i]);
    remove_keys();
    return bench_end();
}
