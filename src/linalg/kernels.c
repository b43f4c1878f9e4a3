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

/* Best first. */
static const struct svi_kernels *const all[] = {
#if defined(__x86_64__)
    &svi_kernels_avx512, &svi_kernels_avx2,
#endif
    &svi_kernels_generic};

const struct svi_kernels *svi_kernels_get(svs_isa isa) {
    const char *name = getenv("SVMSTREAM_ISA");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bool wanted =
            isa != SVS_ISA_BEST ? all[i]->isa == isa : !name || strcmp(all[i]->name, name) == 0;
        if (wanted && kernels_machine_has(all[i]->isa))
            return all[i];
    }
    return NULL;
}

const struct svi_floats *svi_floats_get(svs_isa isa) {
    static const struct svi_floats *const each[] = {
#if defined(__x86_64__)
        &svi_floats_avx512,
        &svi_floats_avx2,
#endif
        &svi_floats_generic
    };
    const struct svi_kernels *kernels = svi_kernels_get(isa);
    for (size_t i = 0; kernels && i < sizeof each / sizeof *each; i++)
        if (each[i]->isa == kernels->isa)
            return each[i];
    return NULL;
}
