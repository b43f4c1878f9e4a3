/* store_common.c: known records and recovery. */
#include "fault/store_common.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"

static uint64_t mixed(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t numbers[3] = {a, b, c};
    return XXH3_64bits(numbers, sizeof numbers);
}

static void fill(uint64_t from, uint8_t *out, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = mixed(from, i, 0);
        memcpy(out + i, &word, size - i < 8 ? size - i : 8);
    }
}

size_t known_payload(uint64_t seed, uint64_t n, uint64_t cycle, uint8_t out[PAYLOAD_MAX]) {
    uint64_t h = mixed(seed, n, cycle), large = seed % 2 ? 2 : 8; /* one in so many is */
    size_t size = PAYLOAD_MIN + (h >> 8) % (h % large == 0 ? PAYLOAD_MAX - PAYLOAD_MIN : 200);
    memcpy(out, &n, 8);
    memcpy(out + 8, &cycle, 8);
    fill(h, out + PAYLOAD_MIN, size - PAYLOAD_MIN);
    return size;
}

int known_kind(uint64_t n) {
    return (int)(n % 100);
}

double known_time(uint64_t n) {
    return 1.7e9 + 0.001 * (double)n;
}

bool state_take(struct state *s, uint64_t cycle, const uint8_t *payload, size_t size) {
    if (s->spans == 0 || s->span[s->spans - 1].cycle != cycle) {
        if (s->spans == SPANS_MAX)
            return false;
        s->span[s->spans++] = (struct span){s->count, cycle};
    }
    s->hash = XXH3_64bits_withSeed(payload, size, s->hash);
    s->count++;
    return true;
}

/* ---- checkpoints */

/* A second section, so that a checkpoint has several sectors. */
static size_t known_filler(uint64_t seed, uint64_t count, uint8_t out[4096]) {
    size_t size = 600 + mixed(seed, count, 1) % 3400;
    fill(mixed(seed, count, 2), out, size);
    return size;
}

static svs_code add_section(struct svi_checkpoint *c, const char *name, const void *bytes, size_t size,
                            svs_error *err) {
    struct svi_section *s = &c->section[c->sections++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->hashed = true;
    s->offset = c->bodies.size;
    s->size = size;
    return svi_bytes_append(&c->bodies, bytes, size) == SVS_OK ? SVS_OK
                                                               : svi_fail_memory(err, "a checkpoint");
}

svs_code state_save(const struct state *s, uint64_t seed, uint64_t epoch, struct svi_position position,
                    struct svi_checkpoint *c, svs_error *err) {
    uint8_t filler[4096];
    c->sections = 0;
    c->bodies.size = 0;
    c->settings.size = 0;
    snprintf(c->program, sizeof c->program, "0.0.0");
    snprintf(c->isa, sizeof c->isa, "none");
    snprintf(c->stream, sizeof c->stream, "fault");
    c->epoch = epoch;
    c->position = position;
    svs_code code = add_section(c, "state", s, sizeof *s, err);
    return code != SVS_OK ? code
                          : add_section(c, "filler", filler, known_filler(seed, s->count, filler), err);
}

/* ---- recovery */

static void say_wrong(struct recovered *r, const char *what, uint64_t n) {
    if (!r->wrong[0])
        snprintf(r->wrong, sizeof r->wrong, "%s at record %" PRIu64, what, n);
}

/* What the bytes of the state say must be what its own spans make. */
static bool state_holds(const struct state *s, uint64_t seed) {
    struct state made = {0};
    uint8_t payload[PAYLOAD_MAX];
    uint64_t span = 0;
    if (s->spans > SPANS_MAX || s->count > 1000000)
        return false;
    while (made.count < s->count) {
        while (span + 1 < s->spans && s->span[span + 1].first <= made.count)
            span++;
        size_t size = known_payload(seed, made.count, s->span[span].cycle, payload);
        if (!state_take(&made, s->span[span].cycle, payload, size))
            return false;
    }
    return memcmp(&made, s, sizeof made) == 0;
}

static void load_state(const struct svi_checkpoint *c, uint64_t seed, struct recovered *r) {
    uint8_t filler[4096];
    const struct svi_section *s = svi_checkpoint_find(c, "state"), *f = svi_checkpoint_find(c, "filler");
    if (!s || !f || s->size != sizeof r->state) {
        say_wrong(r, "a checkpoint without its sections", c->position.number);
        return;
    }
    memcpy(&r->state, c->bodies.data + s->offset, sizeof r->state);
    size_t size = known_filler(seed, r->state.count, filler);
    if (r->state.count != c->position.number || !state_holds(&r->state, seed) || f->size != size ||
        memcmp(c->bodies.data + f->offset, filler, size) != 0)
        say_wrong(r, "a checkpoint with another content", c->position.number);
}

/* The newest that can be read. */
static svs_code load_checkpoint(const struct svi_state_dir *f, uint64_t seed, struct svi_checkpoint *c,
                                struct recovered *r, svs_error *err) {
    uint64_t *numbers;
    int count;
    svs_code code = svi_state_dir_list(f, "checkpoint", &numbers, &count, err);
    bool found = count == 0;
    for (int i = count - 1; code == SVS_OK && i >= 0 && !found; i--) {
        code = svi_checkpoint_read(f, numbers[i], c, err);
        found = code == SVS_OK;
        r->damaged += !found;
        if (code == SVS_DAMAGED && i > 0)
            code = SVS_OK;
        if (found)
            load_state(c, seed, r);
    }
    svi_free(numbers);
    return code;
}

static void take_record(const struct svi_record *record, uint64_t seed, struct recovered *r) {
    uint8_t known[PAYLOAD_MAX];
    uint64_t cycle = 0, n = r->state.count;
    if (record->number != n || record->kind != known_kind(n) || record->now != known_time(n) ||
        record->durable > n)
        say_wrong(r, "a record with another head", n);
    if (record->size >= PAYLOAD_MIN)
        memcpy(&cycle, record->payload + 8, 8);
    size_t size = known_payload(seed, n, cycle, known);
    if (record->size != size || memcmp(known, record->payload, size) != 0)
        say_wrong(r, "a record with another content", n);
    else if (!state_take(&r->state, cycle, record->payload, size))
        say_wrong(r, "too many cycles", n);
}

static svs_code replay(svi_journal_reader *reader, uint64_t seed, struct recovered *r, svs_error *err) {
    struct svi_record record;
    enum svi_journal_read what = SVI_JOURNAL_RECORD;
    while (!r->wrong[0] && (what = svi_journal_read(reader, &record, err)) == SVI_JOURNAL_RECORD)
        take_record(&record, seed, r);
    svi_journal_reader_found(reader, &r->journal);
    if (what == SVI_JOURNAL_FAIL)
        return err->code;
    if (!r->wrong[0] && r->journal.end.number != r->state.count)
        say_wrong(r, "the journal's end says another number", r->state.count);
    return SVS_OK;
}

svs_code recover(const struct svi_state_dir *f, uint64_t seed, struct recovered *r, svs_error *err) {
    struct svi_checkpoint c = {0};
    *r = (struct recovered){0};
    svs_code code = load_checkpoint(f, seed, &c, r, err);
    struct svi_position from = c.position;
    if (code == SVS_OK && !r->wrong[0]) {
        struct svi_journal_reader_options o = {.epoch = c.epoch, .largest = PAYLOAD_MAX};
        svi_journal_reader *reader = svi_journal_reader_new(f, &from, &o, err);
        code = reader ? replay(reader, seed, r, err) : err->code;
        svi_journal_reader_free(&reader);
        r->epoch = c.epoch ? c.epoch : r->journal.epoch;
    }
    svi_checkpoint_clear(&c);
    return code;
}
