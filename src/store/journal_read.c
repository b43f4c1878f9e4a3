/* The journal's reader: every record that can be believed, in order, and where the journal ends.
 *
 * Between two calls `here` is the place of the next record: its number, segment, byte, and the check that it
 * continues. An intact record moves `here` on; a bad one is either torn (what a crash left at the end of the
 * last segment, never reported as durable: reading ends) or damage (durable once: refused, or with
 * accept_loss skipped up to the next intact record or segment). It was durable if its segment is not the
 * last, since segments are synced before the next begins, or if any intact record after it says so.
 *
 * The search for one is bounded in bytes: a producer may have filled a payload with what looks like records,
 * and when the search gives up, the answer is damage, never a torn tail. What fails for good (the disk,
 * memory) sets `state` and `error`, which svi_journal_read reports. To read: svi_journal_read, next_segment,
 * next_record, bad_record, search_records. */
#include "store/journal_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"
#include "store/read_buffer.h"

#define TO_DO        "restore it from a copy, or run with --accept-loss to skip the damage"
#define SEARCH_PIECE (64 * 1024) /* bytes looked through at a time */
#define SEARCH_TIMES 8 /* bytes that all searches together may look through, in sizes of the segment */

enum reader_state { READER_READING, READER_ENDED, READER_FAILED };

struct svi_journal_reader {
    const struct svi_state_dir *dir; /* NULL: one segment, in memory */
    const char *path;                /* of dir, for error texts; or NULL */
    const uint8_t *memory;
    size_t memory_size;
    struct svi_journal_reader_options options;
    uint64_t *numbers;   /* of the segments */
    int count, at;       /* the segment being read, or left; -1 = before the first */
    bool newest_missing; /* the last of them is not the last that was begun: */
    uint64_t newest;
    bool open;
    bool chained;      /* `here.chain` is what the next segment continues */
    bool passed;       /* something was passed over since the last record that was returned */
    uint64_t searched; /* bytes of this segment that searches have looked through and hashed */
    uint64_t proved;   /* records below this number were durable, as later ones of this segment say */
    struct svi_position from, here; /* where the next record is expected */
    struct svi_read_buffer buffer;
    enum reader_state state;
    svs_error error;
    struct svi_journal_found found;
};

static bool reader_at_last(const svi_journal_reader *r) {
    return r->at + 1 >= r->count;
}

/* Only what was written last can be torn. */
static bool may_be_torn(const svi_journal_reader *r) {
    return reader_at_last(r) && !r->newest_missing;
}

static uint64_t bytes_left(const svi_journal_reader *r) {
    return r->buffer.size - r->here.offset;
}

/* ---- failures and damage */

/* Makes these bytes of the open segment available; false: it failed for good. */
static bool reader_bytes(svi_journal_reader *r, uint64_t offset, size_t need, const uint8_t **at) {
    if (svi_read_buffer_at(&r->buffer, offset, need, at, &r->error) != SVS_OK)
        r->state = READER_FAILED;
    return r->state == READER_READING;
}

/* The check of a record of `size` bytes of payload at `here`; false: it failed for good. */
static bool reader_hash(svi_journal_reader *r, size_t size, uint64_t *check) {
    if (svi_read_buffer_check(&r->buffer, r->here.offset, SVI_RECORD_HEAD + (uint64_t)size,
                              svi_record_seed(r->here.chain, r->here.secret), check, &r->error) != SVS_OK)
        r->state = READER_FAILED;
    return r->state == READER_READING;
}

/* Something is damaged or missing: true if it is to be passed over. */
static bool may_pass(svi_journal_reader *r) {
    r->passed = r->options.accept_loss;
    r->found.damages += r->passed;
    return r->passed;
}

/* Damage at this byte of the segment: true if it is to be passed over. */
static bool pass_over(svi_journal_reader *r, uint64_t offset, const char *what) {
    if (may_pass(r))
        return true;
    svi_fail_file(&r->error, SVS_DAMAGED, r->path, r->buffer.name,
                  "is damaged at byte %" PRIu64 ": %s; " TO_DO, offset, what);
    r->state = READER_FAILED;
    return false;
}

/* Records up to this one are lost; those before `from` were not wanted. */
static void lose_to(svi_journal_reader *r, uint64_t number) {
    uint64_t wanted = r->here.number > r->from.number ? r->here.number : r->from.number;
    if (number > wanted)
        r->found.lost_records += number - wanted;
    r->here.number = number;
}

/* A new segment that follows on what was to be read from: that lies in a checkpoint. */
static struct svi_position after_checkpoint(const svi_journal_reader *r) {
    return (struct svi_position){r->from.number, r->from.number, 0, r->from.chain, 0};
}

/* False: that is not to be passed over. */
static bool pass_missing(svi_journal_reader *r, uint64_t number) {
    char name[SVI_FILE_NAME];
    if (may_pass(r))
        return true;
    svi_fail_file(&r->error, SVS_DAMAGED, r->path, svi_state_dir_name(name, SVI_JOURNAL, number),
                  "is missing: " TO_DO);
    r->state = READER_FAILED;
    return false;
}

static void end_reading(svi_journal_reader *r) {
    if (r->newest_missing && !pass_missing(r, r->newest))
        return;
    r->state = READER_ENDED;
    r->open = false;
    svi_read_buffer_close(&r->buffer);
    r->found.lost = r->passed;
    if (r->found.end.number < r->from.number) /* not reached */
        r->found.end = after_checkpoint(r);
}

/* Leaves the segment, of which this many bytes were not read. */
static void leave_segment(svi_journal_reader *r, uint64_t rest) {
    r->open = false;
    r->found.lost_bytes += rest;
    r->chained = r->chained && rest == 0;
    if (reader_at_last(r))
        end_reading(r);
}

/* The tail of the last segment that a crash has torn, unless it holds what the disk cannot read. */
static void cut_tail(svi_journal_reader *r) {
    r->found.torn = bytes_left(r);
    if (r->buffer.hidden > 0 && may_pass(r))
        r->found.lost_bytes += r->found.torn;
    end_reading(r);
}

/* ---- searching for sound records after a bad one */

struct search {
    uint64_t begin;       /* in: where to begin */
    uint64_t number;      /* in: no record there has a lower one */
    uint64_t durable;     /* in: go on until a record says that records below this were durable; 0 = the first
                             will do */
    uint64_t after;       /* in: where the bad one ends if its length is right; 0 = not known */
    uint64_t seed;        /* in: what its check must be then: it alone may be wrong */
    bool sound, evidence; /* out: there is a sound record; there is one that says so */
    bool exhausted;       /* out: given up, for there are too many that look like records */
    uint64_t offset, found; /* out: of the first sound one; its number */
    uint64_t chain;         /* out: the check before it */
};

/* Its number fits between what was read and what the bytes between have room for: a stale or made-up record
 * seldom does. */
static bool may_stand(const svi_journal_reader *r, const struct search *s, uint64_t p,
                      const struct svi_record *record) {
    uint64_t most = s->number + (p - s->begin) / SVI_RECORD_BARE + 1;
    return record->number >= s->number && record->number <= most &&
           SVI_RECORD_BARE + (uint64_t)record->size <= r->buffer.size - p &&
           record->size <= r->options.largest;
}

/* The record that seems to stand at p is sound; *chain is the check before, which stands there. */
static bool try_record(svi_journal_reader *r, const struct search *s, uint64_t p, struct svi_record *record,
                       uint64_t *chain) {
    const uint8_t *at;
    if (!reader_bytes(r, p - 8, 8 + SVI_RECORD_HEAD, &at) || !svi_record_head(at + 8, record) ||
        !may_stand(r, s, p, record))
        return false;
    size_t span = SVI_RECORD_BARE + record->size;
    r->searched += span;
    if (!reader_bytes(r, p - 8, 8 + span, &at))
        return false;
    uint64_t check = *chain = svi_load64(at);
    bool sound = svi_record_sound(at + 8, record, r->here.secret, &check);
    if (!sound && p == s->after) {
        check = *chain = s->seed;
        sound = svi_record_sound(at + 8, record, r->here.secret, &check);
    }
    return sound;
}

/* A sound record stands at *p: moves *p past it. */
static void search_found(svi_journal_reader *r, struct search *s, uint64_t *p,
                         const struct svi_record *record, uint64_t chain) {
    if (record->durable > r->proved)
        r->proved = record->durable;
    if (!s->sound) {
        s->sound = true;
        s->offset = *p;
        s->found = record->number;
        s->chain = chain;
    }
    s->evidence = s->evidence || record->durable >= s->durable;
    *p += SVI_RECORD_BARE + record->size;
}

/* Moves *p on: past the sound record that stands there, or to the next byte that may begin one. */
static void search_step(svi_journal_reader *r, struct search *s, uint64_t *p) {
    const uint64_t rest = r->buffer.size - *p;
    const size_t n = rest < SEARCH_PIECE ? (size_t)rest : SEARCH_PIECE, starts = n - SVI_RECORD_BARE + 1;
    struct svi_record record;
    uint64_t chain;
    const uint8_t *at;
    if (!reader_bytes(r, *p, n, &at))
        return;
    const uint8_t *lead = memchr(at, SVI_RECORD_LEAD, starts);
    *p += lead ? (size_t)(lead - at) : starts;
    if (lead && try_record(r, s, *p, &record, &chain))
        search_found(r, s, p, &record, chain);
    else if (lead)
        *p += 1;
}

/* The record that comes next stands where the bad one ends: then what is between is the bad one's payload,
 * in which a producer may have written what looks like records. */
static void search_after(svi_journal_reader *r, struct search *s, uint64_t *p) {
    struct svi_record record;
    uint64_t chain, at = s->after;
    if (at < *p || at + SVI_RECORD_BARE > r->buffer.size || !try_record(r, s, at, &record, &chain) ||
        record.number != s->number + (s->begin > 0)) /* begin 0: a header is bad */
        return;
    *p = at;
    search_found(r, s, p, &record, chain);
}

/* False: it failed for good. */
static bool search_records(svi_journal_reader *r, struct search *s) {
    uint64_t p = s->begin < 8 ? 8 : s->begin;
    search_after(r, s, &p);
    while (r->state == READER_READING && !s->evidence && !s->exhausted &&
           p + SVI_RECORD_BARE <= r->buffer.size) {
        uint64_t before = p;
        search_step(r, s, &p);
        r->searched += p - before;
        s->exhausted = r->searched > SEARCH_TIMES * r->buffer.size;
    }
    return r->state == READER_READING;
}

/* Goes on at the first sound record after the damage, or in the next segment. */
static void resume_at(svi_journal_reader *r, const struct search *s) {
    if (!s->sound) {
        if (reader_at_last(r))
            r->found.torn = bytes_left(r);
        leave_segment(r, bytes_left(r));
        return;
    }
    r->found.lost_bytes += s->offset - r->here.offset;
    lose_to(r, s->found);
    r->here.offset = s->offset;
    r->here.chain = s->chain;
    r->chained = true;
}

/* ---- segments */

/* The one that comes next begins where the one before ended. */
static bool segment_follows(svi_journal_reader *r, uint64_t number) {
    char what[96];
    if (number == r->here.number)
        return true;
    if (number > r->here.number)
        snprintf(what, sizeof what, "the records %" PRIu64 " to %" PRIu64 " before it are missing",
                 r->here.number, number - 1);
    else
        snprintf(what, sizeof what, "it begins before record %" PRIu64 ", which comes next", r->here.number);
    if (!pass_over(r, 0, what))
        return false;
    if (number < r->here.number) {
        leave_segment(r, r->buffer.size);
        return false;
    }
    lose_to(r, number);
    r->chained = false;
    r->found.end = (struct svi_position){number, number, 0, r->here.chain, 0};
    return true;
}

static void claim_segment(svi_journal_reader *r, const struct svi_segment_header *h) {
    uint64_t number = r->numbers[r->at], epoch = r->options.epoch ? r->options.epoch : r->found.epoch;
    char what[80];
    if (h->first != number)
        snprintf(what, sizeof what, "its header is that of segment %" PRIu64, h->first);
    else
        snprintf(what, sizeof what, "it is of epoch %" PRIu64 ", not %" PRIu64, h->epoch, epoch);
    if (h->first != number || (epoch && h->epoch != epoch)) {
        if (pass_over(r, 0, what))
            leave_segment(r, r->buffer.size);
        return;
    }
    if (r->chained && h->chain != r->here.chain && !pass_over(r, 0, "it does not continue what is before it"))
        return;
    r->found.epoch = h->epoch;
    r->here = (struct svi_position){number, number, h->size, h->check, h->secret};
    r->found.end = r->here;
    r->chained = true;
    r->open = true;
}

/* A header is on disk before the first record is written: one that is not sound is either all there is of a
 * segment that a crash interrupted, or damaged. Its records can be recognised by the right one of its
 * secrets. */
static void bad_header(svi_journal_reader *r, const struct svi_segment_header *h) {
    const uint64_t secrets[2] = {h->secret, h->again};
    struct search s = {0};
    bool exhausted = r->buffer.size > SVI_HEADER_MAX; /* no header is torn there */
    for (int i = 0; i < 1 + (h->secret != h->again) && !s.sound; i++) {
        r->here = (struct svi_position){r->here.number, r->here.number, 0, r->here.chain, secrets[i]};
        r->searched = 0;
        s = (struct search){.number = r->here.number, .after = h->size, .seed = h->check};
        if (!search_records(r, &s))
            return;
        exhausted = exhausted || s.exhausted;
    }
    if (may_be_torn(r) && !s.sound && !exhausted)
        cut_tail(r);
    else if (pass_over(r, 0, "the check of its header is wrong")) {
        r->open = true;
        resume_at(r, &s);
    }
}

/* False: it failed for good. */
static bool open_segment(svi_journal_reader *r, int at) {
    char name[SVI_FILE_NAME];
    svi_state_dir_name(name, SVI_JOURNAL, r->numbers[at]);
    r->at = at;
    r->searched = r->proved = 0;
    if (!r->dir)
        svi_read_buffer_memory(&r->buffer, r->memory, r->memory_size, name);
    else if (svi_read_buffer_open(&r->buffer, r->dir, name, &r->error) != SVS_OK)
        r->state = READER_FAILED;
    return r->state == READER_READING;
}

/* False: it failed for good. */
static bool read_header(svi_journal_reader *r, struct svi_segment_header *h, enum svi_header_state *state) {
    size_t n = r->buffer.size < SVI_HEADER_MAX ? (size_t)r->buffer.size : SVI_HEADER_MAX;
    const uint8_t *at;
    *state = SVI_HEADER_BAD;
    *h = (struct svi_segment_header){0};
    if (n && reader_bytes(r, 0, n, &at))
        *state = svi_segment_header_read(h, at, n);
    if (*state == SVI_HEADER_LAYOUT) {
        svi_fail_layout(&r->error, r->path, r->buffer.name, h->layout);
        r->state = READER_FAILED;
    }
    return r->state == READER_READING;
}

static void next_segment(svi_journal_reader *r) {
    struct svi_segment_header h;
    enum svi_header_state state;
    if (reader_at_last(r)) {
        end_reading(r);
        return;
    }
    if (!open_segment(r, r->at + 1) || !segment_follows(r, r->numbers[r->at]) || !read_header(r, &h, &state))
        return;
    if (state == SVI_HEADER_SOUND)
        claim_segment(r, &h);
    else
        bad_header(r, &h);
}

/* ---- records */

/* A record that is larger than what is taken, but sound, must not be mistaken for a torn one. */
static void large_record(svi_journal_reader *r, const struct svi_record *record) {
    uint64_t check;
    const uint8_t *at;
    if (!reader_hash(r, record->size, &check) ||
        !reader_bytes(r, r->here.offset + SVI_RECORD_HEAD + record->size, SVI_CHECK_SIZE, &at) ||
        !svi_check_is(at, check))
        return;
    svi_fail_file(&r->error, SVS_TOO_LARGE, r->path, r->buffer.name,
                  "has a record of %zu bytes at byte %" PRIu64
                  ", more than the %zu that are accepted now: raise the limit again",
                  record->size, r->here.offset, r->options.largest);
    r->state = READER_FAILED;
}

/* What has the form of a record stands at `here`, and the segment has room for all of it. */
static bool read_head(svi_journal_reader *r, struct svi_record *record) {
    const uint64_t left = bytes_left(r);
    const uint8_t *at;
    return left >= SVI_RECORD_BARE && reader_bytes(r, r->here.offset, SVI_RECORD_HEAD, &at) &&
           svi_record_head(at, record) && SVI_RECORD_BARE + (uint64_t)record->size <= left;
}

/* The next record is there and sound; else it is bad, or reading it failed for good. */
static bool read_sound(svi_journal_reader *r, struct svi_record *record) {
    const uint8_t *at;
    if (!read_head(r, record) || record->number != r->here.number)
        return false;
    if (record->size > r->options.largest) {
        large_record(r, record);
        return false;
    }
    return reader_bytes(r, r->here.offset, SVI_RECORD_BARE + record->size, &at) &&
           svi_record_sound(at, record, r->here.secret, &r->here.chain);
}

static void bad_record(svi_journal_reader *r) {
    bool durable = !may_be_torn(r) || r->proved > r->here.number;
    char what[64];
    struct svi_record record;
    struct search s = {
        .begin = r->here.offset + 1, .number = r->here.number, .durable = durable ? 0 : r->here.number + 1};
    if (!durable || r->options.accept_loss) {
        /* If only its check is wrong, the record after it is sound: so that no more than the one is lost. */
        if (read_head(r, &record)) {
            s.after = r->here.offset + SVI_RECORD_BARE + record.size;
            reader_hash(r, record.size, &s.seed);
        }
        if (r->state != READER_READING || !search_records(r, &s))
            return;
    }
    if (!durable && !s.evidence && !s.exhausted) {
        cut_tail(r);
        return;
    }
    snprintf(what, sizeof what, "the check of record %" PRIu64 " is wrong", r->here.number);
    if (pass_over(r, r->here.offset, what))
        resume_at(r, &s);
}

static bool next_record(svi_journal_reader *r, struct svi_record *record) {
    if (r->here.offset == r->buffer.size) {
        leave_segment(r, 0);
        return false;
    }
    if (!read_sound(r, record)) {
        if (r->state == READER_READING)
            bad_record(r);
        return false;
    }
    r->here.offset += SVI_RECORD_BARE + record->size;
    r->here.number++;
    r->found.end = r->here;
    return record->number >= r->from.number;
}

enum svi_journal_read svi_journal_read(svi_journal_reader *r, struct svi_record *record, svs_error *err) {
    while (r->state == READER_READING) {
        if (!r->open) {
            next_segment(r);
        } else if (next_record(r, record)) {
            r->found.records++;
            r->found.lost = r->passed;
            r->passed = false;
            return SVI_JOURNAL_RECORD;
        }
    }
    if (r->state == READER_ENDED)
        return SVI_JOURNAL_END;
    if (err)
        *err = r->error;
    return SVI_JOURNAL_FAIL;
}

void svi_journal_reader_found(const svi_journal_reader *r, struct svi_journal_found *found) {
    *found = r->found;
    found->segments = r->count;
}

/* ---- beginning */

/* The last segment that begins at this number or before; -1 = none does. */
static int segment_of(const svi_journal_reader *r, uint64_t number) {
    int at = -1;
    while (at + 1 < r->count && r->numbers[at + 1] <= number)
        at++;
    return at;
}

/* The header is not needed any more where reading begins after it, but what it says must fit. */
static void begin_inside(svi_journal_reader *r) {
    const struct svi_position from = r->here;
    struct svi_segment_header h;
    enum svi_header_state state;
    if (!read_header(r, &h, &state))
        return;
    r->found.epoch = r->options.epoch;
    r->open = true;
    if (state == SVI_HEADER_SOUND) {
        r->here.number = r->numbers[r->at];
        r->chained = r->open = false;
        claim_segment(r, &h);
        if (r->open && h.secret != from.secret) {
            r->open = false;
            if (pass_over(r, 0, "it is not the segment that the checkpoint continues"))
                leave_segment(r, r->buffer.size);
        }
        r->here = from;
        r->found.end = r->open ? from : after_checkpoint(r); /* nothing is appended to what is not ours */
    }
    r->chained = true;
}

static void begin_at_offset(svi_journal_reader *r) {
    int at = segment_of(r, r->from.segment);
    char what[96];
    if (at >= 0 && r->numbers[at] == r->from.segment) {
        if (!open_segment(r, at))
            return;
        if (r->buffer.size >= r->from.offset) {
            begin_inside(r);
            return;
        }
        /* It was on disk up to there before the checkpoint was written: an older copy of it, unless that was
         * accepted before and the next segment follows on the checkpoint. */
        r->found.end = after_checkpoint(r);
        snprintf(what, sizeof what, "it ends there, and a checkpoint continues it at byte %" PRIu64,
                 r->from.offset);
        if (reader_at_last(r))
            (void)pass_over(r, r->buffer.size, what);
        return;
    }
    /* Trimmed: then the next segment begins just there. */
    r->at = r->from.number ? segment_of(r, r->from.number - 1) : -1;
    if (reader_at_last(r) && pass_missing(r, r->from.segment))
        r->found.end = after_checkpoint(r);
}

static void begin_reading(svi_journal_reader *r) {
    r->here = r->found.end = r->from;
    r->chained = true;
    if (r->from.offset > 0) {
        begin_at_offset(r);
        return;
    }
    int at = segment_of(r, r->from.number);
    r->found.end.segment = r->from.number;
    r->at = at >= 0 ? at - 1 : -1;
    if (at >= 0)
        r->here.number = r->numbers[at];
    r->chained = r->here.number == r->from.number && r->from.chain != 0;
}

static svi_journal_reader *new_reader(const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the reader of the journal");
        return NULL;
    }
    r->options = *o;
    r->at = -1;
    r->buffer = (struct svi_read_buffer){.fd = -1, .lossy = o->accept_loss, .advice = TO_DO};
    return r;
}

/* The mark first: whatever it names is on disk, also where another process begins segments meanwhile. */
static svs_code reader_list(svi_journal_reader *r) {
    struct svi_state_dir_ends marks;
    svs_code code = svi_state_dir_find(r->dir, SVI_BEGUN, &marks, &r->error);
    if (code == SVS_OK)
        code = svi_state_dir_list(r->dir, SVI_JOURNAL, &r->numbers, &r->count, &r->error);
    if (code == SVS_OK && marks.any) {
        r->newest = marks.last;
        r->newest_missing = r->count == 0 || r->numbers[r->count - 1] < r->newest;
    }
    return code;
}

svi_journal_reader *svi_journal_reader_new(const struct svi_state_dir *dir, const struct svi_position *from,
                                           const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = new_reader(o, err);
    if (!r)
        return NULL;
    r->dir = dir;
    r->path = dir->path;
    r->from = *from;
    if (reader_list(r) != SVS_OK)
        r->state = READER_FAILED;
    else
        begin_reading(r);
    if (r->state == READER_READING && !r->open)
        next_segment(r);
    if (r->state != READER_FAILED)
        return r;
    if (err)
        *err = r->error;
    svi_journal_reader_free(&r);
    return NULL;
}

svi_journal_reader *svi_journal_reader_memory(const uint8_t *bytes, size_t size, uint64_t first,
                                              const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = new_reader(o, err);
    if (!r)
        return NULL;
    r->numbers = svi_alloc(sizeof *r->numbers);
    if (!r->numbers) {
        svi_fail_memory(err, "the reader of the journal");
        svi_journal_reader_free(&r);
        return NULL;
    }
    r->memory = bytes;
    r->memory_size = size;
    r->numbers[0] = r->here.number = r->from.number = first;
    r->found.end = r->from;
    r->count = 1;
    return r;
}

void svi_journal_reader_free(svi_journal_reader **r) {
    if (!*r)
        return;
    svi_read_buffer_clear(&(*r)->buffer);
    svi_free((*r)->numbers);
    svi_free(*r);
    *r = NULL;
}
