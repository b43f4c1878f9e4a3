/* What it would cost to keep a key as packed bytes between its samples. It is measured on the
 * judges of its sensors alone, the largest part of a key with novelty. One of many keys takes a
 * row, chosen at random or by Zipf's law. A live key is judged where it lies. A packed key is first
 * brought into the live object of the thread and packed again after the row. There are two forms of
 * packed: the archive that eviction writes, and the blocks as they are (svi_arrays_copy does no
 * more than these copies).
 *
 *     bench_pack [KEYS] [ROWS]     2,000 keys, which take 1 GB (full: 10,000); 5,000 rows a round
 *
 * Ways take turns in one run, medians of all rounds. Prints; judges nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "reference.h"
#include "result.h"
#include "support/sensors.h"
#include "wire/archive_file.h"

enum { D = 12, KEY_BYTES = 300000, CONTEXTS = 2, VALUES = 4096, LEARNED = 300, ROUNDS = 9 /* at most */ };
enum { LIVE, HOT, ARCHIVE, BLOCKS, WHOLE, WAYS };

static const char *const ways[WAYS] = {"live", "hot", "archive", "blocks", "whole"};

struct bench {
    int keys, rows;
    double x[VALUES][D];
    int *order; /* rows: the key of each */
    svi_sensors **live;
    struct svi_bytes *packed;
    uint8_t **block; /* as large as what is packed */
    svi_sensors *one;
    uint8_t *capacity;
    size_t size; /* of a block */
    double time;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "bench_pack: %s\n", what);
    exit(1);
}

static svi_sensors *sensors_of_key(void) {
    svs_error err;
    svi_sensors *s = sensors_open(D, CONTEXTS, true, &err);
    must(s, "no memory");
    for (int i = 0; i < CONTEXTS; i++)
        must(svi_sensors_set_context(s, D - 1 - i), "no context");
    must(svi_sensors_reserve_context(s, &err) == SVS_OK, "no memory");
    return s;
}

static void take(struct bench *b, svi_sensors *s, int row) {
    struct svi_evidence findings[SVI_DETECTORS] = {{0}};
    svs_error err;
    const struct svi_detector_shape shape = {D, CONTEXTS, true};
    void *state = s;
    must(svi_sensor_detectors.reserve(&state, &shape, &err) == SVS_OK, "no memory");
    struct svi_moment at;
    svi_context_moment(NULL, b->time + 60.0 * row, &at);
    sensors_step(s, b->x[row % VALUES], &at, findings);
}

static void pack(svi_sensors *s, struct svi_bytes *to) {
    struct svi_archive_out out;
    svs_error err = {0};
    to->size = 0;
    svi_packed_out_begin(&out, to, "sensors", &err);
    svi_sensor_detectors.archive(&out.archive, s);
    must(err.code == SVS_OK, err.text);
}

static void unpack(svi_sensors *s, const struct svi_bytes *from) {
    struct svi_archive_in in;
    svs_error err = {0};
    svi_packed_in_begin(&in, from->data, from->size, "sensors", &err);
    svi_sensor_detectors.archive(&in.archive, s);
    must(svi_archive_in_end(&in) == SVS_OK, err.text);
}

static double run(struct bench *b, int way) {
    const double began = now();
    const size_t size = way == WHOLE ? KEY_BYTES : b->size;
    for (int i = 0; i < b->rows; i++) {
        const int key = b->order[i];
        svi_sensors *s = b->live[way == LIVE ? key : 0];
        if (way == ARCHIVE) {
            s = sensors_of_key(); /* loading goes into new ones */
            unpack(s, &b->packed[key]);
        } else if (way == BLOCKS || way == WHOLE) {
            memcpy(b->capacity, b->block[key], size);
        }
        take(b, s, i);
        if (way == ARCHIVE) {
            pack(s, &b->packed[key]);
            sensors_close(s);
        } else if (way == BLOCKS || way == WHOLE) {
            memcpy(b->block[key], b->capacity, size);
        }
    }
    return (now() - began) / b->rows;
}

static int compare(const void *a, const void *b) {
    const double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, compare);
    return v[n / 2];
}

/* Zipf's law with exponent 1, keys in no order. */
static void choose(struct bench *b, bool zipf, uint64_t *seed) {
    double *upto = calloc((size_t)b->keys, sizeof *upto), sum = 0;
    must(upto, "no memory");
    for (int k = 0; k < b->keys; k++)
        upto[k] = sum += zipf ? 1.0 / (1 + (k * 7919LL) % b->keys) : 1;
    for (int i = 0; i < b->rows; i++) {
        const double at = sum * ref_uniform(seed);
        int low = 0, high = b->keys - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (upto[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        b->order[i] = low;
    }
    free(upto);
}

static void measure(struct bench *b, bool zipf, uint64_t *seed) {
    double seconds[WAYS][ROUNDS];
    const int rounds = bench_pick(1, 5, ROUNDS);
    for (int r = 0; r < rounds; r++) {
        choose(b, zipf, seed);
        for (int way = 0; way < WAYS; way++)
            seconds[way][r] = run(b, way);
        b->time += 60.0 * b->rows;
    }
    const double live = median(seconds[LIVE], rounds);
    for (int way = 0; way < WAYS; way++) {
        const double s = median(seconds[way], rounds);
        printf("%-7s %-8s %8.2f us a row %10.2f of live\n", zipf ? "Zipf" : "random", ways[way], 1e6 * s,
               s / live);
        if (way == ARCHIVE || way == BLOCKS)
            bench_row(
                (struct bench_row){.ours = 1e6 * s, .peer = 1e6 * live, .unit = "us", .ratio = s / live},
                "sensors of a key packed between rows (%s) / live, %s keys", ways[way],
                zipf ? "Zipf's" : "random");
    }
}

int main(int argc, char **argv) {
    static struct bench b;
    uint64_t seed = 1;
    b.keys = argc > 1 ? atoi(argv[1]) : bench_pick(50, 2000, 10000);
    b.rows = argc > 2 ? atoi(argv[2]) : bench_pick(200, 5000, 5000);
    b.time = 1.7e9;
    b.live = calloc((size_t)b.keys, sizeof *b.live);
    b.packed = calloc((size_t)b.keys, sizeof *b.packed);
    b.block = calloc((size_t)b.keys, sizeof *b.block);
    b.order = calloc((size_t)b.rows, sizeof *b.order);
    must(b.live && b.packed && b.block && b.order, "no memory");
    for (int i = 0; i < VALUES; i++)
        for (int j = 0; j < D; j++)
            b.x[i][j] = ref_gauss(&seed);
    for (int k = 0; k < b.keys; k++) {
        b.live[k] = sensors_of_key();
        for (int row = 0; row < LEARNED; row++)
            take(&b, b.live[k], row + k);
        pack(b.live[k], &b.packed[k]);
        b.size = b.packed[0].size;
        b.block[k] = malloc(KEY_BYTES);
        must(b.block[k], "no memory");
        memset(b.block[k], 1, KEY_BYTES);
    }
    b.time += 60.0 * (LEARNED + b.keys);
    b.capacity = malloc(KEY_BYTES);
    must(b.capacity, "no memory");
    printf("%d keys, %d columns, %d of context, %zu bytes packed\n", b.keys, D, CONTEXTS, b.size);
    measure(&b, false, &seed);
    measure(&b, true, &seed);
    for (int k = 0; k < b.keys; k++) {
        sensors_close(b.live[k]);
        svi_bytes_clear(&b.packed[k]);
        free(b.block[k]);
    }
    free(b.capacity), free(b.live), free(b.packed), free(b.block), free(b.order);
    return bench_end();
}
