/* The decoder against msgpack-c, on random frames that are mostly valid and on the same frames damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/schema.h"
#include "support/quick.h"
#include "wire/oracle.h"

#define ROUNDS often(40000, 8000)

static uint64_t draw(uint64_t *r) {
    *r ^= *r << 13;
    *r ^= *r >> 7;
    *r ^= *r << 17;
    return *r;
}

static uint32_t below(uint64_t *r, uint32_t n) {
    return (uint32_t)(draw(r) >> 33) % n;
}

static double random_real(uint64_t *r) {
    uint64_t bits = draw(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return below(r, 3) ? (double)below(r, 1000) / 8 - 50
                       : v; /* any bits now and then: NaN and infinities too */
}

static void pack_number(msgpack_packer *p, uint64_t *r) {
    switch (below(r, 12)) {
    case 0:
        msgpack_pack_int64(p, (int64_t)(draw(r) >> below(r, 64)));
        break;
    case 1:
        msgpack_pack_int64(p, -(int64_t)(draw(r) >> (1 + below(r, 63))));
        break;
    case 2:
        msgpack_pack_uint64(p, draw(r));
        break;
    case 3:
        msgpack_pack_float(p, (float)below(r, 100) / 3);
        break;
    case 4:
        msgpack_pack_nil(p);
        break;
    default:
        msgpack_pack_double(p, random_real(r));
    }
}

static void pack_text(msgpack_packer *p, const char *text) {
    msgpack_pack_str_with_body(p, text, strlen(text));
}

static void pack_packed(msgpack_packer *p, uint64_t *r, int8_t type) {
    double v[20];
    float f[20];
    size_t n = 1 + below(r, 19);
    for (size_t i = 0; i < n; i++) {
        v[i] = random_real(r);
        f[i] = (float)below(r, 1000) / 7;
    }
    if (type == 2)
        msgpack_pack_ext_with_body(p, v, n * sizeof *v, type);
    else
        msgpack_pack_ext_with_body(p, f, n * sizeof *f, type);
}

static void pack_map(msgpack_packer *p, uint64_t *r, bool named) {
    char name[3] = "n?";
    uint32_t n = below(r, 6), column = below(r, 4);
    msgpack_pack_map(p, n);
    for (uint32_t i = 0; i < n; i++, column += 1 + below(r, 3)) {
        name[1] = (char)('a' + column);
        if (named)
            pack_text(p, name);
        else
            msgpack_pack_int(p, (int)column);
        pack_number(p, r);
    }
}

static void pack_x(msgpack_packer *p, uint64_t *r, uint32_t form) {
    uint32_t n = below(r, 20);
    pack_text(p, "x");
    switch (form) {
    case 0:
        msgpack_pack_array(p, n);
        while (n-- > 0)
            pack_number(p, r);
        break;
    case 1:
    case 2:
        pack_packed(p, r, (int8_t)form);
        break;
    default:
        pack_map(p, r, form == 3);
    }
}

static void pack_other(msgpack_packer *p, uint64_t *r) {
    static const char *const keys[] = {"y", "id", "ts", "w", "stream", "src", "n", "op", "unknown", "z"};
    static const char *const ops[] = {"learn", "label", "forget", "spam"};
    pack_text(p, keys[below(r, 10)]);
    uint32_t pick = below(r, 5);
    if (pick == 0)
        pack_text(p, ops[below(r, 4)]);
    else if (pick == 1)
        msgpack_pack_true(p);
    else
        pack_number(p, r);
}

static void pack_sample(msgpack_packer *p, uint64_t *r) {
    uint32_t others = below(r, 4);
    msgpack_pack_map(p, others + 1);
    pack_x(p, r, below(r, 5));
    while (others-- > 0)
        pack_other(p, r);
}

static void pack_frame(msgpack_sbuffer *b, uint64_t *r) {
    msgpack_packer p;
    msgpack_packer_init(&p, b, msgpack_sbuffer_write);
    uint32_t n = below(r, 3) ? 1 : below(r, 20);
    if (n != 1)
        msgpack_pack_array(&p, n);
    while (n-- > 0)
        pack_sample(&p, r);
}

static void check(const uint8_t *bytes, size_t length, int *taken) {
    struct svi_schema s;
    assert_int_equal(schema_open(&s, 24, NULL, NULL), SVS_OK);
    uint8_t *copy = malloc(length ? length : 1); /* exactly so long: a sanitizer sees a byte too far */
    assert_non_null(copy);
    memcpy(copy, bytes, length);
    const char *problem = oracle_form(copy, length);
    if (!problem)
        problem = oracle_values(copy, length, &s, taken);
    free(copy);
    svi_schema_clear(&s);
    if (problem)
        fail_msg("%s", problem);
}

static void test_random_frames(void **state) {
    (void)state;
    uint64_t r = 88172645463325252u;
    int taken = 0;
    for (int round = 0; round < ROUNDS; round++) {
        msgpack_sbuffer b;
        msgpack_sbuffer_init(&b);
        pack_frame(&b, &r);
        check((uint8_t *)b.data, b.size, &taken);
        msgpack_sbuffer_destroy(&b);
    }
    assert_true(taken > ROUNDS / 10); /* or nothing was compared */
}

static void damage(uint8_t *bytes, size_t *length, uint64_t *r) {
    uint32_t times = 1 + below(r, 3);
    while (times-- > 0 && *length > 0) {
        uint32_t at = below(r, (uint32_t)*length);
        if (below(r, 4) == 0)
            *length = at;
        else
            bytes[at] = (uint8_t)draw(r);
    }
}

static void test_damaged_frames(void **state) {
    (void)state;
    uint64_t r = 1234567;
    for (int round = 0; round < ROUNDS; round++) {
        msgpack_sbuffer b;
        msgpack_sbuffer_init(&b);
        pack_frame(&b, &r);
        size_t length = b.size;
        damage((uint8_t *)b.data, &length, &r);
        check((uint8_t *)b.data, length, NULL);
        msgpack_sbuffer_destroy(&b);
    }
}

static void test_noise(void **state) {
    (void)state;
    uint64_t r = 99;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t bytes[24];
        size_t length = below(&r, sizeof bytes + 1);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)(below(&r, 4) ? draw(&r) : 0x80 + below(&r, 0x60));
        check(bytes, length, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_frames),
        cmocka_unit_test(test_damaged_frames),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
