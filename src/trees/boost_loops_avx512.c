/* The loops of a fit, for AVX-512. */
#define LOOPS svi_boost_loops_avx512

#include "trees/boost_loops_template.h"
