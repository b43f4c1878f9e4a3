/* The keys of a stream on several threads.
 *
 * The stream's thread finds the engine of each element and hands a copy of the element to the worker of its
 * key, which decodes it, learns it and keeps the events of the engine. The stream's thread then takes the
 * elements up in the order in which they arrived: it sends their events, and counts them in the receipts of
 * their messages and in the table of keys. So the elements of a key are learned in their order, and what is
 * published is in the order of the elements, whichever worker was faster.
 *
 * Invariants: a key's worker follows from the hash of its name, so two workers never share an engine or a
 * part of the prior. A worker touches its task, the engine and its own scratch, and nothing else of the
 * fleet. All workers are idle when anything else is asked or changed (svi_workers_settle), when the stream's
 * own samples come, or the first of a key: that one may be refused, and then there is no such key.
 *
 * Read svi_workers_give first, then worker_do (a worker's side) and workers_take_up. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/follower.h"
#include "fleet/fleet_internal.h"
#include "learner/scratch.h"
#include "wire/event_record.h"

#define TASKS      4096      /* elements on their way; a power of 2 */
#define LOT        64        /* elements of a thread after which it gets to know of them */
#define TASK_BYTES (1 << 20) /* of a task's element or events: larger room is given back */
#define SHOWN      64        /* bytes of a message that an error event shows */

/* An element on its way. */
struct task {
    struct svi_key_entry *entry;
    struct svi_engine *engine;
    struct svi_bytes element;    /* its bytes, what error events show, and its `columns` */
    size_t size, shown, columns; /* of these parts; shown 0: the element itself */
    struct svi_shared_score shared_score; /* by the bank of all keys */
    double now;
    int worker;
    svs_code code;
    struct svi_receipt *receipt; /* of its message, or NULL */
    bool asked;                  /* the message wants its scores: this element's are in `scores` */
    struct svi_reply_scores scores;
    svs_error error;
    struct svi_key_figures figures;
    double time; /* of the engine after it */
    double smallest_p;
    struct svi_bytes events, scratch;
};

struct worker {
    svi_follower *follower;
    struct svi_workers *all;
    struct svi_engine_scratch *scratch;
    uint32_t *task;                        /* by piece % TASKS: which one it is */
    uint64_t given, offered, done, closed; /* pieces; done: as far as is known; closed: taken up */
};

struct svi_workers {
    struct task *task;
    uint64_t given, taken_up; /* elements */
    int count;
    bool taking_up;
    struct worker worker[];
};

/* ---- on its own thread */

/* Keeps an event until its task is taken up. Alerts are always kept, and unencoded: they may become part of
 * another alert before they are published. While muted, alerts alone matter, since groups and numbers of
 * alerts are part of the state. */
static void worker_sink(void *user, const struct svi_event *event) {
    struct task *t = user;
    const svi_stream *s = &t->entry->fleet->stream;
    const bool alert = event->topic == SVI_TOPIC_ALERT; /* which may become another before it is sent */
    const bool asked = s->encoded >> event->topic & 1;
    struct svi_event named = *event;
    named.key = t->entry->name;
    if (event->topic == SVI_TOPIC_SCORE && event->as.score.judged)
        t->smallest_p = fmin(t->smallest_p, event->as.score.p); /* reported even where nobody subscribes */
    if (s->common.muted ? !alert : !asked && !alert && event->topic != SVI_TOPIC_ERROR)
        return;
    if (svi_event_record(&named, asked && !alert, &t->scratch, &t->events) != SVS_OK)
        t->engine->out_of_memory = true; /* lost, as `seq` shows */
}

/* Runs on the worker. The element is a message of its own here; what the real message offered next to it (the
 * bytes that an error shows, the list of columns) follows it in the copy. */
static void worker_do(struct task *t, struct svi_engine_scratch *scratch) {
    struct svi_envelope env;
    struct svi_receipt receipt = {.scores = t->asked ? &t->scores : NULL};
    if (t->asked)
        svi_reply_scores_begin(&t->scores);
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
    t->smallest_p = INFINITY;
    t->error.text[0] = '\0';
    /* The engine's sink is the task for the time of this element only. At the end it is that of the fleet
     * again, for commands and passing time. */
    svi_engine_send_to(t->engine, worker_sink, t);
    svi_engine_receive_shared(t->engine, &t->shared_score);
    svi_engine_ask(scratch, receipt.scores);
    t->code = svi_engine_use_scratch(t->engine, scratch, &t->error);
    if (t->code == SVS_OK)
        t->code = svi_engine_take_element(t->engine, &env, t->now, &t->error);
    if (t->code != SVS_OK)
        svi_engine_refuse_input(t->engine, &env, false, t->code, &t->error, t->now, &receipt);
    /* Figures are read by the thread that has just called the engine; the stream's thread works with this
     * copy. */
    svi_fleet_figures(t->engine, &t->figures);
    t->time = t->engine->time;
    t->error.code = t->code;
    svi_engine_ask(scratch, NULL);
    svi_engine_receive_shared(t->engine, NULL);
    svi_engine_send_to(t->engine, svi_fleet_key_sink, t->entry);
}

static bool worker_piece(void *user, uint64_t n) {
    struct worker *w = user;
    worker_do(&w->all->task[w->task[n % TASKS]], w->scratch);
    return true;
}

/* What they need comes into its caches while it waits for the first of them. */
static void worker_look(void *user, uint64_t from, uint64_t to) {
    const struct svi_engine *engine[SVI_FLEET_AHEAD];
    const struct worker *w = user;
    int count = 0;
    for (uint64_t n = from; n < to && count < SVI_FLEET_AHEAD; n++)
        engine[count++] = w->all->task[w->task[n % TASKS]].engine;
    svi_fleet_fetch(engine, count);
}

/* ---- on the stream's */

/* What was not taken up is lost: this is for the end of the stream alone. */
void svi_workers_stop(struct svi_workers *c) {
    for (int i = 0; c && i < c->count; i++)
        svi_follower_free(&c->worker[i].follower);
}

void svi_workers_free(struct svi_workers **workers) {
    struct svi_workers *c = *workers;
    if (!c)
        return;
    svi_workers_stop(c);
    for (int i = 0; i < c->count; i++) {
        svi_free(c->worker[i].task);
        svi_engine_scratch_free(&c->worker[i].scratch);
    }
    for (int i = 0; c->task && i < TASKS; i++) {
        svi_bytes_clear(&c->task[i].element);
        svi_bytes_clear(&c->task[i].events);
        svi_bytes_clear(&c->task[i].scratch);
        svi_reply_scores_clear(&c->task[i].scores);
    }
    svi_free(c->task);
    svi_free(c);
    *workers = NULL;
}

struct svi_workers *svi_workers_new(struct svi_fleet *f, int count) {
    svs_error err;
    struct svi_workers *c = svi_alloc(sizeof *c + (size_t)count * sizeof c->worker[0]);
    bool good = c && (c->task = svi_alloc_array(TASKS, sizeof *c->task));
    for (int i = 0; good && i < count; i++) {
        c->count++;
        c->worker[i].all = c;
        good = (c->worker[i].scratch = svi_engine_scratch_new(f->stream.root->s, &err)) &&
               (c->worker[i].task = svi_alloc_array(TASKS, sizeof(uint32_t))) &&
               (c->worker[i].follower = svi_follower_new("the keys", worker_piece, &c->worker[i], &err));
    }
    for (int i = 0; good && i < count; i++)
        svi_follower_look_ahead(c->worker[i].follower, worker_look);
    if (!good)
        svi_workers_free(&c);
    return c;
}

/* What a task leaves behind, in the order of the tasks: events first, since svi_fleet_done may publish, or
 * remove the key. */
static void task_close(struct svi_fleet *f, struct task *t) {
    struct svi_recorded r;
    size_t at = 0;
    f->stream.arrival = t->now;
    f->stream.figures.smallest_p = fmin(f->stream.figures.smallest_p, t->smallest_p);
    while (svi_event_recorded(&t->events, &at, &r))
        svi_fleet_send(f, t->entry, &r.event, t->time);
    svi_stream_mutes_time(&f->stream, t->time);
    if (t->receipt && t->code == SVS_OK) {
        t->receipt->accepted++;
    } else if (t->receipt) {
        t->receipt->refused++;
        t->receipt->error = t->error;
    }
    if (t->asked)
        svi_reply_scores_join(t->receipt->scores, &t->scores);
    svi_fleet_done(f, t->entry, &t->figures, t->code == SVS_OK, t->now);
    if (t->receipt)
        t->receipt->seq = svi_stream_seen(&f->stream) - 1;
    /* One giant element must not keep its memory in the ring for ever. */
    if (t->events.capacity > TASK_BYTES)
        svi_bytes_clear(&t->events);
    if (t->element.capacity > TASK_BYTES)
        svi_bytes_clear(&t->element);
}

/* How many elements a worker is to have done before this thread is woken: waking up costs as much as some
 * elements, so it waits for up to 4 * LOT of them, or for all that the worker has. */
static uint64_t worker_next(const struct worker *w) {
    return w->given - w->closed < 4 * LOT ? w->given : w->closed + 4 * LOT;
}

/* Takes up the elements below `until`. First each worker is notified of all that it was given: a worker that
 * knows of nothing would never be done with it. */
static void workers_take_up(struct svi_fleet *f, struct svi_workers *c, uint64_t until) {
    for (int i = 0; i < c->count; i++) {
        struct worker *w = &c->worker[i];
        w->done = svi_follower_offer(w->follower, w->offered = w->given).done;
    }
    /* task_close may come back here: an alert group that speaks for a key, or a pending checkpoint, settles
     * the workers. It must not take up the same tasks again. */
    c->taking_up = true;
    for (; c->taken_up < until; c->taken_up++) {
        struct task *t = &c->task[c->taken_up % TASKS];
        struct worker *w = &c->worker[t->worker];
        if (w->done <= w->closed)
            w->done = svi_follower_wait(w->follower, worker_next(w)).done;
        w->closed++;
        task_close(f, t);
    }
    c->taking_up = false;
}

void svi_workers_settle(struct svi_fleet *f) {
    struct svi_workers *c = f->workers;
    if (c && c->taken_up < c->given && !c->taking_up)
        workers_take_up(f, c, c->given);
}

/* Copies the bytes that the element and its error events need: the message is no longer there when the worker
 * reads them. The columns of the message come along if the element has none. */
static svs_code task_copy(struct task *t, const struct svi_envelope *env) {
    const struct svi_element *el = &env->first;
    const uint8_t *columns = env->columns, *end = columns;
    t->size = (size_t)(el->end - el->at);
    t->shown = !env->shown ? 0 : env->shown_size < SHOWN ? env->shown_size : SHOWN;
    t->columns = 0;
    if (columns && !(el->seen >> SVI_KEY_COLUMNS & 1) &&
        svi_walk(&end, env->bytes + env->size, SVI_DEPTH_MAX) == SVS_OK)
        t->columns = (size_t)(end - columns);
    t->element.size = 0;
    SVI_TRY(svi_bytes_append(&t->element, el->at, t->size));
    SVI_TRY(svi_bytes_append(&t->element, env->shown, t->shown));
    return svi_bytes_append(&t->element, columns, t->columns);
}

bool svi_workers_give(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_envelope *env,
                      const struct svi_shared_score *score, double now) {
    struct svi_workers *c = f->workers;
    /* The ring is full: half of it is taken up, which leaves the workers something to do meanwhile. */
    if (c->given - c->taken_up == TASKS)
        workers_take_up(f, c, c->given - TASKS / 2);
    struct task *t = &c->task[c->given % TASKS];
    svi_envelope_peek(env);
    if (task_copy(t, env) != SVS_OK)
        return false;
    svi_envelope_pass(env);
    if (entry->engine->scratch == f->stream.scratch) { /* the last call was on this thread */
        svi_learner_release_scratch(entry->engine->learner);
        if (svi_engine_whole(entry->engine))
            svi_learner_release_scratch(svi_engine_whole(entry->engine));
        svi_alert_stage_release_scratch(entry->engine->novelty);
    }
    t->entry = entry;
    t->engine = entry->engine;
    if (score) {
        t->shared_score = *score;
    } else {
        t->shared_score.known = false;
        t->shared_score.removed = 0;
    }
    t->now = now;
    t->receipt = f->stream.receipt;
    /* Scores beyond the limit of a reply are not made. */
    t->asked = t->receipt && t->receipt->scores && t->receipt->scores->failed == SVS_OK;
    t->worker = svi_fleet_part(entry->hash) % c->count;
    struct worker *w = &c->worker[t->worker];
    /* Two numbers: of the ring of tasks, in the order of all elements, and of the worker's own pieces. */
    w->task[w->given++ % TASKS] = (uint32_t)(c->given++ % TASKS);
    /* A worker is notified of its elements in lots: each time costs a lock or a wake-up. */
    if (w->given - w->offered >= LOT)
        svi_follower_offer(w->follower, w->offered = w->given);
    return true;
}
