/* outbox_reply.h: what a process answers to a producer, read from msgpack. */
#ifndef SVI_OUTBOX_REPLY_H
#define SVI_OUTBOX_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

struct svi_answer {
    bool ok;
    int final;                                 /* -1: not told */
    int64_t n, next, credit, durable, applied; /* -1: not told */
    int64_t refused;                           /* samples of a message that was taken; 0: not told */
    uint64_t epoch;                            /* 0: not told */
    char delivery[24];                         /* the level that the process promises; "": not told */
    char code[40], reason[200];                /* printable; reason "": no error */
};

/* Codes of svi_msgpack_check; SVS_WRONG_TYPE: neither `ok` nor `error` is there. */
svs_code svi_answer_read(struct svi_answer *a, const void *bytes, size_t length, svs_error *err);

#endif
