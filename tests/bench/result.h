/* result.h: a benchmark's rows in the table of `make bench`, and the form in which it runs.
 *
 * BENCH_FORM is quick (CI: does it run, are the results right), whole (the default) or full. A row is one
 * line
 * `= NAME | OURS | PEER | RATIO | BAR | VERDICT` on standard output; tests/bench/run collects the rows. A bar
 * applies to the ratio, or to our figure where there is no ratio. An exact bar holds on a busy machine, too:
 * the program fails without it. The others are times: they are not judged in the quick form. */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline int bench_pick(int quick, int whole, int full) {
    const char *form = getenv("BENCH_FORM");
    return form && strcmp(form, "quick") == 0 ? quick : form && strcmp(form, "full") == 0 ? full : whole;
}

static inline bool bench_quick(void) {
    return bench_pick(1, 0, 0);
}

struct bench_row {
    double ours, peer, ratio; /* peer, ratio: 0 = there is none */
    const char *unit;
    const char *bar; /* "<= 0.25", ">= 2"; NULL = none */
    bool exact;
};

/* Rows whose exact bar was missed. */
static inline int *bench_wrong(void) {
    static int count;
    return &count;
}

static inline void bench_figure(double value, const char *unit) {
    if (fabs(value) >= 1e6)
        printf(" %.3g M", value / 1e6);
    else if (fabs(value) >= 10000)
        printf(" %lld,%03lld", llround(value) / 1000, llabs(llround(value) % 1000));
    else
        printf(" %.4g", value);
    if (unit)
        printf(" %s", unit);
}

static inline bool bench_within(double value, const char *bar) {
    const double bound = strtod(bar + strcspn(bar, "0123456789.-"), NULL);
    if (bar[0] == '=')
        return value == bound;
    return bar[0] == '<' ? value <= bound : value >= bound; /* a NaN is within no bar */
}

static inline void bench_row(struct bench_row r, const char *format, ...) {
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    printf("= %s |", name);
    bench_figure(r.ours, r.unit);
    printf(" |");
    if (r.peer != 0)
        bench_figure(r.peer, r.unit);
    printf(" |");
    if (r.ratio != 0)
        printf(" %.3g", r.ratio);
    printf(" | %s |", r.bar ? r.bar : "");
    if (r.bar && (r.exact || !bench_quick())) {
        const bool good = bench_within(r.ratio != 0 ? r.ratio : r.ours, r.bar);
        printf(" %s", good ? "ok" : r.exact ? "WRONG" : "missed");
        *bench_wrong() += !good && r.exact;
    }
    printf("\n");
    fflush(stdout);
}

/* The exit code of the program. */
static inline int bench_end(void) {
    return *bench_wrong() > 0;
}

#endif
