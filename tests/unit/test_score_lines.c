/* Scores as JSON lines on a descriptor, and the latency histogram. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/latency.h"
#include "server/score_lines.h"

struct pipes {
    int lines[2], stop[2];
};

static int set_up(void **state) {
    static struct pipes p;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(p.lines), 0);
    assert_int_equal(pipe(p.stop), 0);
    *state = &p;
    return 0;
}

static int tear_down(void **state) {
    struct pipes *p = *state;
    for (int i = 0; i < 2; i++) {
        if (p->lines[i] >= 0)
            close(p->lines[i]);
        close(p->stop[i]);
    }
    return 0;
}

static struct svi_event score(svs_value id, svs_value y, const double *scores, int rows) {
    struct svi_event e = {.topic = SVI_TOPIC_SCORE};
    e.as.score.id = id;
    e.as.score.yhat = svs_str("b");
    e.as.score.y = y;
    e.as.score.scores = scores;
    e.as.score.rows = rows;
    e.as.score.version = 9;
    return e;
}

static void test_lines(void **state) {
    struct pipes *p = *state;
    struct svi_score_lines l = {.fd = p->lines[1]};
    const double scores[] = {0.5, -1};
    struct svi_event full = score(svs_int(7), svs_str("a"), scores, 2),
                     bare = score(svs_none(), svs_none(), scores, 0);
    char text[500] = "";
    assert_int_equal(svi_score_lines_score(&l, &full, 3), SVS_OK);
    assert_int_equal(svi_score_lines_score(&l, &bare, 4), SVS_OK);
    assert_int_equal(svi_score_lines_flush(&l, p->stop[0], NULL), SVS_OK);
    assert_true(read(p->lines[0], text, sizeof text - 1) > 0);
    assert_string_equal(text,
                        "{\"id\":7,\"yhat\":\"b\",\"scores\":[0.5,-1],\"y\":\"a\",\"model\":9,\"row\":3}\n"
                        "{\"yhat\":\"b\",\"scores\":[],\"model\":9,\"row\":4}\n");
    svi_bytes_clear(&l.text);
    svi_bytes_clear(&l.event);
}

static void test_reader_gone(void **state) {
    struct pipes *p = *state;
    struct svi_score_lines l = {.fd = p->lines[1]};
    struct svi_event e = score(svs_none(), svs_none(), NULL, 0);
    close(p->lines[0]);
    p->lines[0] = -1;
    svi_score_lines_score(&l, &e, 1);
    assert_int_equal(svi_score_lines_flush(&l, p->stop[0], NULL), SVS_OK);
    assert_true(l.closed);
    assert_int_equal(svi_score_lines_score(&l, &e, 2), SVS_OK);
    assert_int_equal(l.text.size, 0);
    svi_bytes_clear(&l.text);
    svi_bytes_clear(&l.event);
}

static void test_reader_stands_still(void **state) {
    struct pipes *p = *state;
    struct svi_score_lines l = {.fd = p->lines[1]};
    struct svi_event e = score(svs_none(), svs_none(), NULL, 0);
    for (int i = 0; i < 10000; i++) /* more than a pipe holds */
        svi_score_lines_score(&l, &e, i);
    assert_int_equal(write(p->stop[1], "x", 1), 1);
    assert_int_equal(svi_score_lines_flush(&l, p->stop[0], NULL), SVS_OK);
    assert_true(l.closed);
    svi_bytes_clear(&l.text);
    svi_bytes_clear(&l.event);
}

static void test_disk_full(void **state) {
    struct pipes *p = *state;
    struct svi_score_lines l = {.fd = open("/dev/full", O_WRONLY)};
    struct svi_event e = score(svs_none(), svs_none(), NULL, 0);
    svs_error err;
    svi_score_lines_score(&l, &e, 1);
    assert_int_equal(svi_score_lines_flush(&l, p->stop[0], &err), SVS_IO);
    assert_non_null(strstr(err.text, "space"));
    close(l.fd);
    l.fd = -1;
    assert_int_equal(svi_score_lines_score(&l, &e, 1), SVS_OK);
    assert_int_equal(l.text.size, 0);
    svi_bytes_clear(&l.text);
    svi_bytes_clear(&l.event);
}

static void test_latency(void **state) {
    (void)state;
    struct svi_latency l = {0};
    assert_true(isnan(svi_latency_quantile(&l, 0.5)));
    svi_latency_add(&l, 1, 0); /* a turn that took nothing */
    assert_true(isnan(svi_latency_quantile(&l, 0.5)));
    for (int i = 1; i <= 1000; i++)
        svi_latency_add(&l, 1e-6 * i, 1);
    for (int i = 1; i <= 9; i++) {
        double exact = 1e-4 * i, q = svi_latency_quantile(&l, i / 10.0);
        assert_true(q >= exact * 0.999 && q <= exact * 1.2);
    }
    svi_latency_add(&l, 1e9, 1000000); /* beyond the scale: its last step */
    svi_latency_add(&l, -1, 1);        /* the clock was set back */
    assert_true(svi_latency_quantile(&l, 0.5) > 3600);
    assert_int_equal(l.largest, 1000000);
    l = (struct svi_latency){0};
    assert_int_equal(l.messages, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reader_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reader_stands_still, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_disk_full, set_up, tear_down),
        cmocka_unit_test(test_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
