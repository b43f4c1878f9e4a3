/* summary.h: what a run came to, for people: the last lines of its log. */
#ifndef SVI_SUMMARY_H
#define SVI_SUMMARY_H

#include <stdio.h>

#include "engine/engine.h"

/* `to`: NULL = nowhere. `file`: the input was standard input. */
void svi_summary_write(FILE *to, svi_engine *e, const struct svi_settings *s, bool file, double now);

#endif
