/* The segments' secrets: what a producer sends never passes for a record, wherever a crash tears the journal,
 * and neither a damaged header nor a missing secret makes a journal shorter without a word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/kept.h"
#include "store/journal_internal.h"

#define SEGMENTS 3

static struct kept k;
static struct everything all;
static struct content file[SEGMENTS];
static uint64_t first[SEGMENTS], end; /* of each segment; of the journal */
static struct svi_position at[100];   /* of each record */

static int setup(void **state) {
    uint64_t *numbers;
    int count;
    (void)state;
    kept_open(&k);
    svi_journal *j = kept_journal(&k, 700, SVI_FSYNC_INTERVAL, NULL);
    do {
        end = svi_journal_position(j).number;
        kept_append(j, end, record_size(end));
        at[end + 1] = svi_journal_position(j);
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
    } while (kept_count(&k, "journal") < SEGMENTS || at[end + 1].offset < 600);
    end++;
    svi_journal_free(&j);
    assert_int_equal(svi_state_dir_list(&k.folder, "journal", &numbers, &count, NULL), SVS_OK);
    assert_int_equal(count, SEGMENTS);
    for (int s = 0; s < SEGMENTS; s++) {
        first[s] = numbers[s];
        content_read(&file[s], &k, "journal", numbers[s]);
    }
    svi_free(numbers);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int s = 0; s < SEGMENTS; s++)
        free(file[s].bytes);
    kept_remove(&k);
    return 0;
}

static void assert_refused(void) {
    assert_int_equal(all.how, SVI_JOURNAL_FAIL);
    assert_int_equal(all.error.code, SVS_DAMAGED);
    assert_non_null(strstr(all.error.text, "--accept-loss"));
}

static uint64_t secret_of(const struct content *segment) {
    struct svi_segment_header h;
    assert_int_equal(svi_segment_header_read(&h, segment->bytes, segment->size), SVI_HEADER_SOUND);
    return h.secret;
}

/* A sample that holds whole records, in a record that a crash has torn: whatever a producer can know of the
 * journal, they are not taken for records. */
static void test_forged_record(void **state) {
    enum { COUNT = 3 };
    uint8_t payload[COUNT * (8 + 43) + 200];
    uint64_t chain = 0;
    (void)state;
    for (int cut = 0; cut < 200; cut += 7) {
        struct content c;
        kept_empty(&k);
        svi_journal *j = kept_journal(&k, 4096, SVI_FSYNC_NEVER, NULL);
        kept_append_to(j, 3, 1);
        const struct svi_position torn = svi_journal_position(j);
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct svi_record forged = {.number = 4 + i, .kind = 100, .durable = 4 + i};
            const uint64_t before = htobe64(chain);
            memcpy(payload + i * 51, &before, 8);
            svi_record_write(payload + i * 51 + 8, &forged, 0, &chain);
        }
        assert_int_equal(svi_journal_append(j, 1, 0, payload, sizeof payload, NULL), SVS_OK);
        assert_int_equal(svi_journal_commit(j, NULL), SVS_OK);
        svi_journal_free(&j);
        content_read(&c, &k, "journal", 0);
        content_write(&c, c.size - 1 - (size_t)cut);
        for (int accept_loss = 0; accept_loss < 2; accept_loss++) {
            everything_read(&all, &k, NULL, accept_loss, NULL);
            assert_int_equal(all.how, SVI_JOURNAL_END);
            assert_prefix(&all, 3);
            assert_position(all.found.end, torn);
            assert_int_equal(all.found.torn, c.size - 1 - (size_t)cut - torn.offset);
            assert_false(all.found.damages);
        }
        free(c.bytes);
    }
}

/* No two segments have one secret, and the same life twice has others; it goes on where the journal does. */
static void test_secrets(void **state) {
    uint64_t secret[2 * SEGMENTS];
    (void)state;
    for (int life = 0; life < 2; life++) {
        for (int s = 0; s < SEGMENTS; s++) {
            struct content *c = &file[s];
            secret[life * SEGMENTS + s] = secret_of(c);
            assert_int_equal(at[first[s] + 1].secret, secret_of(c));
            for (int i = 0; i < life * SEGMENTS + s; i++)
                assert_int_not_equal(secret[i], secret_of(c));
        }
        if (life == 0) {
            teardown(state);
            setup(state);
        }
    }
}

/* Both copies of the last segment's secret are gone: nothing of it can be checked, which is damage, not an
 * end that a crash has torn. With a place in it that a checkpoint knows of it is needed no more. */
static void test_secrets_gone(void **state) {
    struct content *c = &file[SEGMENTS - 1];
    const uint64_t last = first[SEGMENTS - 1], secret = htobe64(secret_of(c));
    (void)state;
    for (uint8_t *p = c->bytes; (p = memmem(p, c->size - (size_t)(p - c->bytes), &secret, 8));)
        *p ^= 1;
    assert_true(c->size > SVI_HEADER_MAX);
    content_write(c, c->size);
    everything_read(&all, &k, NULL, false, NULL);
    assert_refused();
    everything_read(&all, &k, NULL, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_prefix(&all, last);
    everything_read(&all, &k, &at[last + 1], false, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, end - last - 1);
}

/* In the segment's place there is another one, which is sound in itself. */
static void test_another_segment(void **state) {
    struct svi_position from = at[first[SEGMENTS - 1] + 1];
    (void)state;
    from.secret ^= 1;
    everything_read(&all, &k, &from, false, NULL);
    assert_refused();
    everything_read(&all, &k, &from, true, NULL);
    assert_int_equal(all.how, SVI_JOURNAL_END);
    assert_int_equal(all.count, 0);
    assert_true(all.found.lost);
    assert_int_equal(all.found.end.offset, 0);
}

/* A segment of another layout, sound in itself, is refused as such: nothing of it is cut off or passed over.
 */
static void test_other_layout(void **state) {
    struct svi_bytes head = {0};
    struct svi_pack p;
    struct content c;
    char name[SVI_FILE_NAME];
    (void)state;
    for (uint64_t layout = SVI_STATE_LAYOUT - 1; layout <= SVI_STATE_LAYOUT + 1; layout += 2) {
        kept_empty(&k);
        head.size = 0;
        svi_pack_begin(&p, &head);
        svi_pack_map(&p, 6);
        svi_put_text(&p, "format", "svmstream-journal");
        svi_put_uint(&p, "v", layout);
        svi_put_word(&p, "epoch", KEPT_EPOCH);
        svi_put_word(&p, "first", 0);
        svi_put_word(&p, "chain", 0);
        svi_pack_key(&p, "check");
        svi_check_append(&p, 0, 0);
        assert_int_equal(svi_pack_end(&p), SVS_OK);
        c = (struct content){.bytes = head.data, .size = head.size};
        snprintf(c.path, sizeof c.path, "%s/%s", k.path, svi_state_dir_name(name, "journal", 0));
        content_write(&c, c.size);
        for (int accept_loss = 0; accept_loss < 2; accept_loss++) {
            everything_read(&all, &k, NULL, accept_loss, NULL);
            assert_int_equal(all.how, SVI_JOURNAL_FAIL);
            assert_int_equal(all.error.code, SVS_UNAVAILABLE);
            assert_non_null(strstr(all.error.text, "; this program reads layout "));
        }
    }
    svi_bytes_clear(&head);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_forged_record), TEST(test_secrets), TEST(test_secrets_gone),
                                       TEST(test_another_segment), TEST(test_other_layout)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
