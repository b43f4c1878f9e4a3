#include "redis_request.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "redis_log.h"

#define HEAD 24 /* bytes of "$N\r\n" */

struct redis_request *redis_request_new(const struct redis_word *words, int count) {
    size_t size = HEAD;
    for (int i = 0; i < count; i++)
        size += HEAD + words[i].size + 2;
    struct redis_request *r = redis_need(1, sizeof *r + size);
    char *at = r->bytes + sprintf(r->bytes, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        at += sprintf(at, "$%zu\r\n", words[i].size);
        if (words[i].size > 0)
            memcpy(at, words[i].bytes, words[i].size);
        at += words[i].size;
        *at++ = '\r';
        *at++ = '\n';
    }
    r->size = (size_t)(at - r->bytes);
    r->slot = r->redirect = -1;
    return r;
}

void redis_queue_add(struct redis_queue *q, struct redis_request *r) {
    r->next = NULL;
    if (q->last)
        q->last->next = r;
    else
        q->first = r;
    q->last = r;
    q->count++;
}

struct redis_request *redis_queue_take(struct redis_queue *q) {
    struct redis_request *r = q->first;
    if (r) {
        q->first = r->next;
        q->last = q->first ? q->last : NULL;
        q->count--;
    }
    return r;
}

void redis_queue_return(struct redis_queue *q, struct redis_queue *from) {
    if (!from->first)
        return;
    from->last->next = q->first;
    q->first = from->first;
    q->last = q->last ? q->last : from->last;
    q->count += from->count;
    *from = (struct redis_queue){0};
}

void redis_queue_forget(struct redis_queue *q, const void *user) {
    for (struct redis_request *r = q->first; r; r = r->next)
        if (r->user == user)
            r->done = NULL;
}

void redis_queue_clear(struct redis_queue *q) {
    struct redis_request *r;
    while ((r = redis_queue_take(q)))
        svi_free(r);
}

/* CRC-16/XMODEM, bit by bit: keys are short, and each slot is computed once a request. */
int redis_key_slot(const char *key, size_t length) {
    const char *open = memchr(key, '{', length);
    const char *close = open ? memchr(open + 1, '}', length - (size_t)(open + 1 - key)) : NULL;
    if (close && close > open + 1) {
        key = open + 1;
        length = (size_t)(close - key);
    }
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
    }
    return (int)(crc % 16384);
}
