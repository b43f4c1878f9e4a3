/* The alerts that are kept against a plain list of the same events: every answer, whatever since, key and
 * limit, after limits that change and archives at any place; and archives with damaged bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "fleet/kept_alerts.h"
#include "support/archived.h"

#define EVENTS 4000
#define VALUES 5

/* One event as the test remembers it: its bytes without and with its history. */
struct given {
    struct svi_bytes plain, whole;
    int key;    /* k0 to k4; -1: no key */
    int others; /* keys k0 to ... that it names; 0: none */
};

struct walk {
    struct given given[EVENTS];
    int count, histories;
    int64_t keep;
    int oldest; /* number of the oldest event that is kept */
    svi_kept_alerts *k;
    struct svi_random random;
};

static int draw(struct walk *w, int below) {
    return (int)(svi_random_next(&w->random) % (uint64_t)below);
}

static void walk_trim(struct walk *w) {
    const int oldest = w->count - (int)(w->keep < w->count ? w->keep : w->count) + 1;
    w->oldest = oldest > w->oldest ? oldest : w->oldest;
}

static void walk_add(struct walk *w) {
    static const char *const names[] = {"k0", "k1", "k2", "k3", "k4"}, *const states[] = {"open", "close"};
    struct given *g = &w->given[w->count++];
    double times[3][VALUES], values[3][VALUES];
    struct svi_contribution top[3] = {{.feature = "temp"}, {.column = 7}, {.feature = "flow"}};
    struct svi_feature_history history[3];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < VALUES; j++) {
            times[i][j] = 1700000000 + j;
            values[i][j] = j == 2 ? NAN : draw(w, 1000) + (draw(w, 2) ? 1e9 : 0);
        }
        history[i] = (struct svi_feature_history){times[i], values[i], 1 + draw(w, VALUES)};
    }
    g->key = draw(w, 6) - 1;
    g->others = draw(w, 3) ? 0 : 1 + draw(w, 5);
    struct svi_event e = {.topic = SVI_TOPIC_ALERT,
                          .stream = "plant",
                          .epoch = 5,
                          .seq = (uint64_t)w->count,
                          .key = g->key < 0 ? NULL : names[g->key],
                          .ts = w->count};
    e.as.alert = (struct svi_alert_event){.kind = "rule",
                                          .rule = "limits",
                                          .severity = "notice",
                                          .alert = 1 + draw(w, 1000),
                                          .state = states[draw(w, 2)],
                                          .id = svs_none(),
                                          .top = top,
                                          .count = 3,
                                          .text = draw(w, 2) ? "plant temp 93 above its limit 90" : "",
                                          .keys = g->others,
                                          .named = names,
                                          .alerts = (const int64_t[]){1, 2, 3, 4, 5},
                                          .named_count = g->others,
                                          .history = history,
                                          .history_count = draw(w, 2) ? 0 : 1 + draw(w, 3)};
    const int histories = e.as.alert.history_count;
    assert_int_equal(svi_kept_alerts_add(w->k, &e), SVS_OK);
    assert_int_equal(e.as.alert.number, w->count);
    assert_int_equal(e.as.alert.history_count, histories);
    e.as.alert.history_count = 0;
    assert_int_equal(svi_event_encode(&e, &g->plain), SVS_OK);
    e.as.alert.history_count = histories;
    if (histories > 0)
        assert_int_equal(svi_event_encode(&e, &g->whole), SVS_OK);
    /* What is published is what is kept. */
    const struct svi_bytes *sent = histories > 0 ? &g->whole : &g->plain;
    assert_true(w->keep == 0 ? e.payload == NULL : archived_same(e.payload, sent));
    walk_trim(w);
}

/* Is the history of event i (from 0) kept: is it among the newest, of those that were kept at all? */
static bool walk_has_history(const struct walk *w, int i) {
    int newer = 0;
    for (int j = i + 1; j < w->count; j++)
        newer += w->given[j].whole.size > 0;
    return w->given[i].whole.size > 0 && newer < SVI_KEPT_HISTORIES;
}

static bool walk_concerns(const struct given *g, int key) {
    return key < 0 || g->key == key || key < g->others;
}

/* Answers by going over all events. */
static void walk_answer(const struct walk *w, uint64_t since, int key, int limit, struct svi_pack *p) {
    int chosen[EVENTS], count = 0, next = w->count, from = since < (uint64_t)w->count ? (int)since : w->count;
    bool more = false;
    for (int i = from; i < w->count && !more; i++) {
        if (i + 1 < w->oldest || !walk_concerns(&w->given[i], key))
            continue;
        more = count == limit;
        if (more)
            next = i;
        else
            chosen[count++] = i;
    }
    svi_put_int(p, "first", w->oldest);
    svi_put_int(p, "last", w->count);
    svi_put_array(p, "alerts", (size_t)count);
    for (int i = 0; i < count; i++) {
        const struct given *g = &w->given[chosen[i]];
        const struct svi_bytes *b = walk_has_history(w, chosen[i]) ? &g->whole : &g->plain;
        svi_pack_raw(p, b->data, b->size);
    }
    svi_put_int(p, "next", next);
    svi_put_bool(p, "more", more);
    svi_put_int(p, "lost", w->oldest - 1 > from ? w->oldest - 1 - from : 0);
}

static void walk_ask(struct walk *w) {
    struct svi_bytes found = {0}, expected = {0};
    struct svi_pack p;
    char name[8];
    const int key = draw(w, 7) - 1, limit = draw(w, 4) ? 1 + draw(w, 40) : draw(w, 2) * EVENTS;
    const uint64_t since = draw(w, 5) ? (uint64_t)draw(w, w->count + 10) : draw(w, 2) ? 0 : UINT64_MAX;
    snprintf(name, sizeof name, "k%d", key);
    svi_pack_begin(&p, &found);
    const struct svi_open_map a = svi_pack_open(&p);
    svi_kept_alerts_put(w->k, &(struct svi_alert_query){since, key < 0 ? NULL : name, limit}, &p);
    svi_pack_close(&p, a);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    svi_pack_begin(&p, &expected);
    const struct svi_open_map b = svi_pack_open(&p);
    walk_answer(w, since, key, limit, &p);
    svi_pack_close(&p, b);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    if (!archived_same(&found, &expected))
        fail_msg("since %llu key %d limit %d of %d events, kept from %d", (unsigned long long)since, key,
                 limit, w->count, w->oldest);
    svi_bytes_clear(&found);
    svi_bytes_clear(&expected);
}

static void archive_kept(struct svi_archive *a, void *of) {
    svi_kept_alerts_archive(a, of);
}

/* Another that is loaded goes on in its place; its archive has the same bytes. */
static void walk_resume(struct walk *w) {
    struct svi_bytes bytes = {0}, again = {0};
    svs_error err;
    assert_int_equal(archived_save(archive_kept, w->k, &bytes, &err), SVS_OK);
    svi_kept_alerts_free(&w->k);
    w->k = svi_kept_alerts_new(&err);
    if (archived_load(archive_kept, w->k, bytes.data, bytes.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(archive_kept, w->k, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    svi_kept_alerts_limit(w->k, w->keep);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

static void walk_begin(struct walk *w, uint64_t seed, int64_t keep) {
    svs_error err;
    *w = (struct walk){.keep = keep, .oldest = 1, .k = svi_kept_alerts_new(&err), .random = {seed}};
    assert_non_null(w->k);
    svi_kept_alerts_limit(w->k, keep);
}

static void walk_end(struct walk *w) {
    for (int i = 0; i < w->count; i++) {
        svi_bytes_clear(&w->given[i].plain);
        svi_bytes_clear(&w->given[i].whole);
    }
    svi_kept_alerts_free(&w->k);
}

static void answers_are_those_of_a_list(void **state) {
    (void)state;
    static const int64_t keeps[] = {10000, 300, 50, 1};
    struct walk *w = malloc(sizeof *w);
    for (int round = 0; round < 4; round++) {
        walk_begin(w, (uint64_t)round + 1, keeps[round]);
        while (w->count < EVENTS / (round ? 4 : 1)) {
            walk_add(w);
            if (draw(w, 20) == 0)
                walk_ask(w);
            if (draw(w, 300) == 0)
                walk_resume(w);
            if (draw(w, 200) == 0) {
                w->keep = draw(w, 4) ? keeps[round] : draw(w, 60);
                svi_kept_alerts_limit(w->k, w->keep);
                walk_trim(w);
                walk_ask(w);
            }
        }
        walk_end(w);
    }
    free(w);
}

/* Each byte changed, and each truncation: it is refused, or what was read can be asked and goes on. */
static void damaged_archives_are_refused(void **state) {
    (void)state;
    struct svi_bytes bytes = {0}, answer = {0};
    struct walk *w = malloc(sizeof *w);
    struct svi_pack p;
    svs_error err;
    int refused = 0;
    walk_begin(w, 3, 5);
    for (int i = 0; i < 9; i++)
        walk_add(w);
    assert_int_equal(archived_save(archive_kept, w->k, &bytes, &err), SVS_OK);
    for (size_t i = 0; i < 2 * bytes.size; i++) {
        svi_kept_alerts *k = svi_kept_alerts_new(&err);
        const size_t at = i / 2, size = i % 2 ? at : bytes.size;
        const uint8_t was = bytes.data[at];
        bytes.data[at] ^= i % 2 ? 0 : (uint8_t)(1 << draw(w, 8));
        const svs_code code = archived_load(archive_kept, k, bytes.data, size, &err);
        assert_true(code == SVS_OK || code == SVS_DAMAGED);
        refused += code != SVS_OK;
        if (code == SVS_OK) {
            svi_pack_begin(&p, &answer);
            answer.size = 0;
            const struct svi_open_map map = svi_pack_open(&p);
            svi_kept_alerts_put(k, &(struct svi_alert_query){0, "k1", 100}, &p);
            svi_pack_close(&p, map);
            assert_int_equal(svi_pack_end(&p), SVS_OK);
        }
        bytes.data[at] = was;
        svi_kept_alerts_free(&k);
    }
    assert_true(refused > (int)bytes.size);
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&answer);
    walk_end(w);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_a_list),
        cmocka_unit_test(damaged_archives_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
