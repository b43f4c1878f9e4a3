/* span.h: a view of text that is owned elsewhere: the bytes [at, end). */
#ifndef SVI_SPAN_H
#define SVI_SPAN_H

/* Advice in error texts about text that is not UTF-8. */
#define SVI_LATIN1 "if the text is Latin-1, convert it with iconv -f LATIN1 -t UTF-8"

struct svi_span {
    const char *at, *end;
};

#endif
