/* Checkpoints come back as they were written, whole or not at all; each flipped byte is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/checksum.h"
#include "wire/cursor.h"

static struct kept k;

static int setup(void **state) {
    (void)state;
    kept_open(&k);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kept_remove(&k);
    return 0;
}

static void add_section(struct svi_checkpoint *c, const char *name, bool hashed, size_t size) {
    struct svi_section *s = &c->section[c->sections++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->hashed = hashed;
    s->offset = c->bodies.size;
    s->size = size;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(i * i + size);
        assert_int_equal(svi_bytes_append(&c->bodies, &byte, 1), SVS_OK);
    }
}

static struct svi_checkpoint example(void) {
    struct svi_checkpoint c = {.program = "1.2.3",
                               .isa = "avx2",
                               .stream = "pump",
                               .epoch = UINT64_MAX,
                               .position = {77, 60, 123456789012, 0xfedcba9876543210, 0xabcdef0123456789}};
    svi_bytes_append(&c.settings, "window: 10\n", 11);
    add_section(&c, "learner", true, 300);
    add_section(&c, "empty", true, 0);
    add_section(&c, "clocks", false, 17);
    return c;
}

static void write_down(struct svi_checkpoint *c) {
    svs_error e;
    int64_t size = -1;
    if (svi_checkpoint_write(&k.folder, c, &size, &e) != SVS_OK)
        fail_msg("%s", e.text);
    struct content file;
    content_read(&file, &k, "checkpoint", c->position.number);
    assert_int_equal(size, file.size);
    free(file.bytes);
}

static void assert_same(const struct svi_checkpoint *a, const struct svi_checkpoint *b) {
    assert_string_equal(a->program, b->program);
    assert_string_equal(a->isa, b->isa);
    assert_string_equal(a->stream, b->stream);
    assert_int_equal(a->epoch, b->epoch);
    assert_position(a->position, b->position);
    assert_int_equal(a->settings.size, b->settings.size);
    if (a->settings.size)
        assert_memory_equal(a->settings.data, b->settings.data, a->settings.size);
    assert_int_equal(a->sections, b->sections);
    assert_memory_equal(a->hash, b->hash, 16);
    for (int i = 0; i < a->sections; i++) {
        const struct svi_section *s = &a->section[i], *t = svi_checkpoint_find(b, s->name);
        assert_non_null(t);
        assert_int_equal(s->hashed, t->hashed);
        assert_int_equal(s->size, t->size);
        if (s->size)
            assert_memory_equal(a->bodies.data + s->offset, b->bodies.data + t->offset, s->size);
    }
}

static void test_round_trip(void **state) {
    struct svi_checkpoint c = example(), d = {0};
    svs_error e;
    (void)state;
    for (int i = 0; i < 2; i++) { /* the second time over the first */
        write_down(&c);
        assert_int_equal(svi_checkpoint_read(&k.folder, 77, &d, &e), SVS_OK);
        assert_same(&c, &d);
        assert_int_equal(d.settings.data[d.settings.size], 0);
    }
    assert_int_equal(kept_count(&k, "checkpoint"), 1);
    assert_null(svi_checkpoint_find(&d, "nothing"));
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
    assert_null(d.bodies.data);
    c = (struct svi_checkpoint){0};
    write_down(&c);
    assert_int_equal(svi_checkpoint_read(&k.folder, 0, &d, &e), SVS_OK);
    assert_same(&c, &d);
    svi_checkpoint_clear(&d);
}

/* Larger than what is written and synced at a time, and than what is read at a time. */
static void test_large(void **state) {
    struct svi_checkpoint c = {.position.number = 5}, d = {0};
    svs_error e;
    (void)state;
    add_section(&c, "large", true, 2500000);
    add_section(&c, "even", true, 1 << 20);
    write_down(&c);
    assert_int_equal(svi_checkpoint_read(&k.folder, 5, &d, &e), SVS_OK);
    assert_same(&c, &d);
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
}

static void test_as_many_as_can_be(void **state) {
    struct svi_checkpoint c = {0}, d = {0};
    char name[16];
    (void)state;
    for (int i = 0; i < SVI_SECTIONS_MAX; i++) {
        memcpy(name, "section-letter?", 16); /* the longest name */
        name[14] = (char)('a' + i);
        add_section(&c, name, i % 2, (size_t)i);
    }
    write_down(&c);
    assert_int_equal(svi_checkpoint_read(&k.folder, 0, &d, NULL), SVS_OK);
    assert_same(&c, &d);
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
}

/* A section that is too large for one object is in several, and the same state has the same hash. */
static void test_pieces(void **state) {
    struct svi_checkpoint c = example(), d = {0};
    uint8_t hash[16];
    svs_error e;
    (void)state;
    assert_int_equal(svi_checkpoint_write(&k.folder, &c, NULL, NULL), SVS_OK);
    memcpy(hash, c.hash, sizeof hash);
    for (size_t piece = 1; piece < 302; piece = piece < 8 ? piece + 1 : piece * 2 - 7) {
        const bool takes = c.bodies.size / piece < SVI_OBJECTS_MAX;
        assert_int_equal(svi_checkpoint_write_pieces(&k.folder, &c, piece, NULL, &e),
                         takes ? SVS_OK : SVS_TOO_LARGE);
        if (!takes)
            continue;
        if (svi_checkpoint_read(&k.folder, c.position.number, &d, &e) != SVS_OK)
            fail_msg("%s", e.text);
        assert_same(&c, &d);
        assert_memory_equal(d.hash, hash, sizeof hash);
    }
    for (int i = 0; i < 3; i++) /* each is asked for its size before anything is written */
        add_section(&c, (char[]){(char)('x' + i), 0}, true, 400);
    assert_int_equal(svi_checkpoint_write_pieces(&k.folder, &c, 1, NULL, &e), SVS_TOO_LARGE);
    assert_int_equal(kept_count(&k, "checkpoint"), 1);
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
}

static void hash_of(struct svi_checkpoint c, char text[SVI_HASH_TEXT]) {
    svi_checkpoint_hash(&c);
    svi_hash_text(c.hash, text);
}

/* The fingerprint: of what is hashed, with names and boundaries, and of nothing else. */
static void test_hash(void **state) {
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    (void)state;
    struct svi_checkpoint c = example();
    hash_of(c, one);
    assert_int_equal(strlen(one), 32);
    assert_int_equal(strspn(one, "0123456789abcdef"), 32);
    c.epoch++;
    c.program[0]++;
    c.bodies.data[c.section[2].offset] ^= 1; /* not hashed */
    hash_of(c, other);
    assert_string_equal(one, other);
    c.section[0].size--; /* a byte from one to the next */
    c.section[1].offset--;
    c.section[1].size++;
    hash_of(c, other);
    assert_string_not_equal(one, other);
    svi_checkpoint_clear(&c);
    c = example();
    c.section[0].name[0] = 'L';
    hash_of(c, other);
    assert_string_not_equal(one, other);
    svi_checkpoint_clear(&c);
    c = example();
    c.bodies.data[299] ^= 1;
    hash_of(c, other);
    assert_string_not_equal(one, other);
    svi_checkpoint_clear(&c);
}

/* Bytes in a block of exactly their size. */
static svs_code parse(const uint8_t *bytes, size_t size, struct svi_checkpoint *d, svs_error *e) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    svs_code code = svi_checkpoint_parse(copy, size, NULL, "checkpoint-x", d, e);
    free(copy);
    return code;
}

static void test_flipped_and_cut(void **state) {
    struct svi_checkpoint c = example(), d = {0};
    struct content file;
    svs_error e;
    (void)state;
    write_down(&c);
    content_read(&file, &k, "checkpoint", 77);
    for (size_t i = 0; i < file.size * 8; i++) {
        file.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(parse(file.bytes, file.size, &d, &e), SVS_DAMAGED);
        assert_non_null(strstr(e.text, "checkpoint-x"));
        assert_int_equal(d.sections, 0);
        file.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t size = 0; size < file.size; size++)
        assert_int_equal(parse(file.bytes, size, &d, &e), SVS_DAMAGED);
    file.bytes[file.size] = 0xc0;
    assert_int_equal(parse(file.bytes, file.size + 1, &d, &e), SVS_DAMAGED);
    assert_non_null(strstr(e.text, "bytes follow the end"));
    assert_int_equal(parse(file.bytes, file.size, &d, &e), SVS_OK);
    assert_same(&c, &d);
    file.bytes[40] ^= 1;
    content_write(&file, file.size);
    assert_int_equal(svi_checkpoint_read(&k.folder, 77, &d, &e), SVS_DAMAGED);
    assert_non_null(strstr(e.text, k.path));
    content_write(&file, 0);
    assert_int_equal(svi_checkpoint_read(&k.folder, 77, &d, &e), SVS_DAMAGED);
    free(file.bytes);
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
}

static void test_wrong_names(void **state) {
    struct svi_checkpoint c = example(), d = {0};
    char from[128], to[128];
    svs_error e;
    (void)state;
    assert_int_equal(svi_checkpoint_read(&k.folder, 77, &d, &e), SVS_IO);
    write_down(&c);
    snprintf(from, sizeof from, "%s/checkpoint-%016x", k.path, 77);
    snprintf(to, sizeof to, "%s/checkpoint-%016x", k.path, 78);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(svi_checkpoint_read(&k.folder, 78, &d, &e), SVS_DAMAGED);
    assert_non_null(strstr(e.text, "a different number"));
    assert_int_equal(truncate(to, (off_t)SVI_CHECKPOINT_MAX + 1), 0); /* a hole */
    assert_int_equal(svi_checkpoint_read(&k.folder, 78, &d, &e), SVS_DAMAGED);
    assert_non_null(strstr(e.text, "more than a checkpoint holds"));
    svi_checkpoint_clear(&c);
    svi_checkpoint_clear(&d);
}

/* ---- files with right checks and wrong content */

struct forgery {
    struct svi_bytes bytes;
    uint64_t check;
};

static void forge_header(struct forgery *f, int layout, int sections, const char *stream,
                         const char *without) {
    struct svi_pack p;
    svi_pack_begin(&p, &f->bytes);
    svi_pack_map(&p, without ? 13 : 14);
    svi_pack_text(&p, "format");
    svi_pack_text(&p, "svmstream-checkpoint");
    static const char *const numbers[] = {"epoch", "number", "segment", "offset", "chain", "secret"};
    for (int i = 0; i < 6; i++) {
        if (without && strcmp(without, numbers[i]) == 0)
            continue;
        svi_pack_text(&p, numbers[i]);
        svi_pack_int(&p, 0);
    }
    svi_pack_text(&p, "v");
    svi_pack_int(&p, layout);
    svi_pack_text(&p, "sections");
    svi_pack_int(&p, sections);
    static const char *const texts[] = {"program", "isa", "stream"};
    for (int i = 0; i < 3; i++) {
        svi_pack_text(&p, texts[i]);
        svi_pack_text(&p, i == 2 ? stream : "");
    }
    if (!without || strcmp(without, "settings") != 0) {
        svi_pack_text(&p, "settings");
        svi_pack_text(&p, "");
    }
    svi_pack_text(&p, "check");
    f->check = svi_check_append(&p, 0, 0);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

enum form { RIGHT, UNNAMED, LONG_NAME, NOT_BOOL, NOT_BIN, NUMBERED, THREE_ITEMS, MAP };

static void forge_section(struct forgery *f, const char *name, enum form form) {
    struct svi_pack p;
    svi_pack_begin(&p, &f->bytes);
    if (form == MAP)
        svi_pack_map(&p, 2);
    else
        svi_pack_array(&p, form == THREE_ITEMS ? 3 : 4);
    if (form == NUMBERED)
        svi_pack_int(&p, 1);
    else
        svi_pack_text(&p, form == UNNAMED ? "" : form == LONG_NAME ? "sixteen-letters-" : name);
    if (form == NOT_BOOL)
        svi_pack_nil(&p);
    else
        svi_pack_bool(&p, false);
    if (form == NOT_BIN)
        svi_pack_text(&p, "body");
    else if (form != THREE_ITEMS)
        svi_pack_bin(&p, "body", 4);
    f->check = svi_check_append(&p, p.start, f->check);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void forge_end(struct forgery *f, const char *word, size_t hash, bool right) {
    struct svi_pack p;
    struct svi_checkpoint none = {0};
    svi_checkpoint_hash(&none);
    none.hash[0] ^= !right;
    svi_pack_begin(&p, &f->bytes);
    svi_pack_array(&p, 3);
    svi_pack_text(&p, word);
    svi_pack_bin(&p, none.hash, hash);
    f->check = svi_check_append(&p, p.start, f->check);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void assert_forgery(struct forgery *f, svs_code expected, const char *text) {
    struct svi_checkpoint d = {0};
    svs_error e = {0};
    assert_int_equal(parse(f->bytes.data, f->bytes.size, &d, &e), expected);
    if (text && !strstr(e.text, text))
        fail_msg("%s", e.text);
    svi_checkpoint_clear(&d);
    svi_bytes_clear(&f->bytes);
}

static void test_forged_headers(void **state) {
    struct forgery f = {0};
    (void)state;
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", NULL);
    forge_end(&f, "end", 16, true);
    assert_forgery(&f, SVS_OK, NULL);
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", "secret");
    assert_forgery(&f, SVS_DAMAGED, "header is incomplete");
    for (int layout = 1; layout < 6; layout++) { /* older or newer, whatever else its header has */
        if (layout == SVI_STATE_LAYOUT)
            continue;
        forge_header(&f, layout, 0, "", layout < SVI_STATE_LAYOUT ? "secret" : NULL);
        assert_forgery(&f, SVS_UNAVAILABLE, "; this program reads layout ");
    }
    forge_header(&f, SVI_STATE_LAYOUT, -1, "", NULL);
    assert_forgery(&f, SVS_DAMAGED, "header is incomplete");
    forge_header(&f, SVI_STATE_LAYOUT, SVI_OBJECTS_MAX + 1, "", NULL);
    assert_forgery(&f, SVS_DAMAGED, "header is incomplete");
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", "settings");
    assert_forgery(&f, SVS_DAMAGED, "header is incomplete");
    forge_header(&f, SVI_STATE_LAYOUT, 0,
                 "a name that is longer than any stream's name could ever become, even today", NULL);
    assert_forgery(&f, SVS_DAMAGED, "header is incomplete");
    svi_bytes_append(&f.bytes, "\xc0", 1);
    assert_forgery(&f, SVS_DAMAGED, "the header is missing");
}

static void test_forged_sections(void **state) {
    struct forgery f = {0};
    (void)state;
    for (enum form form = UNNAMED; form <= MAP; form++) {
        forge_header(&f, SVI_STATE_LAYOUT, 1, "", NULL);
        forge_section(&f, "one", form);
        forge_end(&f, "end", 16, true);
        assert_forgery(&f, SVS_DAMAGED, "section");
    }
    forge_header(&f, SVI_STATE_LAYOUT, 1, "", NULL);
    forge_section(&f, "one", RIGHT);
    forge_end(&f, "end", 16, true);
    assert_forgery(&f, SVS_OK, NULL);
    forge_header(&f, SVI_STATE_LAYOUT, 2, "", NULL);
    forge_section(&f, "one", RIGHT);
    forge_section(&f, "one", RIGHT); /* its second piece */
    forge_end(&f, "end", 16, true);
    assert_forgery(&f, SVS_OK, NULL);
    forge_header(&f, SVI_STATE_LAYOUT, 3, "", NULL);
    forge_section(&f, "one", RIGHT);
    forge_section(&f, "two", RIGHT);
    forge_section(&f, "one", RIGHT);
    forge_end(&f, "end", 16, true);
    assert_forgery(&f, SVS_DAMAGED, "duplicate");
    forge_header(&f, SVI_STATE_LAYOUT, SVI_SECTIONS_MAX + 1, "", NULL);
    for (int i = 0; i <= SVI_SECTIONS_MAX; i++)
        forge_section(&f, (char[]){(char)('a' + i), 0}, RIGHT);
    forge_end(&f, "end", 16, true);
    assert_forgery(&f, SVS_DAMAGED, "too many");
    forge_header(&f, SVI_STATE_LAYOUT, 1, "", NULL);
    assert_forgery(&f, SVS_DAMAGED, "too early");
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", NULL);
    forge_end(&f, "ends", 16, true);
    assert_forgery(&f, SVS_DAMAGED, "the end has the wrong form");
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", NULL);
    forge_end(&f, "end", 15, true);
    assert_forgery(&f, SVS_DAMAGED, "the end has the wrong form");
    forge_header(&f, SVI_STATE_LAYOUT, 0, "", NULL);
    forge_end(&f, "end", 16, false);
    assert_forgery(&f, SVS_DAMAGED, "the hash of the state is wrong");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_round_trip),  TEST(test_large),          TEST(test_as_many_as_can_be),
        TEST(test_pieces),      TEST(test_hash),           TEST(test_flipped_and_cut),
        TEST(test_wrong_names), TEST(test_forged_headers), TEST(test_forged_sections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
