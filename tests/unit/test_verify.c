/* `state verify` judges the weights: what a fresh solve has is sound, another model in a checkpoint whose
 * checks are all right is not. */
#include "support/life.h"

#include "fleet/fleet_internal.h"
#include "engine/engine_internal.h"
#include "learner/learner_internal.h"

static int verify(const struct life *l, char *out, size_t size) {
    char command[600];
    const char *program = getenv("SVMSTREAM");
    snprintf(command, sizeof command, "'%s' state verify '%s' 2>/dev/null",
             program ? program : "build/svmstream", l->path);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    out[fread(out, 1, size - 1, f)] = '\0';
    return WEXITSTATUS(pclose(f));
}

static void weights_are_judged(void **state) {
    static const struct {
        double factor;
        int code;
        const char *text;
    } all[] = {{1, 0, "\nsound\n"},
               {1 + 1e-13, 0, "\nsound\n"},
               {1 + 1e-8, 1, "DAMAGED: they may be 1.0e-10 off"},
               {1.9, 1, "DAMAGED: they may be 1.0e-10 off"},
               {NAN, 1, "DAMAGED: 1 newer"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *folder;
        char out[2000];
        setup(&folder);
        struct life *l = folder;
        assert_begins(l, false);
        feed(l, 40);
        for (int j = 0; j <= 2; j++)
            l->stream->root->learner->m->r.w[j] *= all[i].factor;
        save(l);
        end(l);
        const int code = verify(l, out, sizeof out);
        if (code != all[i].code || !strstr(out, all[i].text))
            fail_msg("factor %g: exit code %d, %s", all[i].factor, code, out);
        teardown(&folder);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_are_judged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
