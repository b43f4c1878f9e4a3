/* What a sample costs: our recursion and our learner beside dlib's rls and a plain dsymv + dsyr recursion, in
 * turns in one run, one thread, best of many rounds. Prints; judges nothing. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reference.h"
#include "result.h"
#include "svmstream/learner.h"

struct peer;
struct peer *peer_new(int d);
void peer_free(struct peer *p);
double peer_learn(struct peer *p, const double *x, double y);

enum { SAMPLES = 4096, WINDOW = 1000, PATHS = 6 };

struct data {
    int dim, at;
    double *x; /* SAMPLES x dim, x[0] = 1 */
    double y[SAMPLES];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const double *row(const struct data *d, int i) {
    return d->x + (size_t)((unsigned)i % SAMPLES) * d->dim;
}

struct plain {
    double *p, *q, *w;
};

static void plain_add(struct plain *m, const double *x, double y, int n) {
    cblas_dsymv(CblasColMajor, CblasLower, n, 1, m->p, n, x, 1, 0, m->q, 1);
    double a = cblas_ddot(n, x, 1, m->q, 1), e = y - cblas_ddot(n, m->w, 1, x, 1);
    cblas_daxpy(n, e / (1 + a), m->q, 1, m->w, 1);
    cblas_dsyr(CblasColMajor, CblasLower, n, -1 / (1 + a), m->q, 1, m->p, n);
}

struct all {
    struct data d;
    svs_alsvm *add, *slide;
    svs_learner *learner;
    struct peer *peer;
    struct plain plain;
};

static double sink; /* so that no score is optimised away */

static void path(struct all *a, int which, int i) {
    struct data *d = &a->d;
    const double *x = row(d, i), *old = row(d, i + SAMPLES - WINDOW);
    double y = d->y[i % SAMPLES], y_old = d->y[(i + SAMPLES - WINDOW) % SAMPLES], score;
    svs_operation op[2] = {{x, &y, 1, false}, {old, &y_old, 1, true}};
    svs_step step;
    svs_sample s = {x + 1, d->dim - 1, svs_none(), svs_int(y > 0), 1};
    switch (which) {
    case 0:
        svs_alsvm_scores(a->add, x, &score);
        svs_alsvm_step(a->add, op, 1, NULL, NULL);
        sink += score;
        break;
    case 1:
        svs_alsvm_scores(a->slide, x, &score);
        svs_alsvm_step(a->slide, op, 2, NULL, NULL);
        sink += score;
        break;
    case 2:
        svs_learner_step(a->learner, &s, 0, &step, NULL);
        break;
    case 3:
        sink += peer_learn(a->peer, x, y);
        break;
    case 4:
        plain_add(&a->plain, x, y, d->dim);
        break;
    default: /* a slide of the plain recursion costs two of its operations */
        plain_add(&a->plain, x, y, d->dim);
        plain_add(&a->plain, old, y_old, d->dim);
    }
}

static void prepare(struct all *a, int dim, svs_isa isa) {
    uint64_t seed = 1;
    svs_options o;
    a->d.dim = dim;
    a->d.x = malloc(sizeof(double) * SAMPLES * dim);
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < dim; j++)
            a->d.x[(size_t)i * dim + j] = j ? ref_gauss(&seed) : 1;
        a->d.y[i] = a->d.x[(size_t)i * dim + 1] + ref_gauss(&seed) > 0 ? 1 : -1;
    }
    svs_options_default(&o);
    o.isa = isa;
    a->add = svs_alsvm_new(dim, 1, 0.5, isa, NULL);
    a->slide = svs_alsvm_new(dim, 1, 0.5, isa, NULL);
    a->learner = svs_learner_new(&o, dim - 1, NULL);
    a->peer = peer_new(dim);
    a->plain = (struct plain){calloc((size_t)dim * dim, 8), calloc(dim, 8), calloc(dim, 8)};
    for (int i = 0; i < dim; i++)
        a->plain.p[(size_t)i * dim + i] = 2;
    for (int i = 0; i < SAMPLES; i++) { /* the windows are full before a clock starts */
        svs_operation op = {row(&a->d, i), &a->d.y[i], 1, false};
        if (i >= SAMPLES - WINDOW)
            svs_alsvm_step(a->slide, &op, 1, NULL, NULL);
        if (i >= SAMPLES - WINDOW)
            path(a, 2, i);
    }
}

static void release(struct all *a) {
    svs_alsvm_free(&a->add);
    svs_alsvm_free(&a->slide);
    svs_learner_free(&a->learner);
    peer_free(a->peer);
    free(a->d.x);
    free(a->plain.p);
    free(a->plain.q);
    free(a->plain.w);
}

static void measure(int dim, svs_isa isa, const char *name) {
    static struct all a;
    double best[PATHS] = {1, 1, 1, 1, 1, 1};
    int at[PATHS] = {0}, batch = 3000000 / (dim * dim) + 20;
    const int rounds = bench_pick(1, 8, 15);
    memset(&a, 0, sizeof a);
    prepare(&a, dim, isa);
    for (int round = 0; round < rounds; round++)
        for (int which = 0; which < PATHS; which++) {
            double start = now();
            for (int i = 0; i < batch; i++)
                path(&a, which, at[which]++);
            double each = (now() - start) / batch;
            best[which] = each < best[which] ? each : best[which];
        }
    printf("%4d %-8s %8.3f %8.3f %8.3f %9.3f %9.3f   %6.1fx %6.1fx %6.1fx %6.1fx\n", dim, name, best[0] * 1e6,
           best[1] * 1e6, best[2] * 1e6, best[3] * 1e6, best[4] * 1e6, best[3] / best[0], best[3] / best[1],
           best[4] / best[0], best[5] / best[1]);
    bench_row(
        (struct bench_row){
            .ours = best[0] * 1e6, .peer = best[3] * 1e6, .unit = "us", .ratio = best[3] / best[0]},
        "dlib's rls / add, D %d, %s", dim, name);
    bench_row(
        (struct bench_row){
            .ours = best[1] * 1e6, .peer = best[3] * 1e6, .unit = "us", .ratio = best[3] / best[1]},
        "dlib's rls / slide, D %d, %s", dim, name);
    bench_row(
        (struct bench_row){
            .ours = best[0] * 1e6, .peer = best[4] * 1e6, .unit = "us", .ratio = best[4] / best[0]},
        "dsymv + dsyr / add, D %d, %s", dim, name);
    bench_row(
        (struct bench_row){
            .ours = best[1] * 1e6, .peer = best[5] * 1e6, .unit = "us", .ratio = best[5] / best[1]},
        "dsymv + dsyr / slide, D %d, %s", dim, name);
    bench_row((struct bench_row){.ours = best[2] * 1e6, .unit = "us"}, "a sample in the learner, D %d, %s",
              dim, name);
    release(&a);
}

int main(void) {
    static const int dims[] = {11, 51, 101, 201, 501};
    static const struct {
        svs_isa isa;
        const char *name;
    } sets[] = {{SVS_ISA_AVX512, "avx512"}, {SVS_ISA_AVX2, "avx2"}, {SVS_ISA_GENERIC, "generic"}};
    openblas_set_num_threads(1);
    printf("microseconds a sample, W = %d; ratios above 1 are ours faster\n", WINDOW);
    printf("   D set           add    slide  learner  dlib add plain add   dlib/   dlib/   plain/  plain/\n");
    printf("                                 (slide)                        add    slide     add   slide\n");
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++) {
        svs_alsvm *probe = svs_alsvm_new(2, 1, 1, sets[s].isa, NULL);
        for (size_t i = 0; probe && i < (size_t)bench_pick(1, 5, 5); i++)
            measure(dims[i], sets[s].isa, sets[s].name);
        if (!probe)
            printf("%s: not on this machine\n", sets[s].name);
        svs_alsvm_free(&probe);
    }
    return sink == 0.123 ? 1 : bench_end();
}
