/* Microseconds of a nearest-neighbour query and of a push, by instruction set. A query finds the
 * nearest of the last 200 rows and the 5 nearest of the last 5000, in one call. The peer is a
 * search that measures every row with the same kernel. Rows are Gaussian, where no row is near and
 * order gives no hint, or real streams. Those are standardised by running mean and deviation and
 * cut at +-10.
 *
 * usage: bench_neighbours [FILE.csv ...] (the last column is the label and left out; without header: numbers)
 */
#include "bank/neighbours.h"

#include <math.h>

#include "bench.h"

#define CAPACITY 5000
#define RECENT   200
#define SHORT    1000
#define QUERIES  20000
#define PASSES   5 /* at most */

struct bench_rows {
    const char *name;
    float *z; /* count x stride, aligned */
    int count, d, stride;
};

static struct bench_rows bench_rows_new(const char *name, int count, int d) {
    struct bench_rows r = {name, NULL, count, d, (d + 15) / 16 * 16};
    r.z = aligned_alloc(64, (size_t)count * (size_t)r.stride * sizeof *r.z);
    if (!r.z)
        bench_die("no memory");
    memset(r.z, 0, (size_t)count * (size_t)r.stride * sizeof *r.z);
    return r;
}

static struct bench_rows bench_noise(int d) {
    struct bench_rows r = bench_rows_new("noise", CAPACITY + QUERIES, d);
    uint64_t seed = 3;
    for (int i = 0; i < r.count; i++)
        for (int j = 0; j < d; j++)
            r.z[(size_t)i * (size_t)r.stride + (size_t)j] = (float)bench_gauss(&seed);
    return r;
}

static int bench_numbers(char *line, double *x, int most) {
    int n = 0;
    for (char *at = strtok(line, ","); at && n < most; at = strtok(NULL, ","))
        x[n++] = strtod(at, NULL);
    return n;
}

static struct bench_rows bench_file(const char *path) {
    char line[16384];
    double x[512], mean[512] = {0}, square[512] = {0};
    struct bench_rows r = {0};
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        bench_die(path);
    for (int i = 0; i < CAPACITY + QUERIES && fgets(line, sizeof line, f); i++) {
        const int d = bench_numbers(line, x, 512) - 1;
        if (!r.z)
            r = bench_rows_new(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, CAPACITY + QUERIES, d);
        for (int j = 0; j < r.d; j++) {
            const double gap = x[j] - mean[j];
            mean[j] += gap / (i + 1);
            square[j] += gap * (x[j] - mean[j]);
            const double deviation = sqrt(square[j] / (i + 1));
            const double z = deviation > 0 ? (x[j] - mean[j]) / deviation : 0;
            r.z[(size_t)i * (size_t)r.stride + (size_t)j] = (float)fmax(-10, fmin(10, z));
        }
        r.count = i + 1;
    }
    fclose(f);
    return r;
}

/* The distance of the 5th by measuring all: 64 rows at a time. */
static float bench_all(const struct svi_neighbours *n, const float *z) {
    float worst[5] = {HUGE_VALF, HUGE_VALF, HUGE_VALF, HUGE_VALF, HUGE_VALF}, distance[SVI_NEAREST_ROWS];
    for (int b = 0; b < n->blocks; b++) {
        n->kernels->distances(n->rows + (size_t)b * SVI_NEAREST_ROWS * (size_t)n->stride, (size_t)n->stride,
                              ~(uint64_t)0, z, (n->d + 15) / 16 * 16, distance);
        for (int i = 0; i < SVI_NEAREST_ROWS; i++)
            if (distance[i] < worst[4]) {
                int at = 4;
                for (; at > 0 && distance[i] < worst[at - 1]; at--)
                    worst[at] = worst[at - 1];
                worst[at] = distance[i];
            }
    }
    return worst[4];
}

/* Of this process: others may want the processor, too. */
static double bench_cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of all rows in their order, with a query before each from `from` on. */
static double bench_pass(struct svi_neighbours *n, const struct bench_rows *r, int from, double *sum) {
    struct svi_neighbours_query of[] = {
        {.recent = RECENT, .k = 1}, {.recent = SHORT, .k = 5}, {.recent = -1, .k = 5}};
    const double start = bench_cpu();
    for (int i = 0; i < r->count; i++) {
        const float *z = r->z + (size_t)i * (size_t)r->stride;
        if (i >= from) {
            svi_neighbours_find(n, z, of, 3);
            for (int q = 0; q < 3; q++)
                *sum += of[q].found ? of[q].row[of[q].found - 1].distance : 0;
        }
        if (svi_neighbours_reserve(n, NULL) != SVS_OK)
            bench_die("no memory");
        svi_neighbours_push(n, z, 0, 0);
    }
    return bench_cpu() - start;
}

static void bench_one(const struct bench_rows *r, svs_isa isa, const char *name) {
    struct svi_neighbours n;
    double sum = 0, both[PASSES], push[PASSES];
    const int passes = bench_pick(1, 1, PASSES);
    const int from = r->count > 2 * CAPACITY ? CAPACITY : r->count / 2, measured = r->count - from;
    if (svi_neighbours_init(&n, CAPACITY, r->d, isa, NULL) != SVS_OK)
        return;
    for (int pass = 0; pass < passes; pass++) {
        push[pass] = bench_pass(&n, r, r->count, &sum);
        both[pass] = bench_pass(&n, r, from, &sum) - push[pass];
    }
    double all = bench_cpu();
    for (int i = 0; i < 1000; i++)
        sum += bench_all(&n, r->z + (size_t)i * (size_t)r->stride);
    all = bench_cpu() - all;
    printf("%-16s %4d  %-8s %8.2f %8.2f %8.3f %10.2f   %g\n", r->name, r->d, name,
           1e6 * bench_quantile(both, passes, 0) / measured,
           1e6 * bench_quantile(both, passes, .5) / measured,
           1e6 * bench_quantile(push, passes, 0) / r->count, 1e6 * all / 1000, sum);
    const double query = 1e6 * both[0] / measured;
    if (isa == SVS_ISA_AVX2)
        bench_row(
            (struct bench_row){.ours = query, .peer = 1e3 * all, .unit = "us", .ratio = 1e3 * all / query},
            "all rows measured / nearest neighbours, %s, d %d, %s", r->name, r->d, name);
    svi_neighbours_clear(&n);
}

int main(int argc, char **argv) {
    static const int dims[] = {5, 8, 27, 54, 100, 300};
    static const struct {
        svs_isa isa;
        const char *name;
    } isas[] = {{SVS_ISA_AVX512, "avx512"}, {SVS_ISA_AVX2, "avx2"}, {SVS_ISA_GENERIC, "generic"}};
    printf("%-16s %4s  %-8s %8s %8s %8s %10s   microseconds, capacity %d\n", "rows", "d", "isa", "least",
           "median", "push", "all rows", CAPACITY);
    for (int i = 0; i < bench_pick(1, 4, (int)(sizeof dims / sizeof *dims)) + argc - 1; i++) {
        const int noise = bench_pick(1, 4, (int)(sizeof dims / sizeof *dims));
        struct bench_rows r = i < noise ? bench_noise(dims[i]) : bench_file(argv[1 + i - noise]);
        for (int k = bench_pick(1, 0, 0); k < bench_pick(2, 2, 3); k++)
            bench_one(&r, isas[k].isa, isas[k].name);
        free(r.z);
    }
    return bench_end();
}
