/* The kernels in plain C: vectors of two doubles, which every 64-bit machine has. */
#define VW        2
#define KERNELS   svi_kernels_generic
#define FLOATS    svi_floats_generic
#define ISA       SVS_ISA_GENERIC
#define ISA_NAME  "generic"
#define NEAREST   svi_nearest_generic
#define STRIP_FOR generic_strip

/* Two vectors of each kind fit in 16 registers. */
static int generic_strip(int dim) {
    (void)dim;
    return 4;
}

#include "linalg/kernels_template.h"
