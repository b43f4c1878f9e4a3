/* What time alone brings about in keys: one from which no row comes any more is absent.
 *
 * Each key's rules know until when they wait, and report it with the key's figures after each element. The
 * keys stand in a queue by that time (fleet/key_queue.h), those out of memory too, which come back when they
 * are due. A note that has not reached a key yet (fleet_notes.c) changes its time; that is computed here, so
 * that the start of a process, after which each key waits from the start, touches none of them.
 *
 * Passing time is an input that a journal repeats (SVI_RECORD_TIME): which keys are due, and in which order,
 * follows from what arrived before. */
#include <math.h>

#include "base/fail.h"
#include "fleet/fleet_internal.h"

#define MAX_KEYS_A_PASS 64 /* keys at once: each may have to come back from the disk */

/* The time at which it is due, as it will know when it is touched. */
static double time_due(const struct svi_fleet *f, const struct svi_key_entry *n) {
    double due = n->last.deadline;
    /* All sources have left since: no row is expected, and nothing is due until the key is touched. */
    if (n->head.rests != (uint32_t)f->rests)
        return INFINITY;
    for (uint64_t i = n->head.note; i < f->noted && due < INFINITY; i++) {
        const struct svi_note *note = &f->notes[i - f->dropped];
        if (note->kind == SVI_NOTE_CLOCK)
            due += note->step;
        /* After the start of a process a key has its whole quiet period again, counted from the start. */
        else if (note->kind == SVI_NOTE_BEGIN)
            due = fmax(due, note->now + n->last.quiet);
    }
    return due;
}

/* A deadline that moved later is not moved in the queue: time_first will find that out. A sample is
 * therefore cheap, and a key is placed again once for many samples. */
void svi_fleet_queue(struct svi_fleet *f, struct svi_key_entry *n) {
    if (n->last.deadline < INFINITY)
        svi_key_queue_put_off(&f->queue, n, time_due(f, n));
}

svs_code svi_fleet_queue_all(struct svi_fleet *f, svs_error *err) {
    svs_code code = svi_key_queue_reserve(&f->queue, svi_key_table_count(f->table), err);
    for (struct svi_key_entry *n = svi_key_table_first(f->table); n && code == SVS_OK; n = n->after)
        svi_key_queue_set(&f->queue, n, time_due(f, n));
    return code;
}

/* The key that is due first; NULL: none will be. The time in the queue may be too early, never too late: a
 * key whose time has moved is placed again until the first one is in its right place. */
static struct svi_key_entry *time_first(struct svi_fleet *f, double *due) {
    struct svi_key_queue *q = &f->queue;
    while (q->count > 0) {
        struct svi_key_entry *n = q->at[0].key;
        *due = time_due(f, n);
        if (*due == q->at[0].due)
            return n;
        svi_key_queue_set(q, n, *due);
    }
    *due = INFINITY;
    return NULL;
}

double svi_fleet_deadline(const svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of((svi_stream *)s);
    double due;
    (void)time_first(f, &due);
    return fmin(due, svi_fleet_groups_due(f));
}

static svs_code time_pass_key(struct svi_fleet *f, struct svi_key_entry *n, double now, svs_error *err) {
    struct svi_key_entry *entry;
    if (!svi_fleet_find(f, n->name, false, 0, &entry, err) || svi_fleet_touch(f, entry, err) != SVS_OK)
        return err->code;
    svi_engine_pass(entry->engine, now);
    svi_fleet_done_here(f, entry, false, now);
    return SVS_OK;
}

void svi_fleet_pass(svi_stream *s, double now) {
    struct svi_fleet *f = svi_fleet_of(s);
    double due = INFINITY;
    svs_error err;
    /* Groups first: their reports are older than what keys find now. */
    svi_fleet_groups_pass(f, now);
    for (int i = 0; i < MAX_KEYS_A_PASS; i++) {
        struct svi_key_entry *n = time_first(f, &due);
        if (!n || due > now)
            break;
        svi_key_queue_leave(&f->queue, n); /* svi_fleet_done puts it in again, by its new deadline */
        if (time_pass_key(f, n, now, &err) == SVS_OK)
            continue;
        f->stream.root->out_of_memory = f->stream.root->out_of_memory || err.code == SVS_NO_MEMORY;
        svi_fleet_lose(f, n, &err);
    }
    svi_fleet_evict(f);
}
