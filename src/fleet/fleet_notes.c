/* What reaches all keys of a stream: other settings, a clock that was moved, the start of a process.
 *
 * It is noted in a list, and reaches a key when that is touched next, whether it is in memory or not. So it
 * takes no time however many keys there are, and no result depends on which of them are in memory. Of
 * several changes of the settings a key takes only the last.
 *
 * Each key knows how many notes have reached it (head.note). A note holds the settings of the keys of which
 * it is the last, so that a key that is out of memory can come back under them. Notes that have reached all
 * keys are dropped from the front of the list.
 *
 * Invariants: notes are numbered from 1 without gaps, `dropped` of them are no longer in the list; the
 * newest note always exists and holds the settings of now, under which new keys begin. Read svi_fleet_touch
 * first. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_archive.h"
#include "store/checkpoint_file.h"

#define NOTES_FIRST        16 /* places */
#define MAX_NOTES          ((int64_t)1 << 24)
#define MAX_SETTINGS_BYTES ((int64_t)1 << 20) /* bytes of settings */

static struct svi_note *note_at(const struct svi_fleet *f, uint64_t number) {
    return &f->notes[number - f->dropped];
}

svs_code svi_fleet_reserve_note(svi_stream *s, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    if (!svi_grow(&f->notes, (int64_t)(f->noted - f->dropped), &f->note_capacity, NOTES_FIRST,
                  sizeof *f->notes))
        return svi_fail_memory(err, "what reaches all keys");
    return SVS_OK;
}

/* Drops notes from the front that are the last note of no key, but never the newest. A note in the middle
 * stays: the numbers behind it are indices. */
static void notes_tidy(struct svi_fleet *f) {
    uint64_t unused = 0;
    const uint64_t count = f->noted - f->dropped;
    while (unused + 1 < count && f->notes[unused].keys == 0)
        svi_shared_settings_leave(&f->notes[unused++].s);
    if (unused == 0)
        return;
    memmove(f->notes, f->notes + unused, (size_t)(count - unused) * sizeof *f->notes);
    f->dropped += unused;
}

/* Has no way to fail: each call reserves the place of the next one, and svi_stream_prepare asks for it
 * before it changes settings. A note without a place after all is reported as a lack of memory. */
void svi_fleet_note(svi_stream *s, enum svi_note_kind kind, double step, double now) {
    struct svi_fleet *f = svi_fleet_of(s);
    if (kind == SVI_NOTE_QUIET) {
        f->rests++;
        return;
    }
    /* Other settings give other sizes of keys. */
    if (kind == SVI_NOTE_CONFIG) {
        f->largest.known_columns = -1;
        svi_fleet_shared_configure(f);
    }
    if (kind == SVI_NOTE_CLOCK)
        svi_fleet_groups_move(f, step, now);
    /* A process that starts moves the times at which keys were last seen by the time that has passed since
     * the last arrival, as if there had been no pause: nobody listened then, and silence during it proves
     * nothing. A clock that runs behind the last arrival moves nothing. */
    const double arrived = kind == SVI_NOTE_BEGIN ? svi_fleet_arrived(s) : now;
    step = kind == SVI_NOTE_BEGIN && arrived < now && !isinf(arrived) ? now - arrived : step;
    if (svi_fleet_reserve_note(s, NULL) != SVS_OK) {
        f->stream.root->out_of_memory = true;
        return;
    }
    /* No key has the note before as its last one: its settings are needed by nobody once this one is the
     * newest. */
    if (f->noted > f->dropped && note_at(f, f->noted - 1)->keys == 0)
        svi_shared_settings_leave(&note_at(f, f->noted - 1)->s);
    *note_at(f, f->noted++) = (struct svi_note){
        .kind = kind, .step = step, .now = now, .s = svi_shared_settings_use(f->stream.root->shared)};
    notes_tidy(f);
    (void)svi_fleet_reserve_note(s, NULL);
    /* The queue relies on times that only move later (time_first); a step back breaks that, so all keys are
     * placed again. There are places for all of them. */
    if (kind == SVI_NOTE_CLOCK && step < 0)
        (void)svi_fleet_queue_all(f, NULL);
}

void svi_fleet_notes_clear(struct svi_fleet *f) {
    for (uint64_t i = f->dropped; i < f->noted; i++)
        svi_shared_settings_leave(&note_at(f, i)->s);
    svi_free(f->notes);
    f->notes = NULL;
    f->noted = f->dropped = 0;
    f->note_capacity = 0;
}

void svi_fleet_join(struct svi_fleet *f, struct svi_key_entry *entry, uint64_t note) {
    entry->head.note = note;
    note_at(f, note - 1)->keys++;
}

void svi_fleet_unlink(struct svi_fleet *f, struct svi_key_entry *entry) {
    struct svi_note *last = note_at(f, entry->head.note - 1);
    /* The newest note keeps its settings even without keys: the next new key joins it. */
    if (--last->keys > 0 || entry->head.note == f->noted)
        return;
    svi_shared_settings_leave(&last->s);
    notes_tidy(f);
}

/* By how much a note moves the time at which a key was last seen. */
static double note_moves(const struct svi_note *n) {
    return n->kind == SVI_NOTE_CLOCK || n->kind == SVI_NOTE_BEGIN ? n->step : 0;
}

double svi_fleet_last_arrival(const struct svi_fleet *f, const struct svi_key_entry *entry) {
    double arrival = entry->last_arrival;
    for (uint64_t i = entry->head.note; i < f->noted; i++)
        arrival += note_moves(note_at(f, i));
    return arrival;
}

/* The key with the highest turn. A walk over all keys; asked for at the start of a process and by commands,
 * not by samples. */
static const struct svi_key_entry *notes_last_arrival(const struct svi_fleet *f) {
    const struct svi_key_entry *last = NULL;
    for (const struct svi_key_entry *n = svi_key_table_first(f->table); n; n = n->after)
        last = !last || n->head.turn > last->head.turn ? n : last;
    return last;
}

const struct svi_engine *svi_fleet_latest(svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    const struct svi_key_entry *last = notes_last_arrival(f);
    struct svi_key_entry *entry;
    svs_error err;
    return last ? svi_fleet_find(f, last->name, false, 0, &entry, &err) : NULL;
}

double svi_fleet_arrived(const svi_stream *s) {
    const struct svi_fleet *f = svi_fleet_of((svi_stream *)s);
    const struct svi_key_entry *last = notes_last_arrival(f);
    return fmax(svi_engine_arrived(s->root), last ? svi_fleet_last_arrival(f, last) : -INFINITY);
}

struct svi_shared_settings *svi_fleet_settings(const struct svi_fleet *f, const struct svi_key_entry *entry) {
    return note_at(f, entry->head.note - 1)->s;
}

/* ---- a key takes its notes */

/* The settings raise a limit that fixes sizes at creation: an engine with the higher limits, and otherwise
 * the settings the key has, takes its place, with the same bits by way of a packed state. The change of
 * settings itself comes afterwards, as for every key. */
static svs_code touch_widen(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    struct svi_shared_settings *limits = svi_shared_settings_new(f->stream.root->s, err);
    size_t hashed;
    if (!limits)
        return SVS_NO_MEMORY;
    svi_settings_adopt(&limits->s, entry->engine->s);
    struct svi_engine *wider = svi_fleet_make(f, limits, entry, err);
    svs_code code = wider ? SVS_OK : err->code;
    f->raw.size = 0;
    if (wider)
        code = svi_engine_pack(entry->engine, &f->raw, &hashed, err);
    if (code == SVS_OK)
        code = svi_engine_unpack(wider, f->raw.data, f->raw.size, err);
    svi_shared_settings_leave(&limits);
    /* One of the two goes: the old engine when all went well, else the new one. */
    svi_engine_free(code == SVS_OK ? &entry->engine : &wider);
    if (code == SVS_OK)
        entry->engine = wider;
    return code;
}

static svs_code touch_configure(struct svi_fleet *f, struct svi_key_entry *entry, double now,
                                svs_error *err) {
    const struct svi_engine *root = f->stream.root;
    struct svi_engine_change *change;
    struct svi_configured done;
    SVI_TRY(svi_settings_raised(root->s, entry->engine->s) ? touch_widen(f, entry, err) : SVS_OK);
    SVI_TRY(svi_engine_prepare(entry->engine, root->s, &change, err));
    svi_engine_take(entry->engine, &change, now, &done);
    svi_engine_share_settings(entry->engine, root->shared); /* one copy for all */
    return SVS_OK;
}

/* The order of the steps is part of the results. First the checkpoint in progress gets the key as it is
 * (svi_fleet_change). Then the settings, the only note that can fail: `head.note` is still the old one then,
 * and the whole touch is repeated the next time. The other notes follow in the order in which they were
 * made. */
svs_code svi_fleet_touch(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    const struct svi_note *config = NULL;
    if (svi_fleet_change(f, entry, err) != SVS_OK)
        return err->code;
    /* All sources had left since the key was touched last: its rules do not count that silence. An engine
     * whose rules are those of f->off has no own ones. */
    if (entry->head.rests != (uint32_t)f->rests && entry->engine->rules != &f->off.rules) {
        svi_workers_settle(f); /* rows of before may be on their way */
        svi_rules_pause(entry->engine->rules);
    }
    entry->head.rests = (uint32_t)f->rests;
    if (entry->head.note == f->noted)
        return SVS_OK;
    svi_workers_settle(f); /* what it has to say comes after what was before */
    for (uint64_t i = entry->head.note; i < f->noted; i++)
        config = note_at(f, i)->kind == SVI_NOTE_CONFIG ? note_at(f, i) : config;
    if (config && touch_configure(f, entry, config->now, err) != SVS_OK)
        return err->code;
    /* entry->last_arrival gets here what svi_fleet_last_arrival has added so far on the fly. */
    for (uint64_t i = entry->head.note; i < f->noted; i++) {
        const struct svi_note *n = note_at(f, i);
        entry->last_arrival += note_moves(n);
        if (n->kind == SVI_NOTE_CLOCK)
            svi_engine_move_clock(entry->engine, n->step, n->now);
        else if (n->kind == SVI_NOTE_BEGIN)
            svi_rules_begin(entry->engine->rules, n->now);
        else if (n->kind == SVI_NOTE_REBUILD)
            svi_learner_rebuild(entry->engine->learner);
    }
    /* The key leaves its old note before it joins the newest: the old note may be dropped, and the newest
     * never is. */
    svi_fleet_unlink(f, entry);
    svi_fleet_join(f, entry, f->noted);
    return SVS_OK;
}

/* ---- in the state */

static void note_archive_settings(struct svi_archive *a, struct svi_note *n) {
    static const char no_memory[] = "no memory for settings";
    struct svi_bytes text = {0};
    if (!svi_archive_loading(a))
        svi_settings_pack(&n->s->s, &text, a->err);
    if (svi_archive_block(a, "settings size", "settings", &text, MAX_SETTINGS_BYTES, "settings are truncated",
                          no_memory) &&
        svi_archive_loading(a)) {
        struct svi_settings *read = svi_alloc(sizeof *read);
        if (!read)
            svi_archive_fail(a, SVS_NO_MEMORY, no_memory);
        else if (svi_settings_unpack(read, "the settings of keys", text.data, text.size, a->err) == SVS_OK)
            n->s = svi_shared_settings_new(read, a->err);
        svi_free(read);
    }
    svi_bytes_clear(&text);
}

/* The newest note has the settings of the stream, which the checkpoint has already; the others are written
 * out. */
static void note_archive(struct svi_archive *a, struct svi_fleet *f, uint64_t number) {
    struct svi_note *n = note_at(f, number);
    const bool newest = number + 1 == f->noted;
    bool has = n->s && !newest;
    int kind = (int)n->kind;
    svi_archive_int(a, "note", &kind, SVI_NOTE_CONFIG, SVI_NOTE_REBUILD);
    svi_archive_double(a, "step", &n->step);
    svi_archive_double(a, "now", &n->now);
    svi_archive_check(a, !isnan(n->step) && !isnan(n->now), "a time is not valid");
    svi_archive_bool(a, "has settings", &has);
    n->kind = (enum svi_note_kind)kind;
    if (!svi_archive_ok(a))
        return;
    if (has)
        note_archive_settings(a, n);
    else if (newest && svi_archive_loading(a))
        n->s = svi_shared_settings_use(f->stream.root->shared);
}

void svi_fleet_notes_archive(struct svi_archive *a, struct svi_fleet *f) {
    uint64_t noted = f->noted, dropped = f->dropped;
    svi_archive_uint64(a, "noted", &noted);
    svi_archive_uint64(a, "dropped", &dropped);
    if (!svi_archive_check(a, noted > dropped && noted - dropped < (uint64_t)MAX_NOTES, "notes are missing"))
        return;
    if (svi_archive_loading(a)) {
        svi_fleet_notes_clear(f);
        f->dropped = dropped;
        f->noted = noted;
        f->note_capacity = (int64_t)(noted - dropped) + NOTES_FIRST;
        if (!(f->notes = svi_alloc_array((size_t)f->note_capacity, sizeof *f->notes))) {
            f->noted = f->dropped;
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for notes");
            return;
        }
    }
    for (uint64_t i = dropped; i < noted && svi_archive_ok(a); i++)
        note_archive(a, f, i);
}
