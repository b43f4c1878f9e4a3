/* figure.h: a named number, as stats, the quality map and status replies list them. */
#ifndef SVI_FIGURE_H
#define SVI_FIGURE_H

#include <stdint.h>

struct svi_figure {
    const char *name; /* constant */
    enum { SVI_COUNT, SVI_NUMBER, SVI_TEXT } type;
    union {
        int64_t count;
        double number; /* NAN: not known yet; sent as nil */
        const char *text;
    } as;
};

/* The figure of that name, or NULL. Its value: NAN when it does not exist or is a text. */
const struct svi_figure *svi_figure_find(const struct svi_figure *f, int count, const char *name);
double svi_figure_value(const struct svi_figure *f, int count, const char *name);

#endif
