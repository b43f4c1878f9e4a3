/* The process that holds a partition of a log, as its adapter drives it: a real `svmstream run`, a log in
 * memory. Whatever is killed, each entry is learned once and in order, so the state is that of a log that was
 * read without any fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../adapters/common/partition_child.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "wire/envelope.h"
#include "wire/json_message.h"
#include "wire/pack.h"

#define ENTRIES  400
#define SAMPLES  7  /* of an entry, at most */
#define PATIENCE 60 /* seconds until a test gives up */
#define KILLS    12

struct log_entry {
    struct svi_bytes bytes;
    int count;
};

static struct log_entry entries[ENTRIES];
static char program[4200], folder[64];

/* What an adapter keeps: where it reads, and what was reported to it. */
struct reader {
    struct partition_child *child;
    bool bad; /* bad entries too */
    int64_t generation;
    int at; /* next entry */
    int64_t refused, refusals, scores, models, lost;
    char code[40];
    int saves;
    char hash[33], path[200], why[300];
    int64_t next;
    int place;
};

static void on_event(void *user, const struct subscription_event *e) {
    struct reader *r = user;
    r->scores += e->kind == SVI_TOPIC_SCORE;
    r->models += e->kind == SVI_TOPIC_MODEL;
    r->lost += e->lost;
}

static void on_refused(void *user, int64_t count, const char *code, const char *reason, const void *at,
                       size_t at_size) {
    struct reader *r = user;
    (void)at;
    assert_true(count > 0 && reason[0] && at_size > 0);
    r->refused += count;
    r->refusals++;
    snprintf(r->code, sizeof r->code, "%s", code);
}

static void on_saved(void *user, const struct partition_saved *saved, const char *why) {
    struct reader *r = user;
    r->saves++;
    snprintf(r->why, sizeof r->why, "%s", why ? why : "");
    if (!saved)
        return;
    snprintf(r->hash, sizeof r->hash, "%s", saved->hash);
    snprintf(r->path, sizeof r->path, "%s", saved->path);
    r->next = saved->next;
    r->place = saved->at_size > 0 ? atoi(saved->at) : 0;
}

static void on_log(void *user, const char *text) {
    (void)user;
    if (getenv("SHOW"))
        fprintf(stderr, "%s\n", text);
}

static const struct partition_calls calls = {on_event, on_refused, on_saved, on_log};

/* Each refusal counts in the state, and what is sent after one is refused, too, and sent again: how much
 * that is depends on the clock. So states are compared without these entries. */
static bool is_bad(int i) {
    return i % 50 == 41;
}

/* Entries that the stream refuses as a whole, so that no number is used up, and one with two bad elements. */
static bool put_bad(struct log_entry *e, int i) {
    static const char *const bad[] = {
        "[ {\"columns\":[\"a\",\"b\",\"q\"] , \"op\" : \"message\"}, {\"x\":[1,2,3],\"y\":0}]",
        "[{\"x\":[1,2,", "[{\"x\":[1,2,3],\"y\":0},{\"x\":[1]},{\"x\":[1,2]}]", "{\"x\":[1,2,3],\"y\":0}}"};
    if (!is_bad(i))
        return false;
    const char *text = bad[i / 50 % 4];
    assert_int_equal(svi_bytes_append(&e->bytes, text, strlen(text)), SVS_OK);
    return true;
}

static void put_json(struct log_entry *e, int i, bool single) {
    char text[200];
    assert_int_equal(svi_bytes_append(&e->bytes, " [", single ? 1 : 2), SVS_OK);
    for (int k = 0; k < e->count; k++) {
        const int n = snprintf(text, sizeof text,
                               "%s{\"x\":[%d,%d.5,%d],\"y\":%d,\"ts\":%d,\"id\":\"]\\\",\"}", k ? ",\n" : "",
                               (i * 31 + k * 7) % 19, (i + k) % 5, i % 3, (i + k) % 3 == 0, 1000000 + i);
        assert_int_equal(svi_bytes_append(&e->bytes, text, (size_t)n), SVS_OK);
    }
    assert_int_equal(svi_bytes_append(&e->bytes, "]", !single), SVS_OK);
}

/* The first entry names the columns of the stream in an element of its own. */
static void put_msgpack(struct log_entry *e, int i, bool single, struct svi_random *random) {
    static const char *const names[] = {"a", "b", "c"};
    struct svi_pack p;
    svi_pack_begin(&p, &e->bytes);
    if (!single)
        svi_pack_array(&p, (size_t)e->count + (i == 0));
    if (i == 0) {
        svi_pack_map(&p, 3);
        svi_put_text(&p, "op", "message");
        svi_put_int(&p, "n", 77); /* of another log */
        svi_pack_key(&p, "columns");
        svi_pack_names(&p, names, 3);
    }
    for (int k = 0; k < e->count; k++) {
        svi_pack_map(&p, 3);
        svi_put_array(&p, "x", 3);
        for (int j = 0; j < 3; j++)
            svi_pack_real(&p, svi_random_below(random, 1000) / 100.0);
        svi_put_int(&p, "y", (i + k) % 2);
        svi_put_int(&p, "ts", 1000000 + i);
    }
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

/* Entry i ends at place i + 1: in msgpack, and every fifth in JSON; every seventh is one sample. */
static int make_log(void **state) {
    struct svi_random random = {7};
    char link[4096];
    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        struct log_entry *e = &entries[i];
        const bool single = i % 7 == 3;
        e->count = single ? 1 : 1 + i % SAMPLES;
        if (put_bad(e, i))
            continue;
        if (i % 5 == 2)
            put_json(e, i, single);
        else
            put_msgpack(e, i, single, &random);
    }
    /* build/tests/unit/test_partition -> build/svmstream */
    const ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
    assert_true(n > 0);
    link[n] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(link, '/') = '\0';
    snprintf(program, sizeof program, "%s/svmstream", link);
    strcpy(folder, "/tmp/partition-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_log(void **state) {
    char command[200];
    (void)state;
    for (int i = 0; i < ENTRIES; i++)
        svi_bytes_clear(&entries[i].bytes);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- driving */

static const char *const arguments[] = {"-q",    "--publish.seconds", "0",    "--checkpoint.seconds",
                                        "0.3",   "--window",          "100",  "--method",
                                        "alsvm", "--refit",           "none", NULL};

static void begin(struct reader *r, void *context, int partition, const char *checkpoint, bool restart) {
    const struct partition_options o = {.program = program,
                                        .folder = folder,
                                        .partition = partition,
                                        .arguments = arguments,
                                        .checkpoint = checkpoint,
                                        .restart = restart,
                                        .topics = 1u << SVI_TOPIC_SCORE | 1u << SVI_TOPIC_MODEL,
                                        .unanswered = 20,
                                        .context = context,
                                        .calls = &calls,
                                        .user = r};
    svs_error err;
    *r = (struct reader){0};
    r->child = partition_child_new(&o, &err);
    if (!r->child)
        fail_msg("%s", err.text);
}

/* One round of an adapter's loop: up to entry `end` of the log. */
static void turn(struct reader *r, int end) {
    zmq_pollitem_t items[PARTITION_CHILD_ITEMS];
    const double wait = partition_child_wait(r->child);
    const void *at;
    size_t size;
    svs_error err;
    zmq_poll(items, partition_child_items(r->child, items), (long)ceil(1000 * fmin(wait, 0.05)));
    partition_child_turn(r->child);
    if (partition_child_place(r->child, &at, &size) != r->generation) {
        r->generation = partition_child_place(r->child, &at, &size);
        r->at = size > 0 ? atoi(at) : 0;
    }
    while (r->at < end && partition_child_takes(r->child)) {
        char place[20];
        const int n = snprintf(place, sizeof place, "%d ", r->at + 1);
        const struct log_entry *e = &entries[r->at++];
        if (is_bad(r->at - 1) && !r->bad)
            continue;
        const svs_code code =
            partition_child_send(r->child, e->bytes.data, e->bytes.size, place, (size_t)n, &err);
        assert_int_equal(code, SVS_OK);
    }
}

static bool all_answered(const struct reader *r, int end) {
    return r->at == end && partition_child_state(r->child) == PARTITION_READY &&
           partition_child_unanswered(r->child) == 0;
}

static void run_to(struct reader *r, int end) {
    const double due = svi_monotonic() + PATIENCE;
    do {
        turn(r, end);
        assert_int_not_equal(partition_child_state(r->child), PARTITION_DEAD);
        assert_true(svi_monotonic() < due);
    } while (!all_answered(r, end));
}

static void save(struct reader *r, int end) {
    const double due = svi_monotonic() + PATIENCE;
    const int saves = r->saves;
    partition_child_save(r->child);
    while (r->saves == saves) {
        turn(r, end);
        assert_true(svi_monotonic() < due);
    }
    assert_string_equal(r->why, "");
}

static void finish(struct reader *r, int end) {
    const double due = svi_monotonic() + PATIENCE;
    partition_child_end(r->child);
    while (partition_child_state(r->child) != PARTITION_DEAD) {
        turn(r, end);
        assert_true(svi_monotonic() < due);
    }
    assert_string_equal(partition_child_why(r->child), "");
    assert_int_equal(partition_child_pid(r->child), 0);
    partition_child_free(&r->child);
}

/* ---- the tests */

static char undisturbed[33];
static int64_t elements;

static int64_t count_elements(void) {
    int64_t count = 0;
    for (int i = 0; i < ENTRIES; i++)
        count += is_bad(i) ? 0 : entries[i].count;
    return count;
}

static void test_undisturbed(void **state) {
    void *context = zmq_ctx_new();
    struct reader r;
    (void)state;
    begin(&r, context, 0, NULL, false);
    run_to(&r, ENTRIES);
    save(&r, ENTRIES);
    elements = count_elements();
    assert_int_equal(r.place, ENTRIES);
    assert_int_equal(r.next, elements);
    assert_int_equal(partition_child_next(r.child), elements);
    assert_int_equal(r.refusals, 0);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.scores, elements); /* all events came before the save was reported */
    assert_true(r.models > 0);
    strcpy(undisturbed, r.hash);
    finish(&r, ENTRIES);
    zmq_ctx_term(context);
}

/* An entry that is refused as a whole uses up no number, so those after it move up; of another one two
 * elements are refused. Nothing else is lost. */
static void test_refused(void **state) {
    void *context = zmq_ctx_new();
    struct reader r;
    (void)state;
    begin(&r, context, 6, NULL, false);
    r.bad = true;
    run_to(&r, ENTRIES);
    save(&r, ENTRIES);
    const int64_t each = ENTRIES / 200; /* of the four kinds */
    assert_int_equal(r.refusals, 4 * each);
    assert_int_equal(r.refused, (1 + 1 + 2 + 1) * each);
    assert_int_equal(r.scores, elements + each);
    assert_int_equal(r.next, elements + 3 * each);
    finish(&r, ENTRIES);
    zmq_ctx_term(context);
}

static void test_killed(void **state) {
    void *context = zmq_ctx_new();
    struct svi_random random = {11};
    struct reader r;
    (void)state;
    begin(&r, context, 1, NULL, true);
    for (int i = 1; i <= KILLS; i++) {
        const int end = ENTRIES * i / (KILLS + 1), rounds = (int)svi_random_below(&random, 12);
        if (i % 3 == 0) {
            run_to(&r, end);
            partition_child_save(r.child);
        }
        /* At any moment: while it starts, recovers, answers, or saves; the last kill was noticed by then. */
        for (int k = 0;
             k < rounds || partition_child_pid(r.child) == 0 || partition_child_restarts(r.child) < i - 1;
             k++) {
            turn(&r, end);
            assert_int_not_equal(partition_child_state(r.child), PARTITION_DEAD);
        }
        kill((pid_t)partition_child_pid(r.child), SIGKILL);
    }
    run_to(&r, ENTRIES);
    save(&r, ENTRIES);
    assert_int_equal(partition_child_restarts(r.child), KILLS);
    assert_int_equal(r.next, elements);
    assert_string_equal(r.hash, undisturbed);
    finish(&r, ENTRIES);
    zmq_ctx_term(context);
}

/* Another folder goes on from the file, bit for bit; then the same folder once more from the file, although
 * it has a newer state. */
static void test_moved(void **state) {
    void *context = zmq_ctx_new();
    struct reader r, other;
    (void)state;
    begin(&r, context, 2, NULL, false);
    run_to(&r, ENTRIES / 2);
    save(&r, ENTRIES / 2);
    assert_int_equal(r.place, ENTRIES / 2);
    run_to(&r, ENTRIES / 2 + 30); /* which the file does not have */
    const uint64_t epoch = partition_child_epoch(r.child);
    for (int round = 0; round < 2; round++) {
        begin(&other, context, 3, r.path, false);
        run_to(&other, ENTRIES);
        save(&other, ENTRIES);
        assert_string_equal(other.hash, undisturbed);
        assert_int_equal(other.next, elements);
        assert_true(partition_child_epoch(other.child) == epoch);
        if (round == 0)
            finish(&other, ENTRIES);
    }
    partition_child_free(&other.child); /* kills it */
    finish(&r, ENTRIES / 2 + 30);
    zmq_ctx_term(context);
}

/* A process that ends is final unless it is to be restarted, and so are wrong arguments. */
static void test_dead(void **state) {
    void *context = zmq_ctx_new();
    const double due = svi_monotonic() + PATIENCE;
    struct reader r;
    (void)state;
    begin(&r, context, 4, NULL, false);
    run_to(&r, 10);
    kill((pid_t)partition_child_pid(r.child), SIGKILL);
    while (partition_child_state(r.child) != PARTITION_DEAD) {
        turn(&r, 20);
        assert_true(svi_monotonic() < due);
    }
    assert_non_null(strstr(partition_child_why(r.child), "signal 9"));
    assert_false(partition_child_takes(r.child));
    partition_child_free(&r.child);
    const char *const wrong[] = {"--no-such-setting", "1", NULL};
    const struct partition_options o = {.program = program,
                                        .folder = folder,
                                        .partition = 5,
                                        .arguments = wrong,
                                        .restart = true,
                                        .context = context,
                                        .calls = &calls,
                                        .user = &r};
    r.child = partition_child_new(&o, NULL);
    while (partition_child_state(r.child) != PARTITION_DEAD) {
        turn(&r, 0);
        assert_true(svi_monotonic() < due);
    }
    assert_non_null(strstr(partition_child_why(r.child), "code 2"));
    partition_child_free(&r.child);
    zmq_ctx_term(context);
}

/* ---- entries as messages */

/* The message of an entry as the stream reads it: the elements that the entry has, from our source. */
static void check_message(struct partition_entry *e, const char *at, int64_t n) {
    struct partition_entries q = {.next = n};
    struct svi_json_input json = {.looked = true};
    struct svi_bytes packed = {0};
    struct svi_envelope env;
    const uint8_t *place;
    size_t size;
    bool text;
    svs_error err;
    partition_entries_add(&q, e);
    assert_ptr_equal(partition_entries_ready(&q), e);
    svs_code code = SVS_OK;
    if (e->json)
        code = svi_json_message(&json, e->bytes, e->size, &packed, &err);
    if (code != SVS_OK)
        fail_msg("%s: %.*s", err.text, (int)e->size, (char *)e->bytes);
    code = e->json ? svi_envelope_read(&env, packed.data, packed.size)
                   : svi_envelope_read(&env, e->bytes, e->size);
    assert_int_equal(code, SVS_OK);
    assert_int_equal(env.left, e->count);
    assert_true(env.src_good && env.src_length == 3 && memcmp(env.src, PARTITION_SOURCE, 3) == 0);
    assert_true(env.n == n);
    assert_int_equal(svi_envelope_cursor(&env, &place, &size, &text, &err), SVS_OK);
    assert_true(size == strlen(at) && memcmp(place, at, size) == 0);
    svi_bytes_clear(&packed);
    svi_json_input_clear(&json);
    partition_entries_clear(&q, 0);
}

static void test_entries(void **state) {
    static const struct {
        const char *text;
        int count; /* 0: refused */
    } texts[] = {{"{\"x\":[1]}", 1},
                 {" \n[{\"x\":[1,2,{}]} , {\"y\":\"],[{\"}]", 2},
                 {"[{\"id\":\"\\\\\"},{\"id\":\"\\\",{\"}]", 2},
                 {"[{\"op\":\"message\",\"columns\":[\"a\"]},{\"x\":[1]}]", 1},
                 {"[{\"columns\":[\"op\"],\"op\"\n:\"message\"},{\"x\":[1]},{\"op\":\"label\"}]", 2},
                 {"[{\"x\":{\"op\":\"message\"}},{\"x\":[1]}]", 2},
                 {"[{\"op\":\"messages\",\"x\":[1]}]", 1},
                 {"[{\"x\":\"op\",\"y\":\"message\"}]", 1},
                 {"[{\"op\":\"message\"}]", 0},
                 {"[ ]", 0},
                 {"\x90", 0},
                 {"\x91\x81\xa2op\xa7message", 0},
                 {"", 0},
                 {"\xc0", 0},
                 {"7", 0}};
    static const char *const places[] = {"", "7", "a \"\\\x01 \xc3\xa9",
                                         "0123456789012345678901234567890123456789012345678901234567890123"};
    svs_error err;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t k = 0; k < 4; k++) {
            struct partition_entry *e = partition_entry_new(texts[i].text, strlen(texts[i].text), places[k],
                                                            strlen(places[k]), 0, &err);
            if (e && e->count != texts[i].count)
                fail_msg("%s has %d elements", texts[i].text, (int)e->count);
            if ((e != NULL) != (texts[i].count > 0))
                fail_msg("%s: taken or not", texts[i].text);
            if (e)
                check_message(e, places[k], k == 3 ? INT64_MAX / 2 : (int64_t)k);
        }
    /* Every beginning of a message in msgpack is refused: none is a message. */
    for (int i = 0; i < ENTRIES; i++) {
        const struct svi_bytes *b = &entries[i].bytes;
        for (size_t size = 0; !is_bad(i) && size <= b->size; size += size + 40 < b->size && i > 20 ? 7 : 1) {
            struct partition_entry *e = partition_entry_new(b->data, size, "9", 1, 0, &err);
            const bool json = b->data[0] == ' ';
            if (size == b->size || !json)
                assert_true((e != NULL) == (size == b->size));
            if (e && size == b->size)
                check_message(e, "9", i);
            else
                svi_free(e);
        }
        assert_null(partition_entry_new(b->data, b->size, "9", 1, (int64_t)b->size, &err));
        assert_true(is_bad(i) || err.code == SVS_TOO_LARGE);
    }
    assert_null(partition_entry_new("{}", 2, places[3], 65, 0, &err));
    assert_int_equal(err.code, SVS_BAD_CURSOR);
    assert_null(partition_entry_new("{}", 2, "\xff", 1, 0, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries), cmocka_unit_test(test_undisturbed),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_killed),
                                       cmocka_unit_test(test_moved),   cmocka_unit_test(test_dead)};
    return cmocka_run_group_tests(tests, make_log, drop_log);
}
