#include "base/figure.h"

#include <math.h>
#include <string.h>

const struct svi_figure *svi_figure_find(const struct svi_figure *f, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(f[i].name, name) == 0)
            return &f[i];
    return NULL;
}

double svi_figure_value(const struct svi_figure *f, int count, const char *name) {
    f = svi_figure_find(f, count, name);
    if (!f || f->type == SVI_TEXT || f->type == SVI_PACKED)
        return NAN;
    return f->type == SVI_COUNT ? (double)f->as.count : f->as.number;
}
