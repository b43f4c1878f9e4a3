/* redis_loop.h: waiting, for all commands: signals, the sockets of the client and further ones. */
#ifndef REDIS_LOOP_H
#define REDIS_LOOP_H

#include "redis_client.h"

struct redis_loop {
    zmq_pollitem_t *items; /* owned */
    int capacity;
    bool stop; /* SIGINT or SIGTERM has arrived */
};

/* Takes the signals. 0, or 1 and a line on standard error. */
int redis_loop_open(struct redis_loop *l);
void redis_loop_close(struct redis_loop *l);

/* Waits up to `wait` seconds, or until something is ready, then lets the client work. `fill` adds items for
 * up to `more` further sockets; NULL: none. */
void redis_loop_turn(struct redis_loop *l, struct redis_client *r, double wait,
                     int (*fill)(void *user, zmq_pollitem_t *items), int more, void *user);

/* Sends one command and waits for its answer, which `take` gets. False: a signal, or the server refuses us
 * for good (reported). */
bool redis_loop_ask(struct redis_loop *l, struct redis_client *r, const char *key,
                    const struct redis_word *words, int count, redis_answer *take, void *user);

/* The number of partitions of the stream. The first command that needs it decides it: `wanted`, or
 * 16 if that is 0. Without `make` the stream must exist. Returns 0 after a signal, and after a
 * reported failure: no stream, a refusal, or another number than `wanted` in force. */
int redis_loop_partitions(struct redis_loop *l, struct redis_client *r, const char *stream, int wanted,
                          bool make);

#endif
