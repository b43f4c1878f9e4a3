/* Does memory grow with the stream? Resident size after 300,000 and five times as many samples.
 * Every tenth of them waits for a label that never comes. Next to it is the size that
 * `svmstream config show` predicts. */
#include "bench.h"

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

/* MiB of the whole process for d features and two classes, or 0. */
static double predicted(int d) {
    char command[1024], line[256];
    double value = 0, mib;
    int features;
    snprintf(command, sizeof command, "'%s' config show --window 1000", getenv("SVMSTREAM"));
    FILE *p = popen(command, "r");
    while (p && fgets(line, sizeof line, p))
        if (sscanf(line, "# %d features, 2 classes engine %*f MiB, process %lf", &features, &mib) == 2 &&
            features == d)
            value = mib;
    if (p)
        pclose(p);
    return value;
}

static void send_all(struct bench_run *run, const struct bench_frames *f, double upto, double from) {
    int tell[2];
    if (pipe(tell) != 0)
        bench_die("pipe");
    pid_t sender = bench_sender(run->in, f, (long)((upto - from) / f->samples), false, tell[1]);
    waitpid(sender, NULL, 0);
    while (bench_ask(run, "status", "seen") < upto)
        ;
    close(tell[0]);
    close(tell[1]);
}

static void measure(int d) {
    struct bench_frames f = bench_frames(2048, 1, d, false, true, 10);
    struct bench_run run;
    bench_run_start(&run, (const char *const[]){"--window", "1000", NULL});
    const double first = bench_pick(30000, 300000, 1000000), all = bench_pick(60000, 1500000, 5000000);
    send_all(&run, &f, first, 0);
    double early = resident(run.pid);
    send_all(&run, &f, all, first);
    double late = resident(run.pid), expected = predicted(d);
    const double growth = 100 * (late / early - 1);
    printf("%3d %11.2f %11.2f %+8.2f %% %11.2f %+8.1f %%\n", d, early, late, growth, expected,
           expected > 0 ? 100 * (late / expected - 1) : 0);
    bench_row((struct bench_row){.ours = late,
                                 .peer = expected,
                                 .unit = "MiB",
                                 .ratio = late / expected,
                                 .bar = "<= 1",
                                 .exact = true},
              "run with all defaults, d %d, after %.3g samples / predicted", d, all);
    bench_row((struct bench_row){.ours = late,
                                 .peer = early,
                                 .unit = "MiB",
                                 .ratio = late / early,
                                 .bar = bench_quick() ? NULL : "<= 1.02"},
              "run with all defaults, d %d: after %.3g samples / %.3g", d, all, first);
    bench_run_stop(&run);
    bench_frames_free(&f);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("resident MiB of svmstream run, W = 1000; asked: growth <= 1 %%, not above the prediction\n");
    printf("  d    the first         all     growth   predicted  difference\n");
    measure(10);
    if (!bench_quick())
        measure(54);
    return bench_end();
}
