/* Two models compared: what only turns a model round is no difference, and what differs is what was changed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "report/model_diff.h"
#include "support/problem.h"

enum { D = 7, K = 4 };

struct made {
    svs_model m;
    double W[K * D], b[K];
    svs_value classes[K];
    const char *features[D];
};

static const char *const names[D] = {"a", "b", "c", "d=x", "d=y", "e", "f"};

static void make(struct made *m, uint64_t seed, int classes, bool named) {
    m->m = (svs_model){.method = "alsvm",
                       .d = D,
                       .rows = classes < 3 ? 1 : classes,
                       .class_count = classes,
                       .W = m->W,
                       .b = m->b,
                       .classes = m->classes,
                       .features = named ? m->features : NULL};
    for (int i = 0; i < K * D; i++)
        m->W[i] = test_normal(&seed);
    for (int k = 0; k < K; k++) {
        m->b[k] = test_normal(&seed);
        m->classes[k] = svs_int(k + 10);
    }
    memcpy(m->features, names, sizeof names);
}

/* The classes in another order, and the features too where they have names. */
static void turn(struct made *to, const struct made *from) {
    const svs_model *m = &from->m;
    const int by = 3;
    *to = *from;
    to->m.W = to->W;
    to->m.b = to->b;
    to->m.classes = to->classes;
    to->m.features = m->features ? to->features : NULL;
    const double sign = m->rows == 1 && m->class_count == 2 ? -1 : 1;
    for (int k = 0; k < m->class_count; k++)
        to->classes[k] = from->classes[m->class_count - 1 - k];
    for (int j = 0; j < D; j++)
        to->features[j] = from->features[(j + by) % D];
    for (int k = 0; k < m->rows; k++) {
        to->b[k] = sign * from->b[m->rows - 1 - k];
        for (int j = 0; j < D; j++)
            to->W[k * D + j] = sign * from->W[(m->rows - 1 - k) * D + (m->features ? (j + by) % D : j)];
    }
}

static json_t *diff(struct made *a, struct made *b, int64_t top, bool *same) {
    const struct svi_model_side side[2] = {{.name = "A", .model = &a->m}, {.name = "B", .model = &b->m}};
    char *text[2];
    size_t size[2];
    bool again;
    for (int i = 0; i < 2; i++) {
        FILE *to = open_memstream(&text[i], &size[i]);
        assert_int_equal(svi_model_diff(side, top, i == 0, to, i ? &again : same, NULL), SVS_OK);
        fclose(to);
    }
    assert_true(again == *same);
    assert_true((strstr(text[1], "the same scores") != NULL) == *same);
    json_t *found = json_loads(text[0], 0, NULL);
    assert_non_null(found);
    assert_true(json_is_true(json_object_get(found, "same")) == *same);
    free(text[0]);
    free(text[1]);
    return found;
}

static double real(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static void turned_is_the_same(void **state) {
    (void)state;
    for (int classes = 2; classes <= K; classes++)
        for (int named = 0; named < 2; named++) {
            struct made a, b;
            bool same;
            make(&a, 5 + (uint64_t)classes, classes, named);
            turn(&b, &a);
            json_t *found = diff(&a, &b, 10, &same);
            assert_true(same);
            const json_t *rows = json_object_get(found, "rows");
            assert_int_equal(json_array_size(rows), a.m.rows);
            for (int k = 0; k < a.m.rows; k++) {
                assert_true(fabs(real(json_array_get(rows, (size_t)k), "cosine") - 1) < 1e-12);
                assert_int_equal(json_array_size(json_object_get(json_array_get(rows, (size_t)k), "weights")),
                                 0);
            }
            json_decref(found);
        }
}

/* The largest change comes first, and the figures of a row are those of its vectors. */
static void what_was_changed_is_told(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 30; seed++) {
        struct made a, b;
        bool same;
        const int classes = 2 + (int)(seed % 3);
        make(&a, seed, classes, seed % 2);
        turn(&b, &a);
        const int rows = a.m.rows, column = (int)(seed % D);
        for (int k = 0; k < rows; k++) {
            b.W[k * D + column] += 5;
            b.W[k * D + (column + 1) % D] += 0.5;
        }
        json_t *found = diff(&a, &b, 1, &same);
        assert_false(same);
        for (int k = 0; k < rows; k++) {
            const json_t *row = json_array_get(json_object_get(found, "rows"), (size_t)k);
            const json_t *weights = json_object_get(row, "weights"), *first = json_array_get(weights, 0);
            assert_int_equal(json_array_size(weights), 1);
            if (a.m.features)
                assert_string_equal(json_string_value(json_object_get(first, "feature")), b.features[column]);
            else
                assert_int_equal(json_integer_value(json_object_get(first, "feature")), column);
            assert_true(fabs(fabs(real(first, "b") - real(first, "a")) - 5) < 1e-9);
            assert_true(fabs(real(row, "change") - sqrt(25.25)) < 1e-9);
            assert_true(real(row, "cosine") < 1);
        }
        json_decref(found);
    }
}

static void what_one_of_them_has(void **state) {
    (void)state;
    struct made a, b;
    bool same;
    make(&a, 3, 3, true);
    make(&b, 3, 3, true);
    b.features[6] = "new";
    for (int k = 0; k < 3; k++)
        b.W[k * D + 6] = a.W[k * D + 6] = 0;
    json_t *found = diff(&a, &b, 3, &same);
    assert_true(same); /* a weight of 0 says nothing */
    assert_string_equal(json_string_value(json_array_get(json_object_get(found, "features_a"), 0)), "f");
    assert_string_equal(json_string_value(json_array_get(json_object_get(found, "features_b"), 0)), "new");
    json_decref(found);
    b.W[6] = 2;
    found = diff(&a, &b, 3, &same);
    assert_false(same);
    json_decref(found);
    make(&b, 3, 4, true);
    found = diff(&a, &b, 3, &same);
    assert_false(same);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(found, "classes_b"), 0)), 13);
    assert_int_equal(json_array_size(json_object_get(found, "rows")), 3);
    json_decref(found);
    make(&b, 3, 2, true);
    found = diff(&a, &b, 3, &same);
    assert_false(same);
    assert_int_equal(json_array_size(json_object_get(found, "rows")), 0);
    json_decref(found);
    b.m.task = SVS_REGRESS;
    b.m.class_count = 0;
    found = diff(&a, &b, 3, &same);
    assert_false(same);
    json_decref(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(turned_is_the_same),
                                       cmocka_unit_test(what_was_changed_is_told),
                                       cmocka_unit_test(what_one_of_them_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
