/* Weights as the solution of H w = r: information adds up, so what several threads have learned from the same
 * start is merged exactly. */
#include "bank/stack_start.h"

#include <string.h>

#include "linalg/cholesky.h"

#define M          SVI_STACK_MEMBERS
#define E          SVI_STACK_EXPERTS
#define MAX_ROWS   20000 /* rows that the start remembers */
#define MAX_LOSSES 5000  /* rows whose losses of experts are remembered, of all keys */

/* Solves A v = b; both are destroyed, b becomes v. False: A is not positive definite. */
static bool stack_start_solve(double A[M][M], double *b) {
    if (!svi_factor_spd(&A[0][0], M))
        return false;
    svi_solve_factor(&A[0][0], M, b);
    return true;
}

void svi_stack_step(double *w, double H[M][M], const double *g) {
    double v[M];
    memcpy(v, g, sizeof v);
    if (stack_start_solve(H, v))
        for (int j = 0; j < M; j++)
            w[j] -= v[j];
}

/* The bank of all keys is believed until rows have shown otherwise: when the first keys begin, it alone has
 * learned from more than one of them, and there is no prior yet. These losses count for 50 rows. */
void svi_stack_start_init(struct svi_stack_start *s) {
    static const double begin[M] = {[SVI_STACK_HOST] = 0.4,
                                    [SVI_STACK_WHOLE] = 0.1,
                                    [SVI_STACK_RATE] = 0.1,
                                    [SVI_STACK_LAST] = 0,
                                    [SVI_STACK_SHARED] = 0.9};
    *s = (struct svi_stack_start){.rows = 1, .loss = {12.5, 10, 10}, .losses = 50};
    memcpy(s->w, begin, sizeof begin);
    for (int j = 0; j < M; j++)
        s->H[j][j] = 10;
}

void svi_stack_start_archive(struct svi_archive *a, struct svi_stack_start *s) {
    svi_archive_finite(a, "start weights", s->w, M);
    svi_archive_finite(a, "start information", &s->H[0][0], M * M);
    svi_archive_finite(a, "start rows", &s->rows, 1);
    svi_archive_finite(a, "start losses", s->loss, E);
    svi_archive_finite(a, "start loss rows", &s->losses, 1);
    svi_archive_check(a, s->rows >= 1 && s->losses >= 0, "the stack of new keys has no rows");
}

/* Each part began as a copy of *s: its information is that of *s and what it has learned since, and the
 * same holds of H w. The sums of both give the weights of all. */
void svi_stack_start_merge(struct svi_stack_start *s, struct svi_stack_start *part, int parts) {
    struct svi_stack_start sum = *s;
    double right[M] = {0}, A[M][M];
    for (int p = -1; p < parts; p++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++) {
                const double before = p < 0 ? 0 : s->H[i][j];
                const double *w = p < 0 ? s->w : part[p].w;
                const double now = p < 0 ? s->H[i][j] : part[p].H[i][j];
                right[i] += now * w[j] - before * s->w[j];
                sum.H[i][j] += p < 0 ? 0 : now - before;
            }
    for (int p = 0; p < parts; p++)
        sum.rows += part[p].rows - s->rows;
    for (int p = 0; p < parts; p++) {
        sum.losses += part[p].losses - s->losses;
        for (int i = 0; i < E; i++)
            sum.loss[i] += part[p].loss[i] - s->loss[i];
    }
    const double fade = sum.losses > MAX_LOSSES ? MAX_LOSSES / sum.losses : 1;
    for (int i = 0; i < E; i++)
        s->loss[i] = sum.loss[i] *= fade;
    s->losses = sum.losses *= fade;
    memcpy(A, sum.H, sizeof A);
    if (sum.rows > s->rows && stack_start_solve(A, right)) {
        const double keep = sum.rows > MAX_ROWS ? MAX_ROWS / sum.rows : 1;
        *s = sum;
        memcpy(s->w, right, sizeof s->w);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++)
                s->H[i][j] *= keep;
        s->rows *= keep;
    }
    for (int p = 0; p < parts; p++)
        part[p] = *s;
}

void svi_stack_start_teach(struct svi_stack_start *s, const double *g, double H[M][M]) {
    double A[M][M];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++)
            A[i][j] = s->H[i][j] += H[i][j];
    s->rows++;
    svi_stack_step(s->w, A, g);
}
