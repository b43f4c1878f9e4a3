/* The history of the HTTP adapter against a plain model: every measurement in a list, from which each point
 * of each step is computed again. Random points in any order, steps of the clock, closings without warning,
 * pruning, failing and damaged files. */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../adapters/http/history_worker.h"
#include "base/random.h"
#include "wire/pack.h"

#define BEGIN 1790000000 /* not a multiple of 600 */
#define MOST  40000

static char folder[64] = "/tmp/test-history-XXXXXX", file[100];

static double uniform(struct svi_random *r) {
    return (double)(svi_random_next(r) >> 11) * 0x1p-53;
}

/* ---- the model */

struct sample {
    int64_t t;
    double value[HISTORY_FIGURE_COUNT]; /* NAN: not known */
};

static struct sample model[MOST];
static int model_count;

static struct history_point point_of(const struct sample *s) {
    struct history_point p = {.t = s->t};
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        http_history_point_add(&p, (enum history_figure)f, s->value[f]);
    return p;
}

static double log_or(bool log_form, double v) {
    return log_form ? log(v) : v;
}

/* What single precision, and repeated merging, may make of a value. */
static void assert_near(double got, double want, enum history_figure f, double spread) {
    const bool log_form = f == HISTORY_SMALLEST_P;
    const double g = log_or(log_form, got), w = log_or(log_form, want);
    if (!(g == w || fabs(g - w) <= 1e-6 * (fabs(w) + spread)))
        fail_msg("%s: %.12g instead of %.12g", http_history_point_name(f), got, want);
}

/* The point of [from, from + length), by all samples of the list. */
static void expect_point(const struct history_point *p, int64_t length) {
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
        double low = INFINITY, high = -INFINITY, sum = 0;
        uint32_t n = 0;
        for (int i = 0; i < model_count; i++) {
            const double v = model[i].value[f];
            if (model[i].t < p->t || model[i].t >= p->t + length || isnan(v))
                continue;
            low = fmin(low, v);
            high = fmax(high, v);
            sum += v;
            n++;
        }
        assert_int_equal(p->cell[f].weight, n);
        if (n == 0)
            continue;
        const double spread = high - low;
        assert_near(p->cell[f].low, low, (enum history_figure)f, spread);
        assert_near(p->cell[f].high, high, (enum history_figure)f, spread);
        assert_near(p->cell[f].value,
                    f == HISTORY_SMALLEST_P    ? low
                    : f == HISTORY_LATENCY_P99 ? high
                                               : sum / n,
                    (enum history_figure)f, spread);
        assert_true(p->cell[f].low <= p->cell[f].value && p->cell[f].value <= p->cell[f].high);
    }
}

struct seen {
    int64_t length, last, count;
    bool from_model;
};

static void see_point(void *user, const struct history_point *p) {
    struct seen *s = user;
    assert_true(p->t > s->last);
    assert_int_equal(p->t % s->length, 0);
    s->last = p->t;
    s->count++;
    if (s->from_model)
        expect_point(p, s->length);
}

/* Every point of the step is there and right, and there is no other. */
static void expect_all(struct history_store *h, int step, int64_t from) {
    struct seen seen = {http_history_step[step], INT64_MIN, 0, true};
    int64_t distinct = 0;
    int rc;
    struct history_stream *s = http_history_store_stream(h, "plant", &rc);
    assert_int_equal(rc, SQLITE_OK);
    http_history_store_settle(h, s);
    assert_int_equal(http_history_store_range(h, s, step, from, INT64_MAX, see_point, &seen), SQLITE_OK);
    for (int i = 0; i < model_count; i++) {
        const int64_t begin = model[i].t - model[i].t % seen.length;
        bool first = begin >= from;
        for (int j = 0; j < i && first; j++)
            first = model[j].t - model[j].t % seen.length != begin;
        distinct += first;
    }
    assert_int_equal(seen.count, distinct);
}

static void model_add(struct history_store *h, struct svi_random *r, int64_t t) {
    assert_true(model_count < MOST);
    struct sample *s = &model[model_count++];
    s->t = t;
    for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
        s->value[f] = uniform(r) < 0.2          ? NAN
                      : f == HISTORY_SMALLEST_P ? exp(-400 * uniform(r))
                      : f == HISTORY_MEMORY     ? 1e9 * uniform(r)
                                                : uniform(r);
    const struct history_point p = point_of(s);
    assert_int_equal(http_history_store_add(h, "plant", &p, "accuracy"), SQLITE_OK);
}

static void open_file(struct history_store *h) {
    svs_error err = {0};
    const enum history_opening got = http_history_store_open(h, file, 0, &err);
    if (got != HISTORY_OPENED)
        fail_msg("%d: %s", got, err.text);
}

static int remove_files(void **unused) {
    char command[200];
    (void)unused;
    model_count = 0;
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    return system(command) != 0;
}

/* ---- points */

static void test_encode(void **unused) {
    (void)unused;
    struct svi_random r;
    uint8_t bytes[HISTORY_POINT_BYTES];
    r.state = 7;
    for (int n = 0; n < 2000; n++) {
        struct history_point p = {.t = n}, back = {.t = n};
        for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
            for (int i = (int)(4 * uniform(&r)); i > 0; i--)
                http_history_point_add(&p, (enum history_figure)f,
                                       f == HISTORY_SMALLEST_P && i == 1 ? 0 : uniform(&r));
        const size_t size = http_history_point_encode(&p, bytes);
        assert_true(size <= sizeof bytes);
        assert_true(http_history_point_decode(&back, bytes, size));
        for (int f = 0; f < HISTORY_FIGURE_COUNT; f++) {
            assert_int_equal(back.cell[f].weight, p.cell[f].weight);
            if (p.cell[f].weight == 0)
                continue;
            assert_near(back.cell[f].value, p.cell[f].value, (enum history_figure)f, 0);
            assert_near(back.cell[f].low, p.cell[f].low, (enum history_figure)f, 0);
            assert_near(back.cell[f].high, p.cell[f].high, (enum history_figure)f, 0);
        }
        /* A changed bit, or a cut, is no point. */
        bytes[(size_t)(uniform(&r) * (double)size)] ^= (uint8_t)(1 << n % 8);
        assert_false(http_history_point_decode(&back, bytes, size));
        assert_false(http_history_point_decode(&back, bytes, size - 1));
        assert_int_equal(http_history_point_weight(&back), 0);
    }
}

/* Seconds in order with gaps, now and then late ones and a clock that steps back; every step stays what the
 * list says, before and after a commit, a proper end and a kill. */
static void test_steps(void **unused) {
    (void)unused;
    struct svi_random r;
    struct history_store h;
    int64_t t = BEGIN;
    r.state = 11;
    open_file(&h);
    for (int n = 0; n < 3000; n++) {
        const double what = uniform(&r);
        t += what < 0.02 ? (int64_t)(200 * uniform(&r)) : what < 0.95 ? 1 : 0;
        if (what > 0.995)
            t -= (int64_t)(1500 * uniform(&r));
        model_add(&h, &r, what > 0.97 && what < 0.98 ? t - (int64_t)(3000 * uniform(&r)) : t);
        if (n % 5 == 0)
            assert_int_equal(http_history_store_commit(&h, false), SQLITE_OK);
        if (n % 700 == 699) {
            /* A kill right behind a commit: what was only in memory is not there, and is made again. */
            assert_int_equal(http_history_store_commit(&h, n % 1400 == 1399), SQLITE_OK);
            http_history_store_close(&h);
            open_file(&h);
        }
    }
    for (int k = 0; k < HISTORY_STEPS; k++)
        expect_all(&h, k, 0);
    http_history_store_close(&h);
}

/* What a kill loses is what arrived after the last commit, in all steps alike. */
static void test_kill(void **unused) {
    (void)unused;
    struct svi_random r;
    struct history_store h;
    r.state = 13;
    for (int round = 0; round < 40; round++) {
        int kept;
        remove_files(NULL);
        open_file(&h);
        for (int n = 0; n < 100 + 17 * round; n++)
            model_add(&h, &r, BEGIN + n);
        assert_int_equal(http_history_store_commit(&h, false), SQLITE_OK);
        kept = model_count;
        for (int n = 0; n < 7; n++)
            model_add(&h, &r, BEGIN + 1000 + n);
        http_history_store_close(&h);
        open_file(&h);
        model_count = kept;
        for (int k = HISTORY_STEPS - 1; k >= 0; k--)
            expect_all(&h, k, 0);
        http_history_store_close(&h);
    }
}

/* Two weeks with a figure every 20 s, pruned on the way: each step has what it keeps, coarser ones all. */
static void test_prune(void **unused) {
    (void)unused;
    struct history_store h;
    bool more;
    const int64_t end = BEGIN + 9 * 86400;
    open_file(&h);
    for (int64_t t = BEGIN; t < end; t += 20) {
        struct history_point p = {.t = t};
        http_history_point_add(&p, HISTORY_RATE, (double)(t - BEGIN));
        assert_int_equal(http_history_store_add(&h, "plant", &p, NULL), SQLITE_OK);
        if (t % 2000 == 0)
            assert_int_equal(http_history_store_commit(&h, false), SQLITE_OK);
    }
    assert_int_equal(http_history_store_commit(&h, true), SQLITE_OK);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(http_history_store_prune(&h, (double)end, &more), SQLITE_OK);
        if (!more)
            break;
    }
    assert_false(more);
    for (int k = 0; k < HISTORY_STEPS; k++) {
        int rc;
        struct history_stream *s = http_history_store_stream(&h, "plant", &rc);
        const int64_t length = http_history_step[k], keep = http_history_keep[k];
        struct seen seen = {length, INT64_MIN, 0, false};
        assert_int_equal(http_history_store_range(&h, s, k, 0, INT64_MAX, see_point, &seen), SQLITE_OK);
        const int64_t span = keep < end - BEGIN ? keep : end - BEGIN, each = length < 20 ? 20 : length;
        assert_in_range(seen.count, span / each - 1, span / each + 2);
        assert_in_range(end - seen.last, 0, each + 20);
    }
    /* A coarse point whose finer ones are pruned takes a late measurement all the same. */
    struct history_point late = {.t = BEGIN + 300};
    http_history_point_add(&late, HISTORY_RATE, 1e6);
    assert_int_equal(http_history_store_add(&h, "plant", &late, NULL), SQLITE_OK);
    int rc;
    struct history_stream *s = http_history_store_stream(&h, "plant", &rc);
    assert_int_equal(s->open[3].cell[HISTORY_RATE].high, 1e6);
    assert_int_equal(s->open[3].cell[HISTORY_RATE].low,
                     (BEGIN + 300) / 600 * 600 < BEGIN ? 0 : (BEGIN + 300) / 600 * 600 - BEGIN);
    assert_true(s->open[3].cell[HISTORY_RATE].weight > 1);
    http_history_store_close(&h);
}

/* ---- answers */

static void ask(struct history_store *h, struct history_question q, struct history_answer *a) {
    snprintf(q.stream, sizeof q.stream, "plant");
    assert_int_equal(http_history_answer(h, &q, a), SQLITE_OK);
    assert_int_equal(svi_bytes_append(&a->body, "", 1), SVS_OK); /* as a text */
}

static int commas(const char *text, const char *after, char end) {
    int n = 0;
    const char *at = strstr(text, after);
    assert_non_null(at);
    for (at += strlen(after); *at && *at != end; at++)
        n += *at == ',';
    return n;
}

static void test_answer(void **unused) {
    (void)unused;
    struct history_store h;
    struct history_answer a;
    open_file(&h);
    for (int64_t t = 0; t < 300; t++) {
        struct history_point p = {.t = BEGIN + t + (t >= 100) * 50};
        http_history_point_add(&p, HISTORY_RATE, 5);
        http_history_point_add(&p, HISTORY_QUALITY, (double)t / 1000);
        assert_int_equal(http_history_store_add(&h, "plant", &p, "rmse"), SQLITE_OK);
    }
    const double now = BEGIN + 350;
    ask(&h, (struct history_question){.from = BEGIN + 90, .to = BEGIN + 159, .now = now}, &a);
    assert_int_equal(a.status, 200);
    const char *text = (const char *)a.body.data;
    assert_int_equal(commas(text, "\"t\":[", ']'), 69);
    assert_non_null(strstr(text, "\"measure\":\"rmse\",\"figures\":[\"rate\",\"quality\"]"));
    /* The gap is 50 seconds without a value, and nothing is put into it. */
    assert_non_null(strstr(text, "\"values\":{\"rate\":[5,5,5,5,5,5,5,5,5,5,null,null"));
    assert_non_null(strstr(text, "null,null,0.1,0.101,0.102"));
    svi_bytes_clear(&a.body);
    /* A year of which minutes and seconds were removed long ago: few points, on whole multiples of their length.
     */
    ask(&h, (struct history_question){.from = BEGIN - 3e7, .to = BEGIN + 350, .now = now}, &a);
    assert_int_equal(a.status, 200);
    text = (const char *)a.body.data;
    assert_in_range(commas(text, "\"t\":[", ']'), 300, HISTORY_POINTS);
    assert_non_null(strstr(text, "\"step\":21600,"));
    svi_bytes_clear(&a.body);
    /* A step that is not a multiple of what is kept becomes one. */
    ask(&h, (struct history_question){.from = BEGIN - 3600, .to = BEGIN, .now = now, .step = 7}, &a);
    assert_non_null(strstr((const char *)a.body.data, "\"step\":10,"));
    svi_bytes_clear(&a.body);
    ask(&h, (struct history_question){.from = BEGIN - 3e7, .to = BEGIN, .now = now, .step = 1}, &a);
    assert_int_equal(a.status, 400);
    svi_bytes_clear(&a.body);
    ask(&h, (struct history_question){.from = 0, .to = BEGIN + 350, .now = now, .step = 1}, &a);
    assert_int_equal(commas((const char *)a.body.data, "\"t\":[", ']'), 350);
    svi_bytes_clear(&a.body);
    struct history_question other = {.from = 1, .to = 2, .now = now, .stream = "mill"};
    assert_int_equal(http_history_answer(&h, &other, &a), SQLITE_OK);
    assert_int_equal(a.status, 404);
    assert_non_null(strstr(a.detail, "plant"));
    assert_int_equal(h.count, 1);
    http_history_store_close(&h);
}

/* ---- alerts */

static void event_put(struct svi_bytes *out, uint64_t epoch, uint64_t number, int64_t alert, const char *key,
                      const char *state, double ts) {
    struct svi_pack p;
    const double values[] = {1, 2, 3};
    svi_pack_begin(&p, out);
    const struct svi_open_map m = svi_pack_open(&p);
    svi_put_int(&p, "v", 1);
    svi_put_uint(&p, "epoch", epoch);
    svi_put_real(&p, "ts", ts);
    svi_put_uint(&p, "number", number);
    svi_put_int(&p, "alert", alert);
    svi_put_text(&p, "state", state);
    svi_put_text(&p, "kind", "novelty");
    if (key)
        svi_put_text(&p, "key", key);
    if (strcmp(state, "verdict") == 0)
        svi_put_bool(&p, "verdict", true);
    else
        svi_put_text(&p, "text", state);
    if (strcmp(state, "open") == 0) {
        svi_put_array(&p, "history", 1);
        svi_pack_map(&p, 2);
        svi_put_doubles(&p, "times", values, 3);
        svi_pack_key(&p, "values");
        svi_pack_floats(&p, values, 3);
    }
    svi_pack_close(&p, m);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void event_add(struct history_store *h, uint64_t epoch, uint64_t number, int64_t alert,
                      const char *key, const char *state, double ts) {
    struct svi_bytes event = {0};
    event_put(&event, epoch, number, alert, key, state, ts);
    assert_int_equal(http_history_alerts_add(h, "plant", event.data, event.size), SQLITE_OK);
    svi_bytes_clear(&event);
}

static char *alerts_text(struct history_store *h, double from, double to, int *count) {
    struct history_answer a;
    ask(h, (struct history_question){.alerts = true, .from = from, .to = to, .now = to}, &a);
    assert_int_equal(a.status, 200);
    *count = 0;
    for (const char *at = (char *)a.body.data; (at = strstr(at, "\"opened\":")); at++)
        ++*count;
    return (char *)a.body.data;
}

static void test_alerts(void **unused) {
    (void)unused;
    struct history_store h;
    struct history_taken taken;
    struct svi_bytes reply = {0};
    struct svi_pack p;
    int count;
    open_file(&h);
    h.now = 1e6;
    /* As published, one twice, one key apart from the other, and the rest from a reply that has all of them.
     */
    event_add(&h, 5, 3, 1, "a \"key\"", "update", 1030);
    event_add(&h, 5, 1, 1, "a \"key\"", "open", 1010);
    event_add(&h, 5, 1, 1, "a \"key\"", "open", 1010);
    svi_pack_begin(&p, &reply);
    struct svi_open_map m = svi_pack_open(&p);
    svi_put_uint(&p, "epoch", 5);
    svi_put_uint(&p, "next", 6);
    svi_put_int(&p, "lost", 2);
    svi_put_bool(&p, "more", true);
    svi_put_array(&p, "alerts", 5);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    event_put(&reply, 5, 1, 1, "a \"key\"", "open", 1010);
    event_put(&reply, 5, 2, 1, "b", "open", 1020);
    event_put(&reply, 5, 4, 1, "a \"key\"", "close", 1100);
    event_put(&reply, 5, 5, 1, "a \"key\"", "verdict", 90000);
    event_put(&reply, 5, 6, 0, "", "ended", 1110);
    reply.data[0] = 0x85;
    (void)m;
    assert_int_equal(http_history_alerts_take(&h, "plant", reply.data, reply.size, &taken), SQLITE_OK);
    assert_int_equal(taken.epoch, 5);
    assert_int_equal(taken.number, 6);
    assert_int_equal(taken.lost, 2);
    assert_true(taken.more);
    http_history_store_close(&h);
    /* They survive, with the place up to which they are known. */
    open_file(&h);
    h.now = 1e6;
    char *text = alerts_text(&h, 1000, 2000, &count);
    assert_int_equal(count, 2);
    assert_non_null(strstr(text, "\"last\":6"));
    assert_non_null(strstr(text, "\"history\":[{\"times\":[1,2,3],\"values\":[1,2,3]}]"));
    assert_non_null(strstr(text, "\"key\":\"a \\\"key\\\"\""));
    assert_non_null(strstr(text,
                           "\"state\":\"closed\",\"severity\":null,\"text\":\"update\",\"closing\":\"close\","
                           "\"number\":5,\"ts\":1100.000,\"muted\":true,\"opened\":1010.000,\"closed\":1100."
                           "000,\"updates\":1,\"verdict\":true"));
    assert_non_null(strstr(text, "\"state\":\"open\",\"severity\":null,\"text\":\"open\",\"number\":2,\"ts\":"
                                 "1020.000,\"muted\":true,\"opened\":1020.000,\"closed\":null"));
    struct svi_bytes text_bytes = {.data = (uint8_t *)text};
    svi_bytes_clear(&text_bytes);
    /* A later range has the one that is open, not the one that was closed. */
    text_bytes.data = (uint8_t *)alerts_text(&h, 1200, 1300, &count);
    svi_bytes_clear(&text_bytes);
    assert_int_equal(count, 1);
    text_bytes.data = (uint8_t *)alerts_text(&h, 0, 1005, &count);
    svi_bytes_clear(&text_bytes);
    assert_int_equal(count, 0);
    /* Another epoch ends what is open. */
    reply.size = 0;
    svi_pack_begin(&p, &reply);
    m = svi_pack_open(&p);
    svi_put_uint(&p, "epoch", 9);
    svi_put_uint(&p, "next", 0);
    svi_put_bool(&p, "more", false);
    svi_put_array(&p, "alerts", 0);
    svi_pack_close(&p, m);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    assert_int_equal(http_history_alerts_take(&h, "plant", reply.data, reply.size, &taken), SQLITE_OK);
    text = alerts_text(&h, 1000, 2000, &count);
    assert_int_equal(count, 2);
    assert_non_null(strstr(text, "\"closed\":1020.000,\"updates\":0,\"verdict\":null,\"ended\":\"epoch\""));
    text_bytes.data = (uint8_t *)text;
    svi_bytes_clear(&text_bytes);
    /* What is older than the limit goes, by the time of its record: the samples' own times are long past. */
    h.days = 2;
    bool more;
    text_bytes.data = NULL;
    assert_int_equal(http_history_store_prune(&h, 1e6 + 1.9 * 86400, &more), SQLITE_OK);
    text_bytes.data = (uint8_t *)alerts_text(&h, 1000, 2000, &count);
    svi_bytes_clear(&text_bytes);
    assert_int_equal(count, 2);
    assert_int_equal(http_history_store_prune(&h, 1e6 + 2.1 * 86400, &more), SQLITE_OK);
    text_bytes.data = (uint8_t *)alerts_text(&h, 1000, 2000, &count);
    svi_bytes_clear(&text_bytes);
    assert_int_equal(count, 0);
    /* What is no reply, or no event, is counted and changes nothing. */
    assert_int_equal(http_history_alerts_take(&h, "plant", "\x93", 1, &taken), SQLITE_OK);
    assert_int_equal(taken.epoch, 9);
    assert_int_equal(http_history_alerts_add(&h, "plant", "\x81\xa1", 2), SQLITE_OK);
    assert_int_equal(h.damaged, 2);
    svi_bytes_clear(&reply);
    http_history_store_close(&h);
}

/* ---- files */

static enum history_opening try_file(char *text, double days) {
    struct history_store h;
    svs_error err = {0};
    const enum history_opening result = http_history_store_open(&h, file, days, &err);
    snprintf(text, SVS_ERROR_TEXT, "%s", err.text);
    http_history_store_close(&h);
    return result;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void run_sql(const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_refused(void **unused) {
    (void)unused;
    char text[SVS_ERROR_TEXT];
    struct history_store h;
    struct stat st;
    /* A database of another program, and it stays as it is. */
    run_sql("CREATE TABLE t(x)");
    stat(file, &st);
    const off_t size = st.st_size;
    assert_int_equal(try_file(text, 0), HISTORY_REFUSED);
    assert_non_null(strstr(text, "another program"));
    stat(file, &st);
    assert_int_equal(st.st_size, size);
    unlink(file);
    /* No database at all. */
    write_file(file, "a picture, say", 14);
    assert_int_equal(try_file(text, 0), HISTORY_UNKNOWN);
    unlink(file);
    /* Ours, of a newer form. */
    open_file(&h);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(try_file(text, 0), HISTORY_REFUSED); /* in use */
    assert_non_null(strstr(text, "in use"));
    http_history_store_close(&h);
    run_sql("PRAGMA user_version = 2");
    assert_int_equal(try_file(text, 0), HISTORY_REFUSED);
    assert_non_null(strstr(text, "newer"));
    unlink(file);
    mkdir(file, 0700);
    assert_int_equal(try_file(text, 0), HISTORY_REFUSED);
    rmdir(file);
    /* Others can read it: no longer. */
    open_file(&h);
    http_history_store_close(&h);
    chmod(file, 0644);
    open_file(&h);
    http_history_store_close(&h);
    stat(file, &st);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* Bytes anywhere in the file are changed, or it is cut: it opens or says that it is damaged, and no call does
 * worse than an error. */
static void test_damage(void **unused) {
    (void)unused;
    struct svi_random r;
    struct history_store h;
    static uint8_t whole[4 << 20], bytes[4 << 20];
    int opened = 0, damaged = 0, errors = 0, unread = 0;
    r.state = 19;
    open_file(&h);
    for (int n = 0; n < 2000; n++)
        model_add(&h, &r, BEGIN + n);
    for (int n = 0; n < 60; n++)
        event_add(&h, 1, (uint64_t)n + 1, 1 + n / 3, NULL,
                  n % 3 == 0   ? "open"
                  : n % 3 == 1 ? "update"
                               : "close",
                  BEGIN + n);
    assert_int_equal(http_history_store_commit(&h, true), SQLITE_OK);
    http_history_store_close(&h);
    FILE *f = fopen(file, "rb");
    const size_t size = fread(whole, 1, sizeof whole, f);
    fclose(f);
    for (int n = 0; n < 150; n++) {
        char text[SVS_ERROR_TEXT];
        svs_error err = {0};
        struct history_answer a;
        bool more;
        size_t cut = size;
        remove_files(NULL);
        memcpy(bytes, whole, size);
        if (n % 3 == 0)
            cut = (size_t)(uniform(&r) * (double)size);
        for (int i = 0; n % 3 != 0 && i < 1 << n % 8; i++)
            bytes[n % 3 == 1 ? 100 + (size_t)(uniform(&r) * (double)(size - 100))
                             : (size_t)(uniform(&r) * 8192)] = (uint8_t)(256 * uniform(&r));
        write_file(file, bytes, cut);
        const enum history_opening got = http_history_store_open(&h, file, 30, &err);
        snprintf(text, sizeof text, "%s", err.text);
        opened += got == HISTORY_OPENED;
        damaged += got == HISTORY_DAMAGED || got == HISTORY_UNKNOWN;
        assert_true(got == HISTORY_OPENED || text[0]);
        if (got == HISTORY_OPENED) {
            struct history_question q = {
                .from = BEGIN - 100, .to = BEGIN + 3000, .now = BEGIN + 3000, .stream = "plant"};
            errors += http_history_answer(&h, &q, &a) != SQLITE_OK;
            svi_bytes_clear(&a.body);
            q.alerts = true;
            errors += http_history_answer(&h, &q, &a) != SQLITE_OK;
            svi_bytes_clear(&a.body);
            struct history_point p = {.t = BEGIN + 2500};
            http_history_point_add(&p, HISTORY_RATE, 1);
            errors += http_history_store_add(&h, "plant", &p, NULL) != SQLITE_OK;
            errors += http_history_store_commit(&h, true) != SQLITE_OK;
            errors += http_history_store_prune(&h, BEGIN + 1e6, &more) != SQLITE_OK;
            unread += h.damaged > 0;
        }
        http_history_store_close(&h);
    }
    assert_true(opened > 20 && damaged > 20 && errors > 10 && unread > 10);
}

/* A file that may not grow: writes fail, nothing ends, and what was waiting is written when it may again. */
static void test_full(void **unused) {
    (void)unused;
    struct svi_random r;
    struct history_store h;
    struct rlimit before, small;
    int failed = 0;
    r.state = 23;
    signal(SIGXFSZ, SIG_IGN);
    open_file(&h);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 200000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int n = 0; n < 1500; n++) {
        model_add(&h, &r, BEGIN + n);
        const int rc = n % 5 == 4 ? http_history_store_commit(&h, false) : SQLITE_OK;
        if (rc != SQLITE_OK) {
            assert_false(http_history_db_is_damage(rc));
            failed++;
        }
    }
    assert_true(failed > 5);
    for (int k = 0; k < HISTORY_STEPS; k++)
        expect_all(&h, k, 0); /* what waits is part of every answer */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(http_history_store_commit(&h, true), SQLITE_OK);
    assert_int_equal(h.dropped, 0);
    http_history_store_close(&h);
    open_file(&h);
    for (int k = 0; k < HISTORY_STEPS; k++)
        expect_all(&h, k, 0);
    http_history_store_close(&h);
}

/* ---- the thread */

struct waiting {
    int answers;
    char text[200];
    struct history_taken taken;
};

static void take_answer(void *user, const struct history_answer *a) {
    struct waiting *w = user;
    w->answers++;
    snprintf(w->text, sizeof w->text, "%d %.150s", a->status,
             a->body.size ? (const char *)a->body.data : a->detail);
}

static void take_reached(void *user, bool ok, const struct history_taken *taken) {
    struct waiting *w = user;
    assert_true(ok);
    w->answers++;
    w->taken = *taken;
}

static void wait_for(struct history_worker *w, const int *answers, int count) {
    struct pollfd fd = {http_history_worker_fd(w), POLLIN, 0};
    while (*answers < count && poll(&fd, 1, 20000) == 1)
        http_history_worker_turn(w);
    assert_int_equal(*answers, count);
}

static void ask_worker(struct history_worker *w, struct waiting *got) {
    const struct history_question q = {.stream = "plant", .from = BEGIN, .to = BEGIN + 9, .now = BEGIN + 100};
    const int before = got->answers;
    assert_true(http_history_worker_ask(w, &q, take_answer, got));
    wait_for(w, &got->answers, before + 1);
}

static void test_worker(void **unused) {
    (void)unused;
    svs_error err;
    struct waiting got = {0};
    struct history_state state;
    struct history_worker *w = http_history_worker_new(file, 0, &err);
    assert_non_null(w);
    assert_null(http_history_worker_new(file, 0, &err)); /* a second one */
    assert_non_null(strstr(err.text, "in use"));
    for (int i = 0; i < 10; i++) {
        struct history_point p = {.t = BEGIN + i};
        http_history_point_add(&p, HISTORY_RATE, i);
        http_history_worker_point(w, "plant", &p, "accuracy");
    }
    ask_worker(w, &got);
    assert_memory_equal(got.text, "200 {\"stream\":\"plant\"", 20);
    assert_true(http_history_worker_reach(w, "plant", take_reached, &got));
    wait_for(w, &got.answers, 2);
    assert_int_equal(got.taken.number, 0);
    http_history_worker_state(w, &state);
    assert_true(state.ok);
    http_history_worker_free(&w);
    /* The end wrote all of it. Damage further in is found at the first call, and a new file begins. */
    uint8_t noise[4096];
    memset(noise, 0x5a, sizeof noise);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    const int fd = open(file, O_WRONLY);
    for (off_t at = 4096; at < st.st_size; at += 4096)
        assert_int_equal(pwrite(fd, noise, sizeof noise, at), sizeof noise);
    close(fd);
    w = http_history_worker_new(file, 0, &err);
    assert_non_null(w);
    struct history_point p = {.t = BEGIN + 20};
    http_history_point_add(&p, HISTORY_RATE, 1);
    http_history_worker_point(w, "plant", &p, "accuracy");
    ask_worker(w, &got);
    http_history_worker_state(w, &state);
    assert_false(state.ok);
    assert_non_null(strstr(state.reason, "was damaged; it is kept as "));
    char kept[300];
    assert_int_equal(sscanf(strstr(state.reason, "kept as "), "kept as %299[^,]", kept), 1);
    assert_int_equal(access(kept, R_OK), 0);
    assert_true(state.errors > 0 || got.text[0] == '2' || got.text[0] == '4');
    http_history_worker_free(&w);
    struct history_store h;
    open_file(&h);
    http_history_store_close(&h);
    /* What is no database is left alone, and the history is in memory. */
    write_file(file, "a picture, say", 14);
    w = http_history_worker_new(file, 0, &err);
    assert_non_null(w);
    http_history_worker_state(w, &state);
    assert_false(state.ok);
    assert_non_null(strstr(state.reason, "in memory"));
    http_history_worker_point(w, "plant", &p, "accuracy");
    ask_worker(w, &got);
    assert_memory_equal(got.text, "200 ", 4);
    http_history_worker_free(&w);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_size, 14);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode),
        cmocka_unit_test_setup(test_steps, remove_files),
        cmocka_unit_test_setup(test_kill, remove_files),
        cmocka_unit_test_setup(test_prune, remove_files),
        cmocka_unit_test_setup(test_answer, remove_files),
        cmocka_unit_test_setup(test_alerts, remove_files),
        cmocka_unit_test_setup(test_refused, remove_files),
        cmocka_unit_test_setup(test_damage, remove_files),
        cmocka_unit_test_setup(test_full, remove_files),
        cmocka_unit_test_setup(test_worker, remove_files),
    };
    if (access("/dev/shm", W_OK) == 0)
        strcpy(folder, "/dev/shm/test-history-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(file, sizeof file, "%s/history", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_files(NULL);
    rmdir(folder);
    return failed;
}
