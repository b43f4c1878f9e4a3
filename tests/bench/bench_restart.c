/* From the exec of a killed process to its first score, at the defaults of a kept state; how large a
 * checkpoint is, and how much the defaults write to the disk. Killed while it is fed flat out, at a random
 * moment. */
#include <poll.h>

#include "bench_acked.h"

enum { KILLS = 11 /* at most */, DIFFERENT = 2048, WINDOW = 1000, WINDOWS_LEAST = 20 };

static const char *const size_flags[] = {"--window", "10000", NULL};

static void flags_of(const char **flags, const char *folder) {
    int n = 0;
    static const char *const common[] = {"--in.mode", "router", "--state.dir"};
    for (int i = 0; i < 3; i++)
        flags[n++] = common[i];
    flags[n++] = folder;
    for (int i = 0; size_flags[i]; i++)
        flags[n++] = size_flags[i];
    flags[n] = NULL;
}

/* ---- the first score */

/* Sends {x} until a score comes, once a millisecond: the first may be made before the subscription is there.
 */
static void await_score(const struct bench_run *run, int d) {
    void *context = zmq_ctx_new(), *sub = zmq_socket(context, ZMQ_SUB), *in = zmq_socket(context, ZMQ_DEALER);
    int none = 0;
    msgpack_sbuffer b;
    msgpack_packer to;
    zmq_pollitem_t item = {sub, 0, ZMQ_POLLIN, 0};
    double zeros[512] = {0}, limit = bench_now() + 60;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&to, &b, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 1);
    bench_pack_text(&to, "x");
    msgpack_pack_ext_with_body(&to, zeros, 8 * (size_t)d, 2);
    zmq_setsockopt(in, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "score.", 6);
    if (zmq_connect(sub, run->out) != 0 || zmq_connect(in, run->in) != 0)
        bench_die("no connection");
    do
        zmq_send(in, b.data, b.size, 0);
    while (zmq_poll(&item, 1, 1) == 0 && bench_now() < limit);
    if (!item.revents)
        bench_die("no score came");
    msgpack_sbuffer_destroy(&b);
    zmq_close(sub);
    zmq_close(in);
    zmq_ctx_term(context);
}

/* A child that feeds flat out, from the number that the process wants, until it is killed. It writes a byte
 * to `done` for every WINDOW samples that were acknowledged. */
static pid_t feeder(const char *address, const struct acked_stream *s, int64_t next, int done) {
    pid_t child = fork();
    if (child != 0)
        return child;
    struct acked_client c = acked_open(address, s, next);
    while (write(done, "", 1) == 1)
        acked_rate(&c, WINDOW, WINDOW);
    _exit(1);
}

static void await_windows(int done, int count) {
    char byte;
    while (count-- > 0)
        if (read(done, &byte, 1) != 1)
            bench_die("the feeder has ended");
}

static int64_t next_number(const char *address) {
    void *context = zmq_ctx_new(), *in = zmq_socket(context, ZMQ_DEALER);
    char reply[256];
    int none = 0;
    int64_t next = -1;
    msgpack_unpacked u;
    zmq_setsockopt(in, ZMQ_LINGER, &none, sizeof none);
    zmq_connect(in, address);
    zmq_send(in,
             "\x82\xa2op\xa5hello\xa3src\xa5"
             "bench",
             20, 0);
    int size = zmq_recv(in, reply, sizeof reply, 0);
    msgpack_unpacked_init(&u);
    if (size < 0 || msgpack_unpack_next(&u, reply, (size_t)size, NULL) != MSGPACK_UNPACK_SUCCESS)
        bench_die("no reply to hello");
    for (uint32_t i = 0; i < u.data.via.map.size; i++)
        if (memcmp(u.data.via.map.ptr[i].key.via.str.ptr, "next", 4) == 0)
            next = u.data.via.map.ptr[i].val.via.i64;
    msgpack_unpacked_destroy(&u);
    zmq_close(in);
    zmq_ctx_term(context);
    return next;
}

static void stop_child(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void kill_and_restart(int d) {
    struct acked_stream stream = acked_stream(DIFFERENT, d);
    struct bench_run run;
    char folder[64];
    const char *flags[16];
    double took[KILLS];
    const int kills = bench_pick(1, 7, KILLS);
    acked_folder(folder);
    flags_of(flags, folder);
    srand(1);
    bench_run_start(&run, flags);
    for (int i = 0; i < kills; i++) {
        int done[2];
        if (pipe(done) != 0)
            bench_die("no pipe");
        pid_t child = feeder(run.in, &stream, next_number(run.in), done[1]);
        await_windows(done[0], bench_quick() ? 2 : WINDOWS_LEAST + rand() % WINDOWS_LEAST);
        stop_child(run.pid);
        stop_child(child);
        close(done[0]);
        close(done[1]);
        fclose(run.log);
        double start = bench_now();
        bench_run_start(&run, flags);
        await_score(&run, d);
        took[i] = bench_now() - start;
    }
    double p50 = bench_quantile(took, kills, 0.5);
    printf("restart to first score, d %d: p50 %.3f s, max %.3f s of %d kills; checkpoint %.2f MiB   asked: "
           "p50 < "
           "0.3\n",
           d, p50, took[kills - 1], kills, acked_file_size(folder, "checkpoint-") / 1048576);
    bench_row((struct bench_row){.ours = p50, .unit = "s", .bar = "<= 0.3"},
              "restart after kill -9 to the first score, window 10000, d %d", d);
    bench_run_stop(&run);
    acked_folder_remove(folder);
    acked_stream_free(&stream);
}

/* ---- what is written */

static double bytes_written(pid_t pid) {
    char path[64], line[128];
    double bytes = 0;
    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "write_bytes: %lf", &bytes) == 1)
            break;
    if (f)
        fclose(f);
    return bytes;
}

/* rate 0: flat out */
static void writes(int d, double rate) {
    struct acked_stream stream = acked_stream(DIFFERENT, d);
    struct bench_run run;
    char folder[64];
    const char *flags[16];
    acked_folder(folder);
    flags_of(flags, folder);
    bench_run_start(&run, flags);
    struct acked_client c = acked_open(run.in, &stream, 0);
    acked_rate(&c, bench_pick(2000, 40000, 40000), WINDOW);
    const int64_t first = c.next;
    const double start = bench_now(), before = bytes_written(run.pid),
                 journal = bench_ask(&run, "status", "journal_bytes"),
                 checkpoints = bench_ask(&run, "status", "checkpoints");
    while (bench_now() - start < bench_pick(1, rate > 0 ? 10 : 4, rate > 0 ? 20 : 5)) {
        acked_rate(&c, rate > 0 ? 10 : WINDOW, rate > 0 ? 10 : WINDOW);
        double ahead = rate > 0 ? (double)(c.next - first) / rate - (bench_now() - start) : 0;
        if (ahead > 0)
            poll(NULL, 0, (int)(1e3 * ahead)); /* nothing is awaited: this is the rate */
    }
    const double seconds = bench_now() - start, mib = 1048576 * seconds;
    printf("written at the defaults, d %d, %7.0f samples/s: %6.2f MiB/s, of it journal %6.2f; %.2f "
           "checkpoints/s\n",
           d, (double)(c.next - first) / seconds, (bytes_written(run.pid) - before) / mib,
           (bench_ask(&run, "status", "journal_bytes") - journal) / mib,
           (bench_ask(&run, "status", "checkpoints") - checkpoints) / seconds);
    bench_row((struct bench_row){.ours = (bytes_written(run.pid) - before) / mib, .unit = "MiB/s"},
              "written to the disk at the defaults, d %d, %s", d,
              rate > 0 ? "1,000 samples/s" : "at the full rate");
    acked_close(&c);
    bench_run_stop(&run);
    acked_folder_remove(folder);
    acked_stream_free(&stream);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("window 10000, all else by default\n");
    kill_and_restart(50);
    writes(50, 0);
    if (bench_quick())
        return bench_end();
    kill_and_restart(10);
    writes(50, 1000);
    writes(10, 1000);
    return bench_end();
}
