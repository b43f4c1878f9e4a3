/* span.h: a piece of text that stands somewhere else: [at, end). */
#ifndef SVI_SPAN_H
#define SVI_SPAN_H

struct svi_span {
    const char *at, *end;
};

#endif
