/* Sums records on the wire: what was encoded comes back bit for bit, and anything that is damaged is refused
 * with a text, or taken as a record that encodes and decodes to itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sums_record.h"

#include "base/alloc.h"
#include "merge/sums.h"
#include "wire/cursor.h"

static void assert_doubles(const double *a, const double *b, size_t n) {
    assert_memory_equal(a, b, n * sizeof *a);
}

static void assert_same(const struct svi_sums *a, const struct svi_sums *b) {
    const struct svi_window_sums *s = &a->sums, *t = &b->sums;
    const size_t d = (size_t)s->d, k = (size_t)s->classes;
    assert_string_equal(a->part, b->part);
    assert_true(a->part_epoch == b->part_epoch && a->schema_hash == b->schema_hash);
    assert_true(a->offset == b->offset && a->window == b->window && a->C == b->C);
    assert_true(a->task == b->task && a->kind == b->kind && a->scale == b->scale);
    assert_true(a->schema_size == b->schema_size && a->prior_size == b->prior_size);
    assert_true(!a->schema == !b->schema && !a->prior == !b->prior);
    if (a->schema)
        assert_memory_equal(a->schema, b->schema, a->schema_size);
    if (a->prior)
        assert_memory_equal(a->prior, b->prior, a->prior_size);
    assert_true(s->d == t->d && s->classes == t->classes && s->n == t->n);
    assert_true(s->weight == t->weight && s->target_weight == t->target_weight);
    assert_true(s->target_square == t->target_square || (isnan(s->target_square) && isnan(t->target_square)));
    assert_true(!a->features == !b->features && a->unscaled_count == b->unscaled_count);
    assert_memory_equal(a->unscaled, b->unscaled, (size_t)a->unscaled_count * sizeof *a->unscaled);
    for (int j = 0; a->features && j < s->d; j++)
        assert_string_equal(a->features[j], b->features[j]);
    for (int c = 0; c < s->classes; c++)
        assert_true(svs_value_equal(a->classes[c], b->classes[c]));
    assert_doubles(s->center, t->center, d);
    assert_doubles(s->sum, t->sum, d);
    assert_doubles(s->square, t->square, svi_sums_packed(s->d));
    assert_doubles(s->class_weight, t->class_weight, k);
    assert_doubles(s->class_sum, t->class_sum, k * d);
    assert_doubles(s->target_sum, t->target_sum, d);
}

static void test_round_trip(void **state) {
    struct svi_random random = {1};
    struct svi_sums r = {0}, got = {0};
    struct record_texts texts;
    struct svi_bytes b = {0};
    svs_error err = {0};
    (void)state;
    for (int i = 0; i < 500; i++) {
        record_random(&r, &texts, &random);
        b.size = 0;
        assert_int_equal(svi_sums_encode(&r, &b), SVS_OK);
        if (svi_sums_decode(&got, b.data, b.size, &err) != SVS_OK)
            fail_msg("%s", err.text);
        assert_same(&r, &got);
        assert_true(got.schema_hash == svi_sums_schema_hash(&got));
    }
    svi_sums_clear(&r);
    svi_sums_clear(&got);
    svi_bytes_clear(&b);
}

/* Bytes in a block of exactly their size, so that a sanitizer sees a read beyond them. */
static svs_code decode_exactly(struct svi_sums *got, const uint8_t *bytes, size_t size, svs_error *err) {
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    *err = (svs_error){0};
    const svs_code code = svi_sums_decode(got, copy, size, err);
    free(copy);
    if (code != SVS_OK)
        assert_true(err->code == code && err->text[0] && !got->text && !got->sums.block);
    return code;
}

/* What was taken is a record like any other. */
static void use(struct svi_sums *got) {
    struct svi_sums again = {0};
    struct svi_bytes b = {0};
    svs_error err = {0};
    got->schema_hash = svi_sums_schema_hash(got); /* encoding computes it */
    assert_int_equal(svi_sums_encode(got, &b), SVS_OK);
    if (svi_sums_decode(&again, b.data, b.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_same(got, &again);
    svi_sums_clear(&again);
    svi_bytes_clear(&b);
}

static void test_each_truncation_and_byte(void **state) {
    struct svi_random random = {7};
    struct svi_sums r = {0}, got = {0};
    struct record_texts texts;
    struct svi_bytes b = {0};
    svs_error err;
    int refused = 0, taken = 0;
    (void)state;
    for (int i = 0; i < 12; i++) {
        record_random(&r, &texts, &random);
        b.size = 0;
        assert_int_equal(svi_sums_encode(&r, &b), SVS_OK);
        for (size_t n = 0; n < b.size; n++)
            assert_int_not_equal(decode_exactly(&got, b.data, n, &err), SVS_OK);
        for (size_t n = 0; n < b.size; n++)
            for (int bit = 0; bit < 8; bit++) {
                b.data[n] ^= (uint8_t)(1 << bit);
                const bool ok = decode_exactly(&got, b.data, b.size, &err) == SVS_OK;
                if (ok)
                    use(&got);
                taken += ok;
                refused += !ok;
                b.data[n] ^= (uint8_t)(1 << bit);
            }
    }
    assert_true(refused > 1000 && taken > 1000);
    svi_sums_clear(&r);
    svi_sums_clear(&got);
    svi_bytes_clear(&b);
}

/* One key given another value, left out, or given twice. `value` NULL: left out. */
static void put_with(struct svi_bytes *out, const struct svi_bytes *record, const char *key,
                     const void *value, size_t size, bool twice) {
    struct svi_pack p;
    struct svi_item map, name;
    const uint8_t *end = record->data + record->size, *at = svi_item_read(record->data, &map);
    out->size = 0;
    svi_pack_begin(&p, out);
    const struct svi_open_map open = svi_pack_open(&p);
    for (uint32_t i = 0; i < map.length; i++) {
        const uint8_t *from = at;
        at = svi_item_read(at, &name);
        const uint8_t *content = at;
        assert_int_equal(svi_walk(&at, end, SVI_DEPTH_MAX), SVS_OK);
        const bool it = strlen(key) == name.length && memcmp(key, name.body, name.length) == 0;
        for (int copies = it && twice ? 2 : it && !value ? 0 : 1; copies > 0; copies--) {
            svi_pack_pairs(&p, from, (size_t)(content - from), 1);
            if (it && value)
                svi_pack_raw(&p, value, size);
            else
                svi_pack_raw(&p, content, (size_t)(at - content));
        }
    }
    svi_pack_close(&p, open);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

/* Keys of a record, and those that may be absent. */
static const char *const keys[] = {"part",        "part_epoch",
                                   "offset",      "n",
                                   "task",        "kind",
                                   "window",      "C",
                                   "scale",       "d",
                                   "features",    "unscaled",
                                   "schema_hash", "schema",
                                   "center",      "weight",
                                   "sum",         "square",
                                   "classes",     "class_weight",
                                   "class_sum",   "target_weight",
                                   "target_sum",  "target_square",
                                   "prior"};

static bool may_be_absent(const char *key) {
    return strcmp(key, "schema") == 0 || strcmp(key, "prior") == 0 || strcmp(key, "unscaled") == 0 ||
           strcmp(key, "target_square") == 0;
}

static void named_record(struct svi_sums *r, struct record_texts *texts, svs_task task,
                         struct svi_bytes *out) {
    struct svi_random random = {3};
    do
        record_random(r, texts, &random);
    while (r->task != task || r->kind != SVI_SUMS_NAMED || r->sums.d < 3 || !r->schema || !r->prior ||
           r->unscaled_count < 2 || isnan(r->sums.target_square) ||
           (task == SVS_CLASSIFY && r->sums.classes < 3));
    out->size = 0;
    assert_int_equal(svi_sums_encode(r, out), SVS_OK);
}

static void test_each_key(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
    } values[] = {{"\xc0", 1},
                  {"\xc3", 1},
                  {"\xff", 1},
                  {"\xa1x", 2},
                  {"\x91\x07", 2},
                  {"\x81\xa1x\x07", 4},
                  {"\xc7\x00\x02", 3},
                  {"\xd7\x01\0\0\0\0\0\0\0\0", 10},
                  {"\xd7\x02\0\0\0\0\0\0\xf8\x7f", 10},
                  {"\xcb\x7f\xf0\0\0\0\0\0\0", 9},
                  {"\xc4\x00", 2},
                  {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9},
                  {"\xcb\xbf\xf0\0\0\0\0\0\0", 9}};
    struct svi_sums r = {0}, got = {0};
    struct record_texts texts;
    struct svi_bytes record = {0}, other = {0};
    svs_error err;
    (void)state;
    for (int task = 0; task < 2; task++) {
        named_record(&r, &texts, (svs_task)task, &record);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const bool present = task == SVS_REGRESS || strncmp(keys[k], "target", 6) != 0;
            put_with(&other, &record, keys[k], NULL, 0, false);
            assert_int_equal(decode_exactly(&got, other.data, other.size, &err) == SVS_OK,
                             may_be_absent(keys[k]) || !present);
            put_with(&other, &record, keys[k], NULL, 0, true);
            assert_int_equal(decode_exactly(&got, other.data, other.size, &err),
                             present ? SVS_DUPLICATE_KEY : SVS_OK);
            /* The text names the key, unless it is a size that arrays contradict. */
            int refused = 0;
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                put_with(&other, &record, keys[k], values[v].bytes, values[v].size, false);
                if (decode_exactly(&got, other.data, other.size, &err) == SVS_OK)
                    use(&got);
                else if (++refused && err.code == SVS_WRONG_TYPE && !strstr(err.text, keys[k]) &&
                         strcmp(keys[k], "d") != 0 && strcmp(keys[k], "classes") != 0)
                    fail_msg("\"%s\" does not name %s", err.text, keys[k]);
            }
            assert_true(!present || refused >= 7);
        }
    }
    svi_sums_clear(&r);
    svi_sums_clear(&got);
    svi_bytes_clear(&record);
    svi_bytes_clear(&other);
}

/* Sizes that a header may claim and the payload does not have: refused before anything is allocated. */
static void test_claims(void **state) {
    static const struct {
        const char *key, *value;
        size_t size;
        svs_code code;
    } claims[] = {{"d", "\xce\x7f\xff\xff\xff", 5, SVS_LIMIT},
                  {"d", "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9, SVS_LIMIT},
                  {"d", "\xcd\x7f\xff", 3, SVS_WRONG_TYPE},
                  {"part", "\xa0", 1, SVS_WRONG_TYPE},
                  {"part", "\xa2\xc3\x28", 3, SVS_WRONG_TYPE},
                  {"classes", "\x93\x01\x02\x01", 4, SVS_WRONG_TYPE},
                  {"classes", "\xdd\xff\xff\xff\xff", 5, SVS_TRUNCATED},
                  {"unscaled", "\x92\x01\x01", 3, SVS_WRONG_TYPE},
                  {"unscaled", "\x91\x09", 2, SVS_WRONG_TYPE},
                  {"unscaled", "\x91\xff", 2, SVS_WRONG_TYPE},
                  {"features", "\xdd\x00\x00\x80\x00", 5, SVS_TRUNCATED}};
    struct svi_sums r = {0}, got = {0};
    struct record_texts texts;
    struct svi_bytes record = {0}, other = {0};
    svs_error err;
    (void)state;
    named_record(&r, &texts, SVS_CLASSIFY, &record);
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        put_with(&other, &record, claims[i].key, claims[i].value, claims[i].size, false);
        assert_int_equal(decode_exactly(&got, other.data, other.size, &err), claims[i].code);
    }
    /* A name twice: the first two features are the same. */
    texts.names[1] = texts.names[0];
    other.size = 0;
    assert_int_equal(svi_sums_encode(&r, &other), SVS_OK);
    assert_int_equal(decode_exactly(&got, other.data, other.size, &err), SVS_WRONG_TYPE);
    assert_non_null(strstr(err.text, "twice"));
    svi_sums_clear(&r);
    svi_sums_clear(&got);
    svi_bytes_clear(&record);
    svi_bytes_clear(&other);
}

static void test_order_and_hash(void **state) {
    const char *ab[] = {"a", "b"}, *ba[] = {"b", "a"}, *ac[] = {"a", "c"};
    struct svi_sums r = {.features = ab};
    (void)state;
    r.sums.d = 2;
    const uint64_t hash = svi_sums_schema_hash(&r);
    r.features = ba;
    assert_true(svi_sums_schema_hash(&r) == hash);
    r.features = ac;
    assert_true(svi_sums_schema_hash(&r) != hash);
    r.features = NULL;
    const uint64_t unnamed = svi_sums_schema_hash(&r);
    r.sums.d = 3;
    assert_true(svi_sums_schema_hash(&r) != unnamed && unnamed != hash);
    r.kind = SVI_SUMS_NAMED;
    r.features = ab;
    r.sums.d = 2;
    const uint64_t named = svi_sums_schema_hash(&r);
    r.features = ac;
    assert_true(svi_sums_schema_hash(&r) == named);
    r.task = SVS_REGRESS;
    assert_true(svi_sums_schema_hash(&r) != named);
    assert_true(svi_sums_newer(2, 1, 1, 9) && !svi_sums_newer(1, 9, 2, 1));
    assert_true(svi_sums_newer(1, 9, 1, 8) && !svi_sums_newer(1, 9, 1, 9) && !svi_sums_newer(1, 8, 1, 9));
    assert_true(svi_sums_newer(UINT64_MAX, 0, 1, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_each_truncation_and_byte),
                                       cmocka_unit_test(test_each_key), cmocka_unit_test(test_claims),
                                       cmocka_unit_test(test_order_and_hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
