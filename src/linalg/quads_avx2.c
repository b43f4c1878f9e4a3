/* The loops of probabilities for AVX2. */
#define QUADS svi_quads_avx2

#include "linalg/quads_template.h"
