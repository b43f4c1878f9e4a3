/* The journal's reader: returns every sound record in order, and finds where the journal ends.
 *
 * Between two calls `here` is the place of the next record: its number, segment, byte, and the check that it
 * continues. A sound record moves `here` on. A bad record is either torn (left by a crash at the end of the
 * last segment, never reported as durable: reading ends) or damage (durable once: reading fails, or with
 * accept_loss continues at the next sound record or segment). It was durable if its segment is not the last,
 * because a segment is synced before the next begins, or if any sound record after it declares it durable.
 *
 * The search for such a record is bounded in bytes, because a producer may have filled a payload with bytes
 * that look like records. When the search gives up, the verdict is damage, never a torn tail: no durable
 * record is dropped silently. A final failure (disk, memory, refused damage) sets `state` and `error`, which
 * svi_journal_read reports; functions that return bool then return false. Reading order: svi_journal_read,
 * next_segment, next_record, bad_record, search_records. */
#include "store/journal_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"
#include "store/read_buffer.h"

#define TO_DO        "restore it from a copy, or run with --accept-loss to skip the damage"
#define SEARCH_PIECE (64 * 1024) /* bytes searched at a time */
#define SEARCH_TIMES 8           /* budget of all searches in a segment, in multiples of its size */

enum reader_state { READER_READING, READER_ENDED, READER_FAILED };

struct svi_journal_reader {
    const struct svi_state_dir *dir; /* NULL: one segment, in memory */
    const char *path;                /* of dir, for error texts; or NULL */
    const uint8_t *memory;           /* that segment; not owned */
    size_t memory_size;
    struct svi_journal_reader_options options;
    uint64_t *numbers;   /* of the segments, ascending; owned */
    int count;           /* of them */
    int at;              /* the segment being read, or left last; -1: before the first */
    bool newest_missing; /* the mark names a segment after the last of them: `newest` */
    uint64_t newest;
    bool open;         /* the segment `at` is being read */
    bool chained;      /* the next segment must continue here.chain; false after a loss */
    bool skipped;      /* damage was skipped since the last record that was returned */
    uint64_t searched; /* bytes of this segment that searches have scanned and hashed */
    uint64_t proved;   /* records below this number were durable, as later ones of this segment declare */
    struct svi_position from; /* where reading was asked to begin: earlier records are read, not returned */
    struct svi_position here; /* where the next record is expected */
    struct svi_read_buffer buffer;
    enum reader_state state;
    svs_error error; /* of READER_FAILED */
    struct svi_journal_found found;
};

static bool reader_at_last(const svi_journal_reader *r) {
    return r->at + 1 >= r->count;
}

/* Only the segment written last can be torn; if the newest one is missing, this one was synced. */
static bool may_be_torn(const svi_journal_reader *r) {
    return reader_at_last(r) && !r->newest_missing;
}

static uint64_t bytes_left(const svi_journal_reader *r) {
    return r->buffer.size - r->here.offset;
}

/* ---- failures and damage */

/* Makes `need` bytes of the open segment available at *at, until the next call. */
static bool reader_bytes(svi_journal_reader *r, uint64_t offset, size_t need, const uint8_t **at) {
    if (svi_read_buffer_at(&r->buffer, offset, need, at, &r->error) != SVS_OK)
        r->state = READER_FAILED;
    return r->state == READER_READING;
}

/* Computes the check that a record at `here` with `size` bytes of payload must have. */
static bool reader_hash(svi_journal_reader *r, size_t size, uint64_t *check) {
    if (svi_read_buffer_check(&r->buffer, r->here.offset, SVI_RECORD_HEAD + (uint64_t)size,
                              svi_record_seed(r->here.chain, r->here.secret), check, &r->error) != SVS_OK)
        r->state = READER_FAILED;
    return r->state == READER_READING;
}

/* Something is damaged or missing: counts it and returns true if it may be skipped. */
static bool may_skip(svi_journal_reader *r) {
    r->skipped = r->options.accept_loss;
    r->found.damages += r->skipped;
    return r->skipped;
}

/* Damage at this byte of the segment: true if it may be skipped, else reading fails with this text. */
static bool skip_damage(svi_journal_reader *r, uint64_t offset, const char *what) {
    if (may_skip(r))
        return true;
    svi_fail_file(&r->error, SVS_DAMAGED, r->path, r->buffer.name,
                  "is damaged at byte %" PRIu64 ": %s; " TO_DO, offset, what);
    r->state = READER_FAILED;
    return false;
}

/* Moves `here` to record `number` over lost ones. Only those from `from` on count as lost: the checkpoint
 * holds the effect of the earlier ones. */
static void count_lost(svi_journal_reader *r, uint64_t number) {
    uint64_t wanted = r->here.number > r->from.number ? r->here.number : r->from.number;
    if (number > wanted)
        r->found.lost_records += number - wanted;
    r->here.number = number;
}

/* The beginning of a new segment right after the checkpoint: the end of a journal in which nothing usable
 * follows the checkpoint. */
static struct svi_position after_checkpoint(const svi_journal_reader *r) {
    return (struct svi_position){r->from.number, r->from.number, 0, r->from.chain, 0};
}

/* The segment of this number is missing: true if that may be skipped, else reading fails. */
static bool skip_missing(svi_journal_reader *r, uint64_t number) {
    char name[SVI_FILE_NAME];
    if (may_skip(r))
        return true;
    svi_fail_file(&r->error, SVS_DAMAGED, r->path, svi_state_dir_name(name, SVI_JOURNAL, number),
                  "is missing: " TO_DO);
    r->state = READER_FAILED;
    return false;
}

static void end_reading(svi_journal_reader *r) {
    if (r->newest_missing && !skip_missing(r, r->newest))
        return;
    r->state = READER_ENDED;
    r->open = false;
    svi_read_buffer_close(&r->buffer);
    r->found.lost = r->skipped;
    if (r->found.end.number < r->from.number) /* all segments end before the checkpoint */
        r->found.end = after_checkpoint(r);
}

/* Leaves the segment, of which the last `rest` bytes were skipped. */
static void leave_segment(svi_journal_reader *r, uint64_t rest) {
    r->open = false;
    r->found.lost_bytes += rest;
    r->chained = r->chained && rest == 0;
    if (reader_at_last(r))
        end_reading(r);
}

/* Ends reading at the torn tail of the last segment. Unreadable sectors in the tail (read as zeros, only with
 * accept_loss) count as damage: they may have held durable records. */
static void cut_tail(svi_journal_reader *r) {
    r->found.torn = bytes_left(r);
    if (r->buffer.hidden > 0 && may_skip(r))
        r->found.lost_bytes += r->found.torn;
    end_reading(r);
}

/* ---- searching for sound records after a bad one */

struct search {
    uint64_t begin;   /* in: byte where the search begins */
    uint64_t number;  /* in: lowest number that a record there can have */
    uint64_t durable; /* in: search until a record declares all below this durable; 0: until any sound one */
    uint64_t after;   /* in: byte where the bad record ends if its length is right; 0: not known */
    uint64_t seed;    /* in: the check that the bad record must have, if only its check is wrong */
    bool sound;       /* out: a sound record was found */
    bool evidence;    /* out: one was found that satisfies `durable` */
    bool exhausted;   /* out: gave up, too many bytes look like records */
    uint64_t offset;  /* out: byte of the first sound record */
    uint64_t found;   /* out: its number */
    uint64_t chain;   /* out: the check before it */
};

/* Cheap plausibility before hashing: the record fits into the segment, and its number lies between the last
 * one read and that plus the number of records that the bytes in between can hold. Stale or forged records
 * rarely pass. */
static bool may_stand(const svi_journal_reader *r, const struct search *s, uint64_t p,
                      const struct svi_record *record) {
    uint64_t highest = s->number + (p - s->begin) / SVI_RECORD_BARE + 1;
    return record->number >= s->number && record->number <= highest &&
           SVI_RECORD_BARE + (uint64_t)record->size <= r->buffer.size - p &&
           record->size <= r->options.largest;
}

/* Is there a sound record at byte p? *chain: the check before it, read from the eight bytes before p. */
static bool try_record(svi_journal_reader *r, const struct search *s, uint64_t p, struct svi_record *record,
                       uint64_t *chain) {
    const uint8_t *at;
    if (!reader_bytes(r, p - 8, 8 + SVI_RECORD_HEAD, &at) || !svi_record_head(at + 8, record) ||
        !may_stand(r, s, p, record))
        return false;
    size_t span = SVI_RECORD_BARE + record->size;
    r->searched += span; /* hashing counts too: nested lookalikes would make the search quadratic */
    if (!reader_bytes(r, p - 8, 8 + span, &at))
        return false;
    uint64_t check = *chain = svi_load64(at);
    bool sound = svi_record_sound(at + 8, record, r->here.secret, &check);
    /* The stored seed is the check of the bad record. If that check itself is what is damaged, the record
     * after it is sound with the check recomputed from the bad record's bytes. */
    if (!sound && p == s->after) {
        check = *chain = s->seed;
        sound = svi_record_sound(at + 8, record, r->here.secret, &check);
    }
    return sound;
}

/* Notes the sound record at *p and moves *p past it. The first one is where reading can continue. */
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

/* Moves *p past the next sound record of this piece, or else past a byte that begins none. */
static void search_step(svi_journal_reader *r, struct search *s, uint64_t *p) {
    const uint64_t rest = r->buffer.size - *p;
    /* Of n bytes the first n - SVI_RECORD_BARE + 1 can begin a record that fits; the caller ensures that
     * there is at least one. */
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

/* Tries first where the bad record ends by its own length. If the record with the next number is there, the
 * bytes in between are the bad one's payload and need no search, whatever a producer wrote into it. */
static void search_after(svi_journal_reader *r, struct search *s, uint64_t *p) {
    struct svi_record record;
    uint64_t chain, at = s->after;
    if (at < *p || at + SVI_RECORD_BARE > r->buffer.size || !try_record(r, s, at, &record, &chain) ||
        record.number != s->number + (s->begin > 0)) /* begin 0: a header is bad, and has no number */
        return;
    *p = at;
    search_found(r, s, p, &record, chain);
}

/* Searches until `evidence`, the end of the segment, or the end of the budget. */
static bool search_records(svi_journal_reader *r, struct search *s) {
    uint64_t p = s->begin < 8 ? 8 : s->begin; /* the check before a record takes eight bytes */
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

/* Continues at the first sound record after the damage, or in the next segment. */
static void resume_at(svi_journal_reader *r, const struct search *s) {
    if (!s->sound) {
        if (reader_at_last(r))
            r->found.torn = bytes_left(r);
        leave_segment(r, bytes_left(r));
        return;
    }
    r->found.lost_bytes += s->offset - r->here.offset;
    count_lost(r, s->found);
    r->here.offset = s->offset;
    r->here.chain = s->chain;
    r->chained = true;
}

/* ---- segments */

/* Does the segment of this number begin with the record that comes next? If damage is accepted, a gap before
 * it counts as lost (true), and a segment that begins too early is skipped whole (false). */
static bool segment_follows(svi_journal_reader *r, uint64_t number) {
    char what[96];
    if (number == r->here.number)
        return true;
    if (number > r->here.number)
        snprintf(what, sizeof what, "the records %" PRIu64 " to %" PRIu64 " before it are missing",
                 r->here.number, number - 1);
    else
        snprintf(what, sizeof what, "it begins before record %" PRIu64 ", the next one", r->here.number);
    if (!skip_damage(r, 0, what))
        return false;
    if (number < r->here.number) {
        leave_segment(r, r->buffer.size);
        return false;
    }
    count_lost(r, number);
    r->chained = false;
    r->found.end = (struct svi_position){number, number, 0, r->here.chain, 0};
    return true;
}

/* Enters a segment whose header is sound: its number, epoch and chain must fit what was read before. */
static void claim_segment(svi_journal_reader *r, const struct svi_segment_header *h) {
    uint64_t number = r->numbers[r->at], epoch = r->options.epoch ? r->options.epoch : r->found.epoch;
    char what[80];
    if (h->first != number)
        snprintf(what, sizeof what, "its header names segment %" PRIu64, h->first);
    else
        snprintf(what, sizeof what, "its epoch is %" PRIu64 ", not %" PRIu64, h->epoch, epoch);
    if (h->first != number || (epoch && h->epoch != epoch)) {
        if (skip_damage(r, 0, what))
            leave_segment(r, r->buffer.size);
        return;
    }
    /* Same epoch and number, another history: a segment copied from another state with the same settings.
     * After a loss (`chained` false) the chain cannot be compared. */
    if (r->chained && h->chain != r->here.chain &&
        !skip_damage(r, 0, "it does not continue the segment before it"))
        return;
    r->found.epoch = h->epoch;
    r->here = (struct svi_position){number, number, h->size, h->check, h->secret};
    r->found.end = r->here;
    r->chained = true;
    r->open = true;
}

/* The header is on disk before the first record is written. A bad header is therefore torn only if no record
 * follows it; otherwise it is damaged, and its records are recognised by whichever copy of the secret is
 * right. */
static void bad_header(svi_journal_reader *r, const struct svi_segment_header *h) {
    const uint64_t secrets[2] = {h->secret, h->again};
    struct search s = {0};
    bool exhausted = r->buffer.size > SVI_HEADER_MAX; /* more bytes than a torn header can have */
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
    else if (skip_damage(r, 0, "the checksum of its header is wrong")) {
        r->open = true;
        resume_at(r, &s);
    }
}

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

/* Reads the header of the open segment; another layout is a failure that accept_loss does not skip. */
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

/* A sound record above options.largest must not be mistaken for a torn one and truncated: the limit was
 * lowered after it was written. Its check is computed piece by piece, without reserving its size. */
static void large_record(svi_journal_reader *r, const struct svi_record *record) {
    uint64_t check;
    const uint8_t *at;
    if (!reader_hash(r, record->size, &check) ||
        !reader_bytes(r, r->here.offset + SVI_RECORD_HEAD + record->size, SVI_CHECK_SIZE, &at) ||
        !svi_check_is(at, check))
        return;
    svi_fail_file(&r->error, SVS_TOO_LARGE, r->path, r->buffer.name,
                  "has a record of %zu bytes at byte %" PRIu64
                  ", more than the current limit of %zu: raise it again",
                  record->size, r->here.offset, r->options.largest);
    r->state = READER_FAILED;
}

/* Do the bytes at `here` have the form of a record that fits into the segment? */
static bool read_head(svi_journal_reader *r, struct svi_record *record) {
    const uint64_t left = bytes_left(r);
    const uint8_t *at;
    return left >= SVI_RECORD_BARE && reader_bytes(r, r->here.offset, SVI_RECORD_HEAD, &at) &&
           svi_record_head(at, record) && SVI_RECORD_BARE + (uint64_t)record->size <= left;
}

/* Reads the next record. False: it is bad, or (r->state) reading failed. */
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

/* The record at `here` is bad: torn, or damage? Damage that is refused anyway needs no search: a search is
 * made for evidence that it was durable, or for the place to continue at. */
static void bad_record(svi_journal_reader *r) {
    bool durable = !may_be_torn(r) || r->proved > r->here.number;
    char what[64];
    struct svi_record record;
    struct search s = {
        .begin = r->here.offset + 1, .number = r->here.number, .durable = durable ? 0 : r->here.number + 1};
    if (!durable || r->options.accept_loss) {
        /* If only its check is wrong, the record after it is sound under the recomputed one (try_record): no
         * more than this record is lost. */
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
    snprintf(what, sizeof what, "the checksum of record %" PRIu64 " is wrong", r->here.number);
    if (skip_damage(r, r->here.offset, what))
        resume_at(r, &s);
}

/* Reads on by one record. False: nothing to return yet (the segment ended, the record was skipped or lies
 * before `from`), or reading ended. */
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
    /* Each turn moves `here` or `at` on, or changes the state: the loop ends. */
    while (r->state == READER_READING) {
        if (!r->open) {
            next_segment(r);
        } else if (next_record(r, record)) {
            r->found.records++;
            r->found.lost = r->skipped;
            r->skipped = false;
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

/* Index of the last segment that begins at this number or before; -1: none does. */
static int segment_of(const svi_journal_reader *r, uint64_t number) {
    int at = -1;
    while (at + 1 < r->count && r->numbers[at + 1] <= number)
        at++;
    return at;
}

/* Begins at a byte inside of the open segment. The position already has the chain and the secret, so a bad
 * header is no obstacle; but a sound one must be the header of the segment that the checkpoint continues. */
static void begin_inside(svi_journal_reader *r) {
    const struct svi_position from = r->here;
    struct svi_segment_header h;
    enum svi_header_state state;
    if (!read_header(r, &h, &state))
        return;
    r->found.epoch = r->options.epoch;
    r->open = true;
    if (state == SVI_HEADER_SOUND) {
        /* What precedes this segment was not read, so its chain is not compared; the secret tells it apart
         * from a segment of another history. */
        r->here.number = r->numbers[r->at];
        r->chained = r->open = false;
        claim_segment(r, &h);
        if (r->open && h.secret != from.secret) {
            r->open = false;
            if (skip_damage(r, 0, "it is not the segment at which the checkpoint continues"))
                leave_segment(r, r->buffer.size);
        }
        r->here = from;
        r->found.end = r->open ? from : after_checkpoint(r); /* never append to a foreign segment */
    }
    r->chained = true;
}

/* Begins at a checkpoint's position. Its segment must be there and reach that far, or have been trimmed
 * because later ones continue the checkpoint. */
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
        /* The segment was on disk up to that byte before the checkpoint was written, so a shorter one is an
         * older copy. It is damage if nothing follows; if a segment follows, an earlier start has accepted
         * this loss, and segment_follows checks that the next one continues the checkpoint. */
        r->found.end = after_checkpoint(r);
        snprintf(what, sizeof what, "it ends there, but a checkpoint continues at byte %" PRIu64,
                 r->from.offset);
        if (reader_at_last(r))
            (void)skip_damage(r, r->buffer.size, what);
        return;
    }
    /* The segment was trimmed: then the next one begins with exactly this record. */
    r->at = r->from.number ? segment_of(r, r->from.number - 1) : -1;
    if (reader_at_last(r) && skip_missing(r, r->from.segment))
        r->found.end = after_checkpoint(r);
}

static void begin_reading(svi_journal_reader *r) {
    r->here = r->found.end = r->from;
    r->chained = true;
    if (r->from.offset > 0) {
        begin_at_offset(r);
        return;
    }
    /* Without an offset, reading begins at the start of the segment that contains the record: next_segment
     * opens the one after `at`. Records before `from` are verified, but not returned. */
    int at = segment_of(r, r->from.number);
    r->found.end.segment = r->from.number;
    r->at = at >= 0 ? at - 1 : -1;
    if (at >= 0)
        r->here.number = r->numbers[at];
    r->chained = r->here.number == r->from.number && r->from.chain != 0; /* chain 0: not known */
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

/* Lists marks before segments: the segment that a mark names is on disk already, even if another process
 * begins new ones in the meantime. In the other order a new mark could name a segment that was not listed. */
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
