/* What is read from files and sockets claims more than it holds, or holds as much as it may of what costs
 * most: whoever reads it refuses it, or takes it in memory that its size bounds. The process as a whole stays
 * below 64 MiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "fleet/fleet.h"
#include "server/control.h"
#include "store/checkpoint_file.h"
#include "store/journal_internal.h"
#include "svmstream/model.h"
#include "wire/archive_file.h"
#include "formats/novelty_file.h"
#include "client/outbox_internal.h"
#include "wire/pack.h"
#include "support/apply.h"

#define LARGEST ((size_t)1 << 20)
#define MIB     1024 /* KiB */

struct bomb {
    const char *name;
    uint8_t head[24];
    size_t head_size;
    const char *piece; /* repeated until it is large */
    size_t piece_size;
    size_t size; /* in all; 0: the head alone */
};

#define HEAD(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

static const struct bomb bombs[] = {
    {"an array of 4 G", HEAD(0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0), "", 0, 0},
    {"an array of 256 M", HEAD(0xdd, 0x10, 0, 0, 0, 0xc0), "", 0, 0},
    {"a map of 256 M", HEAD(0xdf, 0x10, 0, 0, 0, 0xc0), "", 0, 0},
    {"a string of 4 G", HEAD(0xdb, 0xff, 0xff, 0xff, 0xff, 'a'), "", 0, 0},
    {"bytes of 2 G", HEAD(0xc6, 0x7f, 0xff, 0xff, 0xff, 'a'), "", 0, 0},
    {"an ext of 4 G", HEAD(0x81, 0xa1, 'W', 0xc9, 0xff, 0xff, 0xff, 0xf8, 2), "", 0, 0},
    {"31 arrays of 32 M", HEAD(0xdd, 2, 0, 0, 0), "\xdd\x02\x00\x00\x00", 5, 155},
    {"deep arrays", HEAD(0x91), "\x91", 1, LARGEST},
    {"deep maps", HEAD(0x81, 0xa1, 'a'), "\x81\xa1x", 3, LARGEST},
    {"empty arrays", HEAD(0xdd, 0, 0x0f, 0xff, 0xfb), "\x90", 1, LARGEST},
    {"empty maps", HEAD(0xdd, 0, 0x0f, 0xff, 0xfb), "\x80", 1, LARGEST},
    {"nils", HEAD(0xdd, 0, 0x0f, 0xff, 0xfb), "\xc0", 1, LARGEST},
    {"a map of nils", HEAD(0xdf, 0, 0x07, 0xff, 0xfd), "\xc0\xc0", 2, LARGEST},
    {"x of empty arrays", HEAD(0x81, 0xa1, 'x', 0xdd, 0, 0x0f, 0xff, 0xf8), "\x90", 1, LARGEST},
    {"a reply of one key", HEAD(0xdf, 0, 0x07, 0xff, 0xfd), "\xa0\xc0", 2, LARGEST},
    {"W of empty arrays", HEAD(0x82, 0xa1, 'v', 1, 0xa1, 'W', 0xdd, 0, 0x0f, 0xff, 0xf5), "\x90", 1, LARGEST},
    {"classes", HEAD(0x82, 0xa1, 'v', 1, 0xa7, 'c', 'l', 'a', 's', 's', 'e', 's', 0xdd, 0, 0x0f, 0xff, 0xef),
     "\x01", 1, LARGEST},
};
#define BOMBS ((int)(sizeof bombs / sizeof bombs[0]))

static size_t build(const struct bomb *b, uint8_t *out) {
    size_t size = b->head_size;
    memcpy(out, b->head, size);
    const size_t pieces = b->piece_size ? (b->size - size) / b->piece_size : 0;
    uint8_t *body = out + size;
    for (size_t i = 0, n; i < pieces; i += n) { /* doubled, as that takes no time */
        n = i == 0 ? 1 : i < pieces - i ? i : pieces - i;
        memcpy(body + i * b->piece_size, i == 0 ? (const void *)b->piece : body, n * b->piece_size);
    }
    return size + pieces * b->piece_size;
}

/* ---- who reads */

static svs_code read_model(const uint8_t *bytes, size_t size, svs_error *err) {
    svs_model *m = svs_model_decode(bytes, size, err);
    svs_code code = m ? SVS_OK : err->code;
    svs_model_free(&m);
    return code;
}

static svs_code read_novelty(const uint8_t *bytes, size_t size, svs_error *err) {
    svs_novelty_model *m = svi_novelty_file_decode(bytes, size, err);
    svs_code code = m ? SVS_OK : err->code;
    svs_novelty_free(&m);
    return code;
}

static svs_code read_reply(const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_answer a;
    return svi_answer_read(&a, bytes, size, err);
}

static svs_code read_checkpoint(const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_checkpoint c = {0};
    svs_code code = svi_checkpoint_parse(bytes, size, NULL, "bomb", &c, err);
    svi_checkpoint_clear(&c);
    return code;
}

static svs_code read_section(const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_archive_in in;
    double x[4];
    svi_archive_in_begin(&in, bytes, size, "bomb", err);
    svi_archive_doubles(&in.archive, "W", x, 4);
    return svi_archive_in_end(&in);
}

static svs_code read_journal(const uint8_t *bytes, size_t size, svs_error *err) {
    const struct svi_journal_reader_options o = {.largest = LARGEST};
    struct svi_record record;
    svi_journal_reader *r = svi_journal_reader_memory(bytes, size, 0, &o, err);
    assert_non_null(r);
    enum svi_journal_read what = svi_journal_read(r, &record, err);
    assert_int_not_equal(what, SVI_JOURNAL_RECORD);
    svi_journal_reader_free(&r);
    if (what == SVI_JOURNAL_FAIL)
        return err->code;
    snprintf(err->text, sizeof err->text, "a torn tail");
    return SVS_DAMAGED;
}

static const struct {
    const char *name;
    svs_code (*read)(const uint8_t *bytes, size_t size, svs_error *err);
} readers[] = {{"model", read_model},           {"novelty", read_novelty}, {"reply", read_reply},
               {"checkpoint", read_checkpoint}, {"section", read_section}, {"journal", read_journal}};

static long resident(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static bool sanitized(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static void test_no_reader_takes_one(void **state) {
    uint8_t *bytes = malloc(LARGEST);
    (void)state;
    for (size_t r = 0; r < sizeof readers / sizeof readers[0]; r++)
        for (int i = 0; i < BOMBS; i++) {
            svs_error err = {SVS_OK, ""};
            const size_t size = build(&bombs[i], bytes);
            const long before = resident();
            if (readers[r].read(bytes, size, &err) == SVS_OK)
                fail_msg("%s: %s is taken", readers[r].name, bombs[i].name);
            assert_true(err.text[0] != '\0');
            if (!sanitized() && resident() - before > 32 * MIB)
                fail_msg("%s: %s costs %ld KiB", readers[r].name, bombs[i].name, resident() - before);
        }
    free(bytes);
}

/* ---- a checkpoint with sound checks whose numbers claim much */

static void small_engine(struct svi_settings *s, svi_stream **e) {
    static const char *const pairs[] = {
        "window",      "20", "max.features",        "64",   "max.sources", "8", "labels.max", "8",
        "novelty.max", "6",  "novelty.calibration", "1000", NULL};
    svs_error err = {SVS_OK, ""};
    svi_settings_default(s);
    for (const char *const *p = pairs; *p; p += 2)
        assert_int_equal(svi_settings_set(s, p[0], p[1], &err), SVS_OK);
    *e = svi_stream_new(s, 7, NULL, NULL, &err);
    assert_non_null(*e);
    svi_stream_mute(*e, true);
}

static void learn(svi_stream *e, int count) {
    struct svi_bytes b = {0};
    struct svi_pack p;
    for (int i = 0; i < count; i++) {
        b.size = 0;
        svi_pack_begin(&p, &b);
        svi_pack_map(&p, 3);
        svi_pack_text(&p, "x");
        svi_pack_array(&p, 2);
        svi_pack_real(&p, i * 7 % 11);
        svi_pack_real(&p, i * 5 % 13);
        svi_pack_text(&p, i % 5 ? "y" : "id");
        svi_pack_int(&p, i % 5 ? i % 2 : i);
        svi_pack_text(&p, "src");
        svi_pack_text(&p, i % 2 ? "left" : "right");
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        assert_int_equal(apply_bytes(e, b.data, b.size, 1000000 + i, false, NULL), SVS_OK);
    }
    svi_bytes_clear(&b);
}

/* Loads the checkpoint with an integer at `at` replaced; it is put back. */
static void claim(struct svi_settings *s, struct svi_checkpoint *c, size_t at, int64_t value) {
    svi_stream *e = svi_stream_new(s, 7, NULL, NULL, NULL);
    uint8_t was[8];
    const uint64_t big = htobe64((uint64_t)value);
    svs_error err = {SVS_OK, ""};
    assert_non_null(e);
    memcpy(was, c->bodies.data + at, sizeof was);
    memcpy(c->bodies.data + at, &big, sizeof big);
    if (svi_stream_load(e, c, &err) != SVS_OK)
        assert_true(err.text[0] != '\0');
    memcpy(c->bodies.data + at, was, sizeof was);
    svi_stream_free(&e);
}

static void claim_all(struct svi_settings *s, struct svi_checkpoint *c, const struct svi_section *section) {
    static const int64_t much[] = {1000, 1000000, INT32_MAX, (int64_t)1 << 32, INT64_MAX, INT64_MIN, -1};
    const uint8_t *begin = c->bodies.data + section->offset, *at = begin;
    struct svi_item map, value;
    at = svi_item_read(at, &map);
    const size_t step = sanitized() ? 5 : 1; /* of the claims: another one for each number */
    for (uint32_t i = 0; i < map.length; i++) {
        assert_int_equal(svi_walk(&at, begin + section->size, 2), SVS_OK);
        svi_item_read(at, &value);
        for (size_t k = i % step; value.type == SVI_INT && k < sizeof much / sizeof much[0]; k += step)
            claim(s, c, (size_t)(at + 1 - c->bodies.data), much[k]);
        assert_int_equal(svi_walk(&at, begin + section->size, 2), SVS_OK);
    }
}

static void test_no_checkpoint_claims_memory(void **state) {
    struct svi_settings s;
    struct svi_checkpoint c = {0};
    svi_stream *e;
    (void)state;
    small_engine(&s, &e);
    learn(e, 60);
    assert_int_equal(svi_stream_save(e, &c, NULL), SVS_OK);
    svi_stream_free(&e);
    const long before = resident();
    for (int i = 0; i < c.sections; i++)
        claim_all(&s, &c, &c.section[i]);
    if (!sanitized())
        assert_true(resident() - before < 16 * MIB);
    svi_checkpoint_clear(&c);
}

/* ---- control and acknowledged input */

static void test_requests(void **state) {
    struct svi_settings s;
    struct svi_control c = {0};
    struct svi_bytes reply = {0};
    uint8_t *bytes = malloc(LARGEST);
    (void)state;
    small_engine(&s, &c.stream);
    c.settings = &s;
    const long before = resident();
    for (int i = 0; i < BOMBS; i++) {
        const size_t size = build(&bombs[i], bytes);
        assert_int_equal(svi_control_handle(&c, bytes, size, 1, &reply), SVS_OK);
        assert_int_equal(route_bytes(&c, bytes, size, 1, &reply), SVS_OK);
        assert_true(reply.size > 0 && reply.size < 1024);
    }
    assert_int_equal(svi_stream_seen(c.stream), 0);
    if (!sanitized())
        assert_true(resident() - before < 48 * MIB);
    svi_stream_free(&c.stream);
    svi_bytes_clear(&reply);
    free(bytes);
}

static void test_all_in_all(void **state) {
    (void)state;
    if (!sanitized())
        assert_in_range(resident(), 0, 64 * MIB - 1);
    print_message("# resident at most %.1f MiB\n", (double)resident() / MIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_reader_takes_one),
        cmocka_unit_test(test_no_checkpoint_claims_memory),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_all_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
