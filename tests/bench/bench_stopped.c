/* Three subscribers to all scores at half the rate that is possible with them, of which one stands still:
 * what the others lose, and how much memory the process takes for it. */
#include "bench_acked.h"

enum { DIFFERENT = 2048, SUBSCRIBERS = 3, LATEST = 5000 };

static long scores_sent(void) {
    return bench_pick(10000, 200000, 500000);
}

/* A child that says when it is subscribed, then counts scores until none comes for LATEST ms; its count goes
 * to the pipe. */
static pid_t subscriber(const char *address, int tell) {
    pid_t child = fork();
    if (child != 0)
        return child;
    void *context = zmq_ctx_new(), *sub = zmq_socket(context, ZMQ_SUB);
    int patience = LATEST;
    double scores = 0;
    zmq_msg_t m;
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "score.", 6);
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "stats.", 6);
    zmq_connect(sub, address);
    zmq_msg_init(&m);
    for (bool told = false; zmq_msg_recv(&m, sub, 0) >= 0; told = true) {
        scores +=
            zmq_msg_more(&m) && *(char *)zmq_msg_data(&m) == 's' && ((char *)zmq_msg_data(&m))[1] == 'c';
        if (!told && write(tell, "s", 1) == 1) /* stats go on for ever, so they count as silence now */
            zmq_setsockopt(sub, ZMQ_UNSUBSCRIBE, "stats.", 6),
                zmq_setsockopt(sub, ZMQ_RCVTIMEO, &patience, 4);
    }
    if (write(tell, &scores, sizeof scores) != sizeof scores)
        bench_die("pipe");
    _exit(0);
}

static double resident(pid_t pid) {
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib / 1024;
}

/* Acknowledged samples at a steady rate, looked after once a millisecond; returns the largest resident size.
 */
static double feed(struct acked_client *c, const struct bench_run *run, double rate, long count) {
    const int64_t first = c->next;
    const double start = bench_now();
    double largest = 0;
    for (long looks = 0; c->taken < first + count; looks++) {
        zmq_pollitem_t reply = {.socket = c->socket, .events = ZMQ_POLLIN};
        double due = rate * (bench_now() - start);
        while (c->next < first + count && (double)(c->next - first) < due && c->next - c->taken < 1000)
            acked_send(c);
        while (acked_take(c, ZMQ_DONTWAIT))
            ;
        if (looks % 100 == 0 && resident(run->pid) > largest)
            largest = resident(run->pid);
        zmq_poll(&reply, 1, 1); /* an acknowledgement, or a millisecond in which more is due */
    }
    return largest;
}

static void measure(const char *name, int stopped, const char *const *flags) {
    struct acked_stream stream = acked_stream(DIFFERENT, 10);
    struct bench_run run;
    int tell[SUBSCRIBERS][2];
    pid_t child[SUBSCRIBERS];
    char byte;
    double scores, lost = 0;
    bench_run_start(&run, flags);
    for (int i = 0; i < SUBSCRIBERS; i++) {
        if (pipe(tell[i]) != 0)
            bench_die("pipe");
        child[i] = subscriber(run.out, tell[i][1]);
        if (read(tell[i][0], &byte, 1) != 1)
            bench_die("a subscriber ended");
    }
    struct acked_client c = acked_open(run.in, &stream, 0);
    const double most = acked_rate(&c, scores_sent() / 5, 1000);
    for (int i = 0; i < stopped; i++)
        kill(child[i], SIGSTOP);
    const double before = resident(run.pid), largest = feed(&c, &run, most / 2, scores_sent());
    for (int i = stopped; i < SUBSCRIBERS; i++) {
        if (read(tell[i][0], &scores, sizeof scores) != sizeof scores)
            bench_die("a subscriber ended");
        lost += (double)(scores_sent() + scores_sent() / 5) - scores;
    }
    for (int i = 0; i < SUBSCRIBERS; i++) {
        kill(child[i], SIGKILL);
        waitpid(child[i], NULL, 0);
    }
    printf(
        "%-22s %d of %d stopped, %6.0f/s: the others lost %.0f of %ld each, memory %.1f MiB, grew by %.1f\n",
        name, stopped, SUBSCRIBERS, most / 2, lost / (SUBSCRIBERS - stopped), scores_sent(), before,
        largest - before);
    bench_row((struct bench_row){.ours = lost, .bar = "= 0", .exact = true},
              "%d of 3 subscribers stopped, %s: scores lost by the others", stopped, name);
    bench_row((struct bench_row){.ours = largest - before, .unit = "MiB", .bar = "<= 10"},
              "%d of 3 subscribers stopped, %s: memory grew by", stopped, name);
    acked_close(&c);
    bench_run_stop(&run);
    acked_stream_free(&stream);
}

int main(void) {
    static const char *const usual[] = {"--in.mode", "router", NULL}, *const bare[] = {"--in.mode", "router",
                                                                                       "--novelty", "none",
                                                                                       "--refit",   "none",
                                                                                       NULL};
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("asked: 0 lost, less than 10 MiB\n");
    for (int stopped = bench_pick(1, 0, 0); stopped < 2; stopped++) {
        measure("default settings", stopped, usual);
        if (!bench_quick())
            measure("no novelty, no refits", stopped, bare);
    }
    return bench_end();
}
