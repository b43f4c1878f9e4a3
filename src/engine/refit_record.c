/* How a refit went, as a record of a journal. */
#include <string.h>

#include "base/alloc.h"
#include "base/archive.h"
#include "base/fail.h"
#include "engine/refit.h"
#include "wire/archive_file.h"

#define SECTION "refit"

struct record {
    svs_error error;
    int d, class_count, method;
    double *W, *b;
    double objective, gap, milliseconds;
    int64_t iterations;
};

static int rows_of(const struct record *r) {
    return r->class_count < 3 ? 1 : r->class_count;
}

static void take_room(struct svi_archive *a, struct record *r) {
    const int64_t rows = rows_of(r), weights = rows * r->d;
    if (!svi_archive_check(a, weights <= svi_archive_left(a) / 8, "the weights are cut off"))
        return;
    r->W = svi_alloc_array((size_t)weights, sizeof *r->W);
    r->b = svi_alloc_array((size_t)rows, sizeof *r->b);
    if (!r->W || !r->b)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the weights");
}

static void archive(struct svi_archive *a, struct record *r, int64_t max_features, int64_t max_classes) {
    int code = (int)r->error.code;
    svi_archive_int(a, "code", &code, SVS_OK, SVS_CODE_COUNT - 1);
    svi_archive_text(a, "text", r->error.text, sizeof r->error.text);
    r->error.code = (svs_code)code;
    if (!svi_archive_ok(a) || code != SVS_OK)
        return;
    svi_archive_int(a, "d", &r->d, 1, (int)max_features);
    svi_archive_int(a, "class count", &r->class_count, 2, (int)max_classes);
    if (svi_archive_loading(a) && svi_archive_ok(a))
        take_room(a, r);
    if (!svi_archive_ok(a))
        return;
    svi_archive_doubles(a, "W", r->W, (int64_t)rows_of(r) * r->d);
    svi_archive_doubles(a, "b", r->b, rows_of(r));
    svi_archive_double(a, "objective", &r->objective);
    svi_archive_double(a, "gap", &r->gap);
    svi_archive_int64(a, "iterations", &r->iterations, 0, INT64_MAX / 4);
    svi_archive_double(a, "milliseconds", &r->milliseconds);
    svi_archive_int(a, "method", &r->method, 0, SVS_SOLVER_COUNT - 1);
}

svs_code svi_refit_pack(const struct svi_refit *r, struct svi_bytes *out) {
    struct svi_archive_out to;
    svs_error err;
    struct record record = {.error = r->error,
                            .d = r->d,
                            .class_count = r->class_count,
                            .method = (int)r->method,
                            .W = r->W,
                            .b = r->b,
                            .objective = r->objective,
                            .gap = r->gap,
                            .milliseconds = r->milliseconds,
                            .iterations = r->iterations};
    svi_archive_out_begin(&to, out, SECTION, &err);
    archive(&to.archive, &record, 0, 0);
    return svi_archive_out_end(&to);
}

static void take_over(struct svi_refit *r, const struct record *from) {
    svi_refit_forget(r);
    r->error = from->error;
    if (from->error.code != SVS_OK)
        return;
    svi_free(r->W);
    svi_free(r->b);
    r->W = from->W;
    r->b = from->b;
    r->d = from->d;
    r->class_count = from->class_count;
    r->rows = rows_of(from);
    r->method = (svs_solver)from->method;
    r->objective = from->objective;
    r->gap = from->gap;
    r->milliseconds = from->milliseconds;
    r->iterations = from->iterations;
}

svs_code svi_refit_unpack(struct svi_refit *r, const void *bytes, size_t size, int64_t max_features,
                          int64_t max_classes, svs_error *err) {
    struct svi_archive_in from;
    struct record record = {0};
    svs_error local;
    svi_archive_in_begin(&from, bytes, size, SECTION, err ? err : &local);
    archive(&from.archive, &record, max_features, max_classes);
    svs_code code = svi_archive_in_end(&from);
    if (code == SVS_OK) {
        take_over(r, &record);
        return code;
    }
    svi_free(record.W);
    svi_free(record.b);
    return code;
}
