/* outbox_answer.h: a reply of a process to a producer (svmstream help protocol, Replies to samples). */
#ifndef SVI_OUTBOX_ANSWER_H
#define SVI_OUTBOX_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

struct svi_answer {
    bool ok;
    int final;                                 /* -1: absent */
    int64_t n, next, credit, durable, applied; /* -1: absent */
    int64_t max_message;                   /* largest message that the process accepts, bytes; -1: absent */
    int64_t refused;                       /* refused samples of an accepted message; 0: absent */
    uint64_t epoch, run;                   /* 0: absent */
    char delivery[24];                     /* delivery level that the process promises; "": absent */
    char code[40], reason[SVS_ERROR_TEXT]; /* printable; reason "": no error */
    const uint8_t *scores, *at, *end;      /* values, NULL: absent; and the end of the reply */
};

/* Parses a reply. Codes of svi_msgpack_check; SVS_WRONG_TYPE: neither `ok` nor `error` is present. */
svs_code svi_answer_read(struct svi_answer *a, const void *bytes, size_t length, svs_error *err);

#endif
