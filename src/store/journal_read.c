#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/io.h"

#define TO_DO "restore it from a copy, or let run --accept-loss pass over the damage"

static bool is_last(const svi_journal_reader *r) {
    return r->at + 1 >= r->count;
}

/* ---- damage */

/* The window has written the text. */
static void fail(svi_journal_reader *r) {
    r->state = SVI_READER_FAILED;
}

static void damaged(svi_journal_reader *r, const char *name, uint64_t offset, const char *what) {
    svi_fail_file(&r->error, SVS_DAMAGED, r->folder, name, "is damaged at byte %" PRIu64 ": %s; " TO_DO,
                  offset, what);
    fail(r);
}

/* Something is damaged or missing: true if it is to be passed over. */
static bool may_pass(svi_journal_reader *r) {
    r->passed = r->options.accept_loss;
    r->found.damages += r->passed;
    return r->passed;
}

/* Damage at this byte of the segment: true if it is to be passed over. */
static bool pass_over(svi_journal_reader *r, uint64_t offset, const char *what) {
    bool passed = may_pass(r);
    if (!passed)
        damaged(r, r->window.name, offset, what);
    return passed;
}

/* Records up to this one are lost; those before `from` nobody wanted. */
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

static void end(svi_journal_reader *r) {
    r->state = SVI_READER_ENDED;
    r->open = false;
    svi_window_close(&r->window);
    r->found.lost = r->passed;
    if (r->found.end.number < r->from.number) /* not reached */
        r->found.end = after_checkpoint(r);
}

/* Leaves the segment, of which this many bytes were not read. */
static void leave(svi_journal_reader *r, uint64_t rest) {
    r->open = false;
    r->found.lost_bytes += rest;
    r->chained = r->chained && rest == 0;
    if (is_last(r))
        end(r);
}

/* Goes on at the first sound record behind the damage, or in the next segment. */
static void resume_at(svi_journal_reader *r, const struct svi_search *s) {
    if (!s->sound) {
        if (is_last(r))
            r->found.torn = r->window.size - r->here.offset;
        leave(r, r->window.size - r->here.offset);
        return;
    }
    r->found.lost_bytes += s->offset - r->here.offset;
    lose_to(r, s->found);
    r->here.offset = s->offset;
    r->here.chain = s->chain;
    r->chained = true;
}

/* The tail of the last segment that a crash has torn, unless it holds what the disk cannot read. */
static void cut(svi_journal_reader *r) {
    r->found.torn = r->window.size - r->here.offset;
    if (r->window.hidden > 0 && may_pass(r))
        r->found.lost_bytes += r->found.torn;
    end(r);
}

/* ---- segments */

/* The one that comes next begins where the one before ended. */
static bool follows(svi_journal_reader *r, uint64_t number) {
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
        leave(r, r->window.size);
        return false;
    }
    lose_to(r, number);
    r->chained = false;
    r->found.end = (struct svi_position){number, number, 0, r->here.chain, 0};
    return true;
}

static void enter(svi_journal_reader *r, const struct svi_segment_header *h) {
    uint64_t number = r->numbers[r->at], epoch = r->options.epoch ? r->options.epoch : r->found.epoch;
    char what[80];
    if (h->first != number)
        snprintf(what, sizeof what, "its header is that of segment %" PRIu64, h->first);
    else
        snprintf(what, sizeof what, "it is of epoch %" PRIu64 ", not %" PRIu64, h->epoch, epoch);
    if (h->first != number || (epoch && h->epoch != epoch)) {
        if (pass_over(r, 0, what))
            leave(r, r->window.size);
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
 * segment that a crash interrupted, or damaged. Records can be told by the right one of its secrets. */
static void bad_header(svi_journal_reader *r, const struct svi_segment_header *h) {
    const uint64_t secrets[2] = {h->secret, h->again};
    struct svi_search s = {0};
    bool exhausted = r->window.size > SVI_HEADER_MAX; /* no header is torn there */
    for (int i = 0; i < 1 + (h->secret != h->again) && !s.sound; i++) {
        r->here = (struct svi_position){r->here.number, r->here.number, 0, r->here.chain, secrets[i]};
        r->searched = 0;
        s = (struct svi_search){.number = r->here.number, .after = h->size, .seed = h->check};
        if (svi_journal_search(r, &s, &r->error) != SVS_OK) {
            fail(r);
            return;
        }
        exhausted = exhausted || s.exhausted;
    }
    if (is_last(r) && !s.sound && !exhausted)
        cut(r);
    else if (pass_over(r, 0, "its header is not sound")) {
        r->open = true;
        resume_at(r, &s);
    }
}

static svs_code open_segment(svi_journal_reader *r, int at, svs_error *err) {
    char name[SVI_FILE_NAME];
    svi_folder_name(name, SVI_JOURNAL, r->numbers[at]);
    r->at = at;
    r->searched = r->proved = 0;
    if (r->folder)
        return svi_window_open(&r->window, r->folder, name, err);
    svi_window_memory(&r->window, r->memory, r->memory_size, name);
    return SVS_OK;
}

static svs_code read_header(svi_journal_reader *r, struct svi_segment_header *h, enum svi_head_state *state) {
    size_t n = r->window.size < SVI_HEADER_MAX ? (size_t)r->window.size : SVI_HEADER_MAX;
    const uint8_t *at;
    *state = SVI_HEAD_BAD;
    *h = (struct svi_segment_header){0};
    svs_code code = n ? svi_window_at(&r->window, 0, n, &at, &r->error) : SVS_OK;
    if (n && code == SVS_OK)
        *state = svi_segment_header_read(h, at, n);
    if (*state != SVI_HEAD_LATER)
        return code;
    return svi_fail_file(&r->error, SVS_UNAVAILABLE, r->folder, r->window.name,
                         "was written by a later version of this program: use that one");
}

static void next_segment(svi_journal_reader *r) {
    struct svi_segment_header h;
    enum svi_head_state state;
    if (is_last(r)) {
        end(r);
        return;
    }
    if (open_segment(r, r->at + 1, &r->error) != SVS_OK) {
        fail(r);
        return;
    }
    if (!follows(r, r->numbers[r->at]))
        return;
    if (read_header(r, &h, &state) != SVS_OK)
        fail(r);
    else if (state == SVI_HEAD_SOUND)
        enter(r, &h);
    else
        bad_header(r, &h);
}

/* ---- records */

/* A record that is larger than what is taken, but sound, must not be mistaken for a torn one. */
static bool too_large(svi_journal_reader *r, const struct svi_record *record) {
    uint64_t check, end = r->here.offset + SVI_RECORD_HEAD + record->size;
    const uint8_t *at;
    if (svi_window_check(&r->window, r->here.offset, SVI_RECORD_HEAD + (uint64_t)record->size,
                         svi_record_seed(r->here.chain, r->here.secret), &check, &r->error) != SVS_OK ||
        svi_window_at(&r->window, end, SVI_CHECK_SIZE, &at, &r->error) != SVS_OK) {
        fail(r);
        return true;
    }
    if (*at != SVI_LEAD_UINT64 || svi_load64(at + 1) != check)
        return false;
    svi_fail_file(&r->error, SVS_TOO_LARGE, r->folder, r->window.name,
                  "has a record of %zu bytes at byte %" PRIu64
                  ", more than the %zu that are taken now: raise "
                  "the limit again",
                  record->size, r->here.offset, r->options.largest);
    fail(r);
    return true;
}

/* The next record is there and sound. Sets the state when it could not even be read. */
static bool read_sound(svi_journal_reader *r, struct svi_record *record) {
    uint64_t left = r->window.size - r->here.offset;
    const uint8_t *at;
    if (left < SVI_RECORD_BARE)
        return false;
    if (svi_window_at(&r->window, r->here.offset, SVI_RECORD_HEAD, &at, &r->error) != SVS_OK) {
        fail(r);
        return false;
    }
    if (!svi_record_head(at, record) || record->number != r->here.number ||
        SVI_RECORD_BARE + (uint64_t)record->size > left)
        return false;
    if (record->size > r->options.largest) {
        too_large(r, record);
        return false;
    }
    if (svi_window_at(&r->window, r->here.offset, SVI_RECORD_BARE + record->size, &at, &r->error) != SVS_OK) {
        fail(r);
        return false;
    }
    return svi_record_sound(at, record, r->here.secret, &r->here.chain);
}

/* If only its check is wrong, the record behind it is sound: so that no more than the one is lost. */
static svs_code expect_behind(svi_journal_reader *r, struct svi_search *s) {
    struct svi_record record;
    const uint8_t *at;
    uint64_t left = r->window.size - r->here.offset;
    if (left < SVI_RECORD_BARE)
        return SVS_OK;
    svs_code code = svi_window_at(&r->window, r->here.offset, SVI_RECORD_HEAD, &at, &r->error);
    if (code != SVS_OK || !svi_record_head(at, &record) || SVI_RECORD_BARE + (uint64_t)record.size > left)
        return code;
    s->after = r->here.offset + SVI_RECORD_BARE + record.size;
    return svi_window_check(&r->window, r->here.offset, SVI_RECORD_HEAD + (uint64_t)record.size,
                            svi_record_seed(r->here.chain, r->here.secret), &s->seed, &r->error);
}

static void bad_record(svi_journal_reader *r) {
    bool last = is_last(r), durable = !last || r->proved > r->here.number;
    char what[64];
    struct svi_search s = {
        .begin = r->here.offset + 1, .number = r->here.number, .durable = durable ? 0 : r->here.number + 1};
    bool search = !durable || r->options.accept_loss;
    if (search && (expect_behind(r, &s) != SVS_OK || svi_journal_search(r, &s, &r->error) != SVS_OK)) {
        fail(r);
        return;
    }
    if (!durable && !s.evidence && !s.exhausted) {
        cut(r);
        return;
    }
    snprintf(what, sizeof what, "the record %" PRIu64 " is not sound", r->here.number);
    if (pass_over(r, r->here.offset, what))
        resume_at(r, &s);
}

static bool next_record(svi_journal_reader *r, struct svi_record *record) {
    if (r->here.offset == r->window.size) {
        leave(r, 0);
        return false;
    }
    if (!read_sound(r, record)) {
        if (r->state == SVI_READER_READING)
            bad_record(r);
        return false;
    }
    r->here.offset += SVI_RECORD_BARE + record->size;
    r->here.number++;
    r->found.end = r->here;
    return record->number >= r->from.number;
}

enum svi_journal_read svi_journal_read(svi_journal_reader *r, struct svi_record *record, svs_error *err) {
    while (r->state == SVI_READER_READING) {
        if (!r->open) {
            next_segment(r);
        } else if (next_record(r, record)) {
            r->found.records++;
            r->found.lost = r->passed;
            r->passed = false;
            return SVI_JOURNAL_RECORD;
        }
    }
    if (r->state == SVI_READER_ENDED)
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

/* The header is not needed any more where reading begins behind it, but what it says must fit. */
static void begin_inside(svi_journal_reader *r) {
    struct svi_segment_header h;
    enum svi_head_state state;
    if (read_header(r, &h, &state) != SVS_OK) {
        fail(r);
        return;
    }
    r->found.epoch = r->options.epoch;
    if (state == SVI_HEAD_SOUND) {
        struct svi_position from = r->here;
        r->here.number = r->numbers[r->at];
        r->chained = false;
        enter(r, &h);
        if (r->open && h.secret != from.secret) {
            r->open = false;
            if (pass_over(r, 0, "it is another one than the checkpoint goes on with"))
                leave(r, r->window.size);
        }
        r->here = from;
        r->found.end = r->open ? from : after_checkpoint(r); /* nothing is appended to what is not ours */
    } else
        r->open = true;
    r->chained = true;
}

static void begin_at_offset(svi_journal_reader *r) {
    int at = segment_of(r, r->from.segment);
    if (at >= 0 && r->numbers[at] == r->from.segment) {
        if (open_segment(r, at, &r->error) != SVS_OK)
            fail(r);
        else if (r->window.size >= r->from.offset)
            begin_inside(r);
        else
            r->found.end = after_checkpoint(r);
        return;
    }
    /* Trimmed: then the next segment begins just there. */
    r->at = r->from.number ? segment_of(r, r->from.number - 1) : -1;
    if (is_last(r)) {
        char name[SVI_FILE_NAME];
        svi_folder_name(name, SVI_JOURNAL, r->from.segment);
        if (!may_pass(r)) {
            svi_fail_file(&r->error, SVS_DAMAGED, r->folder, name, "is missing: " TO_DO);
            fail(r);
        }
        r->found.end = after_checkpoint(r);
    }
}

static void begin(svi_journal_reader *r) {
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

static svi_journal_reader *make(const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = svi_alloc(sizeof *r);
    if (!r) {
        svi_fail_memory(err, "the reader of the journal");
        return NULL;
    }
    r->options = *o;
    r->at = -1;
    r->window = (struct svi_window){.fd = -1, .lossy = o->accept_loss, .advice = TO_DO};
    return r;
}

svi_journal_reader *svi_journal_reader_new(const struct svi_folder *f, const struct svi_position *from,
                                           const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = make(o, err);
    if (!r)
        return NULL;
    r->folder = f;
    r->from = *from;
    if (svi_folder_list(f, SVI_JOURNAL, &r->numbers, &r->count, err) != SVS_OK) {
        svi_journal_reader_free(&r);
        return NULL;
    }
    begin(r);
    if (r->state == SVI_READER_READING && !r->open)
        next_segment(r);
    if (r->state != SVI_READER_FAILED)
        return r;
    if (err)
        *err = r->error;
    svi_journal_reader_free(&r);
    return NULL;
}

svi_journal_reader *svi_journal_reader_memory(const uint8_t *bytes, size_t size, uint64_t first,
                                              const struct svi_journal_reader_options *o, svs_error *err) {
    svi_journal_reader *r = make(o, err);
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
    svi_window_clear(&(*r)->window);
    svi_free((*r)->numbers);
    svi_free(*r);
    *r = NULL;
}
