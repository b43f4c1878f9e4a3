/* The nearest of the last rows (neighbours.h).
 *
 * The row with number i lies in block ((i - base) / 64) mod blocks at place i mod 64: a block holds an
 * aligned run of 64 numbers, and nothing moves when the ring wraps. It does not wrap before it has its
 * full capacity, so that rows keep their places while it grows. There is one block more than the rows
 * need: the oldest rows are out of reach before their block is overwritten. In `rows` and `sketch`
 * everything from value d on is always zero, so that growing d only means using more columns.
 *
 * A search sums all rows' sketches over the first chunks, which gives a start bound that about k rows
 * meet. It measures these rows exactly, some of them where they are many; the k-th best distance is the
 * real bound. A second sweep, from the
 * newest block to the oldest, measures every other row whose sketch is within the bound, which tightens
 * with each better row. The bound allows for the error of sketches (nearest.h) and for rounding, so that a
 * row that is passed over is further away than the k-th best: the result is that of measuring every row. */
#include "bank/neighbours.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "base/limits.h"
#include "linalg/kernels.h"

#define ROWS           SVI_NEAREST_ROWS
#define AT_ONCE        2     /* up to this many chunks are all summed at the start; of more, only the first */
#define FIRST_ROWS     64    /* first allocation */
#define FIRST_MEASURED 24    /* rows that the first sweep measures, the last block's aside */
#define PIECE_FLOATS   32768 /* about this many values in a piece of the archive */
#define COUNT_MAX      ((int64_t)1 << 60) /* of a loaded number: pushes cannot overflow it */

static const struct svi_nearest_kernels *neighbours_kernels(svs_isa isa) {
    const struct svi_kernels *k = svi_kernels_get(isa);
#if defined(__x86_64__)
    if (k && k->isa == SVS_ISA_AVX512)
        return &svi_nearest_avx512;
    if (k && k->isa == SVS_ISA_AVX2)
        return &svi_nearest_avx2;
#endif
    return k ? &svi_nearest_generic : NULL;
}

enum { BLOCKS, STRIDE, SKETCH, QUERY, CHUNKS, DIMS };
static const struct svi_array neighbours_table[] = {
#define OWNER struct svi_neighbours
    SVI_ARRAY(OWNER, z, NULL, SVI_AXIS(STRIDE)),
    SVI_ARRAY(OWNER, bytes, NULL, SVI_AXIS(STRIDE)),
    SVI_ARRAY(OWNER, query, NULL, SVI_AXIS(QUERY)),
    SVI_ARRAY(OWNER, norm, NULL, SVI_AXIS(CHUNKS)),
    SVI_ARRAY(OWNER, rows, NULL, SVI_AXIS(BLOCKS), SVI_AXIS_LENGTH(ROWS), SVI_AXIS(STRIDE)),
    SVI_ARRAY(OWNER, sketch, NULL, SVI_AXIS(BLOCKS), SVI_AXIS(SKETCH)),
    SVI_ARRAY(OWNER, live, NULL, SVI_AXIS(BLOCKS)),
    SVI_ARRAY(OWNER, targets, NULL, SVI_AXIS(BLOCKS), SVI_AXIS_LENGTH(ROWS)),
    SVI_ARRAY(OWNER, labels, NULL, SVI_AXIS(BLOCKS), SVI_AXIS_LENGTH(ROWS)),
    SVI_ARRAY(OWNER, sums, NULL, SVI_AXIS(BLOCKS), SVI_AXIS_LENGTH(ROWS)),
#undef OWNER
};
static const struct svi_arrays neighbours_arrays =
    SVI_ARRAYS_ALIGNED(neighbours_table, "the nearest neighbours");

/* The block of a run of 64 numbers (run = number / 64). */
static int neighbours_place(const struct svi_neighbours *n, int64_t run) {
    return (int)((run - n->base / ROWS) % n->blocks);
}

static int neighbours_block(const struct svi_neighbours *n, int64_t number) {
    return neighbours_place(n, number / ROWS);
}

static size_t neighbours_slot(const struct svi_neighbours *n, int64_t number) {
    return (size_t)neighbours_block(n, number) * ROWS + (size_t)(number % ROWS);
}

static size_t neighbours_sketch_bytes(int stride) {
    /* Up to the end of the last pair. */
    return svi_nearest_pair_at(stride / 2 - 1) * SVI_NEAREST_PAIR + SVI_NEAREST_PAIR;
}

static size_t neighbours_sketch_block(const struct svi_neighbours *n) {
    return neighbours_sketch_bytes(n->stride);
}

/* ---- capacity */

static int neighbours_stride(int d) {
    return svi_round_up(d > 0 ? d : 1, 16);
}

static void neighbours_dims(int have, int stride, int32_t *dims) {
    /* One block more than `have` rows fill, see the top. */
    dims[BLOCKS] = have ? (have + ROWS - 1) / ROWS + 1 : 0;
    dims[STRIDE] = stride;
    dims[SKETCH] = (int32_t)neighbours_sketch_bytes(stride);
    dims[QUERY] = stride / 2;
    dims[CHUNKS] = stride / 32 + 1;
}

static svs_code neighbours_resize(struct svi_neighbours *n, int have, int stride, svs_error *err) {
    int32_t from[DIMS], to[DIMS];
    neighbours_dims(n->have, n->stride, from);
    neighbours_dims(have, stride, to);
    if (svi_arrays_resize(&neighbours_arrays, n, from, to, err) != SVS_OK)
        return SVS_NO_MEMORY;
    n->have = have;
    n->blocks = to[BLOCKS];
    n->stride = stride;
    return SVS_OK;
}

svs_code svi_neighbours_init(struct svi_neighbours *n, int capacity, int d, svs_isa isa, svs_error *err) {
    *n = (struct svi_neighbours){.kernels = neighbours_kernels(isa), .capacity = capacity, .d = d};
    if (capacity < 1 || capacity > SVI_NEIGHBOURS_MAX || d < 0 || d > SVI_NEIGHBOURS_D)
        return svi_fail(err, SVS_LIMIT, "neighbours: %d rows of %d features are not in 1 to %d of 0 to %d",
                        capacity, d, SVI_NEIGHBOURS_MAX, SVI_NEIGHBOURS_D);
    if (!n->kernels)
        return svi_fail(err, SVS_NOT_SUPPORTED,
                        "neighbours: this machine lacks the requested instruction set");
    int32_t dims[DIMS];
    n->stride = neighbours_stride(d);
    neighbours_dims(0, n->stride, dims);
    return svi_arrays_alloc(&neighbours_arrays, n, dims, err);
}

void svi_neighbours_clear(struct svi_neighbours *n) {
    svi_arrays_free(&neighbours_arrays, n);
    *n = (struct svi_neighbours){0};
}

void svi_neighbours_empty(struct svi_neighbours *n) {
    n->oldest = n->pushed;
    n->error = 0;
    /* Pushes continue in block 0, perhaps in the middle of a run; a push clears a block's live bits only
     * at its start. */
    n->base = n->pushed / ROWS * ROWS;
    if (n->blocks)
        n->live[0] = 0;
}

svs_code svi_neighbours_grow(struct svi_neighbours *n, int d, svs_error *err) {
    if (d > SVI_NEIGHBOURS_D)
        return svi_fail(err, SVS_LIMIT, "neighbours: %d features are more than %d", d, SVI_NEIGHBOURS_D);
    /* Up to `stride` values there is nothing to do: the columns exist and are 0. */
    if (d > n->stride) {
        const int more = n->stride + n->stride / 2 < SVI_NEIGHBOURS_D ? n->stride + n->stride / 2 : d;
        if (neighbours_resize(n, n->have, neighbours_stride(d > more ? d : more), err) != SVS_OK)
            return SVS_NO_MEMORY;
    }
    n->d = d > n->d ? d : n->d;
    return SVS_OK;
}

static double neighbours_bytes(int have, int stride) {
    int32_t dims[DIMS];
    neighbours_dims(have, stride, dims);
    return (double)svi_arrays_bytes(&neighbours_arrays, dims);
}

svs_code svi_neighbours_reserve(struct svi_neighbours *n, svs_error *err) {
    /* The ring grows only when it is full, and wraps only at full capacity. */
    if (n->pushed - n->oldest < n->have || n->have == n->capacity)
        return SVS_OK;
    int have = n->have == 0 ? FIRST_ROWS : 2 * n->have;
    /* Small rings take their whole capacity at once. */
    if (svi_grow_whole(neighbours_bytes(have, n->stride), neighbours_bytes(n->capacity, n->stride)))
        have = n->capacity;
    return neighbours_resize(n, have < n->capacity ? have : n->capacity, n->stride, err);
}

double svi_neighbours_memory(int capacity, int d) {
    return neighbours_bytes(capacity, neighbours_stride(d));
}

/* ---- rows */

/* Copies a row to n->z, which is zero from d on, and makes its sketch. False: it has a value that cannot
 * be searched for. */
static bool neighbours_load(struct svi_neighbours *n, const float *z, float *error) {
    if (n->d)
        memcpy(n->z, z, (size_t)n->d * sizeof *z);
    return n->kernels->sketch(n->z, n->stride, n->bytes, error);
}

/* e(x) from its square, rounded up: a float sum of d squares is off by less than (d / 16 + 8) units of
 * 6e-8. */
static float neighbours_error(float square) {
    return sqrtf(square) * 1.001f;
}

/* The sum that a row keeps of its own sketch over the chunk of value j: |x|^2 + 128 sum x, modulo 2^16
 * (nearest.h). */
static uint16_t *neighbours_chunk_sum(const struct svi_neighbours *n, size_t slot, int j) {
    int8_t *block = n->sketch + slot / ROWS * neighbours_sketch_block(n);
    int8_t *chunk = block + svi_nearest_chunk_at(j / (2 * SVI_NEAREST_CHUNK)) * SVI_NEAREST_PAIR;
    return (uint16_t *)(void *)chunk + slot % ROWS;
}

/* Writes the row in n->z and its sketch into a slot: values whole, sketch by pairs into the transposed
 * block, and the sum of each chunk. */
static void neighbours_store(struct svi_neighbours *n, size_t slot) {
    int8_t *block = n->sketch + slot / ROWS * neighbours_sketch_block(n) + slot % ROWS * 2;
    memcpy(n->rows + slot * (size_t)n->stride, n->z, (size_t)n->stride * sizeof *n->rows);
    for (int first = 0; first < n->d; first += 2 * SVI_NEAREST_CHUNK) {
        const int last = n->d - first < 2 * SVI_NEAREST_CHUNK ? n->d : first + 2 * SVI_NEAREST_CHUNK;
        int sum = 0;
        for (int j = first; j < last; j++)
            sum += n->bytes[j] * (n->bytes[j] + 128);
        *neighbours_chunk_sum(n, slot, first) = (uint16_t)sum;
        for (int j = first; j < last; j += 2)
            memcpy(block + svi_nearest_pair_at(j / 2) * SVI_NEAREST_PAIR, n->bytes + j, 2);
    }
}

int64_t svi_neighbours_push(struct svi_neighbours *n, const float *z, int label, double target) {
    const int b = neighbours_block(n, n->pushed);
    const size_t slot = neighbours_slot(n, n->pushed);
    float square;
    /* A new run: rows of the run that was in this block are out of reach now, but their bits are still
     * set. */
    if (n->pushed % ROWS == 0)
        n->live[b] = 0;
    if (neighbours_load(n, z, &square)) {
        const float error = neighbours_error(square);
        n->error = n->error > error ? n->error : error;
        neighbours_store(n, slot);
        n->targets[slot] = target;
        n->labels[slot] = label;
        n->live[b] |= (uint64_t)1 << n->pushed % ROWS;
    }
    /* A row that cannot be found takes its number all the same: numbers must stay in step with the
     * caller's. */
    n->pushed++;
    if (n->pushed - n->oldest > n->capacity)
        n->oldest++;
    return n->pushed - 1;
}

void svi_neighbours_remove(struct svi_neighbours *n, int64_t number) {
    if (number >= n->oldest && number < n->pushed)
        n->live[neighbours_block(n, number)] &= ~((uint64_t)1 << number % ROWS);
}

const float *svi_neighbours_row(const struct svi_neighbours *n, int64_t number) {
    if (number < n->oldest || number >= n->pushed ||
        !(n->live[neighbours_block(n, number)] >> number % ROWS & 1))
        return NULL;
    return n->rows + neighbours_slot(n, number) * (size_t)n->stride;
}

void svi_neighbours_renew(struct svi_neighbours *n, int j) {
    for (size_t slot = 0; slot < (size_t)n->blocks * ROWS; slot++) {
        int8_t *block = n->sketch + slot / ROWS * neighbours_sketch_block(n);
        int8_t *byte =
            block + svi_nearest_pair_at(j / 2) * SVI_NEAREST_PAIR + slot % ROWS * 2 + (size_t)j % 2;
        uint16_t *own = neighbours_chunk_sum(n, slot, j);
        /* Byte and sum change together, or sketches would no longer be lower bounds. */
        *own = (uint16_t)(*own - *byte * (*byte + 128));
        *byte = 0;
        n->rows[slot * (size_t)n->stride + (size_t)j] = 0;
    }
}

/* ---- search */

/* The best rows so far, nearest first. */
struct neighbours_best {
    float distance[SVI_NEIGHBOURS_K];
    int64_t number[SVI_NEIGHBOURS_K];
    int count, k;
    int measured; /* rows, as often as they were measured */
    double bound; /* bound of a sketch's sum; HUGE_VAL while there are fewer than k */
    double unit;  /* 2^-shift: one unit of squared sketch distance, in a sum */
};

/* Inserts by distance, newer first among equals. The second sweep meets rows of the first one again: those
 * are skipped. */
static void neighbours_insert(struct neighbours_best *best, float distance, int64_t number) {
    if (best->count == best->k && distance > best->distance[best->k - 1])
        return;
    for (int i = 0; i < best->count; i++)
        if (best->number[i] == number)
            return;
    int i = best->count < best->k ? best->count++ : best->k;
    /* Insertion sort from the end; the worst falls out at place k. */
    for (; i > 0; i--) {
        const float other = best->distance[i - 1];
        if (!(distance < other || (distance == other && number > best->number[i - 1])))
            break;
        if (i < best->k) {
            best->distance[i] = other;
            best->number[i] = best->number[i - 1];
        }
    }
    if (i < best->k) {
        best->distance[i] = distance;
        best->number[i] = number;
    }
}

/* Sets the bound from the k-th best: by nearest.h a row within distance r has |q(z) - q(x)| <= 16 (r +
 * e(z) + e(x)). Distances are off by rounding, and the small terms cover that of this computation. */
static void neighbours_tighten(const struct svi_neighbours *n, struct neighbours_best *best, float error) {
    if (best->count < best->k)
        return;
    const double rounding = 1 + (n->d / 16.0 + 16) * 0x1p-22;
    const double radius = sqrt(best->distance[best->k - 1] * rounding) + n->error + error;
    const double units = radius * radius * (SVI_NEAREST_SCALE * SVI_NEAREST_SCALE) * (1 + 1e-9) + 1e-6;
    best->bound = units * best->unit;
}

/* Mask of the numbers first, first + 1, ..., first + 63 that lie in [low, high). */
static uint64_t neighbours_within(int64_t first, int64_t low, int64_t high) {
    uint64_t mask = ~(uint64_t)0;
    /* Shifts by 64 or more are undefined, hence the tests. */
    if (low > first)
        mask &= low - first < ROWS ? mask << (low - first) : 0;
    if (high < first + ROWS)
        mask &= high > first ? mask >> (first + ROWS - high) : 0;
    return mask;
}

/* Measures the rows of `mask` in the block at `place`, which starts with number `first`, and tightens the
 * bound. */
static void neighbours_measure(const struct svi_neighbours *n, struct neighbours_best *best, int place,
                               int64_t first, uint64_t mask, float error) {
    float distance[ROWS];
    if (!mask)
        return;
    const float *rows = n->rows + (size_t)place * ROWS * (size_t)n->stride;
    n->kernels->distances(rows, (size_t)n->stride, mask, n->z, svi_round_up(n->d, 16), distance);
    /* Distances are packed: the i-th is of the i-th set bit. */
    for (int i = 0; mask; mask &= mask - 1, i++, best->measured++)
        neighbours_insert(best, distance[i], first + __builtin_ctzll(mask));
    neighbours_tighten(n, best, error);
}

/* Measures the rows with numbers in [low, high) whose sketches are within the bound, newest block first.
 * tightening: the bound follows better rows; otherwise it stays that of the start. */
static void neighbours_sweep(const struct svi_neighbours *n, const struct svi_nearest_scan *scan,
                             struct neighbours_best *best, int64_t low, int64_t high, float error,
                             bool tightening) {
    double bound = best->bound;
    for (int64_t block = (high - 1) / ROWS; block >= low / ROWS;) {
        /* A scan descends through adjacent blocks; at block 0 the ring wraps, and the next scan starts at
         * its end. */
        const int from = neighbours_place(n, block);
        const int64_t left = block - low / ROWS;
        uint64_t mask;
        const int found = n->kernels->scan(scan, from, left < from ? from - (int)left : 0, bound, &mask);
        if (found < 0) {
            block -= from + 1;
            continue;
        }
        block -= from - found;
        mask &= n->live[found] & neighbours_within(block * ROWS, low, high);
        neighbours_measure(n, best, found, block * ROWS, mask, error);
        block--;
        if (tightening)
            bound = best->bound;
        else if (best->measured >= FIRST_MEASURED && best->count == best->k)
            return;
    }
}

/* A start bound: a sum that k of the rows with numbers in [low, high) do not exceed. It uses only
 * blocks wholly inside the range. A block at the ring's oldest end counts as inside, because hidden
 * rows have the largest sum. */
static double neighbours_start(const struct svi_neighbours *n, const struct svi_nearest_scan *scan, int k,
                               int64_t low, int64_t high) {
    const int64_t oldest = low == n->oldest ? low / ROWS : (low + ROWS - 1) / ROWS,
                  newest = (high - 1) / ROWS;
    const int from = neighbours_place(n, oldest), to = neighbours_place(n, newest);
    if (oldest > newest)
        return HUGE_VAL;
    if (from <= to)
        return n->kernels->lowest(scan, from, to, k);
    /* The range wraps: k rows of either part are k rows of the range. */
    const uint16_t a = n->kernels->lowest(scan, from, n->blocks - 1, k);
    const uint16_t b = n->kernels->lowest(scan, 0, to, k);
    return a < b ? a : b;
}

/* The k best rows with numbers in [low, pushed), given the sums of the first chunks. The first sweep
 * measures those whose sums are lowest; the second, over all chunks, whatever the bound of those leaves
 * possible. */
static void neighbours_search(const struct svi_neighbours *n, const struct svi_nearest_scan *scan,
                              struct neighbours_best *best, int64_t low, float error) {
    best->count = best->measured = 0;
    if (low == n->pushed)
        return;
    best->bound = neighbours_start(n, scan, best->k, low, n->pushed);
    const double start = best->bound;
    struct svi_nearest_scan part = *scan;
    part.last = part.known;
    neighbours_sweep(n, &part, best, low, n->pushed, error, false);
    /* Fewer than k found: no bound can exclude a row. */
    if (best->count < best->k)
        best->bound = HUGE_VAL;
    /* 65535 as start means that the first sweep had all rows already, unless it had enough. */
    if (start < 65535 || best->measured >= FIRST_MEASURED)
        neighbours_sweep(n, scan, best, low, n->pushed, error, true);
}

/* Sums of the first chunks for all rows held. Rows that cannot be found get the largest sum, so that they
 * do not count towards the start bound. */
static void neighbours_begin(const struct svi_neighbours *n, const struct svi_nearest_scan *scan) {
    /* From the block of the oldest row to that of the newest. */
    const int64_t oldest = n->oldest / ROWS, newest = (n->pushed - 1) / ROWS;
    const int from = neighbours_place(n, oldest), to = neighbours_place(n, newest);
    /* The rows held are one range of blocks, or two where the ring has wrapped. */
    n->kernels->begin(scan, from <= to ? from : 0, to);
    if (from > to)
        n->kernels->begin(scan, from, n->blocks - 1);
    /* The place is counted along: a division for each block takes as long as its sums. */
    for (int64_t block = oldest, b = from; block <= newest; block++, b = b + 1 == n->blocks ? 0 : b + 1) {
        uint64_t hidden = ~(n->live[b] & neighbours_within(block * ROWS, n->oldest, n->pushed));
        for (; hidden; hidden &= hidden - 1)
            n->sums[(size_t)b * ROWS + (size_t)__builtin_ctzll(hidden)] = 65535;
    }
}

static int neighbours_output(const struct svi_neighbours *n, const struct neighbours_best *best,
                             struct svi_neighbour *out) {
    for (int i = 0; i < best->count; i++) {
        const size_t slot = neighbours_slot(n, best->number[i]);
        out[i] =
            (struct svi_neighbour){best->number[i], n->targets[slot], best->distance[i], n->labels[slot]};
    }
    return best->count;
}

/* Prepares a search for z: sketch, chunk norms and the sums of all rows. False: nothing can be found. */
static bool neighbours_query(struct svi_neighbours *n, const float *z, struct svi_nearest_scan *scan,
                             float *error) {
    float square;
    if (n->pushed == n->oldest || !neighbours_load(n, z, &square))
        return false;
    *error = neighbours_error(square);
    const int chunks = n->d > 0 ? (n->d - 1) / (2 * SVI_NEAREST_CHUNK) + 1 : 1;
    *scan = (struct svi_nearest_scan){.sketch = n->sketch,
                                      .block = neighbours_sketch_block(n),
                                      .query = n->query,
                                      .norm = n->norm,
                                      .pairs = (n->d + 1) / 2,
                                      .known = chunks <= AT_ONCE ? chunks : 1,
                                      .last = chunks,
                                      .shift = svi_nearest_shift(n->d),
                                      .sums = n->sums};
    for (int c = 0; c == 0 || c * SVI_NEAREST_CHUNK < scan->pairs; c++) {
        const int first = c * SVI_NEAREST_CHUNK;
        const int last = scan->pairs - first < SVI_NEAREST_CHUNK ? scan->pairs : first + SVI_NEAREST_CHUNK;
        int sum = 0;
        for (int p = first; p < last; p++) {
            const int a = n->bytes[2 * p], b = n->bytes[2 * p + 1];
            /* Layout of svi_nearest_scan: the two bytes + 64, twice. */
            n->query[p] = (int32_t)(((uint32_t)(a + 64) | (uint32_t)(b + 64) << 8) * 0x10001u);
            sum += a * a + b * b;
        }
        n->norm[c] = (uint16_t)sum;
    }
    neighbours_begin(n, scan);
    return true;
}

/* The best rows from number `low` on. `before`: `best` already has those from that number on. Where these
 * are k rows, their bound excludes most of the older ones at once. */
static void neighbours_extend(const struct svi_neighbours *n, const struct svi_nearest_scan *scan,
                              struct neighbours_best *best, int64_t before, int64_t low, float error) {
    if (best->count < best->k || low > before)
        neighbours_search(n, scan, best, low, error);
    else if (low < before)
        neighbours_sweep(n, scan, best, low, before, error, true);
}

void svi_neighbours_find(struct svi_neighbours *n, const float *z, struct svi_neighbours_query *of,
                         int count) {
    struct svi_nearest_scan scan;
    struct neighbours_best best = {.k = 0};
    int64_t before = 0;
    float error = 0;
    const bool can = neighbours_query(n, z, &scan, &error);
    /* The searches share the sums: they differ only in the range and k. */
    for (int i = 0; i < count; i++) {
        const bool part = of[i].recent >= 0 && of[i].recent < n->pushed - n->oldest;
        const int64_t low = part ? n->pushed - of[i].recent : n->oldest;
        const int k = of[i].k < SVI_NEIGHBOURS_K ? of[i].k : SVI_NEIGHBOURS_K;
        of[i].found = 0;
        /* k may be 0, and the search needs a k-th best. */
        if (!can || k < 1)
            continue;
        if (k != best.k)
            best = (struct neighbours_best){.k = k, .unit = ldexp(1, -scan.shift)};
        neighbours_extend(n, &scan, &best, before, low, error);
        of[i].found = neighbours_output(n, &best, of[i].row);
        before = low;
    }
}

/* ---- the archive: rows in pieces, the oldest first; rows that cannot be found are zeros there */

struct neighbours_piece {
    int count, d; /* rows of this piece; values of a row */
    int classes;
    double *targets;
    float *rows;
    int32_t *labels;
    uint8_t *live;
};

enum { PIECE_ROWS, PIECE_VALUES };
static const struct svi_array piece_table[] = {
    SVI_ARRAY_WITH(struct neighbours_piece, targets, "targets", SVI_ARRAY_ANY, 0, SVI_AXIS(PIECE_ROWS)),
    SVI_ARRAY(struct neighbours_piece, rows, "rows", SVI_AXIS(PIECE_ROWS), SVI_AXIS(PIECE_VALUES)),
    SVI_ARRAY(struct neighbours_piece, labels, "labels", SVI_AXIS(PIECE_ROWS)),
    SVI_ARRAY(struct neighbours_piece, live, "live", SVI_AXIS(PIECE_ROWS)),
};
static const struct svi_arrays piece_arrays = SVI_ARRAYS(piece_table, "a piece of the nearest neighbours");

/* Copies rows from `first` on into a piece. Hidden rows are saved as zeros, so that removed data does not
 * stay in the file. */
static void neighbours_gather(const struct svi_neighbours *n, struct neighbours_piece *p, int64_t first) {
    for (int i = 0; i < p->count; i++) {
        const size_t slot = neighbours_slot(n, first + i), size = (size_t)p->d * sizeof *p->rows;
        float *row = p->rows + (size_t)i * (size_t)p->d;
        p->live[i] = n->live[slot / ROWS] >> slot % ROWS & 1;
        p->targets[i] = p->live[i] ? n->targets[slot] : 0;
        p->labels[i] = p->live[i] ? n->labels[slot] : -1;
        if (p->live[i])
            svi_array_copy(row, n->rows + slot * (size_t)n->stride, size);
        for (int j = 0; j < p->d && !p->live[i]; j++)
            row[j] = 0;
    }
}

/* Pushes the rows of a piece, as they were pushed before, and hides those that were hidden. Checked after
 * each push: a live row must be one that can be found, its label or target in range. */
static void neighbours_scatter(struct svi_archive *a, struct svi_neighbours *n,
                               const struct neighbours_piece *p) {
    bool good = true;
    for (int i = 0; i < p->count && svi_archive_ok(a); i++) {
        const bool live = p->live[i];
        if (svi_neighbours_reserve(n, NULL) != SVS_OK) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the rows of the nearest neighbours");
            return;
        }
        const int64_t number =
            svi_neighbours_push(n, p->rows + (size_t)i * (size_t)p->d, p->labels[i], p->targets[i]);
        /* The push has set the live bit if the row can be found. */
        const size_t slot = neighbours_slot(n, number);
        good &= p->labels[i] >= -1 && (!p->classes || p->labels[i] < p->classes);
        good &= p->live[i] <= 1 && (!live || (n->live[slot / ROWS] >> slot % ROWS & 1));
        good &= !live || (p->classes ? p->labels[i] >= 0 : fabs(p->targets[i]) <= SVI_VALUE_MAX);
        if (!live)
            svi_neighbours_remove(n, number);
    }
    svi_archive_check(a, good, "a neighbour's row, label or target is out of range");
}

static void neighbours_archive_rows(struct svi_archive *a, struct svi_neighbours *n, int count, int classes) {
    struct neighbours_piece p = {.d = n->d, .classes = classes};
    /* The size of a piece depends on d and the count, not on the memory allocated, and so do the bytes. */
    const int full = PIECE_FLOATS / (p.d + 8) + 1, piece_rows = count < full ? count : full;
    const int32_t dims[] = {piece_rows, p.d};
    const int64_t first = n->oldest;
    if (svi_arrays_alloc(&piece_arrays, &p, dims, a->err) != SVS_OK)
        return;
    /* Piece by piece through one buffer: a full ring is never copied as a whole. */
    for (int from = 0; from < count && svi_archive_ok(a); from += p.count) {
        p.count = count - from < piece_rows ? count - from : piece_rows;
        const int32_t used[] = {p.count, p.d};
        if (!a->loading)
            neighbours_gather(n, &p, first + from);
        svi_arrays_archive(a, &piece_arrays, &p, dims, used);
        if (a->loading && svi_archive_ok(a))
            neighbours_scatter(a, n, &p);
    }
    svi_arrays_free(&piece_arrays, &p);
}

void svi_neighbours_archive(struct svi_archive *a, struct svi_neighbours *n, int classes) {
    int d = n->d, count = (int)(n->pushed - n->oldest);
    int64_t pushed = n->pushed;
    svi_archive_int(a, "neighbour features", &d, n->d, SVI_NEIGHBOURS_D);
    svi_archive_int(a, "neighbours", &count, 0, n->capacity);
    svi_archive_int64(a, "neighbours pushed", &pushed, count, COUNT_MAX);
    if (!svi_archive_ok(a))
        return;
    if (a->loading) {
        svs_error err;
        /* 4 d + 13 bytes a row (values, target, label, flag): checked before memory is allocated. */
        if (!svi_archive_check(a, svi_archive_left(a) / (4 * (int64_t)d + 13) >= count,
                               "there are fewer neighbours than announced"))
            return;
        svi_neighbours_empty(n);
        if (svi_neighbours_grow(n, d, &err) != SVS_OK) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the nearest neighbours' features");
            return;
        }
        n->pushed = n->oldest = pushed - count; /* the rows pushed by loading get their old numbers */
        svi_neighbours_empty(n);
    }
    if (count > 0)
        neighbours_archive_rows(a, n, count, classes);
}
