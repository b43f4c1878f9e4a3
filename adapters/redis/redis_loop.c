#include "redis_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "redis_log.h"
#include "redis_scripts.h"

#define LONGEST_WAIT   1.0
#define PARTITIONS     16
#define PARTITIONS_MAX 16384

/* The end of the pipe that a signal writes to: the only thing that a handler can reach. */
static int stop_pipe[2] = {-1, -1};

static void loop_on_stop(int number) {
    const int saved = errno;
    (void)number;
    if (write(stop_pipe[1], "", 1) < 0)
        errno = saved;
    errno = saved;
}

/* SIGPIPE is ignored: a write to a closed connection must fail, not end the program. */
int redis_loop_open(struct redis_loop *l) {
    struct sigaction stop = {.sa_handler = loop_on_stop}, none = {.sa_handler = SIG_IGN};
    *l = (struct redis_loop){0};
    if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
        sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGPIPE, &none, NULL) == 0)
        return 0;
    redis_log("signals cannot be waited for: %s", strerror(errno));
    return 1;
}

void redis_loop_close(struct redis_loop *l) {
    svi_free(l->items);
    *l = (struct redis_loop){0};
}

void redis_loop_turn(struct redis_loop *l, struct redis_client *r, double wait,
                     int (*fill)(void *user, zmq_pollitem_t *items), int more, void *user) {
    const int needed = 1 + redis_client_item_count(r) + more;
    char byte;
    if (needed > l->capacity) {
        svi_free(l->items);
        l->items = redis_need((size_t)(2 * needed), sizeof *l->items);
        l->capacity = 2 * needed;
    }
    l->items[0] = (zmq_pollitem_t){NULL, stop_pipe[0], ZMQ_POLLIN, 0};
    const int servers = redis_client_items(r, l->items + 1, l->capacity - 1);
    const int rest = fill ? fill(user, l->items + 1 + servers) : 0;
    wait = fmin(fmin(LONGEST_WAIT, wait), redis_client_wait(r));
    zmq_poll(l->items, 1 + servers + rest, (long)ceil(1000 * fmax(0, wait))); /* interrupted: another round */
    redis_client_turn(r, l->items + 1, servers);
    l->stop = l->stop || read(stop_pipe[0], &byte, 1) == 1;
}

struct loop_question {
    redis_answer *take;
    void *user;
    bool done;
};

static void loop_answered(void *user, const redisReply *reply) {
    struct loop_question *q = user;
    if (q->take)
        q->take(q->user, reply);
    q->done = true;
}

bool redis_loop_ask(struct redis_loop *l, struct redis_client *r, const char *key,
                    const struct redis_word *words, int count, redis_answer *take, void *user) {
    struct loop_question q = {.take = take, .user = user};
    redis_client_send(r, 0, key, words, count, loop_answered, &q);
    while (!q.done && !l->stop && !r->hopeless)
        redis_loop_turn(l, r, LONGEST_WAIT, NULL, 0, NULL);
    if (!q.done)
        redis_client_forget(r, &q);
    return q.done;
}

static void loop_number(void *user, const redisReply *reply) {
    if (reply->type == REDIS_REPLY_STRING)
        *(int *)user = atoi(reply->str);
    else if (reply->type == REDIS_REPLY_ERROR)
        redis_log("Redis answers: %.200s", reply->str);
}

int redis_loop_partitions(struct redis_loop *l, struct redis_client *r, const char *stream, int wanted,
                          bool make) {
    struct redis_names names;
    char number[16];
    int n = 0;
    redis_names_make(&names, stream, 0);
    const char *key = names.key[REDIS_KEY_PARTITIONS];
    snprintf(number, sizeof number, "%d", wanted ? wanted : PARTITIONS);
    const struct redis_word set[] = {redis_text("SET"), redis_text(key), redis_text(number),
                                     redis_text("NX")},
                            get[] = {redis_text("GET"), redis_text(key)};
    if ((make && !redis_loop_ask(l, r, key, set, 4, NULL, NULL)) ||
        !redis_loop_ask(l, r, key, get, 2, loop_number, &n))
        return 0;
    if (n == 0 && !make) {
        redis_log("there is no stream %s at this Redis: neither a worker nor `feed` has run for it", stream);
        return 0;
    }
    if (n < 1 || n > PARTITIONS_MAX) {
        redis_log("%s holds no number of partitions from 1 to %d", key, PARTITIONS_MAX);
        return 0;
    }
    if (wanted && n != wanted) {
        redis_log(
            "stream %s has %d partitions, not %d: with another number keys would go to other partitions "
            "than those that have their models. Leave --count out, or name another --stream",
            stream, n, wanted);
        return 0;
    }
    return n;
}
