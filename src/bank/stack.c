/* Stacks over one ring of rows.
 *
 * A row has an absolute index that is never used again. The ring holds rows `head` to `tail` - 1; stack i
 * has in its P the live ones from first[i] on. Learning a sample appends its rows, and each stack then
 * makes one pass of the recursion for each pair of an added and a removed row. A failed pivot, and every
 * fourth window, is answered by a fresh solve from the rows (without a window: from sums, from which only
 * forgotten samples are subtracted). Rows are held in single precision and P is given the rounded values,
 * so that a removal takes out exactly what was added.
 *
 * Invariants: head <= first[i] <= tail for stacks with a window; all rows of a sample are adjacent and
 * have its number; numbers ascend. Read svi_stacks_learn, stack_slide, stack_solve. */
#include "bank/stack.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/recursion.h"

#define ROWS_FIRST    256 /* initial capacity in rows; it grows by factors of two */
#define SOLVE_WINDOWS 4   /* samples between fresh solves, in windows; without a window, in samples */
#define SOLVE_ALL     4096
#define MAX_WEIGHT    1e3 /* sample weights are clamped to these bounds: P loses its digits beyond them */
#define MIN_WEIGHT    1e-3

/* The columns of the ring. */
struct stack_rows {
    int64_t *number; /* of the row's sample */
    double *weight;
    float *x; /* members each */
    float *target;
    uint8_t *live;
};

enum { ROWS, MEMBERS, ROW_DIMS };
static const struct svi_array row_table[] = {
    SVI_ARRAY_WITH(struct stack_rows, number, "numbers", SVI_ARRAY_COUNT, 0, SVI_AXIS(ROWS)),
    SVI_ARRAY(struct stack_rows, weight, "weights", SVI_AXIS(ROWS)),
    SVI_ARRAY(struct stack_rows, x, "scores", SVI_AXIS(ROWS), SVI_AXIS(MEMBERS)),
    SVI_ARRAY(struct stack_rows, target, "targets", SVI_AXIS(ROWS)),
    SVI_ARRAY(struct stack_rows, live, "live", SVI_AXIS(ROWS)),
};
static const struct svi_arrays row_arrays = SVI_ARRAYS_ALIGNED(row_table, "the rows of a stack");

/* Sums over rows; x includes the constant 1. */
struct stack_sums {
    double *gram;  /* dim x dim: sum c x x' (lower) */
    double *right; /* dim: sum c t x */
};

static const struct svi_array sums_table[] = {
    SVI_ARRAY(struct stack_sums, gram, "gram", SVI_AXIS(0), SVI_AXIS(0)),
    SVI_ARRAY(struct stack_sums, right, "sums", SVI_AXIS(0)),
};
static const struct svi_arrays sums_arrays = SVI_ARRAYS_ALIGNED(sums_table, "the stacks of a bank");

struct stack {
    int64_t window, first; /* in samples, 0 = all; the first row that P holds */
    int64_t next_solve;    /* sample number of the next fresh solve */
    svs_alsvm *m;
    struct stack_sums all; /* window 0: sums over all rows; else NULL */
};

struct svi_stacks {
    struct svi_stacks_options o;
    int32_t dim;        /* members + 1 */
    int64_t head, tail; /* rows */
    int64_t newest;     /* number of the last sample; -1 = none */
    int64_t capacity;   /* rows */
    struct stack_rows rows;
    struct stack of[SVI_STACKS_MAX];
    struct stack_sums solve; /* scratch */
    double *row;             /* scratch: a row with its constant, dim values */
};

/* The place of a row in the ring. */
static inline int64_t stack_at(const svi_stacks *s, int64_t row) {
    return row % s->capacity;
}

/* ---- construction */

static svs_code stacks_build(svi_stacks *s, svs_error *err) {
    /* What is built before a failure is freed by svi_stacks_free. */
    const int32_t rows[] = {(int32_t)s->capacity, s->o.members};
    svs_code code = svi_arrays_alloc(&row_arrays, &s->rows, rows, err);
    if (code == SVS_OK)
        code = svi_arrays_alloc(&sums_arrays, &s->solve, &s->dim, err);
    if (code == SVS_OK && !(s->row = svi_alloc_array((size_t)s->dim, sizeof *s->row)))
        code = svi_fail_memory(err, "the stacks of a bank");
    for (int i = 0; i < s->o.count && code == SVS_OK; i++) {
        struct stack *k = &s->of[i];
        k->window = s->o.windows[i];
        k->m = svs_alsvm_new(s->dim, 1, s->o.ridge, s->o.isa, err);
        code = k->m ? SVS_OK : SVS_NO_MEMORY;
        if (k->m && k->window == 0)
            code = svi_arrays_alloc(&sums_arrays, &k->all, &s->dim, err);
    }
    return code;
}

svi_stacks *svi_stacks_new(const struct svi_stacks_options *o, svs_error *err) {
    svi_stacks *s = svi_alloc(sizeof *s);
    if (s) {
        s->o = *o;
        /* The constant is one more coordinate. */
        s->dim = o->members + 1;
        s->capacity = ROWS_FIRST;
        if (stacks_build(s, err) != SVS_OK)
            svi_stacks_free(&s);
    }
    if (!s) {
        svi_fail_memory(err, "the stacks of a bank");
        return NULL;
    }
    s->newest = -1;
    svi_stacks_reset(s);
    return s;
}

void svi_stacks_free(svi_stacks **ps) {
    svi_stacks *s = *ps;
    if (!s)
        return;
    for (int i = 0; i < SVI_STACKS_MAX; i++) {
        svs_alsvm_free(&s->of[i].m);
        svi_arrays_free(&sums_arrays, &s->of[i].all);
    }
    svi_arrays_free(&row_arrays, &s->rows);
    svi_arrays_free(&sums_arrays, &s->solve);
    svi_free(s->row);
    svi_free(s);
    *ps = NULL;
}

/* Schedules the next fresh solve by sample number, so that results repeat. */
static void stack_plan(svi_stacks *s, struct stack *k) {
    k->next_solve = s->newest + (k->window ? SOLVE_WINDOWS * k->window : SOLVE_ALL);
}

static void sums_zero(const svi_stacks *s, struct stack_sums *k) {
    const size_t n = (size_t)s->dim;
    memset(k->gram, 0, n * n * sizeof *k->gram);
    memset(k->right, 0, n * sizeof *k->right);
}

void svi_stacks_reset(svi_stacks *s) {
    s->head = s->tail;
    for (int i = 0; i < s->o.count; i++) {
        struct stack *k = &s->of[i];
        k->first = s->tail;
        svi_alsvm_reset(k->m, 1, s->o.ridge);
        stack_plan(s, k);
        if (k->all.gram)
            sums_zero(s, &k->all);
    }
}

/* ---- fresh solves */

/* sums += sign c (x x', t x) for one row, x with its constant; lower triangle only. */
static void stack_gather(const svi_stacks *s, int64_t row, double sign, struct stack_sums *sums) {
    const int64_t at = stack_at(s, row);
    const float *held = s->rows.x + at * s->o.members;
    const int m = s->o.members;
    const double c = sign * s->rows.weight[at], target = (double)s->rows.target[at];
    /* In double precision from the rounded values, as P has it. */
    double *x = s->row;
    for (int i = 0; i < m; i++)
        x[i] = (double)held[i];
    x[m] = 1;
    for (int i = 0; i <= m; i++) {
        const double cx = c * x[i];
        double *g = sums->gram + (size_t)i * (size_t)s->dim;
        for (int j = 0; j <= i; j++)
            g[j] += cx * x[j];
        sums->right[i] += cx * target;
    }
}

/* Fresh solve: P and w of a stack from the rows (or sums) that it holds. */
static void stack_solve(svi_stacks *s, struct stack *k) {
    const size_t n = (size_t)s->dim;
    if (k->all.gram)
        svi_arrays_copy(&sums_arrays, &s->solve, &s->dim, &k->all, &s->dim);
    else
        sums_zero(s, &s->solve);
    for (int64_t row = k->first; row < s->tail && !k->all.gram; row++)
        if (s->rows.live[stack_at(s, row)])
            stack_gather(s, row, 1, &s->solve);
    for (size_t i = 0; i < n; i++)
        s->solve.gram[i * n + i] += s->o.ridge;
    /* It cannot fail while weights are within their bounds; if it did, the stack would start again. */
    if (svs_alsvm_set(k->m, s->solve.gram, s->solve.right, NULL) != SVS_OK)
        svi_alsvm_reset(k->m, 1, s->o.ridge);
    stack_plan(s, k);
}

/* ---- learning */

/* Puts a row into input i of the recursion. *t must live until the step. */
static struct svi_change stack_insert(const svi_stacks *s, struct stack *k, int i, int64_t row, double *t) {
    const int64_t at = stack_at(s, row);
    const float *x = s->rows.x + at * s->o.members;
    double *to = k->m->r.x[i];
    for (int j = 0; j < s->o.members; j++)
        to[j] = (double)x[j];
    to[s->o.members] = 1;
    *t = (double)s->rows.target[at];
    /* The recursion takes inverse weights; the caller negates them to remove. */
    return (struct svi_change){t, 1 / s->rows.weight[at], 0};
}

/* Adds rows `added` to tail - 1 to P and removes those before `keep_from`: one of each in a pass, as long
 * as there are both. A pass of two costs hardly more than a pass of one (NUMERICS, k policy). */
static void stack_slide(svi_stacks *s, struct stack *k, int64_t added, int64_t keep_from) {
    bool good = true;
    while (good && (added < s->tail || k->first < keep_from)) {
        struct svi_change change[2];
        double t[2];
        int count = 0;
        /* A forgotten row is no longer in P: it must not be removed again. */
        while (k->first < keep_from && !s->rows.live[stack_at(s, k->first)])
            k->first++;
        if (added < s->tail) {
            change[count] = stack_insert(s, k, count, added++, &t[count]);
            count++;
        }
        if (k->first < keep_from) {
            change[count] = stack_insert(s, k, count, k->first++, &t[count]);
            change[count].inverse_weight = -change[count].inverse_weight;
            count++;
        }
        good = count == 0 || svi_alsvm_step(k->m, change, count, NULL) == SVS_OK;
    }
    if (!good) {
        /* P is not usable. The rest of the change is made by solving from the rows that it should hold. */
        k->first = k->first < keep_from ? keep_from : k->first;
        stack_solve(s, k);
    }
}

/* End of the run of rows that starts at `row` and is contiguous in a ring of any capacity: capacities are
 * multiples of ROWS_FIRST. */
static int64_t stacks_run(const svi_stacks *s, int64_t row) {
    const int64_t end = (row / ROWS_FIRST + 1) * ROWS_FIRST;
    return end < s->tail ? end : s->tail;
}

/* Rows that the longest window needs, at `rows` a sample. */
static int64_t stacks_window_rows(const svi_stacks *s, int rows) {
    /* One sample more than the window: a row is appended before the oldest is dropped. */
    int64_t longest = 0;
    for (int i = 0; i < s->o.count; i++)
        longest = s->of[i].window > longest ? s->of[i].window : longest;
    return longest * rows < s->o.rows_max ? (longest + 1) * rows : s->o.rows_max;
}

/* Grows the ring to at least `needed` rows; each row moves to its place in the new one, run by run. */
static svs_code stacks_widen(svi_stacks *s, int64_t needed, svs_error *err) {
    int64_t capacity = s->capacity;
    while (capacity < needed)
        capacity *= 2;
    struct stack_rows rows, from, to;
    int32_t dims[] = {(int32_t)capacity, s->o.members};
    if (svi_arrays_alloc(&row_arrays, &rows, dims, err) != SVS_OK)
        return SVS_NO_MEMORY;
    for (int64_t row = s->head; row < s->tail; row += dims[ROWS]) {
        /* Contiguous in both rings, so a run is one copy. */
        svi_arrays_view(&row_arrays, &from, &s->rows, dims, stack_at(s, row));
        svi_arrays_view(&row_arrays, &to, &rows, dims, row % capacity);
        dims[ROWS] = (int32_t)(stacks_run(s, row) - row);
        svi_arrays_copy(&row_arrays, &to, dims, &from, dims);
    }
    svi_arrays_free(&row_arrays, &s->rows);
    s->rows = rows;
    s->capacity = capacity;
    return SVS_OK;
}

/* The first row that the window of a stack keeps: of the last `window` samples, the current one included. */
static int64_t stack_window_start(const svi_stacks *s, const struct stack *k) {
    int64_t row = k->first;
    while (row < s->tail && s->rows.number[stack_at(s, row)] <= s->newest - k->window)
        row++;
    return row;
}

/* Makes space for `rows` more: drops rows that no window reaches, and beyond rows_max the oldest samples,
 * which every stack with a window then loses early. */
static void stacks_make_space(svi_stacks *s, int rows) {
    int64_t oldest = s->tail;
    for (int i = 0; i < s->o.count; i++)
        if (s->of[i].window && s->of[i].first < oldest)
            oldest = s->of[i].first;
    s->head = oldest;
    int64_t keep_from = s->tail + rows - s->o.rows_max;
    while (keep_from > s->head && keep_from < s->tail &&
           s->rows.number[stack_at(s, keep_from)] == s->rows.number[stack_at(s, keep_from - 1)])
        keep_from++; /* whole samples: K rows of one belong together */
    if (keep_from <= s->head)
        return;
    keep_from = keep_from < s->tail ? keep_from : s->tail;
    /* From P before from the ring: the removal reads the row. */
    for (int i = 0; i < s->o.count; i++)
        if (s->of[i].window && s->of[i].first < keep_from)
            stack_slide(s, &s->of[i], s->tail, keep_from);
    s->head = keep_from;
}

svs_code svi_stacks_learn(svi_stacks *s, const double *x, const double *t, int rows, double weight,
                          int64_t number, svs_error *err) {
    const int m = s->o.members;
    s->newest = number;
    if (rows > s->o.rows_max)
        rows = s->o.rows_max;
    stacks_make_space(s, rows);
    /* Growing at once to the longest window copies the rows once, not log2(window) times. */
    const int64_t needed = s->tail - s->head + rows, window = stacks_window_rows(s, rows);
    if (needed > s->capacity && stacks_widen(s, needed > window ? needed : window, err) != SVS_OK)
        return SVS_NO_MEMORY;
    const int64_t added = s->tail;
    /* Nothing can fail from here on. */
    for (int r = 0; r < rows; r++) {
        const int64_t at = stack_at(s, s->tail++);
        for (int j = 0; j < m; j++)
            s->rows.x[at * m + j] = (float)x[(size_t)r * (size_t)m + (size_t)j];
        s->rows.weight[at] = fmin(fmax(weight, MIN_WEIGHT), MAX_WEIGHT);
        s->rows.number[at] = s->newest;
        s->rows.target[at] = (float)t[r];
        s->rows.live[at] = 1;
    }
    for (int i = 0; i < s->o.count; i++) {
        struct stack *k = &s->of[i];
        /* Sums first: a solve inside stack_slide reads them. */
        for (int64_t row = added; k->all.gram && row < s->tail; row++)
            stack_gather(s, row, 1, &k->all);
        if (k->window)
            stack_slide(s, k, added, stack_window_start(s, k));
        else
            stack_slide(s, k, added, k->first);
        if (s->newest >= k->next_solve)
            stack_solve(s, k);
    }
    return SVS_OK;
}

void svi_stacks_score(const svi_stacks *s, int i, const double *x, int rows, double *scores) {
    /* The row is rounded to float as when it is learned: the score is of the values that w was fitted to. */
    const double *w = svi_stacks_weights(s, i);
    const int m = s->o.members;
    for (int r = 0; r < rows; r++) {
        const double *row = x + (size_t)r * (size_t)m;
        double sum = w[m];
        for (int j = 0; j < m; j++)
            sum += w[j] * (double)(float)row[j];
        scores[r] = sum;
    }
}

const double *svi_stacks_weights(const svi_stacks *s, int i) {
    return svs_alsvm_weights(s->of[i].m, 0);
}

/* ---- forgetting */

/* The first row whose number is not below this one: binary search, numbers ascend. */
static int64_t stacks_find(const svi_stacks *s, int64_t number) {
    int64_t low = s->head, high = s->tail;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->rows.number[stack_at(s, middle)] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Removes one row from a stack. */
static void stack_remove(svi_stacks *s, struct stack *k, int64_t row) {
    double t;
    if (k->all.gram)
        stack_gather(s, row, -1, &k->all);
    struct svi_change change = stack_insert(s, k, 0, row, &t);
    change.inverse_weight = -change.inverse_weight;
    s->rows.live[stack_at(s, row)] = 0; /* before the step: a solve after a failed pivot must not see it */
    if (svi_alsvm_step(k->m, &change, 1, NULL) != SVS_OK)
        stack_solve(s, k);
}

void svi_stacks_forget(svi_stacks *s, int64_t number) {
    for (int64_t row = stacks_find(s, number); row < s->tail && s->rows.number[stack_at(s, row)] == number;
         row++) {
        if (!s->rows.live[stack_at(s, row)])
            continue;
        for (int i = 0; i < s->o.count; i++)
            /* A stack whose window has passed the row holds it no more; one without a window always does. */
            if (!s->of[i].window || row >= s->of[i].first)
                stack_remove(s, &s->of[i], row);
    }
}

bool svi_stacks_holds(const svi_stacks *s, int64_t number) {
    const int64_t row = stacks_find(s, number), at = stack_at(s, row);
    return row < s->tail && s->rows.number[at] == number && s->rows.live[at];
}

double svi_stacks_check(const svi_stacks *s, int i) {
    const size_t n = (size_t)s->dim;
    double largest = 0, worst = 0;
    /* A shallow copy, of which only the one model is replaced: solving writes into scratch of *s and
     * nothing else. */
    svi_stacks copy = *s;
    double *own = svi_alloc_array(n, sizeof *own);
    if (!own)
        return NAN;
    memcpy(own, svi_stacks_weights(s, i), n * sizeof *own);
    copy.of[i].m = svs_alsvm_new(s->dim, 1, s->o.ridge, s->o.isa, NULL);
    if (copy.of[i].m) {
        stack_solve(&copy, &copy.of[i]);
        const double *fresh = svs_alsvm_weights(copy.of[i].m, 0);
        for (size_t j = 0; j < n; j++) {
            largest = fmax(largest, fabs(fresh[j]));
            worst = fmax(worst, fabs(fresh[j] - own[j]));
        }
        svs_alsvm_free(&copy.of[i].m);
    }
    svi_free(own);
    return largest > 0 ? worst / largest : worst;
}

/* ---- the archive */

/* Whether loaded rows are ones that learning can leave: numbers ascend, weights and flags in range. */
static bool stack_rows_sound(const svi_stacks *s, int64_t first, int64_t last) {
    bool sound = true;
    for (int64_t row = first; row < last; row++) {
        const int64_t at = stack_at(s, row);
        const int64_t before = row > s->head ? s->rows.number[stack_at(s, row - 1)] : 0;
        sound &= s->rows.number[at] >= before && s->rows.number[at] <= s->newest && s->rows.live[at] <= 1 &&
                 s->rows.weight[at] >= MIN_WEIGHT && s->rows.weight[at] <= MAX_WEIGHT;
    }
    return sound;
}

/* Run by run: the bytes do not depend on the capacity. */
static void stacks_archive_rows(struct svi_archive *a, svi_stacks *s) {
    int32_t dims[] = {0, s->o.members};
    for (int64_t row = s->head; row < s->tail && svi_archive_ok(a); row += dims[ROWS]) {
        struct stack_rows run;
        svi_arrays_view(&row_arrays, &run, &s->rows, dims, stack_at(s, row));
        dims[ROWS] = (int32_t)(stacks_run(s, row) - row);
        svi_arrays_archive(a, &row_arrays, &run, dims, dims);
        if (a->loading && svi_archive_ok(a))
            svi_archive_check(a, stack_rows_sound(s, row, row + dims[ROWS]),
                              "a row of a stack is out of range");
    }
}

static void stack_archive(struct svi_archive *a, svi_stacks *s, struct stack *k) {
    svi_archive_int64(a, "first", &k->first, k->window ? s->head : 0, s->tail);
    svi_archive_int64(a, "next solve", &k->next_solve, 0, INT64_MAX);
    svi_alsvm_archive(a, k->m, s->solve.gram);
    if (k->all.gram)
        svi_arrays_archive(a, &sums_arrays, &k->all, &s->dim, &s->dim);
}

void svi_stacks_archive(struct svi_archive *a, svi_stacks *s) {
    /* Head and tail stay absolute: `first` of the stacks and the runs of the archive refer to them. */
    int64_t head = s->head, tail = s->tail;
    const int64_t row_bytes = s->o.members * (int64_t)sizeof(float);
    svi_archive_int64(a, "newest", &s->newest, -1, SVI_STACKS_COUNT_MAX);
    svi_archive_int64(a, "head", &head, 0, SVI_STACKS_COUNT_MAX);
    svi_archive_int64(a, "tail", &tail, head, head + s->o.rows_max);
    if (!svi_archive_check(a, (tail - head) <= svi_archive_left(a) / row_bytes,
                           "there are more rows than bytes"))
        return;
    if (a->loading) {
        /* An empty ring grows without copying; then the announced rows are there to be filled. */
        s->head = s->tail = 0;
        if (tail - head > s->capacity && stacks_widen(s, tail - head, a->err) != SVS_OK)
            return;
        s->head = head;
        s->tail = tail;
    }
    stacks_archive_rows(a, s);
    for (int i = 0; i < s->o.count && svi_archive_ok(a); i++)
        stack_archive(a, s, &s->of[i]);
}

double svi_stacks_memory(const struct svi_stacks_options *o) {
    const int32_t n = o->members + 1, rows[] = {2 * o->rows_max, o->members};
    double bytes = (double)sizeof(svi_stacks) + (double)svi_arrays_bytes(&row_arrays, rows) +
                   (double)svi_arrays_bytes(&sums_arrays, &n) + sizeof(double) * (double)n;
    for (int i = 0; i < o->count; i++)
        bytes +=
            svi_alsvm_memory(n, 1, o->isa) + (o->windows[i] ? 0 : (double)svi_arrays_bytes(&sums_arrays, &n));
    return bytes;
}
