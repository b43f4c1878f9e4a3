/* What time alone brings about in keys: one from which no row comes any more is absent.
 *
 * Each key's rules know until when they wait, and say so with their figures after each element; the keys
 * stand in a queue by that (fleet/key_queue.h), those out of memory too, which come back when they are due.
 * What has reached all keys and not yet this one (fleet_notes.c) changes its time: that is reckoned
 * here, so that the begin of a process, after which each waits from the start, touches none of them.
 *
 * Passing time is an input that a journal repeats (SVI_RECORD_TIME): which keys are due, and in which order,
 * follows from what came before. */
#include <math.h>

#include "base/fail.h"
#include "fleet/fleet_internal.h"

#define PASS_MOST 64 /* keys at once: each may have to come back from the disk */

/* The time at which it is due, as it will know when it is touched. */
static double time_due(const struct svi_fleet *f, const struct svi_key_entry *n) {
    double due = n->last.deadline;
    if (n->head.rests != (uint32_t)f->rests)
        return INFINITY;
    for (uint64_t i = n->head.note; i < f->noted && due < INFINITY; i++) {
        const struct svi_note *note = &f->notes[i - f->dropped];
        if (note->kind == SVI_NOTE_CLOCK)
            due += note->step;
        else if (note->kind == SVI_NOTE_BEGIN)
            due = fmax(due, note->now + n->last.quiet);
    }
    return due;
}

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

/* The first one, where it belongs; NULL: none will be due. */
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
    svi_fleet_groups_pass(f, now);
    for (int i = 0; i < PASS_MOST; i++) {
        struct svi_key_entry *n = time_first(f, &due);
        if (!n || due > now)
            break;
        svi_key_queue_leave(&f->queue, n); /* what it has to say then puts it in again */
        if (time_pass_key(f, n, now, &err) == SVS_OK)
            continue;
        f->stream.root->out_of_memory = f->stream.root->out_of_memory || err.code == SVS_NO_MEMORY;
        svi_fleet_lose(f, n, &err);
    }
    svi_fleet_evict(f);
}
