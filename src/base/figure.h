/* figure.h: a named number, as stats, the quality map and status replies list them; or a text, or a value
 * that is msgpack already. */
#ifndef SVI_FIGURE_H
#define SVI_FIGURE_H

#include <stddef.h>
#include <stdint.h>

struct svi_figure {
    const char *name; /* constant */
    enum { SVI_COUNT, SVI_NUMBER, SVI_TEXT, SVI_PACKED } type;
    union {
        int64_t count;
        double number; /* NAN: not known yet; sent as nil */
        const char *text;
        struct {
            const void *bytes;
            size_t size;
        } packed; /* one msgpack value; not owned */
    } as;
};

/* The figure of that name, or NULL. Its value: NAN when it does not exist or is no number. */
const struct svi_figure *svi_figure_find(const struct svi_figure *f, int count, const char *name);
double svi_figure_value(const struct svi_figure *f, int count, const char *name);

#endif
