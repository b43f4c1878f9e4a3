/* Every allocation of a load fails, of a checkpoint, with the samples after it again, and of a model: it is
 * refused with a reason and nothing has changed, or the process is told to end and a restart takes it. Linked
 * with --wrap for svi_alloc and svi_realloc. */
#include "support/life.h"
#include "support/nomem.h"
#include "support/quick.h"

#include "engine/engine_internal.h"
#include "store/checkpoint_file.h"

static const char *const settings_of[] = {"window", "12",           "novelty", "fosvm1", "refit",
                                          "dcd",    "journal.keep", "all",     NULL};

static void hash_of(svi_stream *e, char *hash) {
    const long kept = left;
    left = -1;
    assert_int_equal(svi_stream_hash(e, hash, NULL), SVS_OK);
    left = kept;
}

/* {op: load, model: the present one} */
static void model_request(struct life *l, struct svi_bytes *request) {
    struct svi_bytes model = {0};
    struct svi_pack p;
    svs_model m;
    const struct svi_figure *figures;
    int count;
    assert_int_equal(svi_engine_model(svi_stream_root(l->stream), &m, &figures, &count, NULL), SVS_OK);
    assert_int_equal(svi_model_encode(&m, NULL, 0, &model), SVS_OK);
    request->size = 0;
    svi_pack_begin(&p, request);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "load");
    svi_pack_key(&p, "model");
    svi_pack_raw(&p, model.data, model.size);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
    svi_bytes_clear(&model);
}

/* One allocation fails; false: there were fewer. */
static bool fail_at(struct life *l, const struct svi_bytes *request, long nth) {
    struct svi_control control = {
        .stream = l->stream, .settings = &l->s, .started = NOW, .run = 1, .write_ahead = l->keeper};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    svs_error err;
    hash_of(l->stream, before);
    const int64_t samples = seen(l);
    left = nth;
    const svs_code code = svi_control_do(&control, request->data, request->size, NOW, &err);
    const bool failed = left < 0;
    left = -1;
    assert_int_equal(seen(l), samples);
    const bool ends = control.failed || svi_stream_out_of_memory(l->stream);
    svi_control_clear(&control);
    if (ends) { /* what was written down is there after a restart */
        end(l);
        assert_begins(l, false);
        assert_int_equal(seen(l), samples);
    } else if (code != SVS_OK) {
        assert_int_equal(code, SVS_NO_MEMORY);
        hash_of(l->stream, after);
        assert_string_equal(before, after);
    }
    assert_true(failed || code == SVS_OK);
    return failed;
}

static void each_fails(void **state) {
    struct life *l = *state;
    struct svi_bytes request = {0};
    l->more = settings_of;
    for (int kind = 0; kind < 3; kind++) {
        long nth = 0;
        assert_begins(l, false);
        feed(l, 20);
        save(l);
        feed(l, 10);
        uint64_t *numbers = NULL;
        assert_int_equal(list(l, "checkpoint", &numbers), 1);
        if (kind < 2) {
            speaker_build(&l->speaker, "{'op': 'load', 'checkpoint': %d, 'relearn': %s}", (int)numbers[0],
                          kind ? "true" : "false");
            request.size = 0;
            assert_int_equal(svi_bytes_append(&request, l->speaker.frame.data, l->speaker.frame.size),
                             SVS_OK);
        } else {
            model_request(l, &request);
        }
        svi_free(numbers);
        while (fail_at(l, &request, nth))
            nth++;
        assert_true(nth > 3);
        end(l);
        test_folder_empty(l->path);
    }
    svi_bytes_clear(&request);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(each_fails, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
