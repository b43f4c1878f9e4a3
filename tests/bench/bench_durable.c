/* What kept state costs: acknowledged samples a second with and without a journal, and how long ingest stands
 * still while checkpoints and refits run; beside a bare ZeroMQ echo. All processes stand ready and are
 * measured in turns, so that a slow moment of the machine meets all of them; medians of the ratios of each
 * turn. */
#include <math.h>
#include <sys/prctl.h>

#include "bench_acked.h"

enum { ROUNDS = 9 /* at most */, DIFFERENT = 2048, WINDOWS = 3, SUBJECTS = 6, FLAGS = 24 };

static const long windows[WINDOWS] = {1, 64, 1000};

static int rounds(void) {
    return bench_pick(1, 5, ROUNDS);
}

/* ---- a sync alone */

/* Seconds, p50, of a write of `size` bytes at the end of a file and its fdatasync. */
static double sync_seconds(const char *folder, size_t size) {
    enum { TIMES = 500 };
    double took[TIMES];
    char name[128], *bytes = calloc(1, size);
    snprintf(name, sizeof name, "%s/sync", folder);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    for (int i = 0; i < TIMES; i++) {
        double start = bench_now();
        if (write(fd, bytes, size) != (ssize_t)size || fdatasync(fd) != 0)
            bench_die("cannot write");
        took[i] = bench_now() - start;
    }
    close(fd);
    unlink(name);
    free(bytes);
    return bench_quantile(took, TIMES, 0.5);
}

/* ---- what is compared */

static const struct {
    const char *name, *delivery;
    bool kept;
    double asked[WINDOWS]; /* of its ratio to the first; 0 = nothing */
} subjects[SUBJECTS] = {
    {"acked, nothing kept", "acked", false, {0}},   {"at-least-once", "at-least-once", true, {0}},
    {"durable", "durable", true, {0.35, 0.5, 0.9}}, {"exactly-once", "exactly-once", true, {0}},
    {"bare echo that syncs", NULL, true, {0}},      {"bare echo", NULL, false, {0}}};

struct subject {
    struct bench_run run;
    struct acked_echo echo;
    struct acked_client client;
    char folder[64];
};

static void add_flags(const char **to, const char *const *from) {
    int n = 0;
    while (to[n])
        n++;
    while (*from && n < FLAGS - 1)
        to[n++] = *from++;
}

static void begin(struct subject *s, int which, const char *const *more) {
    const char *flags[FLAGS] = {"--in.mode", "router", "--delivery", subjects[which].delivery};
    if (subjects[which].kept)
        acked_folder(s->folder);
    if (!subjects[which].delivery) {
        s->echo = acked_echo_start(subjects[which].kept ? s->folder : NULL);
        return;
    }
    if (subjects[which].kept)
        add_flags(flags, (const char *const[]){"--state.dir", s->folder, NULL});
    add_flags(flags, more);
    bench_run_start(&s->run, flags);
}

static void end(struct subject *s, int which) {
    acked_close(&s->client);
    if (!subjects[which].delivery)
        acked_echo_stop(&s->echo);
    else
        bench_run_stop(&s->run);
    if (subjects[which].kept)
        acked_folder_remove(s->folder);
}

/* ---- throughput */

static void print_window(const char *title, int window, double rate[SUBJECTS][ROUNDS], double sync) {
    static const char *const bars[] = {">= 0.35", ">= 0.5", ">= 0.9"};
    double kept_nothing = 0;
    for (int i = 0; i < SUBJECTS; i++) {
        double ratio[ROUNDS], bare[ROUNDS];
        for (int r = 0; r < rounds(); r++) {
            ratio[r] = rate[i][r] / rate[0][r];
            bare[r] = rate[i][r] / rate[SUBJECTS - 1][r];
        }
        double middle[ROUNDS];
        memcpy(middle, rate[i], sizeof middle);
        printf("  %4ld  %-20s %9.0f  %5.2f  %5.2f", windows[window], subjects[i].name,
               bench_quantile(middle, rounds(), 0.5), bench_quantile(ratio, rounds(), 0.5),
               bench_quantile(bare, rounds(), 0.5));
        if (subjects[i].asked[window] > 0)
            printf("   >= %.2f   fdatasync alone %3.0f us, %2.0f %% of a turn of %ld",
                   subjects[i].asked[window], 1e6 * sync,
                   100 * sync * middle[rounds() / 2] / (double)windows[window], windows[window]);
        printf("\n");
        if (i == 0)
            kept_nothing = middle[rounds() / 2];
        else
            bench_row((struct bench_row){.ours = middle[rounds() / 2],
                                         .peer = kept_nothing,
                                         .unit = "/s",
                                         .ratio = ratio[rounds() / 2],
                                         .bar = subjects[i].asked[window] > 0 ? bars[window] : NULL},
                      "%s / nothing kept, window %ld, %s", subjects[i].name, windows[window], title);
    }
}

static void throughput(const char *title, const char *const *more) {
    const long messages[WINDOWS] = {bench_pick(300, 1500, 1500), bench_pick(2000, 20000, 20000),
                                    bench_pick(3000, 30000, 30000)};
    static double rate[SUBJECTS][ROUNDS];
    struct acked_stream stream = acked_stream(DIFFERENT, 10);
    struct subject s[SUBJECTS];
    memset(s, 0, sizeof s);
    printf("%s\nwindow                          acked/s  ratio  of bare  asked\n", title);
    for (int i = 0; i < SUBJECTS; i++)
        begin(&s[i], i, more);
    for (int i = 0; i < SUBJECTS; i++) {
        s[i].client = acked_open(subjects[i].delivery ? s[i].run.in : s[i].echo.address, &stream, 0);
        acked_rate(&s[i].client, bench_pick(2000, 40000, 40000),
                   1000); /* the first scales, the first refits */
    }
    for (int w = 0; w < WINDOWS; w++) {
        for (int r = 0; r < rounds(); r++)
            for (int i = 0; i < SUBJECTS; i++)
                rate[i][r] = acked_rate(&s[i].client, messages[w], windows[w]);
        print_window(title, w, rate, sync_seconds(s[1].folder, 200 * (size_t)windows[w]));
    }
    for (int i = 0; i < SUBJECTS; i++)
        end(&s[i], i);
    acked_stream_free(&stream);
}

/* ---- stalls */

#define TICK        100000 /* ns between looks */
#define SIZE        "10000"
#define FEATURES    50
#define BUSY_FEED   10000.0 /* samples a second */
#define WHOLE       5       /* of `stalled`: those before some part is left out */
#define DURABLE_ROW 4

struct stalls {
    double lag50, lag99, lag_max; /* from when a sample was due to its acknowledgement */
    double gap_max;               /* between two acknowledgements */
};

/* Sends at a steady rate, and looks for acknowledgements in between. A lag counts from when the sample was
 * due: a stall is felt by all that come during it. */
static struct stalls steady(struct acked_client *c, double rate) {
    const int64_t first = c->next, count = (int64_t)(rate * bench_pick(1, 4, 8));
    double *lag = calloc((size_t)count, sizeof *lag), start = bench_now(), last = start;
    struct stalls s = {0};
    while (c->taken < first + count) {
        struct timespec pause = {0, TICK};
        double now = bench_now();
        for (; c->next < first + count && now - start >= (double)(c->next - first) / rate;)
            acked_send(c);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        now = bench_now();
        const int64_t before = c->taken;
        while (acked_take(c, ZMQ_DONTWAIT))
            lag[c->taken - 1 - first] = now - start - (double)(c->taken - 1 - first) / rate;
        if (c->taken > before) {
            s.gap_max = fmax(s.gap_max, now - last);
            last = now;
        }
    }
    s.lag50 = bench_quantile(lag, (int)count, 0.5);
    s.lag99 = bench_quantile(lag, (int)count, 0.99);
    s.lag_max = lag[count - 1];
    free(lag);
    return s;
}

static const struct {
    const char *name;
    int subject; /* of `subjects` */
    const char *more[8];
} stalled[] = {
    {"bare echo", 5, {NULL}},
    {"bare echo that syncs", 4, {NULL}},
    {"nothing kept", 0, {NULL}},
    {"at-least-once (default)", 1, {NULL}},
    {"durable", 2, {NULL}},
    {"durable, no checkpoints", 2, {"--checkpoint.seconds", "0", NULL}},
    {"durable, no refits", 2, {"--refit", "none", NULL}},
    {"durable, no novelty", 2, {"--novelty", "none", NULL}},
    {"durable, neither", 2, {"--refit", "none", "--novelty", "none", NULL}},
    {"only the journal", 2, {"--refit", "none", "--novelty", "none", "--checkpoint.seconds", "0", NULL}}};

static double ask(struct subject *s, int which, const char *key) {
    return subjects[which].delivery ? bench_ask(&s->run, "status", key) : NAN;
}

/* Returns the rate that was possible. */
static double stall(int row, const struct acked_stream *stream, double rate) {
    const int which = stalled[row].subject;
    const char *flags[FLAGS] = {"--window", SIZE, NULL};
    struct subject s;
    memset(&s, 0, sizeof s);
    add_flags(flags, stalled[row].more);
    begin(&s, which, flags);
    s.client = acked_open(subjects[which].delivery ? s.run.in : s.echo.address, stream, 0);
    acked_rate(&s.client, bench_pick(2000, 40000, 40000), 1000);
    double most = acked_rate(&s.client, bench_pick(3000, 30000, 30000), 1000);
    double written = ask(&s, which, "checkpoints"), refits = ask(&s, which, "refits");
    struct stalls r = steady(&s.client, rate > 0 ? rate : most / 2);
    printf("  %-26s %8.0f %7.0f %7.2f %7.2f %7.2f %8.2f %6.0f %6.0f %7.2f\n", stalled[row].name, most,
           rate > 0 ? rate : most / 2, 1e3 * r.lag50, 1e3 * r.lag99, 1e3 * r.lag_max, 1e3 * r.gap_max,
           ask(&s, which, "checkpoints") - written, ask(&s, which, "refits") - refits,
           ask(&s, which, "checkpoint_milliseconds"));
    const char *const at = rate == BUSY_FEED ? "10,000/s" : "half the highest rate";
    if (rate > 0) {
        bench_row((struct bench_row){.ours = 1e3 * r.lag99,
                                     .unit = "ms",
                                     .bar = row == DURABLE_ROW ? "<= 1" : NULL},
                  "p99 from due to acknowledged, %s, %s", stalled[row].name, at);
        bench_row((struct bench_row){.ours = 1e3 * r.gap_max,
                                     .unit = "ms",
                                     .bar = row == DURABLE_ROW ? "<= 20" : NULL},
                  "longest pause between acknowledgements, %s, %s", stalled[row].name, at);
    }
    end(&s, which);
    return most;
}

/* At half of what is possible with everything on, and at what a busy feed brings. */
static void stalls(void) {
    struct acked_stream stream = acked_stream(DIFFERENT, FEATURES);
    prctl(PR_SET_TIMERSLACK, 1);
    printf("stalls of ingest in ms, window " SIZE ", d %d; asked of durable: p99 < 1, max < 20\n", FEATURES);
    printf("                             most/s  rate/s     p50     p99     max  gap max  chkpt refits  ms "
           "each\n");
    double rate = 0.5 * stall(3, &stream, 0);
    for (int i = bench_pick(DURABLE_ROW, 0, 0);
         i < bench_pick(WHOLE, 10, (int)(sizeof stalled / sizeof *stalled)); i++)
        stall(i, &stream, rate);
    for (int i = 0; i < bench_pick(0, WHOLE, WHOLE); i++)
        stall(i, &stream, BUSY_FEED);
    acked_stream_free(&stream);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("acknowledged samples, d = 10, one a message; medians of %d turns\n", rounds());
    throughput("default settings", (const char *const[]){NULL});
    if (!bench_quick())
        throughput("no novelty, no refits",
                   (const char *const[]){"--novelty", "none", "--refit", "none", NULL});
    stalls();
    return bench_end();
}
