#include "solver/auto.h"

#include <stdio.h>

/* Above this many coordinates a Newton step costs more than many passes over sparse rows. */
#define GRAM_DIMENSION 1500

#define WHY 160

svs_solver svi_auto(const svs_problem *p, char *why) {
    double density = (double)svs_rows_stored(&p->rows) / ((double)p->rows.n * p->rows.d);
    if (p->kernel.kind != SVS_LINEAR) {
        snprintf(why, WHY, "auto: a kernel with the %s loss", p->loss == SVS_SQUARED ? "squared" : "hinge");
        return p->loss == SVS_SQUARED ? SVS_SOLVER_SGD_LSSVM : SVS_SOLVER_ALFPGM;
    }
    if (p->loss == SVS_SQUARED) {
        snprintf(why, WHY, "auto: squared loss has a closed form");
        return p->bias == SVS_BIAS_FREE ? SVS_SOLVER_NESVM : SVS_SOLVER_ALSVM;
    }
    if (p->penalty == SVS_L1) {
        snprintf(why, WHY, "auto: the only one that does |w|_1");
        return SVS_SOLVER_NESVM;
    }
    bool coordinates = (p->p == 1 || p->p == 2) && p->bias != SVS_BIAS_FREE;
    if (p->rows.d > GRAM_DIMENSION && coordinates) {
        snprintf(why, WHY, "auto: %d features, %.3g of them in a row: coordinate descent costs least",
                 p->rows.d, density * p->rows.d);
        return SVS_SOLVER_DCD;
    }
    snprintf(
        why, WHY,
        "auto: %d features: Newton steps are cheap, and the scale of the columns does not matter to them",
        p->rows.d);
    return SVS_SOLVER_NEWTON;
}
