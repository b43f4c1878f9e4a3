/* Any bytes as the segments of a journal. The first byte chooses: the checks are put right first (bit 0), the
 * numbers too (bit 1), damage is passed over (bit 2), several segments (bits 3, 4), reading begins inside
 * (bit 5; where nothing but a forged checkpoint would send it). The scanner must end and tell only what is
 * there; one segment reads the same from memory as from a file; and a journal that was read to its end can be
 * written on, and is then read again with what it had. */
#include "fuzz/target.h"

#include <fcntl.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "store/journal_internal.h"

#define LARGEST 4096

enum { MEND = 1, NUMBER = 2, ACCEPT = 4, INSIDE = 32 };

struct seen {
    uint64_t count, digest, first, last;
    int code; /* of the failure */
    struct svi_journal_found found;
};

/* ---- input */

static void put64(uint8_t *at, uint64_t v) {
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
}

/* The header's check (with `numbers` also what it says of the segment before), as far as it has the form of
 * one; returns where records begin. */
static size_t mend_header(uint8_t *bytes, size_t size, bool numbers, uint64_t *chain, uint64_t *secret) {
    static const struct svi_field before = {.name = "chain", .type = SVI_FIELD_UINT};
    struct svi_header head;
    uint64_t seed = 0;
    struct svi_segment_header h;
    *secret = 0;
    if (!svi_header_open(&head, bytes, size < SVI_HEADER_MAX ? size : SVI_HEADER_MAX, &before, 1, &seed))
        return size;
    uint8_t *key = memmem(bytes, head.size,
                          "\xa5"
                          "chain\xcf",
                          7);
    if (numbers && key && key + 15 <= bytes + head.size)
        put64(key + 7, seed = *chain);
    *chain = XXH3_64bits_withSeed(bytes, head.size - SVI_CHECK_SIZE, seed);
    put64(bytes + head.size - 8, *chain);
    if (svi_segment_header_read(&h, bytes, size) == SVI_HEADER_SOUND)
        *secret = h.secret;
    return head.size;
}

/* Each record's check (and number) as its writer would have made it. *chain goes from the check before to the
 * last one, *number to that of the next record. */
static void mend(uint8_t *bytes, size_t size, bool numbers, uint64_t *number, uint64_t *chain) {
    uint64_t secret;
    size_t at = mend_header(bytes, size, numbers, chain, &secret);
    struct svi_record r;
    while (size - at >= SVI_RECORD_BARE) {
        if (numbers) {
            put64(bytes + at + 2, *number);
            put64(bytes + at + 21, *number < 3 ? 0 : *number - 3);
        }
        if (!svi_record_head(bytes + at, &r) || r.size > size - at - SVI_RECORD_BARE)
            break;
        *chain = XXH3_64bits_withSeed(bytes + at, SVI_RECORD_HEAD + r.size, svi_record_seed(*chain, secret));
        bytes[at + SVI_RECORD_HEAD + r.size] = SVI_LEAD_UINT64;
        put64(bytes + at + SVI_RECORD_HEAD + r.size + 1, *chain);
        at += SVI_RECORD_BARE + r.size;
        ++*number;
    }
}

/* ---- reading */

static int segments(unsigned how) {
    return 1 + (int)(how >> 3 & 3);
}

static bool accepts(unsigned how) {
    return (how & ACCEPT) != 0;
}

static void take(struct seen *s, const struct svi_record *r) {
    must(r->size <= LARGEST && r->kind >= 0 && r->kind <= 127 && r->durable <= r->number);
    must(s->count == 0 || r->number > s->last);
    s->first = s->count ? s->first : r->number;
    s->digest = XXH3_64bits_withSeed(r->payload, r->size, s->digest + r->number + (uint64_t)r->kind);
    s->last = r->number;
    s->count++;
}

static void check_end(const struct seen *s, unsigned how) {
    const struct svi_journal_found *f = &s->found;
    must(f->records == s->count);
    must(accepts(how) || (f->lost_records == 0 && f->lost_bytes == 0 && !f->lost));
    must(s->count == 0 || s->code || f->end.number >= s->last + 1);
    must(accepts(how) || s->count == 0 || s->code || f->end.number == s->last + 1);
    must(accepts(how) || s->count == 0 || s->last - s->first + 1 == s->count);
}

static void read_all(svi_journal_reader *r, size_t size, unsigned how, struct seen *s, svs_error *err) {
    struct svi_record record;
    enum svi_journal_read what = SVI_JOURNAL_FAIL;
    s->code = r ? 0 : (int)err->code;
    while (r && (what = svi_journal_read(r, &record, err)) == SVI_JOURNAL_RECORD) {
        take(s, &record);
        must(s->count <= size / SVI_RECORD_BARE);
    }
    if (r && what == SVI_JOURNAL_FAIL)
        s->code = (int)err->code;
    if (s->code && getenv("FUZZ_TELL"))
        fprintf(stderr, "%s\n", err->text);
    if (s->code)
        must(err->text[0] && strlen(err->text) < sizeof err->text);
    must(!s->code || s->code == SVS_DAMAGED || s->code == SVS_UNAVAILABLE || s->code == SVS_TOO_LARGE);
    if (!r)
        return;
    svi_journal_reader_found(r, &s->found);
    check_end(s, how);
    svi_journal_reader_free(&r);
}

static struct seen read_folder(const struct svi_state_dir *f, size_t size, unsigned how,
                               const struct svi_position *from) {
    const struct svi_journal_reader_options o = {.largest = LARGEST, .accept_loss = accepts(how)};
    struct seen s = {0};
    svs_error err = {SVS_OK, ""};
    read_all(svi_journal_reader_new(f, from, &o, &err), size, how, &s, &err);
    return s;
}

static struct seen read_memory(const uint8_t *bytes, size_t size, unsigned how) {
    const struct svi_journal_reader_options o = {.largest = LARGEST, .accept_loss = accepts(how)};
    struct seen s = {0};
    svs_error err = {SVS_OK, ""};
    read_all(svi_journal_reader_memory(bytes, size, 0, &o, &err), size, how, &s, &err);
    return s;
}

/* ---- folders */

static void put_segment(const struct svi_state_dir *f, uint64_t number, const uint8_t *bytes, size_t size) {
    char name[SVI_FILE_NAME];
    int fd = openat(f->fd, svi_state_dir_name(name, SVI_JOURNAL, number), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

static void remove_files(const struct svi_state_dir *f, const char *kind) {
    uint64_t *numbers;
    int count;
    must(svi_state_dir_list(f, kind, &numbers, &count, NULL) == SVS_OK);
    for (int i = 0; i < count; i++)
        must(svi_state_dir_remove(f, kind, numbers[i], NULL) == SVS_OK);
    svi_free(numbers);
}

/* Cut into segments at places that the bytes name; the number of each follows from its header, or is the next
 * one. */
static void put_segments(const struct svi_state_dir *f, uint8_t *bytes, size_t size, unsigned how) {
    const int count = segments(how);
    uint64_t number = 0, chain = 0;
    for (int i = 0; i < count && size > 0; i++) {
        struct svi_segment_header h;
        uint64_t first = number;
        size_t n = size;
        if (i + 1 < count && size > 2) {
            n = (size_t)bytes[0] << 8 | bytes[1];
            bytes += 2;
            size -= 2;
            n = n < size ? n : size;
        }
        if (how & MEND)
            mend(bytes, n, how & NUMBER, &number, &chain);
        if (svi_segment_header_read(&h, bytes, n) == SVI_HEADER_SOUND)
            first = h.first;
        put_segment(f, first, bytes, n);
        bytes += n;
        size -= n;
        number += number == first;
    }
}

/* What was read to its end, and one record more. */
static void write_on(const struct svi_state_dir *f, const struct seen *before, size_t size, unsigned how,
                     const struct svi_position *from) {
    const struct svi_journal_options o = {
        .stream = "fuzz", .epoch = before->found.epoch, .segment = 4096, .fsync = SVI_FSYNC_NEVER};
    svs_error err;
    svi_journal *j = svi_journal_new(f, &o, &before->found.end, &err);
    must(j != NULL && svi_journal_append(j, 7, 1, "more", 4, &err) == SVS_OK);
    must(svi_journal_commit(j, &err) == SVS_OK);
    svi_journal_free(&j);
    struct seen after = read_folder(f, size + 4096, how & ~(unsigned)ACCEPT, from);
    if (getenv("FUZZ_TELL"))
        fprintf(stderr,
                "before: %d %llu records, end %llu in %llu at %llu, torn %llu; after: %d %llu, torn %llu\n",
                before->code, (unsigned long long)before->count, (unsigned long long)before->found.end.number,
                (unsigned long long)before->found.end.segment, (unsigned long long)before->found.end.offset,
                (unsigned long long)before->found.torn, after.code, (unsigned long long)after.count,
                (unsigned long long)after.found.torn);
    if (accepts(how)) /* what was passed over is still there, and still damaged */
        return;
    must(!after.code && after.count == before->count + 1 && after.found.torn == 0);
    must(after.digest == XXH3_64bits_withSeed("more", 4, before->digest + after.last + 7));
}

static void run(uint8_t *bytes, size_t size, unsigned how, const struct svi_position *from) {
    static struct svi_state_dir f = {.fd = -1, .lock = -1};
    if (f.fd < 0)
        must(svi_state_dir_open(&f, fuzz_folder(), false, NULL) == SVS_OK);
    put_segments(&f, bytes, size, how);
    struct seen s = read_folder(&f, size, how, from);
    if (segments(how) == 1 && !(how & INSIDE)) {
        struct svi_segment_header h;
        struct seen m = read_memory(bytes, size, how);
        bool here = svi_segment_header_read(&h, bytes, size) != SVI_HEADER_SOUND || h.first == 0;
        must(!here || (m.code == s.code && m.count == s.count && m.digest == s.digest &&
                       m.found.torn == s.found.torn));
    }
    if (!s.code && from->offset == 0)
        write_on(&f, &s, size, how, from);
    remove_files(&f, SVI_JOURNAL);
    remove_files(&f, SVI_BEGUN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    const unsigned how = (unsigned)input_take(&in, 1);
    struct svi_position from = {0};
    if (how & INSIDE) {
        from.number = input_take(&in, 1);
        from.segment = input_take(&in, 1) % (from.number + 1);
        from.offset = input_take(&in, 2);
        from.chain = input_take(&in, 8);
    }
    const size_t left = input_left(&in);
    uint8_t *bytes = malloc(left + 1);
    memcpy(bytes, in.at, left);
    run(bytes, left, how, &from);
    free(bytes);
    return 0;
}
