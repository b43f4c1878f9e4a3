#include "base/fail.h"
#include "solver/work.h"

svs_code svi_solve_alsvm(struct svi_work *w, svs_error *err) {
    (void)w;
    return svi_fail(err, SVS_UNAVAILABLE, "the solver alsvm is not written yet");
}

svs_code svi_solve_falsvm(struct svi_work *w, svs_error *err) {
    (void)w;
    return svi_fail(err, SVS_UNAVAILABLE, "the solver falsvm is not written yet");
}
