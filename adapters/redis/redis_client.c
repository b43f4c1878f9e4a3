/* The servers of Redis as one: where a command goes, and what becomes of answers that are no result.
 *
 * A command waits in `pending` until it is due, is routed to a connection (client_route), and ends with an
 * answer (client_answer): a redirection or passing trouble puts it back, everything else is given to the
 * caller. Connections are made on demand, one for each server and lane, and never removed: there are as many
 * as servers times lanes.
 *
 * The table of slots is asked for at the start, after MOVED, and once a second while a server is away, since
 * then another one may have taken its slots. A server that is not part of a cluster has all slots; a user
 * that may not ask for the table learns it from MOVED. What is reported about trouble is in redis_trouble.c.
 */
#include "redis_client.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "redis_log.h"
#include "redis_trouble.h"

#define REFRESH     1.0  /* seconds between questions for the table while a server is away */
#define RETRY_FIRST 0.05 /* seconds until a command in trouble is repeated, doubling */
#define RETRY_MAX   1.0
#define TABLE_LANE  -1 /* of the questions for the table of slots: nothing else delays them */

/* Reports trouble once until it is over (client_well), or is another. */
static void client_report(struct redis_client *r, const char *kind, const char *text, const char *detail) {
    char shown[300];
    if (r->trouble == kind)
        return;
    r->troubled = r->trouble ? r->troubled : svi_monotonic();
    r->trouble = kind;
    redis_log("%s (%s)", text, svi_escape(shown, sizeof shown, detail, strlen(detail)));
}

/* Does a command wait for a server that is away, or for the end of a trouble? Answers of other servers do
 * not end it. */
static bool client_stuck(const struct redis_client *r) {
    for (const struct redis_request *q = r->pending.first; q; q = q->next)
        if (q->tries > 0)
            return true;
    for (int64_t i = 0; i < r->connections; i++)
        if (r->connection[i]->waiting.first && r->node[r->connection[i]->node].down)
            return true;
    return false;
}

static void client_well(struct redis_client *r) {
    r->answered = true;
    if (!r->trouble || client_stuck(r))
        return;
    redis_log("Redis takes commands again after %.1f s", svi_monotonic() - r->troubled);
    r->trouble = NULL;
}

/* The index of a server; it is added if it is new. -1: there are too many. */
static int client_node(struct redis_client *r, const char *host, size_t length, int port) {
    for (int i = 0; i < r->nodes; i++)
        if (r->node[i].port == port && strlen(r->node[i].host) == length &&
            memcmp(r->node[i].host, host, length) == 0)
            return i;
    if (r->nodes == REDIS_NODES_MAX || length >= REDIS_HOST_BYTES || port < 1 || port > 65535)
        return -1;
    struct redis_node *n = &r->node[r->nodes];
    *n = (struct redis_node){.port = port};
    memcpy(n->host, host, length);
    return r->nodes++;
}

void redis_client_open(struct redis_client *r, const struct redis_url *url, double timeout) {
    *r = (struct redis_client){.url = url, .timeout = timeout, .began = svi_monotonic()};
    for (int i = 0; i < REDIS_SLOTS; i++)
        r->owner[i] = -1;
    client_node(r, url->host, strlen(url->host), url->port);
}

void redis_client_close(struct redis_client *r) {
    for (int64_t i = 0; i < r->connections; i++) {
        redis_connection_close(r->connection[i]);
        svi_free(r->connection[i]);
    }
    svi_free(r->connection);
    redis_queue_clear(&r->pending);
    *r = (struct redis_client){0};
}

static struct redis_connection *client_connection(struct redis_client *r, int node, int lane) {
    for (int64_t i = 0; i < r->connections; i++)
        if (r->connection[i]->node == node && r->connection[i]->lane == lane)
            return r->connection[i];
    if (!svi_grow(&r->connection, r->connections, &r->capacity, 8, sizeof *r->connection))
        redis_no_memory(16 * sizeof *r->connection);
    struct redis_connection *c = redis_need(1, sizeof *c);
    *c = (struct redis_connection){.login = r->url,
                                   .host = r->node[node].host,
                                   .port = r->node[node].port,
                                   .node = node,
                                   .lane = lane,
                                   .timeout = r->timeout};
    return r->connection[r->connections++] = c;
}

/* A server that is reachable, as far as is known, beginning with the one after `from`. */
static int client_any(const struct redis_client *r, int from) {
    for (int i = 1; i <= r->nodes; i++)
        if (!r->node[(from + i) % r->nodes].down)
            return (from + i) % r->nodes;
    return (from + 1) % r->nodes;
}

static bool client_ordered(const struct redis_client *r, const struct redis_request *q) {
    return r->ordered > 0 && q->lane == r->ordered && q->slot >= 0;
}

/* Does an earlier command of its slot and lane wait in `pending`, or is one of the ordered lane under way? */
static void client_hold(const struct redis_client *r, struct redis_request *q) {
    q->held = client_ordered(r, q) && r->busy[q->slot];
    for (const struct redis_request *p = r->pending.first; p && !q->held; p = p->next)
        q->held = p->slot == q->slot && p->lane == q->lane;
}

static void client_route(struct redis_client *r, struct redis_request *q) {
    int node = q->redirect >= 0 ? q->redirect : q->slot >= 0 ? r->owner[q->slot] : -1;
    if (node < 0)
        node = client_any(r, r->nodes - 1);
    if (client_ordered(r, q))
        r->busy[q->slot] = true;
    redis_queue_add(&client_connection(r, node, q->lane)->waiting, q);
}

void redis_client_send(struct redis_client *r, int lane, const char *key, const struct redis_word *words,
                       int count, redis_answer *done, void *user) {
    struct redis_request *q = redis_request_new(words, count);
    q->slot = key ? redis_key_slot(key, strlen(key)) : -1;
    q->lane = lane;
    q->done = done;
    q->user = user;
    client_hold(r, q);
    if (q->held)
        redis_queue_add(&r->pending, q);
    else
        client_route(r, q);
}

void redis_client_forget(struct redis_client *r, const void *user) {
    redis_queue_forget(&r->pending, user);
    for (int64_t i = 0; i < r->connections; i++) {
        redis_queue_forget(&r->connection[i]->waiting, user);
        redis_queue_forget(&r->connection[i]->sent, user);
    }
}

int64_t redis_client_waiting(const struct redis_client *r) {
    int64_t n = r->pending.count;
    for (int64_t i = 0; i < r->connections; i++)
        n += r->connection[i]->lane == TABLE_LANE
                 ? 0
                 : r->connection[i]->waiting.count + r->connection[i]->sent.count;
    return n;
}

/* ---- the table of slots */

static const redisReply *client_element(const redisReply *reply, size_t i, int type) {
    return reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements && reply->element[i]->type == type
               ? reply->element[i]
               : NULL;
}

/* [[first, last, [host, port, ...], replicas ...], ...]. A server that does not know its own name sends an
 * empty one: it is the one that was asked. */
static void client_table(void *user, const redisReply *reply) {
    struct redis_client *r = user;
    r->asked = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        r->cluster = r->cluster && redis_trouble_find(reply->str);
        return;
    }
    r->cluster = true;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *row = reply->element[i], *first = client_element(row, 0, REDIS_REPLY_INTEGER),
                         *last = client_element(row, 1, REDIS_REPLY_INTEGER),
                         *server = client_element(row, 2, REDIS_REPLY_ARRAY),
                         *port = client_element(server, 1, REDIS_REPLY_INTEGER),
                         *host = client_element(server, 0, REDIS_REPLY_STRING);
        if (!first || !last || !port || first->integer < 0 || last->integer >= REDIS_SLOTS)
            continue;
        const bool named = host && host->len > 0;
        const int node = client_node(r, named ? host->str : r->url->host,
                                     named ? host->len : strlen(r->url->host), (int)port->integer);
        for (long long s = first->integer; node >= 0 && s <= last->integer; s++)
            r->owner[s] = (int16_t)node;
        /* Replicas are known as well: one of them may be all that is left to ask. */
        for (size_t k = 3; k < row->elements; k++) {
            const redisReply *h = client_element(row->element[k], 0, REDIS_REPLY_STRING),
                             *p = client_element(row->element[k], 1, REDIS_REPLY_INTEGER);
            if (h && p && h->len > 0)
                client_node(r, h->str, h->len, (int)p->integer);
        }
    }
    /* What waits for a server that has lost its slots goes to their new one. */
    for (int64_t i = 0; i < r->connections; i++) {
        struct redis_connection *c = r->connection[i];
        struct redis_queue all = {0};
        struct redis_request *q;
        if (c->state == REDIS_CLOSED && c->lane != TABLE_LANE) {
            redis_queue_return(&all, &c->waiting);
            while ((q = redis_queue_take(&all)))
                client_route(r, q);
        }
    }
}

static void client_refresh(struct redis_client *r, double now) {
    static const struct redis_word words[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
    if (now < r->refresh)
        return;
    r->refresh = HUGE_VAL;
    for (int i = 0; i < r->nodes; i++)
        if (r->node[i].down)
            r->refresh = now + REFRESH;
    if (r->asked && r->refresh == HUGE_VAL)
        return;
    struct redis_request *q = redis_request_new(words, 2);
    q->lane = TABLE_LANE;
    q->done = client_table;
    q->user = r;
    r->asked = true;
    redis_queue_add(&client_connection(r, client_any(r, r->turn++ % r->nodes), TABLE_LANE)->waiting, q);
}

/* ---- answers */

/* "MOVED 3999 127.0.0.1:7002", "ASK ...". The host may be empty, and an IPv6 address has colons. */
static int client_redirected(struct redis_client *r, const struct redis_connection *c, const char *text,
                             int *slot) {
    const char *space = strchr(text, ' '), *host = space ? strchr(space + 1, ' ') : NULL,
               *colon = host ? strrchr(host, ':') : NULL;
    if (!colon)
        return -1;
    *slot = atoi(space + 1);
    host++;
    const size_t length = (size_t)(colon - host);
    return *slot < 0 || *slot >= REDIS_SLOTS
               ? -1
               : client_node(r, length ? host : c->host, length ? length : strlen(c->host), atoi(colon + 1));
}

static void client_again(struct redis_client *r, struct redis_request *q, bool pause) {
    const double wait =
        pause ? fmin(RETRY_MAX, RETRY_FIRST * (double)(1 << (q->tries < 6 ? q->tries : 6))) : 0;
    struct redis_queue first = {0};
    q->tries++;
    q->due = svi_monotonic() + wait;
    r->retries += pause;
    /* Of the ordered lane it is older than all that wait. */
    redis_queue_add(client_ordered(r, q) ? &first : &r->pending, q);
    if (first.first)
        redis_queue_return(&r->pending, &first);
}

static void client_answer(void *user, struct redis_connection *c, struct redis_request *q,
                          const redisReply *reply) {
    struct redis_client *r = user;
    const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
    const bool moved = error && strncmp(error, "MOVED ", 6) == 0;
    const struct redis_trouble *trouble = error ? redis_trouble_find(error) : NULL;
    int slot = -1, node;
    r->node[c->node].down = false;
    r->reached = true;
    q->redirect = -1;
    if (client_ordered(r, q))
        r->busy[q->slot] = false;
    if ((moved || (error && strncmp(error, "ASK ", 4) == 0)) &&
        (node = client_redirected(r, c, error, &slot)) >= 0) {
        r->redirects++;
        r->cluster = true;
        if (moved) {
            r->owner[slot] = (int16_t)node;
            r->refresh = fmin(r->refresh, svi_monotonic());
        } else
            q->redirect = node;
        client_again(r, q, q->tries > 4); /* two servers may point at each other for a while */
        return;
    }
    if (trouble && q->lane != TABLE_LANE) {
        client_report(r, trouble->word, trouble->text, error);
        r->hopeless = r->hopeless || (!trouble->retry && !r->answered);
        if (r->cluster && !moved)
            r->refresh = fmin(r->refresh, svi_monotonic() + REFRESH);
        client_again(r, q, true);
        return;
    }
    if (q->lane != TABLE_LANE)
        client_well(r);
    if (q->done)
        q->done(q->user, reply);
    svi_free(q);
}

/* ---- the loop */

int redis_client_item_count(const struct redis_client *r) {
    return (int)r->connections;
}

int redis_client_items(const struct redis_client *r, zmq_pollitem_t *items, int capacity) {
    int n = 0;
    for (int64_t i = 0; i < r->connections && n < capacity; i++)
        n += redis_connection_item(r->connection[i], &items[n]);
    return n;
}

double redis_client_wait(const struct redis_client *r) {
    const double now = svi_monotonic();
    double wait = fmax(0, r->refresh - now);
    for (const struct redis_request *q = r->pending.first; q; q = q->next)
        if (!q->held)
            wait = fmin(wait, fmax(0, q->due - now));
    for (int64_t i = 0; i < r->connections; i++)
        wait = fmin(wait, redis_connection_wait(r->connection[i], now));
    return wait;
}

/* A request that is not due holds back those of the same slot behind it: their order stays. */
static void client_pending(struct redis_client *r, double now) {
    struct redis_queue all = r->pending;
    struct redis_request *q;
    r->pending = (struct redis_queue){0};
    while ((q = redis_queue_take(&all))) {
        client_hold(r, q);
        if (q->held || q->due > now)
            redis_queue_add(&r->pending, q);
        else
            client_route(r, q);
    }
}

static void client_broken(struct redis_client *r, struct redis_connection *c) {
    r->reconnects++;
    r->node[c->node].down = true;
    r->asked = r->asked && c->lane != TABLE_LANE;
    if (c->lane == TABLE_LANE) /* asked again by the clock, of another server */
        redis_queue_clear(&c->waiting);
    r->refresh = fmin(r->refresh, svi_monotonic() + (r->cluster ? RETRY_FIRST : REFRESH));
    if (c->refused) {
        const char *why = strchr(c->why, ' ') ? strchr(c->why, ' ') + 1 : c->why;
        const struct redis_trouble *trouble = redis_trouble_find(why);
        client_report(r, "log-in", trouble ? trouble->text : "Redis refuses the log-in", c->why);
        r->hopeless = r->hopeless || (!r->answered && trouble && !trouble->retry);
    } else
        client_report(r, "connection",
                      r->answered ? "the connection to Redis is lost; trying again"
                                  : "Redis cannot be reached; trying again",
                      c->why);
}

void redis_client_turn(struct redis_client *r, const zmq_pollitem_t *items, int count) {
    const double now = svi_monotonic();
    const int64_t polled = r->connections; /* those that a turn adds have not been polled */
    int at = 0;
    for (int64_t i = 0; i < polled; i++) {
        struct redis_connection *c = r->connection[i];
        const bool has = c->state != REDIS_CLOSED && at < count && items[at].fd == c->context->fd;
        const enum redis_connection_state before = c->state;
        if (!redis_connection_turn(c, has ? items[at].revents : 0, client_answer, r))
            client_broken(r, c);
        else if (c->state == REDIS_READY && before != REDIS_READY)
            r->node[c->node].down = false;
        at += has;
    }
    client_pending(r, now);
    client_refresh(r, now);
    if (!r->reached && !r->patient && !r->hopeless && now - r->began > r->timeout) {
        r->hopeless = true;
        redis_log("given up after %g s without an answer of Redis at %s:%d: is it running there, and is a "
                  "firewall between?",
                  r->timeout, r->url->host, r->url->port);
    }
    /* What was routed now is begun at once. */
    for (int64_t i = 0; i < r->connections; i++)
        if ((r->connection[i]->waiting.first) &&
            !redis_connection_turn(r->connection[i], 0, client_answer, r))
            client_broken(r, r->connection[i]);
}
