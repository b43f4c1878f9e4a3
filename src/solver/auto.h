/* auto.h: which solver for which problem. */
#ifndef SVI_SOLVER_AUTO_H
#define SVI_SOLVER_AUTO_H

#include "svmstream/solver.h"

/* Never SVS_SOLVER_AUTO; `why` (160 bytes) receives the reason in words. */
svs_solver svi_auto(const svs_problem *p, char *why);

#endif
