/* A file of its own: the linker's --wrap reaches only calls that cross files, and this call of svi_alloc must
 * fail in tests like all others. */
#include <stdint.h>

#include "base/alloc.h"

void *svi_alloc_array(size_t count, size_t element) {
    if (element != 0 && count > SIZE_MAX / element)
        return NULL;
    return svi_alloc(count * element);
}
