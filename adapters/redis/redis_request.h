/* redis_request.h: one command for Redis on its way, in the form in which it is sent, and queues of them. */
#ifndef REDIS_REQUEST_H
#define REDIS_REQUEST_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `reply` is valid during the call only; it may be an error of the server (REDIS_REPLY_ERROR). */
typedef void redis_answer(void *user, const redisReply *reply);

struct redis_word {
    const void *bytes;
    size_t size;
};

struct redis_request {
    struct redis_request *next;
    redis_answer *done; /* NULL: nobody waits for the answer any more */
    void *user;
    int slot;     /* of its key; -1: any server will do */
    int lane;     /* connections of different lanes do not wait for each other */
    int redirect; /* node to which an ASK sends it once; -1: none */
    int tries;    /* failures so far */
    double due;   /* svi_monotonic: not sent before */
    bool held;    /* by an earlier command of its slot and lane, however long it is due */
    double sent;  /* svi_monotonic */
    size_t size;
    char bytes[];
};

struct redis_queue {
    struct redis_request *first, *last;
    int64_t count;
};

/* Owner: the caller, until it is in a queue. */
struct redis_request *redis_request_new(const struct redis_word *words, int count);

void redis_queue_add(struct redis_queue *q, struct redis_request *r);
struct redis_request *redis_queue_take(struct redis_queue *q); /* NULL: empty */
/* Moves all of `from` before those of `q`, in their order. */
void redis_queue_return(struct redis_queue *q, struct redis_queue *from);
/* The answers for this user are dropped. */
void redis_queue_forget(struct redis_queue *q, const void *user);
void redis_queue_clear(struct redis_queue *q);

/* The slot of a key in a cluster, 0 to 16383: CRC16 of what is in its first braces, or of all of it. */
int redis_key_slot(const char *key, size_t length);

#endif
