/* The model of each key solves the problem that the manual states (key.prior), for the samples that all keys
 * held where keys were last coupled before the key took its prior: against a fresh solve in long double,
 * while samples are learned, labelled late and forgotten, keys go and come again, leave memory, and the whole
 * is taken up from its state. And the number of threads changes no bit of it. */
#include "support/engine.h"

#include "base/random.h"
#include "fleet/fleet_internal.h"

#define KEYS    7
#define D       3
#define WINDOW  20
#define ACTIONS 5000
#define WORTH   10
#define CLASSES 3

struct row {
    double x[D], t;
    int label, id;
    bool here;
};

/* What the manual says of a key: its samples, and what it took of all. */
struct mirror {
    struct row held[WINDOW]; /* oldest first, forgotten ones too */
    int count, arrivals, next;
    long double all[D + 1][D + 1], right[CLASSES + 1][D + 1];
    double level[D], between[D], within[D]; /* of what it took */
    double center[D], mean[D];              /* where it lies; the mean that is counted */
    double mean_of;                         /* of that many samples; 0: it is not */
    bool took, centered;
    int sent;
};

struct walk {
    struct svi_random random;
    struct svi_settings s;
    svi_stream *fleet;
    bool regress;
    struct mirror key[KEYS];
    long double all[D + 1][D + 1], right[CLASSES + 1][D + 1]; /* right: by class, the last of all or of t */
    double level[D], between[D], within[D];
    bool any;
    int64_t taken;
    struct svi_bytes frame;
    double now, worst;
    int compared;
};

static const char *name_of(int k) {
    static char text[8];
    snprintf(text, sizeof text, "m%d", k);
    return text;
}

static void silent(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static void begin(struct walk *w) {
    svs_error err = {0};
    w->fleet = svi_stream_new(&w->s, 5, silent, NULL, &err);
    if (!w->fleet)
        fail_msg("%s", err.text);
    svi_stream_leave_open(w->fleet, true);
}

/* ---- the mirror */

static void add_row(long double all[D + 1][D + 1], long double right[CLASSES + 1][D + 1], const struct row *r,
                    const double *center, bool regress) {
    const long double z[D + 1] = {1, r->x[0] - center[0], r->x[1] - center[1], r->x[2] - center[2]};
    for (int i = 0; i <= D; i++) {
        for (int j = 0; j <= D; j++)
            all[i][j] += z[i] * z[j];
        right[CLASSES][i] += (regress ? (long double)r->t : 1) * z[i];
        if (!regress)
            right[r->label][i] += z[i];
    }
}

/* What is known of where keys lie. */
static void level_of(struct walk *w, int j) {
    long double keys = 0, inverse = 0, sum = 0, square = 0;
    const long double mean = w->all[0][j + 1] / w->all[0][0];
    w->within[j] = (double)(w->all[j + 1][j + 1] / w->all[0][0] - mean * mean);
    for (int k = 0; k < KEYS; k++)
        if (w->key[k].mean_of > 0) {
            keys++;
            inverse += 1 / w->key[k].mean_of;
            sum += w->key[k].mean[j];
        }
    for (int k = 0; k < KEYS; k++)
        if (w->key[k].mean_of > 0)
            square += (w->key[k].mean[j] - sum / keys) * (w->key[k].mean[j] - sum / keys);
    w->level[j] = keys > 0 ? (double)(sum / keys) : 0;
    w->between[j] =
        keys < 2 ? INFINITY : (double)fmaxl(0, square / (keys - 1) - w->within[j] * inverse / keys);
}

/* What couples the keys, after the elements at which the manual says so. */
static void couple(struct walk *w) {
    const int64_t n = ++w->taken;
    if (!(n % 1024 == 0 || n == 64 || n == 128 || n == 256 || n == 512))
        return;
    memset(w->all, 0, sizeof w->all);
    memset(w->right, 0, sizeof w->right);
    for (int k = 0; k < KEYS; k++)
        for (int i = 0; i < w->key[k].count; i++)
            if (w->key[k].held[i].here)
                add_row(w->all, w->right, &w->key[k].held[i], w->key[k].center, w->regress);
    w->any = w->all[0][0] > 0;
    for (int j = 0; j < D; j++)
        level_of(w, j);
}

static void place(struct mirror *m, const double *mean, double n) {
    for (int j = 0; j < D; j++) {
        const double chance = m->within[j] / n;
        const bool known = m->took && m->between[j] < INFINITY && chance > 0;
        m->center[j] = known
                           ? m->level[j] + m->between[j] / (m->between[j] + chance) * (mean[j] - m->level[j])
                           : mean[j];
    }
    m->centered = true;
}

static void take(struct walk *w, struct mirror *m) {
    memcpy(m->level, w->level, sizeof m->level);
    memcpy(m->between, w->between, sizeof m->between);
    memcpy(m->within, w->within, sizeof m->within);
    memcpy(m->all, w->all, sizeof m->all);
    memcpy(m->right, w->right, sizeof m->right);
    m->took = w->any;
}

static void mirror_first(struct walk *w, struct mirror *m, const struct row *r) {
    if (m->arrivals > 0)
        return;
    take(w, m);
    place(m, r->x, 1);
}

/* Where it lies by what it holds. */
static void mirror_place(struct mirror *m) {
    double mean[D] = {0}, n = 0;
    for (int i = 0; i < m->count; i++)
        for (int j = 0; m->held[i].here && j < D; j++) {
            mean[j] += m->held[i].x[j];
            n += j == 0;
        }
    for (int j = 0; j < D; j++)
        mean[j] /= n;
    m->mean_of = 0;
    if (n > 0)
        place(m, mean, n);
    if (n < 8)
        return;
    memcpy(m->mean, mean, sizeof mean);
    m->mean_of = n;
}

static void mirror_learn(struct walk *w, struct mirror *m, const struct row *r) {
    if (m->count == WINDOW)
        memmove(m->held, m->held + 1, sizeof m->held[0] * (size_t)--m->count);
    m->held[m->count++] = *r;
    m->arrivals++;
    if (m->next == 0)
        m->next = 8;
    if (m->arrivals == m->next) {
        take(w, m);
        mirror_place(m);
        m->next = m->arrivals == 8 ? 16 : m->arrivals == 16 ? WINDOW : m->arrivals + 4 * WINDOW;
    }
}

/* ---- what is compared */

static void solve(long double g[D + 1][D + 1], long double *b) {
    for (int i = 0; i <= D; i++) {
        for (int j = i + 1; j <= D; j++) {
            const long double f = g[j][i] / g[i][i];
            for (int c = i; c <= D; c++)
                g[j][c] -= f * g[i][c];
            b[j] -= f * b[i];
        }
    }
    for (int i = D; i >= 0; i--) {
        for (int c = i + 1; c <= D; c++)
            b[i] -= g[i][c] * b[c];
        b[i] /= g[i][i];
    }
}

/* What others hold, moved to where the key lies: x = y + center. */
static void move(const struct mirror *m, long double all[D + 1][D + 1],
                 long double right[CLASSES + 1][D + 1]) {
    const long double c[D + 1] = {0, m->center[0], m->center[1], m->center[2]};
    for (int i = 0; i <= D; i++)
        for (int j = 0; j <= D; j++)
            all[i][j] = m->all[i][j] + c[i] * m->all[0][j] + c[j] * m->all[i][0] + c[i] * c[j] * m->all[0][0];
    all[0][0] = m->all[0][0];
    for (int k = 0; k <= CLASSES; k++)
        for (int i = 0; i <= D; i++)
            right[k][i] = m->right[k][i] + c[i] * m->right[k][0];
}

static void compare_row(struct walk *w, const struct mirror *m, const double *weights, double bias,
                        int positive) {
    static const double none[D];
    long double g[D + 1][D + 1], b[D + 1] = {0}, own[CLASSES + 1][D + 1] = {{0}}, off = 0, size = 0;
    long double all[D + 1][D + 1], right[CLASSES + 1][D + 1];
    const long double share = m->took ? fminl(1, WORTH / m->all[0][0]) : 0;
    memset(g, 0, sizeof g);
    for (int i = 0; i < m->count; i++)
        if (m->held[i].here)
            add_row(g, own, &m->held[i], none, w->regress);
    move(m, all, right);
    for (int i = 0; i <= D; i++) {
        for (int j = 0; j <= D; j++)
            g[i][j] += (m->took ? share * all[i][j] : 0) + (i == j ? 0.5L : 0);
        const long double others = m->took ? share * right[CLASSES][i] : 0;
        b[i] = own[CLASSES][i] + others;
        if (!w->regress)
            b[i] = (positive < 0 ? 0 : 2 * (own[positive][i] + (m->took ? share * right[positive][i] : 0))) -
                   b[i];
    }
    solve(g, b);
    for (int i = 0; i <= D; i++) {
        const long double is = i == 0 ? bias : weights[i - 1], one = b[i] - is;
        off += one * one;
        size += b[i] * b[i];
    }
    const double far = (double)sqrtl(size > 0 ? off / size : off);
    w->worst = fmax(w->worst, far);
    if (far > 1e-10)
        fail_msg("a model is %g off after %lld elements", far, (long long)w->taken);
    w->compared++;
}

static void compare(struct walk *w, int k) {
    svs_model m;
    svs_error err = {0};
    struct svi_command c = {0};
    svi_stream_settle(w->fleet);
    (void)c;
    svi_engine *e = svi_stream_engine(w->fleet, name_of(k), &err);
    if (!e)
        return;
    assert_int_equal(svs_learner_model(e->learner, &m, &err), SVS_OK);
    for (int r = 0; r < m.rows; r++) {
        const int index = m.rows == 1 ? 1 : r;
        const int positive = w->regress || index >= m.class_count ? -1 : (int)m.classes[index].as.i;
        compare_row(w, &w->key[k], m.W + (size_t)r * (size_t)m.d, m.b[r], positive);
    }
    assert_true(svs_learner_check(e->learner) < 1e-10);
}

/* ---- what is done */

static void give(struct walk *w, struct svi_message *m, int k) {
    struct svi_envelope env;
    m->key = svs_str(name_of(k));
    w->frame.size = 0;
    assert_int_equal(svi_message_encode(m, NULL, false, &w->frame), SVS_OK);
    assert_int_equal(svi_envelope_read(&env, w->frame.data, w->frame.size), SVS_OK);
    svi_stream_apply_later(w->fleet, &env, w->now, false, NULL);
}

static void learn(struct walk *w, int k) {
    struct mirror *m = &w->key[k];
    struct row r = {.here = true, .id = m->sent};
    for (int j = 0; j < D; j++)
        r.x[j] = (svi_random_below(&w->random, 2001) - 1000.0) / 500 + (j == 1 ? 100 : 0) + k * 0.1;
    r.label = r.x[0] + r.x[2] > k ? svi_random_below(&w->random, 5) ? 1 : 2 : 0;
    r.t = r.x[0] - r.x[2] + 0.3 * k;
    struct svi_message msg = {
        .has_x = true, .kind = SVI_DENSE, .d = D, .x = r.x, .ts = NAN, .weight = 1, .n = -1};
    msg.id = svs_int(m->sent++);
    msg.y = w->regress ? svs_real(r.t) : svs_int(r.label);
    mirror_first(w, m, &r);
    mirror_learn(w, m, &r);
    give(w, &msg, k);
    couple(w);
}

static void forget(struct walk *w, int k) {
    struct mirror *m = &w->key[k];
    struct svi_message msg = {.op = SVI_FORGET, .ts = NAN, .weight = 1, .n = -1};
    const int id = m->sent - 1 - (int)svi_random_below(&w->random, 25);
    msg.id = svs_int(id);
    for (int i = 0; i < m->count; i++)
        if (m->held[i].id == id)
            m->held[i].here = false;
    give(w, &msg, k);
    couple(w);
}

static void drop(struct walk *w, int k) {
    svs_error err;
    svi_stream_settle(w->fleet);
    if (svi_fleet_drop(svi_fleet_of(w->fleet), name_of(k), &err) == SVS_OK)
        w->key[k] = (struct mirror){0};
}

static void resume(struct walk *w) {
    struct svi_checkpoint c = {0};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err = {0};
    svi_stream_settle(w->fleet);
    assert_int_equal(svi_stream_hash(w->fleet, before, &err), SVS_OK);
    assert_int_equal(svi_stream_save(w->fleet, &c, &err), SVS_OK);
    svi_stream_free(&w->fleet);
    begin(w);
    if (svi_stream_load(w->fleet, &c, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(svi_stream_hash(w->fleet, after, &err), SVS_OK);
    assert_string_equal(before, after);
    svi_checkpoint_clear(&c);
}

static void walk(const char *threads, const char *memory, const char *task, bool looks, char *hash) {
    struct walk w = {.random = {11}, .now = NOW, .regress = strcmp(task, "regress") == 0};
    const char *const settings[] = {
        "key",         "key",  "novelty", "none",  "window",      "20",   "scale",     "none", "task", task,
        "alert.rules", "none", "threads", threads, "keys.memory", memory, "key.prior", "10",   NULL};
    svs_error err = {0};
    svi_settings_default(&w.s);
    for (int i = 0; settings[i]; i += 2)
        assert_int_equal(svi_settings_set(&w.s, settings[i], settings[i + 1], &err), SVS_OK);
    svi_settings_settle_method(&w.s);
    begin(&w);
    for (int i = 0; i < ACTIONS; i++) {
        const int k = (int)svi_random_below(&w.random, i < 600 ? 3 : KEYS),
                  what = (int)svi_random_below(&w.random, 500);
        w.now += 0.25;
        if (what == 0)
            resume(&w);
        else if (what <= 2)
            drop(&w, k);
        else if (what < 60 && w.key[k].sent > 0)
            forget(&w, k);
        else
            learn(&w, k);
        if (looks && i % 5 == 0)
            compare(&w, k);
    }
    svi_stream_settle(w.fleet);
    assert_int_equal(svi_stream_hash(w.fleet, hash, &err), SVS_OK);
    if (looks)
        assert_true(w.compared > 900);
    svi_stream_free(&w.fleet);
    svi_bytes_clear(&w.frame);
}

static void test_problem(void **state) {
    char hash[SVI_HASH_TEXT];
    (void)state;
    walk("1", "100", "classify", true, hash);
    walk("1", "2", "classify", true, hash);
    walk("1", "100", "regress", true, hash);
}

static void test_threads(void **state) {
    char one[SVI_HASH_TEXT], other[SVI_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        walk("1", "100", i ? "regress" : "classify", false, one);
        walk("2", "100", i ? "regress" : "classify", false, other);
        assert_string_equal(one, other);
        walk("3", "2", i ? "regress" : "classify", false, other);
        assert_string_equal(one, other);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_problem), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
