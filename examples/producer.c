/* A producer that loses nothing: its samples are acknowledged by `svmstream run --in.mode router`, and sent
 * again until they are, even when the process dies and another one takes its place. When the process keeps
 * its state (--state.dir) they are kept here until they are on its disk.
 *
 *     svmstream run --in.mode router &
 *     build/examples/producer tcp://127.0.0.1:5555 100000
 *
 * With CURVE, from `svmstream curve new mine.key` and the server's public key (or the .pub file of it):
 *
 *     build/examples/producer tcp://server:5555 100000 spiral mine.key server.key.pub
 *
 * Build: cc producer.c $(pkg-config --cflags --libs svmstream) -lzmq */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <svmstream/svmstream.h>
#include <zmq.h>

enum { D = 3, PATIENCE = 30 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What became of samples; the outbox continues by itself. */
static void notify(void *user, const svs_outbox_event *e) {
    (void)user;
    if (e->kind == SVS_OUTBOX_REFUSED)
        fprintf(stderr, "producer: sample %lld is refused: %s (%s)\n", (long long)e->first, e->reason,
                e->code);
    else if (e->kind == SVS_OUTBOX_LATER)
        fprintf(stderr, "producer: trying again in %g s: %s (%s)\n", e->wait, e->reason, e->code);
    else if (e->kind == SVS_OUTBOX_RESTARTED && strcmp(e->code, "power_cut") == 0)
        fprintf(stderr, "producer: samples %lld to %lld are lost: %s\n", (long long)e->first,
                (long long)e->last, e->reason);
    else if (e->kind == SVS_OUTBOX_RESTARTED)
        printf("another process: %lld acknowledged samples are lost with the one before\n",
               (long long)e->count);
}

/* One more sample, if the outbox can take it: a point on a slowly turning spiral, and its side of a plane. */
static int make(svs_outbox *box, long i) {
    double x[D] = {cos(0.7 * (double)i), sin(1.3 * (double)i), 0.5 * cos(0.11 * (double)i)};
    svs_outbox_sample s = {.x = x, .d = D, .id = svs_int(i), .y = svs_int(x[0] + 2 * x[1] > x[2])};
    return svs_outbox_pack(box, &s, NULL) == SVS_OK;
}

/* Sends what may go, and takes the replies that come within the time that the outbox has for them. */
static void exchange(svs_outbox *box, void *dealer) {
    zmq_pollitem_t item = {dealer, 0, ZMQ_POLLIN, 0};
    const void *bytes;
    size_t size;
    char reply[1024];
    while (svs_outbox_frame(box, seconds(), &bytes, &size) &&
           zmq_send(dealer, bytes, size, ZMQ_DONTWAIT) >= 0)
        svs_outbox_sent(box, seconds());
    zmq_poll(&item, 1, (long)(1000 * fmin(svs_outbox_wait(box, seconds()) + 0.001, 1)));
    for (int n; (n = zmq_recv(dealer, reply, sizeof reply, ZMQ_DONTWAIT)) >= 0;)
        if (n > (int)sizeof reply || svs_outbox_reply(box, reply, (size_t)n, seconds(), NULL) != SVS_OK)
            fprintf(stderr, "producer: what answers is not svmstream\n");
}

/* Until all are answered for (and on disk), or nothing has been for too long. */
static int deliver(svs_outbox *box, void *dealer, long count) {
    svs_outbox_figures f = {.kept = 1};
    double moved = seconds();
    for (int64_t made = 0, settled = 0; made < count || f.kept > 0; svs_outbox_status(box, &f)) {
        while (made < count && make(box, made))
            made++;
        exchange(box, dealer);
        if (f.acked + f.refused + f.taken > settled)
            moved = seconds();
        settled = f.acked + f.refused + f.taken;
        if (seconds() - moved > PATIENCE)
            break;
    }
    printf("%lld acknowledged, %lld refused, %lld sent again, %lld left\n", (long long)f.acked,
           (long long)f.refused, (long long)f.resent, (long long)f.kept);
    if (f.kept > 0)
        fprintf(stderr,
                "producer: nothing was acknowledged for %d s: is `svmstream run --in.mode router` there?\n",
                PATIENCE);
    return f.kept > 0 || f.refused > 0;
}

/* The value of a line `name = "..."` of a key file: 40 characters. */
static int read_key(const char *path, const char *name, char key[41]) {
    char line[256];
    const char *at;
    FILE *f = fopen(path, "r");
    int found = 0;
    while (f && !found && fgets(line, sizeof line, f))
        found = (at = strstr(line, name)) && sscanf(at + strlen(name), " = \"%40[^\"]\"", key) == 1 &&
                strlen(key) == 40;
    memset(line, 0, sizeof line);
    if (f)
        fclose(f);
    return found;
}

/* CURVE: our pair from a file, the server's public key from one or as it is. */
static int secure(void *dealer, const char *pair, const char *server) {
    char mine[41], secret[41], theirs[41];
    int good = read_key(pair, "public-key", mine) && read_key(pair, "secret-key", secret);
    if (good && !read_key(server, "public-key", theirs))
        snprintf(theirs, sizeof theirs, "%s", server);
    good = good && zmq_setsockopt(dealer, ZMQ_CURVE_SERVERKEY, theirs, 41) == 0 &&
           zmq_setsockopt(dealer, ZMQ_CURVE_PUBLICKEY, mine, 41) == 0 &&
           zmq_setsockopt(dealer, ZMQ_CURVE_SECRETKEY, secret, 41) == 0;
    memset(secret, 0, sizeof secret);
    return good;
}

int main(int argc, char **argv) {
    char *end = "";
    const long count = argc > 2 ? strtol(argv[2], &end, 10) : 10000;
    if (argc < 2 || argc > 6 || argc == 5 || count < 1 || *end) {
        fprintf(stderr,
                "usage: producer IN [SAMPLES [NAME [KEYFILE SERVERKEY]]], IN the address of `svmstream "
                "run --in.mode router`\n");
        return 2;
    }
    svs_outbox_options o;
    svs_error err;
    svs_outbox_defaults(&o);
    o.src = argc > 3 ? argv[3] : "spiral";
    o.release = SVS_OUTBOX_SAFEST;
    o.notify = notify;
    svs_outbox *box = svs_outbox_new(&o, &err);
    void *context = zmq_ctx_new(), *dealer = zmq_socket(context, ZMQ_DEALER);
    int status = 1, none = 0;
    zmq_setsockopt(dealer, ZMQ_LINGER, &none, sizeof none);
    if (!box)
        fprintf(stderr, "producer: %s\n", err.text);
    else if (argc == 6 && !secure(dealer, argv[4], argv[5]))
        fprintf(stderr, "producer: no keys in %s and %s; `svmstream curve new` makes them\n", argv[4],
                argv[5]);
    else if (zmq_connect(dealer, argv[1]) != 0)
        fprintf(stderr, "producer: %s: %s\n", argv[1], zmq_strerror(zmq_errno()));
    else
        status = deliver(box, dealer, count);
    zmq_close(dealer);
    zmq_ctx_term(context);
    svs_outbox_free(&box);
    return status;
}
