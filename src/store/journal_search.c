#include "store/reader.h"

#define PIECE (64 * 1024) /* bytes looked through at a time */
#define TIMES 8           /* bytes that all searches together may look through, in sizes of the segment */

struct search {
    svi_journal_reader *r;
    struct svi_search *s;
    svs_error *err;
};

static bool may_stand(const struct search *t, uint64_t p, const struct svi_record *record) {
    uint64_t most = t->s->number + (p - t->s->begin) / SVI_RECORD_BARE + 1;
    return record->number >= t->s->number && record->number <= most &&
           SVI_RECORD_BARE + (uint64_t)record->size <= t->r->window.size - p &&
           record->size <= t->r->options.largest;
}

/* Tells whether the record that seems to stand at p is sound; *chain is the check before, which stands there.
 * Numbers are held against what can stand between: a stale or made-up record seldom fits. */
static svs_code try_record(struct search *t, uint64_t p, struct svi_record *record, uint64_t *chain,
                           bool *sound) {
    struct svi_window *w = &t->r->window;
    const uint8_t *at;
    *sound = false;
    svs_code code = svi_window_at(w, p - 8, 8 + SVI_RECORD_HEAD, &at, t->err);
    if (code != SVS_OK || !svi_record_head(at + 8, record) || !may_stand(t, p, record))
        return code;
    size_t span = SVI_RECORD_BARE + record->size;
    t->r->searched += span;
    code = svi_window_at(w, p - 8, 8 + span, &at, t->err);
    if (code != SVS_OK)
        return code;
    uint64_t check = *chain = svi_load64(at);
    *sound = svi_record_sound(at + 8, record, t->r->here.secret, &check);
    if (!*sound && p == t->s->after) {
        check = *chain = t->s->seed;
        *sound = svi_record_sound(at + 8, record, t->r->here.secret, &check);
    }
    return SVS_OK;
}

static void note(struct search *t, uint64_t p, const struct svi_record *record, uint64_t chain) {
    struct svi_search *s = t->s;
    if (record->durable > t->r->proved)
        t->r->proved = record->durable;
    if (!s->sound) {
        s->sound = true;
        s->offset = p;
        s->found = record->number;
        s->chain = chain;
    }
    s->evidence = s->evidence || record->durable >= s->durable;
}

/* Moves *p on to the next byte that may begin a record, or as far as was looked. */
static svs_code next_lead(struct search *t, uint64_t *p, bool *lead) {
    struct svi_window *w = &t->r->window;
    const uint8_t *at;
    size_t n = w->size - *p < PIECE ? (size_t)(w->size - *p) : PIECE;
    svs_code code = svi_window_at(w, *p, n, &at, t->err);
    if (code != SVS_OK)
        return code;
    size_t starts = n - SVI_RECORD_BARE + 1;
    const uint8_t *hit = memchr(at, SVI_RECORD_LEAD, starts);
    *lead = hit;
    *p += hit ? (size_t)(hit - at) : starts;
    return SVS_OK;
}

/* What begins at *p, if anything does, and moves *p behind it. */
static svs_code look(struct search *t, uint64_t *p) {
    struct svi_record record;
    uint64_t chain;
    bool lead, sound = false;
    svs_code code = next_lead(t, p, &lead);
    if (code != SVS_OK || !lead)
        return code;
    code = try_record(t, *p, &record, &chain, &sound);
    if (sound)
        note(t, *p, &record, chain);
    *p += sound ? SVI_RECORD_BARE + record.size : 1;
    return code;
}

/* The record that comes next stands where the bad one ends: then what is between is the bad one's payload,
 * in which a producer may have written what looks like records. Moves *p behind it. */
static svs_code look_behind(struct search *t, uint64_t *p) {
    struct svi_record record;
    uint64_t chain, at = t->s->after;
    bool sound = false;
    if (at < *p || at + SVI_RECORD_BARE > t->r->window.size)
        return SVS_OK;
    svs_code code = try_record(t, at, &record, &chain, &sound);
    if (!sound || record.number != t->s->number + (t->s->begin > 0)) /* begin 0: a header is bad */
        return code;
    note(t, at, &record, chain);
    *p = at + SVI_RECORD_BARE + record.size;
    return code;
}

svs_code svi_journal_search(svi_journal_reader *r, struct svi_search *s, svs_error *err) {
    struct search t = {r, s, err};
    uint64_t p = s->begin < 8 ? 8 : s->begin;
    svs_code code = look_behind(&t, &p);
    while (code == SVS_OK && !s->evidence && !s->exhausted && p + SVI_RECORD_BARE <= r->window.size) {
        uint64_t before = p;
        code = look(&t, &p);
        r->searched += p - before;
        s->exhausted = r->searched > TIMES * r->window.size;
    }
    return code;
}
