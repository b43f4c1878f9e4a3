/* The keys of a stream on several threads.
 *
 * The stream's thread finds the engine of each element and hands a copy of the element to the thread of its
 * key, which decodes it, learns it and keeps what the engine has to say. The stream's thread then takes the
 * elements up in the order in which they came: it sends their events, counts them in the receipts of their
 * messages and in the table of keys. So the elements of a key are learned in their order, and what goes out
 * is in the order of the elements, whatever thread was faster.
 *
 * Nobody is at work when anything else is asked or changed (svi_crew_settle), when the stream's own samples
 * come, or the first of a key: that one may be refused, and then there is no such key.
 *
 * Read svi_crew_hand first, then crew_work (a thread's side) and crew_take_up. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/follower.h"
#include "keyed/keyed_internal.h"
#include "wire/event_record.h"

#define CREW_TASKS 4096      /* elements on their way; a power of 2 */
#define CREW_LOT   64        /* elements of a thread after which it gets to know of them */
#define CREW_BYTES (1 << 20) /* of a task's element or events: larger room is given back */
#define SHOWN      64        /* bytes of a message that an error event shows */

/* An element on its way. */
struct crew_task {
    struct svi_key_entry *entry;
    struct svi_engine *engine;
    struct svi_bytes element;    /* its bytes, what error events show, and the `columns` that it goes by */
    size_t size, shown, columns; /* of these parts; shown 0: the element itself */
    double now;
    int hand;
    svs_code code;
    struct svi_receipt *receipt; /* of its message, or NULL */
    svs_error error;
    struct svi_key_figures figures;
    struct svi_bytes events, room;
};

struct crew_hand {
    svi_follower *follower;
    struct svi_crew *crew;
    struct svi_engine_scratch *scratch;
    uint32_t *task;                        /* by piece % CREW_TASKS: which one it is */
    uint64_t given, offered, done, closed; /* pieces; done: as far as is known; closed: taken up */
};

struct svi_crew {
    struct crew_task *task;
    uint64_t given, taken_up; /* elements */
    int hands;
    bool taking_up;
    struct crew_hand hand[];
};

/* ---- on its own thread */

static void crew_work(struct crew_task *t, struct svi_engine_scratch *scratch) {
    struct svi_envelope env;
    struct svi_receipt receipt = {0};
    svi_envelope_read(&env, t->element.data, t->size);
    if (t->shown > 0) {
        env.shown = t->element.data + t->size;
        env.shown_size = t->shown;
    }
    if (t->columns > 0 && !env.columns) {
        env.columns = t->element.data + t->size + t->shown;
        env.size = t->element.size; /* the list is looked for before the end */
    }
    t->events.size = 0;
    t->error.text[0] = '\0';
    t->engine->recorded = &t->events;
    t->engine->room = &t->room;
    t->code = svi_engine_use_scratch(t->engine, scratch, &t->error);
    if (t->code == SVS_OK)
        t->code = svi_engine_take_element(t->engine, &env, t->now, &t->error);
    if (t->code != SVS_OK)
        svi_engine_refuse_element(t->engine, &env, t->code, &t->error, t->now, &receipt);
    svi_fleet_figures(t->engine, &t->figures);
    t->error.code = t->code;
    t->engine->recorded = NULL;
}

static bool crew_piece(void *user, uint64_t n) {
    struct crew_hand *h = user;
    crew_work(&h->crew->task[h->task[n % CREW_TASKS]], h->scratch);
    return true;
}

/* What they need comes into its caches while it waits for the first of them. */
static void crew_look(void *user, uint64_t from, uint64_t to) {
    const struct svi_engine *engine[SVI_FLEET_AHEAD];
    const struct crew_hand *h = user;
    int count = 0;
    for (uint64_t n = from; n < to && count < SVI_FLEET_AHEAD; n++)
        engine[count++] = h->crew->task[h->task[n % CREW_TASKS]].engine;
    svi_fleet_fetch(engine, count);
}

/* ---- on the stream's */

void svi_crew_stop(struct svi_crew *c) {
    for (int i = 0; c && i < c->hands; i++)
        svi_follower_free(&c->hand[i].follower);
}

void svi_crew_free(struct svi_crew **crew) {
    struct svi_crew *c = *crew;
    if (!c)
        return;
    svi_crew_stop(c);
    for (int i = 0; i < c->hands; i++) {
        svi_free(c->hand[i].task);
        svi_engine_scratch_free(&c->hand[i].scratch);
    }
    for (int i = 0; c->task && i < CREW_TASKS; i++) {
        svi_bytes_clear(&c->task[i].element);
        svi_bytes_clear(&c->task[i].events);
        svi_bytes_clear(&c->task[i].room);
    }
    svi_free(c->task);
    svi_free(c);
    *crew = NULL;
}

struct svi_crew *svi_crew_new(const struct svi_settings *s, int hands) {
    svs_error err;
    struct svi_crew *c = svi_alloc(sizeof *c + (size_t)hands * sizeof c->hand[0]);
    bool good = c && (c->task = svi_alloc_array(CREW_TASKS, sizeof *c->task));
    for (int i = 0; good && i < hands; i++) {
        c->hands++;
        c->hand[i].crew = c;
        good = (c->hand[i].scratch = svi_engine_scratch_new(s, &err)) &&
               (c->hand[i].task = svi_alloc_array(CREW_TASKS, sizeof(uint32_t))) &&
               (c->hand[i].follower = svi_follower_new("the keys", crew_piece, &c->hand[i], &err));
    }
    for (int i = 0; good && i < hands; i++)
        svi_follower_look_ahead(c->hand[i].follower, crew_look);
    if (!good)
        svi_crew_free(&c);
    return c;
}

/* What a task leaves behind goes out: in the order of the tasks. */
static void crew_close(struct svi_engine *root, struct crew_task *t) {
    struct svi_recorded r;
    size_t at = 0;
    root->of->fleet->arrival = t->now;
    while (svi_event_recorded(&t->events, &at, &r))
        svi_send(t->engine, &r.event);
    if (t->receipt && t->code == SVS_OK) {
        t->receipt->accepted++;
    } else if (t->receipt) {
        t->receipt->refused++;
        t->receipt->error = t->error;
    }
    svi_fleet_done(root, t->entry, &t->figures, t->code == SVS_OK, t->now);
    if (t->receipt)
        t->receipt->seq = svi_engine_seen(root) - 1;
    if (t->events.capacity > CREW_BYTES)
        svi_bytes_clear(&t->events);
    if (t->element.capacity > CREW_BYTES)
        svi_bytes_clear(&t->element);
}

/* How far it is to be when it is waited for: a wake-up costs as much as some elements. */
static uint64_t crew_next(const struct crew_hand *h) {
    return h->given - h->closed < 4 * CREW_LOT ? h->given : h->closed + 4 * CREW_LOT;
}

/* Takes up those below `until`; who has to do them knows of them. */
static void crew_take_up(struct svi_engine *root, struct svi_crew *c, uint64_t until) {
    for (int i = 0; i < c->hands; i++) {
        struct crew_hand *h = &c->hand[i];
        h->done = svi_follower_offer(h->follower, h->offered = h->given).done;
    }
    c->taking_up = true;
    for (; c->taken_up < until; c->taken_up++) {
        struct crew_task *t = &c->task[c->taken_up % CREW_TASKS];
        struct crew_hand *h = &c->hand[t->hand];
        if (h->done <= h->closed)
            h->done = svi_follower_wait(h->follower, crew_next(h)).done;
        h->closed++;
        crew_close(root, t);
    }
    c->taking_up = false;
}

void svi_crew_settle(struct svi_engine *root) {
    struct svi_crew *c = root->of->crew;
    if (c && c->taken_up < c->given && !c->taking_up)
        crew_take_up(root, c, c->given);
}

uint64_t svi_crew_given(const struct svi_crew *c) {
    return c->given;
}

/* The bytes that the element and its error events need. */
static svs_code crew_copy(struct crew_task *t, const struct svi_envelope *env) {
    const struct svi_element *el = &env->first;
    const uint8_t *columns = env->columns, *end = columns;
    t->size = (size_t)(el->end - el->at);
    t->shown = !env->shown ? 0 : env->shown_size < SHOWN ? env->shown_size : SHOWN;
    t->columns = 0;
    if (columns && !(el->seen >> SVI_KEY_COLUMNS & 1) &&
        svi_walk(&end, env->bytes + env->size, SVI_DEPTH_MAX) == SVS_OK)
        t->columns = (size_t)(end - columns);
    t->element.size = 0;
    svs_code code = svi_bytes_append(&t->element, el->at, t->size);
    if (code == SVS_OK)
        code = svi_bytes_append(&t->element, env->shown, t->shown);
    return code == SVS_OK ? svi_bytes_append(&t->element, columns, t->columns) : code;
}

bool svi_crew_hand(struct svi_engine *root, struct svi_key_entry *entry, struct svi_envelope *env,
                   double now) {
    struct svi_crew *c = root->of->crew;
    if (c->given - c->taken_up == CREW_TASKS)
        crew_take_up(root, c, c->given - CREW_TASKS / 2);
    struct crew_task *t = &c->task[c->given % CREW_TASKS];
    svi_envelope_peek(env);
    if (crew_copy(t, env) != SVS_OK)
        return false;
    svi_envelope_pass(env);
    if (entry->engine->scratch == root->of->scratch) /* where others work while its thread does */
        svi_engine_rest(entry->engine);
    t->entry = entry;
    t->engine = entry->engine;
    t->now = now;
    t->receipt = root->of->receipt;
    t->hand = svi_fleet_part(entry->hash) % c->hands;
    struct crew_hand *h = &c->hand[t->hand];
    h->task[h->given++ % CREW_TASKS] = (uint32_t)(c->given++ % CREW_TASKS);
    if (h->given - h->offered >= CREW_LOT)
        svi_follower_offer(h->follower, h->offered = h->given);
    return true;
}
