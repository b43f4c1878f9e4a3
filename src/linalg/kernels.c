#include <stdlib.h>
#include <string.h>

#include "linalg/kernels.h"
#include "linalg/kernels_floats.h"

static bool kernels_machine_has(svs_isa isa) {
    if (isa == SVS_ISA_GENERIC)
        return true;
#if defined(__x86_64__)
    if (isa == SVS_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (isa == SVS_ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return false;
}

/* Best first. The last row ends the search and is the result when no table fits. */
static const struct isa_tables {
    const struct svi_kernels *kernels;
    const struct svi_floats *floats;
} all[] = {
#if defined(__x86_64__)
    {&svi_kernels_avx512, &svi_floats_avx512},
    {&svi_kernels_avx2, &svi_floats_avx2},
#endif
    {&svi_kernels_generic, &svi_floats_generic},
    {NULL, NULL}};

/* Both tables come from one row, so double and single precision never run on different instruction sets.
 * SVMSTREAM_ISA names the only one that SVS_ISA_BEST may choose; tests compare the sets that way. */
static const struct isa_tables *kernels_find(svs_isa isa) {
    const char *name = getenv("SVMSTREAM_ISA");
    const struct isa_tables *b = all;
    for (; b->kernels; b++) {
        const svs_isa this_isa = b->kernels->isa;
        const bool wanted =
            isa != SVS_ISA_BEST ? this_isa == isa : !name || strcmp(b->kernels->name, name) == 0;
        if (wanted && kernels_machine_has(this_isa))
            break;
    }
    return b;
}

const struct svi_kernels *svi_kernels_get(svs_isa isa) {
    return kernels_find(isa)->kernels;
}

const struct svi_floats *svi_floats_get(svs_isa isa) {
    return kernels_find(isa)->floats;
}
