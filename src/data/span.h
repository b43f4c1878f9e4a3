/* span.h: a piece of text that stands somewhere else: [at, end). */
#ifndef SVI_SPAN_H
#define SVI_SPAN_H

/* What to do with text that is not UTF-8. */
#define SVI_LATIN1 "if the text is Latin-1, convert it with iconv -f LATIN1 -t UTF-8"

struct svi_span {
    const char *at, *end;
};

#endif
