/* The loops of a fit, for AVX2. */
#define LOOPS svi_boost_loops_avx2

#include "trees/boost_loops_template.h"
