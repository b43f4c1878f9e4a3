#include "wire/model_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/decode.h"
#include "wire/envelope.h"
#include "wire/fields.h"
#include "wire/kernel_wire.h"
#include "wire/model_text_in.h"

#define FORMAT  "svmstream-model"
#define VERSION 1

/* ---- writing */

static svs_code encode(const struct svi_machine *m, struct svi_bytes *out) {
    struct svi_bytes model = {0};
    struct svi_pack p;
    svs_code code =
        m->linear ? svi_model_encode(m->linear, NULL, 0, &model) : svi_kernel_encode(m->kernel, &model);
    if (code == SVS_OK) {
        svi_envelope_begin(&p, out, FORMAT, VERSION, 2);
        svi_pack_key(&p, "kind");
        svi_pack_text(&p, m->linear ? "linear" : "kernel");
        svi_pack_key(&p, "model");
        svi_pack_raw(&p, model.data, model.size);
        code = svi_envelope_end(&p);
    }
    svi_bytes_clear(&model);
    return code;
}

static svs_code write_own(const struct svi_machine *m, FILE *to, svs_error *err) {
    struct svi_bytes bytes = {0};
    svs_code code = encode(m, &bytes);
    if (code != SVS_OK)
        svi_fail_memory(err, "a model file");
    else if (fwrite(bytes.data, 1, bytes.size, to) != bytes.size)
        code = svi_fail(err, SVS_IO, "the model could not be written: is the disk full?");
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code write_as(const struct svi_machine *m, FILE *to, enum svi_model_format format,
                         svs_error *err) {
    if (format == SVI_FORMAT_LIBSVM)
        return svi_libsvm_write(m, to, err);
    if (format == SVI_FORMAT_OWN)
        return write_own(m, to, err);
    if (m->kernel)
        return svi_fail(err, SVS_UNAVAILABLE,
                        "LIBLINEAR's format holds linear models only: take the format libsvm or own");
    return svs_model_write_liblinear(m->linear, to, err);
}

struct writing {
    const struct svi_machine *machine;
    enum svi_model_format format;
};

static svs_code write_body(void *user, FILE *to, svs_error *err) {
    const struct writing *w = user;
    return write_as(w->machine, to, w->format, err);
}

svs_code svi_machine_write(const struct svi_machine *m, const char *path, enum svi_model_format format,
                           svs_error *err) {
    struct writing w = {m, format};
    return svi_file_write(path, write_body, &w, err);
}

/* ---- reading */

static svs_code read_inside(struct svi_machine *m, const struct svi_envelope *e, svs_error *err) {
    static const char *const names[] = {"kind", "model"}, *const kinds[] = {"linear", "kernel"};
    struct svi_fields f = {.what = "model file", .names = names, .count = 2, .err = err};
    int kind = 0;
    svs_code code = svi_envelope_check(e, VERSION, err);
    if (code == SVS_OK)
        code = svi_fields_find(&f, e->bytes, e->end);
    if (code == SVS_OK)
        code = svi_field_word(&f, 0, kinds, 2, &kind);
    if (code != SVS_OK)
        return code;
    const uint8_t *behind = f.at[1];
    svi_walk(&behind, e->end, SVI_DEPTH_MAX);
    const size_t size = (size_t)(behind - f.at[1]);
    if (kind == 1)
        m->kernel = svi_kernel_decode(f.at[1], size, err);
    else
        m->linear = svs_model_decode(f.at[1], size, err);
    return m->linear || m->kernel ? SVS_OK : err->code;
}

/* `err` is not NULL. */
static svs_code read_own(struct svi_machine *m, const uint8_t *bytes, size_t size, svs_error *err) {
    struct svi_envelope e;
    svs_code code = svi_envelope_open(&e, bytes, size, err);
    if (code != SVS_OK)
        return code;
    if (svi_item_is(&e.format, FORMAT))
        return read_inside(m, &e, err);
    if (svi_item_is(&e.format, "svmstream-novelty"))
        return svi_fail(err, SVS_UNAVAILABLE,
                        "it is a model of novelty: `svmstream novelty` shows it and scores with it");
    m->linear = svs_model_decode(bytes, size, err); /* the payload of a `model.` event is a model too */
    return m->linear ? SVS_OK : err->code;
}

static svs_code read_bytes(struct svi_machine *m, char *bytes, size_t size, svs_error *err) {
    if (strncmp(bytes, "solver_type ", 12) == 0)
        return svi_liblinear_read(m, bytes, err);
    if (strncmp(bytes, "svm_type ", 9) == 0)
        return svi_libsvm_read(m, bytes, err);
    return read_own(m, (const uint8_t *)bytes, size, err);
}

svs_code svi_machine_read(struct svi_machine *m, const char *path, svs_error *err) {
    char *bytes;
    size_t size = 0;
    svs_error mine = {0};
    *m = (struct svi_machine){0};
    svs_code code = svi_file_read(path, &bytes, &size, &mine);
    if (code == SVS_OK)
        code = read_bytes(m, bytes, size, &mine);
    svi_free(bytes);
    if (code != SVS_OK) {
        svi_machine_clear(m);
        return svi_fail(err, code, "%.100s: %.150s", path, mine.text);
    }
    return SVS_OK;
}

void svi_machine_clear(struct svi_machine *m) {
    svs_model_free(&m->linear);
    svs_kernel_model_free(&m->kernel);
}
