#include "store/reader.h"

#define PIECE        (64 * 1024) /* bytes looked through at a time */
#define LOOKED       (SVI_RECORD_HEAD)
#define HASHED_TIMES 4 /* bytes that are hashed while searching, in sizes of the segment */

struct search {
    svi_journal_reader *r;
    struct svi_search *s;
    uint64_t hashed;
    svs_error *err;
};

/* The record that seems to stand at p is sound, its seed being what stands before it: *record is it. Numbers
 * are held against what can stand between: a stale or made-up record seldom fits. */
static svs_code try_record(struct search *t, uint64_t p, struct svi_record *record, bool *sound) {
    struct svi_window *w = &t->r->window;
    const uint8_t *at;
    *sound = false;
    svs_code code = svi_window_at(w, p - 8, 8 + SVI_RECORD_HEAD, &at, t->err);
    if (code != SVS_OK || !svi_record_head(at + 8, record))
        return code;
    uint64_t span = SVI_RECORD_BARE + (uint64_t)record->size;
    uint64_t most = t->s->number + (p - t->s->begin) / SVI_RECORD_BARE + 1;
    if (record->number < t->s->number || record->number > most || span > w->size - p ||
        record->size > t->r->options.largest)
        return SVS_OK;
    t->hashed += span;
    t->s->exhausted = t->hashed > HASHED_TIMES * w->size;
    if (t->s->exhausted)
        return SVS_OK;
    code = svi_window_at(w, p - 8, 8 + (size_t)span, &at, t->err);
    if (code != SVS_OK)
        return code;
    uint64_t chain = svi_load64(at);
    *sound = svi_record_sound(at + 8, record, &chain);
    return SVS_OK;
}

static void note(struct svi_search *s, uint64_t p, const struct svi_record *record, uint64_t chain) {
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

svs_code svi_journal_search(svi_journal_reader *r, struct svi_search *s, svs_error *err) {
    struct search t = {r, s, 0, err};
    uint64_t size = r->window.size, p = s->begin < 8 ? 8 : s->begin;
    while (!s->evidence && !s->exhausted && p + SVI_RECORD_BARE <= size) {
        struct svi_record record;
        const uint8_t *at;
        bool lead, sound;
        svs_code code = next_lead(&t, &p, &lead);
        if (code == SVS_OK && lead)
            code = try_record(&t, p, &record, &sound);
        if (code != SVS_OK)
            return code;
        if (!lead)
            continue;
        if (!sound) {
            p++;
            continue;
        }
        code = svi_window_at(&r->window, p - 8, 8, &at, err);
        if (code != SVS_OK)
            return code;
        note(s, p, &record, svi_load64(at));
        p += SVI_RECORD_BARE + record.size;
    }
    return SVS_OK;
}
