/* start.h: the point that a method starts from. */
#ifndef SVI_SOLVER_START_H
#define SVI_SOLVER_START_H

#include "solver/work.h"

/* Fills w->v, w->alpha (both zero before) and w->warm from w->start, as work.h says. */
void svi_start(struct svi_work *w);

#endif
