#include "judges/floats_move.h"

#include <string.h>

void svi_floats_move(float *array, int count, const uint8_t *skip, char **at, bool out) {
    for (int j = 0; j < count; j++) {
        int end = skip ? j : count;
        while (end < count && !skip[end])
            end++;
        const size_t size = (size_t)(end - j) * sizeof *array;
        if (size > 0 && out)
            memcpy(*at, array + j, size);
        else if (size > 0)
            memcpy(array + j, *at, size);
        *at += size;
        j = end;
    }
}
