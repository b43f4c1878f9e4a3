/* figure.h: a named number, as stats, the quality map and status replies list them. */
#ifndef SVI_FIGURE_H
#define SVI_FIGURE_H

#include <stdint.h>

struct svi_figure {
    const char *name; /* constant */
    enum { SVI_COUNT, SVI_NUMBER, SVI_TEXT } type;
    union {
        int64_t count;
        double number; /* NAN is sent as nil: not known yet */
        const char *text;
    } as;
};

/* The figure of that name, or NULL; and its value, NAN when there is none or it is a text. */
const struct svi_figure *svi_figure_find(const struct svi_figure *f, int count, const char *name);
double svi_figure_value(const struct svi_figure *f, int count, const char *name);

#endif
