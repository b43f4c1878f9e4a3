/* The stream of the library against the program's: the same rows read from a file by the program's reader and
 * given to svi_stream as `eval` does it. Each score, each alert and the fingerprint at the end are equal, bit
 * for bit; and neither block sizes, nor saving and loading, nor what is only scored, nor what is refused
 * changes anything. */
#include "support/library.h"

#include "support/folder.h"
#include "support/quick.h"

#include <time.h>

#include "config/settings_record.h"
#include "data/reader.h"
#include "features/cells.h"
#include "fleet/stream.h"
#include "wire/event.h"

/* ---- the program's stream */

struct reference {
    struct svi_settings settings;
    svi_stream *stream;
    svi_reader *reader;
    bool scored;
    svs_evidence evidence;
    svs_prediction of; /* pointers into the arrays below */
    double scores[8], proba[8];
    char yhat[SVS_NAME_MAX];
    struct svi_bytes alerts, event; /* of the row, one after another */
    int alert_count;
};

static void reference_score(struct reference *r, const struct svi_event *e) {
    r->scored = true;
    r->of = (svs_prediction){.y = e->as.score.yhat, .rows = e->as.score.rows, .version = e->as.score.version};
    if (r->of.y.kind == SVS_STR)
        r->of.y.as.s = memcpy(r->yhat, r->of.y.as.s, r->of.y.length);
    memcpy(r->scores, e->as.score.scores, (size_t)r->of.rows * sizeof *r->scores);
    r->of.class_count = e->as.score.proba_count;
    if (r->of.class_count > 0)
        r->of.proba = memcpy(r->proba, e->as.score.proba, (size_t)r->of.class_count * sizeof *r->proba);
    r->of.ranged = e->as.score.interval != NULL;
    r->of.low = r->of.ranged ? e->as.score.interval[0] : 0;
    r->of.high = r->of.ranged ? e->as.score.interval[1] : 0;
    r->evidence.known = e->as.score.judged;
    r->evidence.novelty = e->as.score.novelty;
    r->evidence.p = e->as.score.p;
    r->evidence.surprise = e->as.score.surprise;
    r->evidence.anomaly = e->as.score.anomaly;
    r->evidence.alarm = e->as.score.alarm;
}

static void reference_sink(void *user, const struct svi_event *e) {
    struct reference *r = user;
    if (e->topic == SVI_TOPIC_SCORE)
        reference_score(r, e);
    if (e->topic != SVI_TOPIC_ALERT)
        return;
    assert_int_equal(svi_event_encode(e, &r->event), SVS_OK);
    assert_int_equal(svi_bytes_append(&r->alerts, r->event.data, r->event.size), SVS_OK);
    r->alert_count++;
}

static void write_rows(const struct lib_case *c, const char *path) {
    FILE *f = fopen(path, "w");
    struct lib_row r;
    assert_non_null(f);
    fprintf(f, "when,id,y%s", c->keyed ? ",key" : "");
    for (int j = 0; j < LIB_COLUMNS; j++)
        fprintf(f, ",%s", lib_names[j]);
    for (int i = 0; i < c->rows; i++) {
        lib_make_row(c, i, &r);
        fprintf(f, "\n");
        if (r.row.has_ts)
            fprintf(f, "%.17g", r.row.ts);
        fprintf(f, ",%s,", r.id);
        if (r.row.y.kind == SVS_REAL)
            fprintf(f, "%.17g", r.row.y.as.r);
        else if (r.row.y.kind == SVS_STR)
            fputs(r.label, f);
        if (c->keyed)
            fprintf(f, ",%s", r.key);
        for (int j = 0; j < LIB_COLUMNS; j++) {
            fputs(",", f);
            if (c->words && r.words[j])
                fputs(r.words[j], f);
            else if (!isnan(r.x[j]))
                fprintf(f, "%.17g", r.x[j]);
        }
    }
    fprintf(f, "\n");
    fclose(f);
}

/* As `eval` opens a file, with the columns named. */
static void reference_open(struct reference *r, const struct lib_case *c, const char *path) {
    const char *by;
    svs_error err = {0};
    *r = (struct reference){0};
    svi_settings_default(&r->settings);
    const svs_setting columns[] = {{"label", c->classes == 1 ? "" : "y"},
                                   {"id", "id"},
                                   {"ts", "when"},
                                   {"ignore", c->classes == 1 ? "y" : ""}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(svi_settings_set(&r->settings, columns[i].key, columns[i].value, &err), SVS_OK);
    for (int i = 0; i < lib_setting_count(c); i++)
        assert_int_equal(svi_settings_set(&r->settings, c->settings[i].key, c->settings[i].value, &err),
                         SVS_OK);
    svi_settings_settle_method(&r->settings);
    assert_int_equal(svi_settings_settle_alerts(&r->settings, &by, &err), SVS_OK);
    assert_int_equal(svi_settings_check(&r->settings, &err), SVS_OK);
    r->settings.scores = SVI_SCORES_NONE;
    r->settings.publish_every = 0;
    r->settings.publish_seconds = 0;
    if (!svi_settings_given(&r->settings, svi_settings_row("alert.interval")))
        r->settings.alert_interval = SVI_FILE_INTERVAL;
    struct svi_reader_options o = svi_settings_reader(&r->settings);
    r->reader = svi_reader_open(path, &o, NULL, &err);
    if (!r->reader || svi_reader_settle(r->reader, &err) != SVS_OK)
        fail_msg("%s", err.text);
    r->settings.keys_quota = r->settings.keys_max;
    /* What says how a file is read is no part of the stream. */
    r->settings.ignore[0] = '\0';
    r->stream = svi_stream_new(&r->settings, 0, reference_sink, r, &err);
    assert_non_null(r->stream);
    svi_reader_shape(r->reader, &svi_engine_schema(svi_stream_root(r->stream))->shape);
    if (svi_settings_two_threads(&r->settings))
        svi_stream_use_threads(r->stream);
    svi_stream_score_all(r->stream, true);
    svi_stream_leave_scores_unnumbered(r->stream);
}

static void reference_close(struct reference *r) {
    svi_reader_close(&r->reader);
    svi_stream_free(&r->stream);
    svi_bytes_clear(&r->alerts);
    svi_bytes_clear(&r->event);
}

static void reference_clear(struct reference *r) {
    r->scored = false;
    r->alerts.size = 0;
    r->alert_count = 0;
}

static void reference_row(struct reference *r, const struct lib_case *c, int i) {
    struct svi_message m;
    svs_error err = {0};
    reference_clear(r);
    assert_int_equal(svi_reader_row(r->reader, &m, &err), SVI_READ_ROW);
    const double now = c->untimed ? (i + 1) * r->settings.alert_interval : 2e9;
    const svs_code code = svi_stream_message(r->stream, &m, "", 0, now, &err);
    if (code != SVS_OK)
        fail_msg("%s, row %d: %s", c->name, i, err.text);
    svi_engine_refit_here(svi_stream_root(r->stream));
}

static svs_code reference_command(struct reference *r, enum svi_op op, const char *id, svs_value y,
                                  const char *key, double now, int *count) {
    struct svi_message m;
    svs_error err;
    svi_message_begin(&m, NULL);
    m.op = op;
    m.id = svs_str(id);
    m.y = y;
    m.removed = 0;
    if (key)
        m.key = svs_str(key);
    reference_clear(r);
    const svs_code code = svi_stream_message(r->stream, &m, "", 0, now, &err);
    *count = m.removed;
    return code;
}

/* ---- equal, bit for bit */

static void same_value(const char *what, int row, double a, double b) {
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)))
        fail_msg("row %d: %s is %.17g and %.17g", row, what, a, b);
}

static void same_values(const char *what, int row, const double *a, const double *b, int count) {
    for (int i = 0; i < count; i++)
        same_value(what, row, a[i], b[i]);
}

static void same_row(int row, const struct reference *r, const svs_outcome *out) {
    const svs_prediction *p = &out->prediction;
    assert_int_equal(r->scored, !out->dropped);
    assert_true(svs_value_equal(r->of.y, p->y));
    assert_int_equal(r->of.rows, p->rows);
    same_values("a score", row, r->scores, p->scores, p->rows);
    assert_int_equal(r->of.proba != NULL, p->proba != NULL);
    if (p->proba) {
        assert_int_equal(r->of.class_count, p->class_count);
        same_values("a probability", row, r->proba, p->proba, p->class_count);
    }
    assert_int_equal(r->of.ranged, p->ranged);
    if (p->ranged) {
        same_value("low", row, r->of.low, p->low);
        same_value("high", row, r->of.high, p->high);
    }
    assert_int_equal(r->of.version, p->version);
    assert_int_equal(r->evidence.known, out->evidence.known);
    if (!out->evidence.known)
        return;
    same_value("novelty", row, r->evidence.novelty, out->evidence.novelty);
    same_value("p", row, r->evidence.p, out->evidence.p);
    same_value("surprise", row, r->evidence.surprise, out->evidence.surprise);
    same_value("anomaly", row, r->evidence.anomaly, out->evidence.anomaly);
    same_value("alarm", row, r->evidence.alarm, out->evidence.alarm);
}

static void same_alerts(const struct reference *r, const svs_alert *alerts, int count) {
    size_t at = 0;
    assert_int_equal(r->alert_count, count);
    for (int i = 0; i < count; at += alerts[i++].packed_size) {
        assert_true(at + alerts[i].packed_size <= r->alerts.size);
        assert_memory_equal(r->alerts.data + at, alerts[i].packed, alerts[i].packed_size);
        assert_true(alerts[i].text[0] && alerts[i].json[0] == '{' && alerts[i].number > 0);
    }
    assert_int_equal(at, r->alerts.size);
}

static void same_state(svi_stream *a, svs_stream *b) {
    char one[33], other[33];
    svs_error err;
    assert_int_equal(svi_stream_hash(a, one, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(b, other, &err), SVS_OK);
    assert_string_equal(one, other);
}

/* ---- the walk */

static void late(struct reference *r, svs_stream *s, const struct lib_case *c, int i, int *alerts) {
    struct lib_row old;
    svs_error err;
    const double now = c->untimed ? (i + 1) * r->settings.alert_interval : 2e9;
    int count, removed = 0;
    lib_make_row(c, i - 5, &old);
    if (i % 7 == 0) { /* rows without a label have i % 7 == 2 */
        const svs_value y = svs_str(old.label);
        const svs_code code = reference_command(r, SVI_LABEL, old.id, y, old.row.key, now, &count);
        assert_int_equal(svs_stream_label(s, svs_str(old.id), y, old.row.key, NAN, &err), code);
        *alerts += r->alert_count;
    }
    if (i % 50 == 20) {
        const svs_code code = reference_command(r, SVI_FORGET, old.id, svs_none(), old.row.key, now, &count);
        assert_int_equal(svs_stream_forget(s, svs_str(old.id), old.row.key, NAN, &removed, &err), code);
        assert_int_equal(count, removed);
        *alerts += r->alert_count;
    }
}

/* Neither of these changes the state. */
static void disturb(svs_stream *s, const struct lib_case *c, int i) {
    char before[33], after[33];
    struct lib_row r;
    svs_outcome out;
    svs_error err;
    double infinite[LIB_COLUMNS] = {INFINITY};
    const char *const words[LIB_COLUMNS] = {"word"};
    lib_make_row(c, i + 7, &r);
    assert_int_equal(svs_stream_hash(s, before, &err), SVS_OK);
    assert_int_equal(svs_stream_score(s, &r.row, &out, &err), SVS_OK);
    svs_row bad = r.row;
    bad.x = infinite;
    assert_int_equal(svs_stream_step(s, &bad, &out, &err), SVS_NOT_FINITE);
    bad = r.row;
    bad.words = words;
    if (!c->keyed) /* a refused row, too, touches its key, which has its place in the order of keys */
        assert_int_equal(svs_stream_step(s, &bad, &out, &err), SVS_WRONG_TYPE);
    bad = r.row;
    bad.ts = 4e9;
    bad.has_ts = true;
    if (!c->untimed) /* the clock of the machine would be a time of arrival among made ones */
        assert_int_equal(svs_stream_step(s, &bad, NULL, &err), SVS_TS_AHEAD);
    assert_int_equal(svs_stream_hash(s, after, &err), SVS_OK);
    assert_string_equal(before, after);
}

static void equals_the_program(const struct lib_case *c, const char *path) {
    struct reference r;
    svs_stream *s = lib_stream(c);
    int alerts = 0, waiting = 0;
    svs_error err = {0};
    write_rows(c, path);
    reference_open(&r, c, path);
    for (int i = 0; i < c->rows; i++) {
        struct lib_row row;
        svs_outcome out;
        lib_make_row(c, i, &row);
        reference_row(&r, c, i);
        if (svs_stream_step(s, &row.row, &out, &err) != SVS_OK)
            fail_msg("%s, row %d: %s", c->name, i, err.text);
        same_row(i, &r, &out);
        same_alerts(&r, out.alerts, out.alert_count);
        alerts += out.alert_count;
        if (c->waits && i > 5)
            late(&r, s, c, i, &alerts);
        if (i % 200 == 150)
            disturb(s, c, i);
    }
    same_state(r.stream, s);
    assert_int_equal(svs_stream_seen(s), c->rows);
    (void)svs_stream_alerts(s, &waiting);
    assert_int_equal(waiting, alerts);
    assert_true(!c->steps || alerts > 2);
    assert_null(svs_stream_alerts(s, &waiting));
    reference_close(&r);
    svs_stream_free(&s);
}

static void test_equals_the_program(void **state) {
    char folder[200], path[256];
    (void)state;
    assert_non_null(test_folder(folder));
    snprintf(path, sizeof path, "%s/rows.csv", folder);
    for (int i = 0; i < LIB_CASES; i += often(1, 3)) {
        print_message("  %s\n", lib_cases[i].name);
        equals_the_program(&lib_cases[i], path);
    }
    test_folder_remove(folder);
}

/* ---- saved and loaded */

/* The loaded stream gives the same bytes again. */
static svs_stream *copy(svs_stream *s) {
    void *bytes, *more;
    size_t size, again;
    svs_error err = {0};
    assert_int_equal(svs_stream_save(s, &bytes, &size, &err), SVS_OK);
    svs_stream *loaded = svs_stream_load(bytes, size, &err);
    if (!loaded)
        fail_msg("%s", err.text);
    assert_int_equal(svs_stream_save(loaded, &more, &again, &err), SVS_OK);
    assert_int_equal(size, again);
    assert_memory_equal(bytes, more, size);
    svs_bytes_free(&bytes);
    svs_bytes_free(&more);
    assert_null(bytes);
    return loaded;
}

static void same_outcome(int row, const svs_outcome *a, const svs_outcome *b) {
    struct reference r = {.scored = !a->dropped, .of = a->prediction, .evidence = a->evidence};
    if (a->prediction.scores)
        memcpy(r.scores, a->prediction.scores, (size_t)a->prediction.rows * sizeof *r.scores);
    if (a->prediction.proba)
        memcpy(r.proba, a->prediction.proba, (size_t)a->prediction.class_count * sizeof *r.proba);
    r.alert_count = a->alert_count;
    for (int i = 0; i < a->alert_count; i++)
        assert_int_equal(svi_bytes_append(&r.alerts, a->alerts[i].packed, a->alerts[i].packed_size), SVS_OK);
    same_row(row, &r, b);
    same_alerts(&r, b->alerts, b->alert_count);
    svi_bytes_clear(&r.alerts);
}

/* Copies at several moments, also while a refit collects its window, go on like their original. */
static void copies_continue(const struct lib_case *c) {
    char one[33], other[33];
    svs_error err;
    svs_stream *s = lib_stream(c), *loaded = NULL;
    for (int i = 0; i < c->rows; i++) {
        struct lib_row row, old;
        svs_outcome a, b;
        lib_make_row(c, i, &row);
        if (i == 1 || i % 151 == 0 || i == c->rows / 2) {
            svs_stream_free(&loaded);
            loaded = copy(s);
        }
        assert_int_equal(svs_stream_step(s, &row.row, &a, &err), SVS_OK);
        assert_int_equal(svs_stream_step(loaded, &row.row, &b, &err), SVS_OK);
        same_outcome(i, &a, &b);
        if (!c->waits || i <= 5)
            continue;
        lib_make_row(c, i - 5, &old);
        const svs_value y = svs_str(old.label);
        const svs_code code = svs_stream_label(s, svs_str(old.id), y, old.row.key, NAN, &err);
        assert_int_equal(svs_stream_label(loaded, svs_str(old.id), y, old.row.key, NAN, &err), code);
    }
    assert_int_equal(svs_stream_hash(s, one, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(loaded, other, &err), SVS_OK);
    assert_string_equal(one, other);
    svs_stream_free(&s);
    svs_stream_free(&loaded);
}

static void test_copies(void **state) {
    (void)state;
    for (int i = 0; i < LIB_CASES; i += often(1, 3)) {
        print_message("  %s\n", lib_cases[i].name);
        copies_continue(&lib_cases[i]);
    }
}

/* ---- blocks */

/* All rows of a case as one table. */
struct lib_table {
    int n;
    double *x, *y, *ts;
    int32_t *index;
    const char **words;
    struct lib_row *rows;
    svs_value *ids, labels[3];
};

static void table_make(const struct lib_case *c, struct lib_table *t) {
    const size_t n = (size_t)c->rows;
    *t = (struct lib_table){.n = c->rows,
                            .x = calloc(n * LIB_COLUMNS, sizeof *t->x),
                            .y = calloc(n, sizeof *t->y),
                            .ts = calloc(n, sizeof *t->ts),
                            .index = calloc(n, sizeof *t->index),
                            .words = calloc(n * LIB_COLUMNS, sizeof *t->words),
                            .rows = calloc(n, sizeof *t->rows),
                            .ids = calloc(n, sizeof *t->ids),
                            .labels = {svs_str("c2"), svs_str("c0"), svs_str("c1")}};
    for (int i = 0; i < t->n; i++) {
        const struct lib_row *r = &t->rows[i];
        lib_make_row(c, i, &t->rows[i]);
        memcpy(t->x + i * LIB_COLUMNS, r->x, sizeof r->x);
        memcpy(t->words + i * LIB_COLUMNS, r->words, sizeof r->words);
        t->y[i] = r->row.y.kind == SVS_REAL ? r->row.y.as.r : NAN;
        t->index[i] = -1;
        for (int k = 0; k < 3; k++)
            t->index[i] = svs_value_equal(t->labels[k], r->row.y) ? k : t->index[i];
        t->ts[i] = r->row.has_ts ? r->row.ts : NAN;
        t->ids[i] = r->row.id;
    }
}

static void table_free(struct lib_table *t) {
    free(t->x);
    free(t->y);
    free(t->ts);
    free(t->index);
    free(t->words);
    free(t->rows);
    free(t->ids);
}

static svs_block table_block(const struct lib_case *c, const struct lib_table *t, int from, int count) {
    svs_block b = {.n = from + count < t->n ? count : t->n - from,
                   .d = LIB_COLUMNS,
                   .x = t->x + from * LIB_COLUMNS,
                   .stride = LIB_COLUMNS,
                   .names = lib_names,
                   .all = true,
                   .words = c->words ? t->words + from * LIB_COLUMNS : NULL,
                   .ts = t->ts + from,
                   .ids = t->ids + from};
    if (c->classes == 0)
        b.y = t->y + from;
    else if (c->classes > 1) {
        b.labels = t->labels;
        b.label_count = 3;
        b.y_index = t->index + from;
    }
    return b;
}

/* Learns all in blocks of this size; the results of each row, of a learned block or of `score`. */
static void learn_in_blocks(const struct lib_case *c, const struct lib_table *t, svs_stream *s, int size,
                            svs_results *all) {
    svs_error err = {0};
    for (int i = 0; i < t->n; i += size) {
        svs_block b = table_block(c, t, i, size);
        int64_t row = -1;
        svs_results r = {0};
        if (all)
            r = (svs_results){.predicted = all->predicted + i,
                              .value = all->value + i,
                              .scores = all->scores + 3 * i,
                              .proba = all->proba + 3 * i,
                              .novelty = all->novelty + i,
                              .p = all->p + i,
                              .rows = 3,
                              .classes = 3};
        if (svs_stream_learn_block(s, &b, all ? &r : NULL, &row, &err) != SVS_OK)
            fail_msg("%s, row %d: %s", c->name, (int)row + i, err.text);
    }
}

static svs_results results_make(int n) {
    const size_t rows = (size_t)n;
    return (svs_results){.predicted = calloc(rows, sizeof(int32_t)),
                         .value = calloc(rows, sizeof(double)),
                         .scores = calloc(3 * rows, sizeof(double)),
                         .proba = calloc(3 * rows, sizeof(double)),
                         .novelty = calloc(rows, sizeof(double)),
                         .p = calloc(rows, sizeof(double)),
                         .rows = 3,
                         .classes = 3};
}

static void results_free(svs_results *r) {
    free(r->predicted);
    free(r->value);
    free(r->scores);
    free(r->proba);
    free(r->novelty);
    free(r->p);
}

static void same_result(const svs_results *r, int i, const svs_outcome *out) {
    const svs_prediction *p = &out->prediction;
    assert_int_equal(r->predicted[i], p->predicted);
    same_value("the value", i, r->value[i], p->y.kind == SVS_REAL ? p->y.as.r : NAN);
    for (int k = 0; k < 3; k++) {
        same_value("a score", i, r->scores[3 * i + k], k < p->rows ? p->scores[k] : NAN);
        same_value("a probability", i, r->proba[3 * i + k],
                   p->proba && k < p->class_count ? p->proba[k] : NAN);
    }
    same_value("novelty", i, r->novelty[i], out->evidence.known ? out->evidence.novelty : NAN);
    same_value("p", i, r->p[i], out->evidence.known ? out->evidence.p : NAN);
}

static void blocks_change_nothing(const struct lib_case *c) {
    static const int sizes[] = {1, 7, 64, 1000};
    char hash[33], other[33];
    svs_error err;
    struct lib_table t;
    table_make(c, &t);
    svs_results all = results_make(t.n);
    svs_stream *single = lib_stream(c), *s = lib_stream(c);
    /* All rows in one block with their results, and one after another. */
    learn_in_blocks(c, &t, s, t.n, &all);
    for (int i = 0; i < t.n; i++) {
        svs_outcome out;
        assert_int_equal(svs_stream_step(single, &t.rows[i].row, &out, &err), SVS_OK);
        same_result(&all, i, &out);
    }
    assert_int_equal(svs_stream_hash(single, hash, &err), SVS_OK);
    for (int i = -1; i < 4; i++) {
        if (i >= 0) {
            s = lib_stream(c);
            learn_in_blocks(c, &t, s, sizes[i], i % 2 == 0 ? &all : NULL);
        }
        int count, alerts;
        assert_int_equal(svs_stream_hash(s, other, &err), SVS_OK);
        assert_string_equal(hash, other);
        (void)svs_stream_alerts(s, &alerts);
        assert_true(!c->steps || alerts > 2);
        if (i == 3) {
            (void)svs_stream_alerts(single, &count);
            assert_int_equal(count, alerts);
        }
        svs_stream_free(&s);
    }
    /* Scored in a block or one by one. */
    svs_block b = table_block(c, &t, 0, t.n);
    assert_int_equal(svs_stream_score_block(single, &b, &all, NULL, &err), SVS_OK);
    for (int i = 0; i < t.n; i += 13) {
        svs_outcome out;
        assert_int_equal(svs_stream_score(single, &t.rows[i].row, &out, &err), SVS_OK);
        same_result(&all, i, &out);
    }
    assert_int_equal(svs_stream_hash(single, other, &err), SVS_OK);
    assert_string_equal(hash, other);
    svs_stream_free(&single);
    results_free(&all);
    table_free(&t);
}

static void test_blocks(void **state) {
    (void)state;
    for (int i = 0; i < LIB_CASES; i += often(1, 4))
        if (!lib_cases[i].keyed) {
            print_message("  %s\n", lib_cases[i].name);
            blocks_change_nothing(&lib_cases[i]);
        }
}

/* A block with one bad row is refused as a whole, with its number; nothing of it is learned. */
static void test_refused_blocks(void **state) {
    const struct lib_case *c = &lib_cases[0];
    char before[33], after[33];
    svs_error err;
    int64_t row;
    struct lib_table t;
    (void)state;
    table_make(c, &t);
    svs_stream *s = lib_stream(c);
    svs_block b = table_block(c, &t, 0, 300);
    assert_int_equal(svs_stream_learn_block(s, &b, NULL, &row, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(s, before, &err), SVS_OK);
    const char *words[LIB_COLUMNS * 300] = {NULL};
    double weight[300], *x = &t.x[(300 + 123) * LIB_COLUMNS], was = x[2];
    for (int i = 0; i < 300; i++)
        weight[i] = 1;
    const struct {
        double x, weight, ts;
        int32_t index;
        const char *word;
        svs_value id;
        svs_code code;
    } bad[] = {{INFINITY, 1, 0, 0, NULL, svs_none(), SVS_NOT_FINITE},
               {NAN, 1, 0, 0, NULL, svs_none(), SVS_MISSING_VALUE},
               {1e200, 1, 0, 0, NULL, svs_none(), SVS_TOO_LARGE},
               {0, -1, 0, 0, NULL, svs_none(), SVS_BAD_WEIGHT},
               {0, NAN, 0, 0, NULL, svs_none(), SVS_BAD_WEIGHT},
               {0, 1, 4e9, 0, NULL, svs_none(), SVS_TS_AHEAD},
               {0, 1, 0, 3, NULL, svs_none(), SVS_INVALID},
               {0, 1, 0, 0, "word", svs_none(), SVS_WRONG_TYPE},
               {0, 1, 0, 0, NULL, svs_real(0.5), SVS_BAD_ID},
               {0, 1, 0, 0, NULL, svs_str(""), SVS_BAD_ID}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        b = table_block(c, &t, 300, 300);
        x[2] = bad[i].x;
        words[123 * LIB_COLUMNS + 1] = bad[i].word;
        weight[123] = bad[i].weight;
        const double ts = t.ts[423];
        const int32_t index = t.index[423];
        const svs_value id = t.ids[423];
        t.ts[423] = bad[i].ts > 0 ? bad[i].ts : ts;
        t.index[423] = bad[i].index;
        t.ids[423] = bad[i].id;
        b.words = words;
        b.weight = weight;
        b.all = false; /* otherwise the mean replaces what is missing */
        row = -1;
        assert_int_equal(svs_stream_learn_block(s, &b, NULL, &row, &err), bad[i].code);
        assert_int_equal(row, 123);
        assert_true(strlen(err.text) > 10);
        assert_int_equal(svs_stream_hash(s, after, &err), SVS_OK);
        assert_string_equal(before, after);
        t.ts[423] = ts;
        t.index[423] = index;
        t.ids[423] = id;
    }
    x[2] = was;
    weight[123] = 1;
    words[123 * LIB_COLUMNS + 1] = NULL;
    b = table_block(c, &t, 300, 300);
    assert_int_equal(svs_stream_learn_block(s, &b, NULL, &row, &err), SVS_OK);
    svs_stream_free(&s);
    table_free(&t);
}

/* float32 without names, strides and passed over rows: the same as the rows one by one. */
static void test_narrow_blocks(void **state) {
    const svs_setting alsvm[] = {{"method", "alsvm"}, {"novelty", "none"}, {"max.classes", "2"}};
    enum { N = 400, D = 3, STRIDE = 5 };
    static float x[N * STRIDE];
    double weight[N], ts[N], y[N];
    uint64_t seed = 5;
    char one[33], other[33];
    svs_error err;
    svs_outcome out;
    (void)state;
    svs_stream *block = svs_stream_new(alsvm, 3, &err), *single = svs_stream_new(alsvm, 3, &err);
    for (int i = 0; i < N; i++) {
        double wide[D], sum = 0;
        for (int j = 0; j < STRIDE; j++)
            x[i * STRIDE + j] = (float)test_normal(&seed);
        for (int j = 0; j < D; j++)
            sum += wide[j] = x[i * STRIDE + j];
        weight[i] = i % 5 == 0 ? 0 : 0.5 + i % 3;
        ts[i] = 1e9 + i;
        y[i] = i % 9 == 0 ? NAN : sum > 0;
        svs_row r = {.x = wide, .d = D, .weight = weight[i], .ts = ts[i], .has_ts = true};
        r.y = isnan(y[i]) ? svs_none() : svs_int((int64_t)y[i]);
        if (weight[i] > 0)
            assert_int_equal(svs_stream_step(single, &r, &out, &err), SVS_OK);
    }
    svs_block b = {.n = N, .d = D, .x32 = x, .stride = STRIDE, .y = y, .weight = weight, .ts = ts};
    assert_int_equal(svs_stream_learn_block(block, &b, NULL, NULL, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(block, one, &err), SVS_OK);
    assert_int_equal(svs_stream_hash(single, other, &err), SVS_OK);
    assert_string_equal(one, other);
    assert_int_equal(svs_stream_class_count(block), 2);
    assert_int_equal(svs_stream_rows(block), 1);
    assert_int_equal(svs_stream_columns(block), D);
    assert_null(svs_stream_column(block, 0));
    /* One class more than the setting allows: the row that brings it, and nothing is learned. */
    const svs_value labels[] = {svs_int(1), svs_int(7)};
    const int32_t index[] = {0, -1, 1, 1};
    int64_t row;
    b = (svs_block){
        .n = 4, .d = D, .x32 = x, .stride = STRIDE, .labels = labels, .label_count = 2, .y_index = index};
    assert_int_equal(svs_stream_learn_block(block, &b, NULL, &row, &err), SVS_LIMIT);
    assert_int_equal(row, 2);
    assert_int_equal(svs_stream_hash(block, other, &err), SVS_OK);
    assert_string_equal(one, other);
    svs_stream_free(&block);
    svs_stream_free(&single);
}

/* Names in any order, and lists that change from row to row, mean the same columns. */
static void test_orders_of_names(void **state) {
    const svs_setting alsvm[] = {{"method", "alsvm"}, {"novelty", "none"}, {"missing", "mean"}};
    static const char *const orders[3][3] = {{"a", "b", "c"}, {"c", "a", "b"}, {"b", "c", "a"}};
    uint64_t seed = 9;
    svs_error err;
    svs_outcome out, same;
    (void)state;
    svs_stream *s = svs_stream_new(alsvm, 3, &err), *mixed = svs_stream_new(alsvm, 3, &err);
    for (int i = 0; i < 300; i++) {
        const double x[3] = {test_normal(&seed), test_normal(&seed), test_normal(&seed)};
        const int k = i % 3, left = i % 10 == 4 ? 1 : 0;
        double turned[3];
        char copies[3][2], *names[3];
        for (int j = 0; j < 3; j++) {
            names[j] = strcpy(copies[j], orders[k][j]);
            turned[j] = x[orders[k][j][0] - 'a'];
        }
        svs_row r = {
            .x = x, .d = 3, .names = orders[0], .y = svs_int(x[0] > x[2]), .ts = 1e9 + i, .has_ts = true};
        svs_row t = r;
        t.x = turned;
        t.names = (const char *const *)names;
        /* Without the last name of its list the column is 0. */
        double plain[3] = {x[0], x[1], x[2]};
        plain[orders[k][2][0] - 'a'] = left ? 0 : plain[orders[k][2][0] - 'a'];
        r.x = plain;
        t.d -= left;
        assert_int_equal(svs_stream_step(s, &r, &out, &err), SVS_OK);
        assert_int_equal(svs_stream_step(mixed, &t, &same, &err), SVS_OK);
        assert_true(svs_value_equal(out.prediction.y, same.prediction.y));
        same_values("a score", i, out.prediction.scores, same.prediction.scores, 1);
    }
    assert_string_equal(svs_stream_column(mixed, 2), "c");
    svs_stream_free(&s);
    svs_stream_free(&mixed);
}

/* Damage anywhere is reported, and no damaged state is loaded. */
static void test_damaged(void **state) {
    const struct lib_case *c = &lib_cases[7];
    struct lib_table t;
    void *bytes;
    size_t size;
    svs_error err;
    (void)state;
    table_make(c, &t);
    svs_stream *s = lib_stream(c);
    svs_block b = table_block(c, &t, 0, 200);
    assert_int_equal(svs_stream_learn_block(s, &b, NULL, NULL, &err), SVS_OK);
    assert_int_equal(svs_stream_save(s, &bytes, &size, &err), SVS_OK);
    uint8_t *at = bytes;
    for (size_t i = 0; i < size; i += i < 700 ? 1 : (size_t)often(211, 2011)) {
        at[i] ^= 0x41;
        assert_null(svs_stream_load(bytes, size, &err));
        assert_true(err.code == SVS_DAMAGED || err.code == SVS_UNAVAILABLE);
        at[i] ^= 0x41;
    }
    for (size_t cut = 0; cut < size; cut += size / 50 + 1) {
        assert_null(svs_stream_load(bytes, cut, &err));
        assert_int_equal(err.code, SVS_DAMAGED);
    }
    assert_null(svs_stream_load("ten bytes.", 10, &err));
    assert_int_equal(err.code, SVS_DAMAGED);
    svs_stream *loaded = svs_stream_load(bytes, size, &err);
    assert_non_null(loaded);
    svs_stream_free(&loaded);
    svs_bytes_free(&bytes);
    svs_stream_free(&s);
    table_free(&t);
}

/* A key that has no model yet is scored by one that is made for the row: its results outlive it. */
static void test_unknown_key(void **state) {
    const struct lib_case keyed = {.name = "unknown key",
                                   .settings = {{"key", "key"}, {"method", "alsvm"}, {"threads", "1"}},
                                   .classes = 2,
                                   .keyed = true};
    struct lib_row r;
    svs_outcome out;
    svs_error err;
    int predicted = 0;
    (void)state;
    svs_stream *s = lib_stream(&keyed);
    for (int i = 0; i < 300; i++) {
        lib_make_row(&keyed, i, &r);
        assert_int_equal(svs_stream_step(s, &r.row, NULL, &err), SVS_OK);
        r.row.key = "new";
        if (i < 200)
            continue;
        assert_int_equal(svs_stream_score(s, &r.row, &out, &err), SVS_OK);
        assert_int_equal(svs_stream_score(s, &r.row, NULL, NULL), SVS_OK); /* only: would it be taken? */
        if (out.prediction.y.kind == SVS_NONE)
            continue;
        const char *y = out.prediction.y.as.s;
        assert_int_equal(out.prediction.y.length, 2);
        assert_true(y[0] == 'c' && (y[1] == '0' || y[1] == '1'));
        predicted++;
    }
    assert_true(predicted > 50);
    svs_stream_free(&s);
}

/* Time zone of the process: neither does a stream go by it, nor does it change. */
static void test_zone(void **state) {
    static const char *const zones[] = {"UTC0", "<+0900>-9"};
    static const struct lib_case *const monitor = &lib_cases[7];
    char hash[2][33], *texts[2];
    svs_error err;
    (void)state;
    for (int z = 0; z < 2; z++) {
        int count;
        setenv("TZ", zones[z], 1);
        tzset();
        svs_stream *s = lib_stream(monitor);
        for (int i = 0; i < monitor->rows; i++) {
            struct lib_row r;
            lib_make_row(monitor, i, &r);
            assert_int_equal(svs_stream_step(s, &r.row, NULL, &err), SVS_OK);
        }
        const svs_alert *alerts = svs_stream_alerts(s, &count);
        assert_true(count > 0);
        texts[z] = strdup(alerts[count - 1].json);
        assert_int_equal(svs_stream_hash(s, hash[z], &err), SVS_OK);
        assert_string_equal(getenv("TZ"), zones[z]);
        svs_stream_free(&s);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_equal(hash[0], hash[1]);
    free(texts[0]);
    free(texts[1]);
    unsetenv("TZ");
    tzset();
}

/* Settings: what is refused, what changes while the stream lives, and that a copy has it. */
static void test_settings(void **state) {
    static const svs_setting refused[][2] = {{{"in", "tcp://*:5555"}, {0}},
                                             {{"state.dir", "/tmp"}, {0}},
                                             {{"windw", "5"}, {0}},
                                             {{"window", "many"}, {0}},
                                             {{"method", "none"}, {"novelty", "none"}},
                                             {{"window", NULL}, {0}}};
    svs_error err;
    svs_outcome out;
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_null(svs_stream_new(refused[i], refused[i][1].key ? 2 : 1, &err));
        assert_true(err.code == SVS_SETTING || err.code == SVS_INVALID);
    }
    const svs_setting window = {"window", "300"}, later[] = {{"window", "50"}, {"C", "10"}},
                      fixed = {"max.features", "5"};
    svs_stream *s = svs_stream_new(&window, 1, &err);
    assert_string_equal(svs_stream_setting(s, "method"), "alsvm"); /* as a window asks for */
    assert_null(svs_stream_setting(s, "windw"));
    for (int i = 0; i < 200; i++) {
        const double x[2] = {i % 7, i % 3};
        svs_row r = {.x = x, .d = 2, .y = svs_int(i % 7 > 3)};
        assert_int_equal(svs_stream_step(s, &r, &out, &err), SVS_OK);
    }
    assert_int_equal(svs_stream_configure(s, &fixed, 1, &err), SVS_SETTING);
    assert_int_equal(svs_stream_configure(s, later, 2, &err), SVS_OK);
    svs_stream *same = copy(s);
    assert_string_equal(svs_stream_setting(same, "window"), "50");
    assert_string_equal(svs_stream_setting(same, "C"), "10");
    svs_model m;
    assert_int_equal(svs_stream_model(same, NULL, &m, &err), SVS_OK);
    assert_int_equal(m.window, 50);
    size_t size;
    const void *event = svs_stream_model_event(same, NULL, &size, &err);
    svs_model *decoded = svs_model_decode(event, size, &err);
    assert_non_null(decoded);
    assert_int_equal(decoded->d, 2);
    svs_model_free(&decoded);
    assert_non_null(strstr(svs_stream_report(s, 2, false, &err), "\naccuracy "));
    assert_int_equal(svs_stream_report(s, 2, true, &err)[0], '{');
    int count;
    const svs_figure *figures = svs_stream_figures(s, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(figures[i].name, "seen") == 0)
            assert_true(figures[i].value == 200 && figures[i].integral && !figures[i].text);
    svs_stream_reset(s);
    assert_int_equal(svs_stream_verdict(s, 7, NULL, false, "A. N.", &err), SVS_UNAVAILABLE);
    svs_stream_free(&same);
    svs_stream_free(&s);
}

/* Presets, and the verdict on an alert. */
static void test_presets(void **state) {
    const svs_setting often_alerts[] = {{"alert.budget", "10/hour"}, {"novelty.warmup", "50"}};
    uint64_t seed = 3;
    svs_error err;
    svs_outcome out;
    int64_t alert = 0; /* the last one */
    (void)state;
    svs_auto *a = svs_auto_new(NULL, 0, &err);
    assert_string_equal(svs_stream_setting(a, "method"), "auto");
    assert_string_equal(svs_stream_setting(a, "novelty"), "none");
    svs_stream_free(&a);
    assert_null(a);
    svs_monitor *m = svs_monitor_new(often_alerts, 2, &err);
    assert_string_equal(svs_stream_setting(m, "missing"), "mean");
    for (int i = 0; i < 900; i++) {
        const double jump = i > 700 && i < 720 ? 50 : 0,
                     x[2] = {test_normal(&seed) + jump, test_normal(&seed)};
        svs_row r = {.x = x, .d = 2, .ts = 1e9 + 60.0 * i, .has_ts = true};
        assert_int_equal(svs_stream_step(m, &r, &out, &err), SVS_OK);
        assert_false(out.learned);
        for (int k = 0; k < out.alert_count; k++)
            if (strcmp(out.alerts[k].kind, "novelty") == 0)
                alert = out.alerts[k].alert;
    }
    assert_true(alert > 0);
    if (svs_stream_verdict(m, alert, NULL, true, "A. N.", &err) != SVS_OK)
        fail_msg("%s", err.text);
    svs_stream_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_the_program),
                                       cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_blocks),
                                       cmocka_unit_test(test_refused_blocks),
                                       cmocka_unit_test(test_narrow_blocks),
                                       cmocka_unit_test(test_orders_of_names),
                                       cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_unknown_key),
                                       cmocka_unit_test(test_zone),
                                       cmocka_unit_test(test_settings),
                                       cmocka_unit_test(test_presets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
