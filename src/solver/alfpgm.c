#include "base/fail.h"
#include "solver/work.h"

svs_code svi_solve_alfpgm(struct svi_work *w, svs_error *err) {
    (void)w;
    return svi_fail(err, SVS_UNAVAILABLE, "the solver alfpgm is not written yet");
}
