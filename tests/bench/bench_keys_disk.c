/* Many keys in a state that is kept, only a part of them in memory. Prints the rate, resident
 * memory, what is on disk, and how long a message waits while checkpoints are written. Also times a
 * start after a kill, and `status` through the control socket.
 *
 *   bench_keys_disk [KEYS D WINDOW MEMORY SAMPLES]   1000000 4 20 100000 2 (samples a key)
 *
 * Each key has one sample first, then the others come at random. Without a second argument a smaller one is
 * measured too: 100,000 keys with d 10 and W 100 that are all in memory. */
#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "fleet/fleet_internal.h"
#include "state/write_ahead.h"
#include "store/key_files.h"
#include "support/folder.h"
#include "wire/event.h"

#define BATCH 64 /* samples a message */
#define NOW   1e6
#define PARTS 5 /* of what a message takes: in all, of the processor, journal, models, turn */

struct fleet_run {
    int64_t keys, samples;
    int d;
    char window[16], memory[16], path[200];
    struct svi_settings s;
    svi_write_ahead *keeper;
    svi_stream *e;
    struct svi_bytes frame;
    uint64_t seed;
    int64_t n, done;
    double worked, took[PARTS], peak; /* took: the longest ones; peak: files for what is alive */
};

static void sink(void *user, const struct svi_event *event) {
    (void)user, (void)event;
}

static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        bench_die("no /proc");
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

/* MiB of the files whose names begin so. */
static double on_disk(const char *path, const char *kind) {
    double bytes = 0;
    struct stat s;
    char file[512];
    DIR *d = opendir(path);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (strncmp(entry->d_name, kind, strlen(kind)) == 0 && stat(file, &s) == 0)
            bytes += (double)s.st_blocks * 512;
    }
    if (d)
        closedir(d);
    return bytes / 1048576;
}

/* Bytes with files that a checkpoint still needs, for each that counts. */
static double disk_share(const struct fleet_run *r) {
    return (on_disk(r->path, "keys-") + on_disk(r->path, "checkpoint-")) /
           ((double)svi_fleet_of(r->e)->kept.alive / 1048576);
}

/* MiB of memory that no file has. */
static double anonymous(void) {
    char line[128];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib / 1024;
}

static void begin(struct fleet_run *r, FILE *log) {
    svs_error err = {0};
    const char *const given[] = {"key",         "key",     "keys.memory",     r->memory,
                                 "novelty",     "none",    "window",          r->window,
                                 "alert.rules", "none",    "refit",           "none",
                                 "state.dir",   r->path,   "publish.every",   "1000000",
                                 "keys.max",    "2000000", "publish.seconds", "0",
                                 "keys.quota",  "2000000", "threads",         "1",
                                 NULL};
    svi_settings_default(&r->s);
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(&r->s, given[i], given[i + 1], &err) != SVS_OK)
            bench_die(err.text);
    svi_settings_settle_method(&r->s);
    if (!(r->keeper = svi_write_ahead_open(&r->s, sink, NULL, log, &r->e, &err)))
        bench_die(err.text);
}

static void put_sample(struct fleet_run *r, int64_t key) {
    double x[64];
    char name[32];
    snprintf(name, sizeof name, "machine-%07lld", (long long)key);
    for (int j = 0; j < r->d; j++)
        x[j] = bench_gauss(&r->seed);
    const struct svi_message m = {.has_x = true,
                                  .kind = SVI_DENSE,
                                  .d = r->d,
                                  .x = x,
                                  .y = svs_int(x[0] + x[1] > 0),
                                  .ts = NAN,
                                  .weight = 1,
                                  .n = -1,
                                  .key = svs_str(name)};
    svi_message_encode(&m, NULL, false, &r->frame);
    r->n++;
}

static int64_t next_key(struct fleet_run *r) {
    if (r->n < r->keys)
        return r->n;
    r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((r->seed >> 20) % (uint64_t)r->keys);
}

/* One message: written down, applied, and the turn after it. */
static void one_message(struct fleet_run *r) {
    const uint8_t head[] = {0xdc, 0, BATCH};
    struct svi_envelope env;
    struct svi_receipt receipt;
    svs_error err = {0};
    r->frame.size = 0;
    svi_bytes_append(&r->frame, head, sizeof head);
    for (int i = 0; i < BATCH; i++)
        put_sample(r, next_key(r));
    const double start = bench_now(), before = worked(), now = NOW + 1e-4 * (double)r->n;
    if (svi_write_ahead_write(r->keeper, SVI_RECORD_FRAME, now, r->frame.data, r->frame.size, &err) != SVS_OK)
        bench_die(err.text);
    const double written = bench_now();
    svi_envelope_read(&env, r->frame.data, r->frame.size);
    svi_stream_apply(r->e, &env, now, false, &receipt);
    r->done += receipt.accepted;
    const double applied = bench_now();
    if (svi_write_ahead_turn(r->keeper, worked() - before, &err) != SVS_OK)
        bench_die(err.text);
    const double end = bench_now();
    const double part[PARTS] = {end - start, worked() - before, written - start, applied - written,
                                end - applied};
    for (int i = 0; i < PARTS; i++)
        r->took[i] = fmax(r->took[i], part[i]);
    r->worked += end - start;
}

static void feed(struct fleet_run *r, int64_t until, const char *what) {
    const int64_t from = r->n, done = r->done;
    r->worked = 0;
    memset(r->took, 0, sizeof r->took);
    while (r->n < until) {
        one_message(r);
        if (r->n > r->keys && r->n / BATCH % 256 == 0)
            r->peak = fmax(r->peak, disk_share(r));
    }
    if (r->done - done != r->n - from)
        bench_die("samples were refused");
    svi_write_ahead_figures(r->keeper);
    printf("  %-22s %7.0f samples/s; resident %.0f MiB, %.0f without the cache\n", what,
           (double)(r->n - from) / r->worked, resident(), anonymous());
    printf("    longest message %.1f ms, of the processor %.1f (journal %.1f, models %.1f, turn %.1f)\n",
           1000 * r->took[0], 1000 * r->took[1], 1000 * r->took[2], 1000 * r->took[3], 1000 * r->took[4]);
    bench_row((struct bench_row){.ours = (double)(r->n - from) / r->worked, .unit = "/s"},
              "%lld keys on disk, d %d: %s", (long long)r->keys, r->d, what);
}

static void tell_disk(struct fleet_run *r) {
    const struct svi_fleet *f = svi_fleet_of(r->e);
    const double alive = (double)f->kept.alive / 1048576, keys = on_disk(r->path, "keys-"),
                 checkpoints = on_disk(r->path, "checkpoint-");
    printf("  on disk: packed state %.0f MiB (%.0f bytes a key), files of keys %.0f and checkpoints %.1f: "
           "%.2f times, at most %.2f; journal %.0f\n",
           alive, (double)f->kept.alive / (double)r->keys, keys, checkpoints, (keys + checkpoints) / alive,
           r->peak, on_disk(r->path, "journal-"));
    if (alive > 0)
        bench_row((struct bench_row){.ours = (keys + checkpoints) / alive},
                  "%lld keys on disk, d %d: files / packed state", (long long)r->keys, r->d);
    bench_row((struct bench_row){.ours = resident(), .unit = "MiB"}, "%lld keys on disk, d %d: resident",
              (long long)r->keys, r->d);
}

/* As a kill does: nothing more is written. */
static void end(struct fleet_run *r) {
    svi_write_ahead_free(&r->keeper);
    svi_stream_free(&r->e);
}

static void by_socket(struct fleet_run *r) {
    const char *const flags[] = {"--key", "--in.mode",     "router",  "--state.dir",
                                 r->path, "--keys.memory", r->memory, NULL};
    struct bench_run run;
    double took[100];
    double start = bench_now();
    bench_run_start(&run, flags);
    const double began = bench_now() - start, keys = bench_ask(&run, "status", "keys");
    for (int i = 0; i < 100; i++) {
        start = bench_now();
        bench_ask(&run, "status", "keys");
        took[i] = bench_now() - start;
    }
    const double p50 = bench_quantile(took, 100, 0.5);
    start = bench_now();
    bench_ask(&run, "keys", "count");
    printf("  svmstream run: ready after %.2f s with %.0f keys; status p50 %.2f ms, longest %.2f ms; keys "
           "%.1f ms\n",
           began, keys, 1000 * p50, 1000 * took[99], 1000 * (bench_now() - start));
    bench_run_stop(&run);
}

static void measure(int64_t keys, int d, const char *window, const char *memory, int64_t samples) {
    struct fleet_run r = {.keys = keys, .d = d, .samples = samples, .seed = 7};
    snprintf(r.window, sizeof r.window, "%s", window);
    snprintf(r.memory, sizeof r.memory, "%s", memory);
    const char *where = getenv("TMPDIR");
    snprintf(r.path, sizeof r.path, "%.150s/svmstream-XXXXXX", where ? where : "/tmp");
    if (!mkdtemp(r.path))
        bench_die("no folder");
    printf("%lld keys, d %d, W %s, novelty none, keys.memory %s\n", (long long)keys, d, window, memory);
    begin(&r, NULL);
    feed(&r, keys, "a sample of each key");
    feed(&r, keys + keys * (samples - 1) / 2, "then at random");
    feed(&r, keys * samples, "the rest of them");
    tell_disk(&r);
    const double start = bench_now();
    end(&r);
    const double ended = bench_now();
    begin(&r, stdout);
    const double ready = bench_now() - ended;
    printf("  ended in %.2f s; after a kill: ready in %.2f s\n", ended - start, ready);
    bench_row((struct bench_row){.ours = ready, .unit = "s"}, "%lld keys on disk, d %d: ready after a kill",
              (long long)keys, d);
    svs_error err = {0};
    const double before = bench_now();
    if (svi_write_ahead_save(r.keeper, NULL, NULL, &err) != SVS_OK)
        bench_die(err.text);
    const double saved = bench_now();
    end(&r);
    const double again = bench_now();
    begin(&r, stdout);
    printf("  saved in %.2f s; from that checkpoint alone: ready in %.2f s; resident %.0f MiB\n",
           saved - before, bench_now() - again, resident());
    end(&r);
    if (getenv("SVMSTREAM"))
        by_socket(&r);
    test_folder_remove(r.path);
    svi_bytes_clear(&r.frame);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 5) {
        measure(atoll(argv[1]), atoi(argv[2]), argv[3], argv[4], atoll(argv[5]));
        return 0;
    }
    if (bench_quick())
        measure(3000, 4, "20", "1000", 3);
    else
        measure(bench_pick(0, 300000, 1000000), 4, "20", bench_pick(0, 1, 0) ? "30000" : "100000", 2);
    if (!bench_quick())
        measure(bench_pick(0, 30000, 100000), 10, "100", "100000", 110);
    return bench_end();
}
