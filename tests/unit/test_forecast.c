/* Forecasts of sensors: what they say is what plain weighted least squares says, row for row, with missing
 * values, with columns that come later, and after a sensor has started again; and a new solution is no step
 * of any residual. */
#include "support/problem.h"

#include "alerts/forecast.h"

#define K     4
#define MOST  5
#define LAGS  3 /* means of the rows before */
#define WIDE  (K + (1 + LAGS) * MOST)
#define ROWS  900
#define START 32 /* values that give level and scale */

/* ---- the same, plainly */

/* The means of the rows before: the last one, and fading ones. */
static const long double shares[LAGS] = {1, .25L, .04L};

/* Coordinates: regressors, sensors, and for each lag the sensors; those of absent sensors are 0. */
struct plain {
    int d;
    double memory;
    int rows;
    long double z[ROWS][WIDE];                        /* as learned */
    long double was[LAGS][MOST], learned[LAGS][MOST]; /* means of the rows before, as they were; as learned */
    long double counted[WIDE];                        /* of the row at hand, as it counts for others */
    long double said[MOST];                           /* of the row at hand by context */
    int known[MOST];
    long double sum[MOST], values[MOST][START], level[MOST], scale[MOST]; /* scale 0: not known */
    long double t[K][MOST];
    long double by_others[MOST][WIDE]; /* coefficients on all others */
    bool solved;
};

/* a x = b by elimination; a: n x n of stride WIDE. */
static void eliminate(int n, long double a[WIDE][WIDE], long double *b) {
    for (int i = 0; i < n; i++)
        for (int r = i + 1; r < n; r++) {
            const long double f = a[r][i] / a[i][i];
            for (int c = i; c < n; c++)
                a[r][c] -= f * a[i][c];
            b[r] -= f * b[i];
        }
    for (int i = n - 1; i >= 0; i--) {
        for (int c = i + 1; c < n; c++)
            b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
}

/* Weighted sums of products with their ridge. */
static void plain_moments(const struct plain *p, long double s[WIDE][WIDE]) {
    memset(s, 0, sizeof(long double) * WIDE * WIDE);
    for (int i = 0; i < p->rows; i++) {
        const long double w = powl(1 - 1 / p->memory, p->rows - 1 - i);
        for (int a = 0; a < WIDE; a++)
            for (int b = 0; b < WIDE; b++)
                s[a][b] += w * p->z[i][a] * p->z[i][b];
    }
}

static long double plain_ridge(long double s[WIDE][WIDE], int i) {
    return i == 0 ? 1e-9L * s[0][0] : i < K ? 4 : 0.4L * s[i][i] / s[0][0] + 1e-9L * s[0][0];
}

static void plain_solve_context(struct plain *p) {
    static long double s[WIDE][WIDE], a[WIDE][WIDE];
    plain_moments(p, s);
    for (int j = 0; j < p->d; j++) {
        long double b[WIDE];
        memcpy(a, s, sizeof a);
        for (int i = 0; i < K; i++) {
            a[i][i] += plain_ridge(s, i);
            b[i] = s[i][K + j];
        }
        eliminate(K, a, b);
        for (int i = 0; i < K; i++)
            p->t[i][j] = b[i];
    }
}

/* Each sensor on all else. */
static void plain_solve_others(struct plain *p) {
    static long double s[WIDE][WIDE], a[WIDE][WIDE];
    plain_moments(p, s);
    for (int j = 0; j < p->d; j++) {
        long double b[WIDE];
        int which[WIDE], m = 0;
        for (int i = 0; i < WIDE; i++)
            if (i != K + j)
                which[m++] = i;
        for (int r = 0; r < m; r++) {
            for (int c = 0; c < m; c++)
                a[r][c] = s[which[r]][which[c]];
            a[r][r] += plain_ridge(s, which[r]);
            b[r] = s[which[r]][K + j];
        }
        eliminate(m, a, b);
        memset(p->by_others[j], 0, sizeof p->by_others[j]);
        for (int r = 0; r < m; r++)
            p->by_others[j][which[r]] = b[r];
    }
    p->solved = true;
}

/* Fills z of the row at hand; the residuals, NaN where there is none. What lies further than
 * SVI_FORECAST_CLIP deviations from what the context says counts so far for the others. */
static void plain_residuals(struct plain *p, const double *c, const double *x, const float *deviation,
                            double *by_context, double *by_others) {
    long double *z = p->z[p->rows], *counted = p->counted;
    for (int i = 0; i < K; i++)
        counted[i] = z[i] = c[i];
    for (int j = 0; j < p->d; j++) {
        long double out = 0;
        for (int i = 0; i < K; i++)
            out += p->t[i][j] * z[i];
        const bool none = isnan(x[j]) || !(p->scale[j] > 0);
        const long double far = deviation ? SVI_FORECAST_CLIP * (long double)deviation[j] : INFINITY;
        p->said[j] = out;
        z[K + j] = none ? out : (x[j] - p->level[j]) / p->scale[j];
        counted[K + j] = fmaxl(out - far, fminl(z[K + j], out + far));
        by_context[j] = none ? NAN : (double)(z[K + j] - out);
        for (int lag = 0; lag < LAGS; lag++) {
            counted[K + (1 + lag) * MOST + j] = p->was[lag][j];
            z[K + (1 + lag) * MOST + j] = p->learned[lag][j];
        }
    }
    for (int j = 0; j < p->d; j++) {
        long double r = z[K + j];
        for (int i = 0; i < WIDE; i++)
            r -= p->by_others[j][i] * counted[i];
        by_others[j] = p->solved && !isnan(by_context[j]) ? (double)r : NAN;
    }
}

/* The level is the first value, the scale the deviation of START values from the one on before it moved. */
static void plain_start(struct plain *p, int j, double x) {
    if (p->known[j] == 1 && x == p->values[j][0])
        return;
    p->values[j][p->known[j]++] = x;
    p->level[j] = p->values[j][0];
    if (p->known[j] < START)
        return;
    long double mean = 0, square = 0;
    for (int i = 0; i < START; i++)
        mean += p->values[j][i] / START;
    for (int i = 0; i < START; i++)
        square += (p->values[j][i] - mean) * (p->values[j][i] - mean) / START;
    p->scale[j] = sqrtl(square);
}

/* What is odd, or a million scales away, counts as what the context says. */
static void plain_learn(struct plain *p, const double *x, const uint8_t *odd) {
    for (int j = 0; j < p->d; j++) {
        long double *z = &p->z[p->rows][K + j];
        if (odd[j] || fabsl(*z) >= 1e6L)
            *z = p->said[j];
        for (int lag = 0; lag < LAGS; lag++) {
            p->was[lag][j] += shares[lag] * (p->counted[K + j] - p->was[lag][j]);
            p->learned[lag][j] += shares[lag] * (*z - p->learned[lag][j]);
        }
        if (!isnan(x[j]) && !(p->scale[j] > 0))
            plain_start(p, j, x[j]);
    }
    p->rows++;
}

/* ---- side by side */

/* size: the largest number that the residual is a difference of. */
static void near(double a, double b, double size, int row, const char *what) {
    if (isnan(a) != isnan(b) || fabs(a - b) > 1e-8 * (1 + size))
        fail_msg("row %d, %s: %.15g, plainly %.15g", row, what, a, b);
}

static void row_of(int i, uint64_t *seed, double *c, double *x) {
    const double turn = 6.283185307179586 * i / 60, common = test_normal(seed);
    c[0] = 1;
    c[1] = sin(turn);
    c[2] = cos(turn);
    c[3] = i % 300 >= 200;
    for (int j = 0; j < MOST; j++) {
        x[j] = 100 * j + (2 + j) * c[1] - j * c[3] + (j % 2 ? -1 : 1) * common + 0.3 * test_normal(seed);
        if (j == MOST - 2 && i < 45) /* it rests at first */
            x[j] = 300;
        if (test_uniform(seed) < 0.005 && i > 2 * START)
            x[j] += 3e7;
        if (test_uniform(seed) < 0.1)
            x[j] = NAN;
    }
}

struct pair {
    struct svi_forecast f;
    struct plain p;
};

static void step(struct pair *at, int row, uint64_t *seed) {
    double c[K], x[MOST], r[2][MOST], s[2][MOST];
    float near_by[MOST]; /* so that 30 of them are soon exceeded */
    const float *deviation = row % 3 == 2 ? near_by : NULL;
    uint8_t odd[MOST];
    row_of(row, seed, c, x);
    for (int j = 0; j < MOST; j++) {
        odd[j] = test_uniform(seed) < 0.05;
        near_by[j] = (float)(test_uniform(seed) / 20);
    }
    svi_forecast_residuals(&at->f, c, x, deviation, r[0], r[1]);
    plain_residuals(&at->p, c, x, deviation, s[0], s[1]);
    double size = 0;
    for (int i = 0; i < WIDE; i++)
        size = fmax(size, fabs((double)at->p.counted[i]));
    for (int j = 0; j < at->p.d; j++) {
        near(r[0][j], s[0][j], fabs(s[0][j]), row, "by context");
        near(r[1][j], s[1][j], size + fabs(s[1][j]), row, "by others");
        if (row > 2 * START && at->p.d == 2 && !isnan(x[1 - j])) /* by the only other one */
            assert_int_equal(svi_forecast_owes(&at->f, j), 1 - j);
    }
    const int64_t next = at->f.next;
    svi_forecast_learn(&at->f, x, r[0], odd);
    plain_learn(&at->p, x, odd);
    if (at->f.next == next)
        return;
    plain_solve_context(&at->p);
    plain_solve_others(&at->p);
}

static void begin(struct pair *at, int d) {
    *at = (struct pair){.p.d = d, .p.memory = 300};
    assert_int_equal(svi_forecast_init(&at->f, K, d, 300, NULL), SVS_OK);
}

static void residuals_are_those_of_least_squares(void **state) {
    (void)state;
    static struct pair at;
    for (int d = 2; d <= MOST; d++) {
        uint64_t seed = 50 + (uint64_t)d;
        begin(&at, d);
        for (int i = 0; i < 600; i++)
            step(&at, i, &seed);
        assert_true(at.f.solved && at.f.next > at.f.rows);
        svi_forecast_clear(&at.f);
    }
}

/* Columns that were absent so far. */
static void columns_may_come(void **state) {
    (void)state;
    static struct pair at;
    uint64_t seed = 7;
    begin(&at, 3);
    for (int i = 0; i < 400; i++)
        step(&at, i, &seed);
    struct svi_forecast wide;
    assert_int_equal(svi_forecast_init(&wide, K, MOST, 300, NULL), SVS_OK);
    svi_forecast_widen(&wide, &at.f);
    svi_forecast_clear(&at.f);
    at.f = wide;
    at.p.d = MOST;
    at.p.rows -= at.f.held; /* rows that are not in the moments yet */
    plain_solve_others(&at.p);
    at.p.rows += at.f.held;
    for (int i = 400; i < ROWS; i++)
        step(&at, i, &seed);
    svi_forecast_clear(&at.f);
}

/* A sensor starts again: from the next solution on as if it had been absent before. */
static void a_sensor_may_begin_anew(void **state) {
    (void)state;
    static struct pair at;
    uint64_t seed = 8;
    begin(&at, 3);
    for (int i = 0; i < 400 || at.f.next != at.f.rows + 1; i++)
        step(&at, i, &seed);
    svi_forecast_forget(&at.f, 1);
    for (int i = 0; i < at.p.rows; i++)
        for (int part = 0; part <= LAGS; part++)
            at.p.z[i][K + part * MOST + 1] = 0;
    for (int lag = 0; lag < LAGS; lag++)
        at.p.was[lag][1] = at.p.learned[lag][1] = 0;
    at.p.known[1] = 0;
    at.p.level[1] = at.p.scale[1] = 0;
    double c[K], x[MOST], r[2][MOST];
    const uint8_t odd[MOST] = {0};
    row_of(at.p.rows, &seed, c, x);
    x[0] = x[2] = NAN;
    x[1] = 1e9; /* the first value of a new one */
    svi_forecast_residuals(&at.f, c, x, NULL, r[0], r[1]);
    for (int j = 0; j < 3; j++)
        assert_true(isnan(r[0][j]) && isnan(r[1][j]));
    svi_forecast_learn(&at.f, x, r[0], odd);
    for (int i = 0; i < K; i++)
        at.p.t[i][1] = 0;
    plain_residuals(&at.p, c, x, NULL, r[0], r[1]);
    plain_learn(&at.p, x, odd);
    plain_solve_context(&at.p);
    plain_solve_others(&at.p);
    for (int i = at.p.rows; i < ROWS; i++)
        step(&at, i, &seed);
    assert_true(at.f.scale[1] > 1e8);
    svi_forecast_clear(&at.f);
}

/* A value beyond all numbers, and then what was before. */
static void gross_values_leave_numbers(void **state) {
    (void)state;
    struct svi_forecast f;
    const double c[1] = {1}, gross[] = {1e300, -1e300, 1.7e308, 1e-300, 0};
    uint64_t seed = 2;
    assert_int_equal(svi_forecast_init(&f, 1, 3, 100, NULL), SVS_OK);
    for (int i = 0; i < 2000; i++) {
        double x[3] = {test_normal(&seed), 5, gross[i % 5]}, r[3], s[3];
        const uint8_t odd[3] = {0};
        if (i % 100 == 50)
            x[0] = gross[i / 100 % 5];
        svi_forecast_residuals(&f, c, x, NULL, r, s);
        for (int j = 0; j < 3; j++)
            assert_true(!isinf(r[j]) && !isinf(s[j]));
        assert_true(isnan(r[1])); /* it never moved */
        svi_forecast_learn(&f, x, r, odd);
    }
    for (size_t i = 0; i < (size_t)(svi_forecast_memory(1, 3) / sizeof(double)); i++)
        assert_true(isfinite(f.level[i]));
    svi_forecast_clear(&f);
}

/* A sensor that the last rows and another one determine: its residuals shrink as rows come, and those of the
 * row after a new solution are no larger than the others. */
static void a_solution_is_no_step(void **state) {
    (void)state;
    enum { SOME = 20000 };
    struct svi_forecast f;
    const double c[1] = {1};
    const uint8_t odd[2] = {0};
    uint64_t seed = 4;
    double x[2] = {0}, square[2] = {0}, most = 0;
    int count[2] = {0}, solved = 0; /* of rows; of the first rows after a solution */
    assert_int_equal(svi_forecast_init(&f, 1, 2, 1e6, NULL), SVS_OK);
    for (int i = 0; i < SOME; i++) {
        double r[2], s[2];
        x[0] = 0.95 * x[0] + test_normal(&seed);
        x[1] = 0.9 * x[1] + 0.5 * x[0] + 3; /* exactly */
        svi_forecast_residuals(&f, c, x, NULL, r, s);
        if (i >= SOME / 4) {
            most = fmax(most, fabs(s[1]));
            square[solved] += s[1] * s[1];
            count[solved]++;
        }
        const int64_t next = f.next;
        svi_forecast_learn(&f, x, r, odd);
        solved = f.next != next;
    }
    print_message("largest residual %g, mean %g, after a solution %g of %d\n", most,
                  sqrt(square[0] / count[0]), sqrt(square[1] / count[1]), count[1]);
    assert_true(most < 0.01 && count[1] > 40); /* the ridge is some rows of 20,000 */
    assert_true(square[1] / count[1] <= 2 * square[0] / count[0]);
    svi_forecast_clear(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residuals_are_those_of_least_squares),
        cmocka_unit_test(columns_may_come),
        cmocka_unit_test(a_sensor_may_begin_anew),
        cmocka_unit_test(gross_values_leave_numbers),
        cmocka_unit_test(a_solution_is_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
