#include "merge/part.h"

#include <math.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "linalg/cholesky.h"

#define ROUNDING 1e-6 /* of a variance: more than any rounding in sums that are sums */
#define LEVEL    1e-9 /* of a mean: a deviation below it is rounding */

const char *svi_part_state_name(enum svi_part_state state) {
    static const char *const words[] = {
#define X(constant, word) #word,
        SVI_PART_STATES(X)
#undef X
    };
    return words[state];
}

/* The matrix of any samples, sum w (1, x - c) (1, x - c)', has no negative eigenvalue: each variance is at
 * least 0, each correlation at most 1, and so on for more features. In units of the deviations that is a
 * question of its factor, and the same for all units. */
static bool sums_are_sound(const struct svi_window_sums *s, double *matrix, double *inverse) {
    const size_t n = (size_t)s->d + 1;
    inverse[0] = s->weight > 0 ? 1 / sqrt(s->weight) : 0;
    matrix[0] = 1;
    for (size_t i = 1; i < n; i++) {
        const double *square = s->square + svi_sums_packed((int)i - 1),
                     level = LEVEL * fabs(s->center[i - 1]),
                     size = sqrt(square[i - 1] + s->weight * level * level);
        inverse[i] = size > 0 ? 1 / size : 0;
        matrix[i * n] = s->sum[i - 1] * inverse[i] * inverse[0];
        for (size_t j = 1; j < i; j++)
            matrix[i * n + j] = square[j - 1] * inverse[i] * inverse[j];
        matrix[i * n + i] = 1;
    }
    for (size_t i = 0; i < n; i++)
        matrix[i * n + i] += ROUNDING;
    return svi_factor_spd(matrix, (int)n);
}

svs_code svi_part_assess(struct svi_part *p, svs_error *err) {
    const size_t n = (size_t)p->record.sums.d + 1;
    if (p->sound != SVI_PART_UNASSESSED)
        return SVS_OK;
    double *matrix = svi_alloc_array(n * (n + 1), sizeof *matrix);
    if (!matrix)
        return svi_fail_memory(err, "looking for damaged sums");
    const bool sound = sums_are_sound(&p->record.sums, matrix, matrix + n * n);
    p->sound = sound ? SVI_PART_SOUND : SVI_PART_UNSOUND;
    svi_free(matrix);
    return SVS_OK;
}
