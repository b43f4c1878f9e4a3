/* The loops of a fit, in plain C. */
#define LOOPS svi_boost_loops_generic

#include "trees/boost_loops_template.h"
