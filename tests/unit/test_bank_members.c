/* Members of a bank that can be held against something exact: windows against learners of their own that get
 * the same calls, Gaussian densities against those of all rows at once, samples that are taken back against
 * those that never came, least squares on many features against a fresh solve. */
#include "reference.h"
#include "support/archived.h"
#include "support/problem.h"
#include "support/quick.h"

#include "bank/fourier_ridge.h"
#include "bank/members.h"
#include "bank/windows.h"
#include "learner/learner_held.h"

enum { D = 5 };

/* ---- windows */

static const struct svi_windows_options windows_here = {
    .count = {4, 4},
    .all = 2,
    .kind = {{20, SVS_ALSVM, 1}, {70, SVS_ALSVM, 1}, {0, SVS_ALSVM, 1}, {0, SVS_FALSVM, 1}}};

static svs_options window_options(int i, svs_class_rule rule) {
    svs_options o;
    svs_options_default(&o);
    o.class_rule = rule;
    o.labels_ttl = 0;
    o.window = i < 0 ? 300 : windows_here.kind[i].window;
    o.rule = i < 0 ? SVS_ALSVM : windows_here.kind[i].rule;
    return o;
}

static void windows_archive(struct svi_archive *a, void *user) {
    const struct svi_member_part *p = user;
    p->ops->archive(a, p);
}

static void assert_same_scores(const struct svi_member_part *p, struct svi_member_context *c,
                               svs_learner *const *own, const double *x, int rows) {
    const struct svi_windows *w = p->self;
    double scores[4][8], expected[8];
    c->x = x;
    c->rows = rows;
    p->ops->score(p, scores[0]);
    for (int i = 0; i < 4; i++) {
        svs_learner_scores(own[i], x, expected);
        assert_memory_equal(scores[i], expected, (size_t)rows * sizeof expected[0]);
        assert_true(svs_learner_version(w->of[i]) == svs_learner_version(own[i]));
    }
}

static void windows_are_learners(svs_class_rule rule, uint64_t seed) {
    const svs_options host_options = window_options(-1, rule);
    svs_learner *host = svs_learner_new(&host_options, D, NULL), *own[4];
    struct svi_member_ops ops = svi_member_windows;
    struct svi_member_context c = {.host = &host_options, .stride = 8};
    struct svi_windows w;
    struct svi_member_part p = {.ops = &ops, .c = &c, .self = &w, .on = 15};
    svs_step step;
    int classes = 0;
    ops.options = &windows_here;
    assert_int_equal(ops.init(&p, D, NULL), SVS_OK);
    for (int i = 0; i < 4; i++) {
        const svs_options o = window_options(i, rule);
        assert_non_null(own[i] = svs_learner_new(&o, D, NULL));
        svi_learner_relax(own[i], true);
    }
    for (int t = 0; t < 400; t++) {
        double x[D + 1];
        const int d = D + (t > 200), k = (int)(ref_uniform(&seed) * (t > 100 ? 5 : 2));
        for (int j = 0; j < d; j++)
            x[j] = test_normal(&seed) + k * (j == 1);
        if (t == 201) {
            assert_int_equal(ops.grow(&p, d, NULL), SVS_OK);
            assert_int_equal(svs_learner_grow(host, d, NULL), SVS_OK);
            for (int i = 0; i < 4; i++)
                assert_int_equal(svs_learner_grow(own[i], d, NULL), SVS_OK);
        }
        if (t == 150) { /* a new one goes on */
            struct svi_bytes bytes = {0};
            struct svi_windows again;
            struct svi_member_part q = p;
            svs_error err = {0};
            q.self = &again;
            assert_int_equal(ops.init(&q, D, NULL), SVS_OK);
            assert_int_equal(archived_save(windows_archive, &p, &bytes, &err), SVS_OK);
            if (archived_load(windows_archive, &q, bytes.data, bytes.size, &err) != SVS_OK)
                fail_msg("%s", err.text);
            p.on = 0;
            ops.clear(&p);
            p.on = 15;
            w = again;
            svi_bytes_clear(&bytes);
        }
        const svs_sample s = {x, d, svs_int(t % 30), svs_int(k), 0.5 + ref_uniform(&seed)};
        if (t % 9 == 8) {
            const svs_value id = svs_int((int)(ref_uniform(&seed) * 30));
            svi_windows_forget(&w, id, t);
            svs_learner_forget(host, id, t, NULL, NULL);
            for (int i = 0; i < 4; i++)
                svs_learner_forget(own[i], id, t, NULL, NULL);
        }
        if (t == 300)
            for (int i = -1; i < 4; i++)
                svs_learner_reset(i < 0 ? host : own[i]);
        if (t == 300)
            ops.reset(&p);
        assert_int_equal(svs_learner_step(host, &s, t, &step, NULL), SVS_OK);
        assert_int_equal(
            ops.learn(&p, &(struct svi_member_lesson){.host = host, .sample = &s, .time = t}, NULL), SVS_OK);
        for (int i = 0; i < 4; i++)
            assert_int_equal(svs_learner_step(own[i], &s, t, &step, NULL), SVS_OK);
        classes = svs_learner_class_count(host);
        assert_same_scores(&p, &c, own, x, svs_learner_rows(host));
        const char *wrong = ops.check(&p, host, rule == SVS_CLASSES_ALIKE ? 1e-9 : 1e-8);
        if (t % 20 == 0 && wrong)
            fail_msg("%s", wrong);
    }
    assert_int_equal(classes, 5);
    p.on = 0;
    ops.clear(&p);
    svs_learner_free(&host);
    for (int i = 0; i < 4; i++)
        svs_learner_free(&own[i]);
}

static void windows_are_learners_of_the_same_calls(void **unused) {
    (void)unused;
    windows_are_learners(SVS_CLASSES_ALIKE, 3);
    windows_are_learners(SVS_CLASSES_BALANCED, 4);
}

/* ---- Gaussian densities */

extern const struct svi_member_ops svi_member_gaussian;

enum { G_D = 30, G_ROWS = 200, G_CLASSES = 4, G_FULL = 24 };

/* Rows that a member has learned, and the member. */
struct densities {
    svs_options host;
    struct svi_member_context c;
    struct svi_member_part p;
    float z[G_D + 2];
    double row[G_ROWS][G_D], weight[G_ROWS];
    int label[G_ROWS], count;
};

/* -(log det C + u' C^-1 u) / 2 by elimination. */
static double elimination(double c[G_D][G_D + 1], int d) {
    double log_det = 0, square = 0;
    for (int i = 0; i < d; i++) {
        log_det += log(c[i][i]);
        square += c[i][d] * c[i][d] / c[i][i];
        for (int r = i + 1; r < d; r++) {
            const double f = c[r][i] / c[i][i];
            for (int j = i; j <= d; j++)
                c[r][j] -= f * c[i][j];
        }
    }
    return -0.5 * (log_det + square);
}

/* Log of share times density of a class, from all rows at once: weights fall by 1 - fading with each later
 * sample of the class; in shares, with each later sample. */
static double density_of(const struct densities *g, int class, double fading) {
    double c[G_D][G_D + 1] = {{0}}, mean[G_D] = {0}, sum = 0, own = 0, all = 0;
    const int d = g->c.d;
    int seen = 0;
    for (int pass = 0; pass < 2; pass++) {
        double w = 1, kept = 1;
        seen = 0;
        for (int i = g->count - 1; i >= 0; i--, kept *= 1 - fading) {
            all += pass * kept * g->weight[i];
            own += pass * kept * g->weight[i] * (g->label[i] == class);
            if (g->label[i] != class)
                continue;
            seen++;
            for (int a = 0; a < d && pass == 0; a++)
                mean[a] += w * g->weight[i] * g->row[i][a];
            for (int a = 0; a < d && pass == 1; a++)
                for (int b = 0; b < d; b++)
                    c[a][b] += w * g->weight[i] * (g->row[i][a] - mean[a]) * (g->row[i][b] - mean[b]);
            sum += pass == 0 ? w * g->weight[i] : 0;
            w *= 1 - fading;
        }
        for (int a = 0; a < d && pass == 0; a++)
            mean[a] /= sum > 0 ? sum : 1;
    }
    for (int a = 0; a < d; a++) {
        for (int b = 0; b < d; b++) {
            c[a][b] *= (sum > 0 ? 1 / sum : 0) * (seen / (seen + 2.0));
            c[a][b] *= a == b ? 1 : d > G_FULL ? 0 : seen / (seen + (double)d);
        }
        c[a][a] += 2 / (seen + 2.0);
        c[a][d] = (double)g->z[a] - mean[a];
    }
    const double share = ((all > 0 ? own / all : 0) * g->count + 0.5) / (g->count + 0.5 * g->c.class_count);
    return log(share) + elimination(c, d);
}

static double density_bounded(double v) {
    return v > 5 ? 5 : v < -5 ? -5 : v;
}

static void assert_densities(struct densities *g) {
    double scores[2 * G_CLASSES], of[G_CLASSES];
    g->p.ops->score(&g->p, scores);
    for (int m = 0; m < 2; m++) {
        for (int k = 0; k < g->c.class_count; k++)
            of[k] = density_of(g, k, m == 0 ? 1 / 500.0 : 0);
        for (int k = 0; k < g->c.rows; k++) {
            double others = 0;
            const int class = g->c.rows == 1 ? 1 : k;
            for (int j = 0; j < g->c.class_count; j++)
                others += j != class ? exp(of[j] - of[class]) : 0;
            const double expected = density_bounded(-0.5 * log(others));
            if (!(fabs(scores[m * G_CLASSES + k] - expected) < 1e-6))
                fail_msg("row %d, member %d, class %d: %.9g is not %.9g", g->count, m, class,
                         scores[m * G_CLASSES + k], expected);
        }
    }
}

static void densities_archive(struct svi_archive *a, void *user) {
    const struct svi_member_part *p = user;
    p->ops->archive(a, p);
}

/* A new one takes over what was saved; saved again it is the same, byte for byte. */
static void densities_again(struct densities *g) {
    struct svi_bytes bytes = {0}, again = {0};
    struct svi_member_part q = g->p;
    svs_error err = {0};
    q.self = calloc(1, q.ops->size);
    assert_int_equal(q.ops->init(&q, 2, &err), SVS_OK);
    assert_int_equal(archived_save(densities_archive, &g->p, &bytes, &err), SVS_OK);
    if (archived_load(densities_archive, &q, bytes.data, bytes.size, &err) != SVS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(archived_save(densities_archive, &q, &again, &err), SVS_OK);
    assert_true(archived_same(&bytes, &again));
    g->p.on = 0;
    g->p.ops->clear(&g->p);
    free(g->p.self);
    g->p = q;
    svi_bytes_clear(&bytes);
    svi_bytes_clear(&again);
}

static void densities_learn(struct densities *g, int label, double weight) {
    const struct svi_held_sample held = {.label = label, .weight = weight, .number = g->count};
    const struct svi_member_lesson lesson = {.held = &held};
    g->c.classes = label + 1 > g->c.classes ? label + 1 : g->c.classes;
    assert_int_equal(g->p.ops->learn(&g->p, &lesson, NULL), SVS_OK);
    for (int j = 0; j < g->c.d; j++)
        g->row[g->count][j] = (double)g->z[j];
    g->label[g->count] = label;
    g->weight[g->count++] = weight;
    g->c.class_count = g->c.classes;
    g->c.rows = g->c.classes > 2 ? g->c.classes : 1;
}

/* Wider by up to two features, from the whole matrix to the diagonal on the way; or one starts again. */
static void densities_change(struct densities *g, uint64_t *seed) {
    if (ref_uniform(seed) < 0.2 && g->c.d < G_D) {
        g->c.d += 1 + (g->c.d + 1 < G_D && ref_uniform(seed) < 0.5);
        assert_int_equal(g->p.ops->grow(&g->p, g->c.d, NULL), SVS_OK);
    }
    if (ref_uniform(seed) < 0.05) {
        const int j = (int)(ref_uniform(seed) * g->c.d);
        g->p.ops->renew(&g->p, j);
        for (int i = 0; i < g->count; i++)
            g->row[i][j] = 0;
    }
    if (ref_uniform(seed) < 0.05)
        densities_again(g);
}

static void densities_are_those_of_all_rows(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed < 5; seed++) {
        struct densities *g = calloc(1, sizeof *g);
        uint64_t random = seed;
        int learned[G_CLASSES] = {0};
        svs_options_default(&g->host);
        g->host.max_classes = G_CLASSES;
        g->c = (struct svi_member_context){
            .host = &g->host, .d = 3, .stride = G_CLASSES, .z = g->z, .rows = 1, .class_count = 0};
        g->p = (struct svi_member_part){.ops = &svi_member_gaussian, .c = &g->c, .on = 3};
        g->p.self = calloc(1, g->p.ops->size);
        assert_int_equal(g->p.ops->init(&g->p, 3, NULL), SVS_OK);
        while (g->count < G_ROWS - 1) {
            /* At most 63 samples a class: up to there each sample makes a new factor. */
            int label = (int)(ref_uniform(&random) * (g->count > 60 ? G_CLASSES : 2));
            while (learned[label] == 63)
                label = (label + 1) % G_CLASSES;
            learned[label]++;
            densities_change(g, &random);
            for (int j = 0; j < g->c.d; j++)
                g->z[j] =
                    (float)(test_normal(&random) * (1 + label) + (j == label) + (j ? 0.5F * g->z[j - 1] : 0));
            if (g->c.class_count > 1)
                assert_densities(g);
            densities_learn(g, label, seed % 2 ? 1 : 0.1 + ref_uniform(&random));
        }
        assert_int_equal(g->c.d, G_D);
        g->p.ops->reset(&g->p);
        g->count = 0;
        assert_densities(g);
        g->p.on = 0;
        g->p.ops->clear(&g->p);
        free(g->p.self);
        free(g);
    }
}

/* ---- taken back */

/* A learner without a window of `d` features that learned all of `count` rows, or those that stay. */
static svs_learner *learner_of_rows(int d, int count, bool leave, svs_learner *host, uint64_t seed) {
    svs_options o;
    svs_step step;
    svs_options_default(&o);
    o.window = 0;
    o.scale = SVS_SCALE_NONE; /* deviations would be those of what was there */
    svs_learner *l = svs_learner_new(&o, d, NULL);
    assert_non_null(l);
    double *x = calloc((size_t)d, sizeof *x);
    for (int i = 0; i < count; i++) {
        const int k = (int)(ref_uniform(&seed) * 3);
        for (int j = 0; j < d; j++)
            x[j] = test_normal(&seed) + (j == k);
        const svs_sample s = {x, d, svs_int(i), svs_int(k), 0.5 + ref_uniform(&seed)};
        if (host)
            assert_int_equal(svs_learner_step(host, &s, i, &step, NULL), SVS_OK);
        if (!leave || i % 7 != 3)
            assert_int_equal(svs_learner_step(l, &s, i, &step, NULL), SVS_OK);
    }
    free(x);
    return l;
}

static void take_back_one(void *l, const struct svi_held_sample *s) {
    svi_learner_take_back(l, s);
}

static void what_is_taken_back_was_never_there(void **unused) {
    (void)unused;
    for (int d = 4; d <= 120; d += 58) { /* sums of 96 coordinates and more go another way */
        svs_options o;
        svs_options_default(&o);
        svs_learner *host = svs_learner_new(&o, d, NULL), *all = learner_of_rows(d, 300, false, host, 5),
                    *without = learner_of_rows(d, 300, true, NULL, 5);
        double *x = calloc((size_t)d, sizeof *x), one[3], other[3];
        uint64_t seed = 8;
        for (int i = 3; i < 300; i += 7)
            svi_learner_each_held(host, svs_int(i), take_back_one, all);
        for (int i = 0; i < 10; i++) {
            for (int j = 0; j < d; j++)
                x[j] = test_normal(&seed);
            svs_learner_scores(all, x, one);
            svs_learner_scores(without, x, other);
            for (int k = 0; k < 3; k++)
                assert_true(fabs(one[k] - other[k]) < 1e-9);
        }
        free(x);
        svs_learner_free(&host);
        svs_learner_free(&all);
        svs_learner_free(&without);
    }
}

/* ---- the table */

/* A name begins with what the member is, where it has figures after it: products-0.03 is of the kind
 * products. Names are different, and members of one table stand together. */
static void names_say_what_members_are(void **unused) {
    (void)unused;
    for (int i = 0; i < svi_member_count; i++) {
        const struct svi_member *m = &svi_members[i];
        const size_t kind = strcspn(m->name, "-");
        assert_non_null(m->kind[0]);
        if (strcmp(m->kind[0], "last") != 0)
            assert_memory_equal(m->name, m->kind[0], kind);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(m->name, svi_members[k].name);
            if (svi_members[k].ops == m->ops)
                assert_ptr_equal(svi_members[i - 1].ops, m->ops);
        }
        assert_in_range(m->tasks, 1, 3);
        assert_true(m->turn >= 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_say_what_members_are),
        cmocka_unit_test(windows_are_learners_of_the_same_calls),
        cmocka_unit_test(densities_are_those_of_all_rows),
        cmocka_unit_test(what_is_taken_back_was_never_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
