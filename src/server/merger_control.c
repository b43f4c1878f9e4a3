/* Control requests to a merge: a row of `operations` each. Those that show the model or the parts solve first
 * if records have come since, so that a client sees what it has just done. */
#include "server/merger_control.h"

#include <string.h>

#include "base/fail.h"
#include "server/addresses.h"
#include "svmstream/svmstream.h"
#include "wire/fields.h"

struct merger_request {
    struct svi_merger_control *control;
    struct svi_merger_state *state;
    char op[32], part[SVI_PART_MAX + 1]; /* part "": not given */
    struct svi_pack *reply;
    svs_error *err;
};

static void merger_put_figures(struct merger_request *r) {
    struct svi_merger_figures f;
    svi_merger_figures(r->state, &f);
    for (int i = 0; i < f.count; i++)
        svi_put_figure(r->reply, &f.figure[i]);
}

static svs_code merger_status(struct merger_request *r) {
    svi_put_text(r->reply, "version", svs_version());
    svi_put_text(r->reply, "stream", r->state->settings->stream);
    svi_put_uint(r->reply, "epoch", r->state->epoch);
    merger_put_figures(r);
    svi_put_addresses(r->reply, r->state->settings);
    return SVS_OK;
}

static svs_code merger_stats(struct merger_request *r) {
    svi_pack_key(r->reply, "stats");
    const struct svi_open_map map = svi_pack_open(r->reply);
    merger_put_figures(r);
    svi_pack_close(r->reply, map);
    return SVS_OK;
}

static svs_code merger_model(struct merger_request *r) {
    struct svi_bytes bytes = {0};
    const svs_code code = svi_merger_encode_model(r->state, &bytes, r->err);
    if (code == SVS_OK) {
        svi_pack_key(r->reply, "model");
        svi_pack_raw(r->reply, bytes.data, bytes.size);
    }
    svi_bytes_clear(&bytes);
    return code;
}

static svs_code merger_parts(struct merger_request *r) {
    svi_pack_key(r->reply, "parts");
    svi_merger_put_parts(r->state, r->reply);
    return SVS_OK;
}

static svs_code merger_publish(struct merger_request *r) {
    svi_merger_publish_model(r->state);
    svi_merger_publish_stats(r->state);
    return SVS_OK;
}

static svs_code merger_change(struct merger_request *r,
                              svs_code (*change)(struct svi_merge *, const char *, svs_error *)) {
    if (!r->part[0])
        return svi_fail(r->err, SVS_INVALID, "%s needs the name of a part: svmstream ctl %s part=NAME", r->op,
                        r->op);
    SVI_TRY(change(&r->state->merge, r->part, r->err));
    /* At once: a request is answered when it is done, whatever publish.seconds is. */
    if (svi_merger_solve(r->state))
        svi_merger_publish_model(r->state);
    if (r->state->merge.failure.code != SVS_OK)
        svi_put_text(r->reply, "note", r->state->merge.failure.text);
    return SVS_OK;
}

static svs_code merger_drop(struct merger_request *r) {
    return merger_change(r, svi_merge_drop);
}

static svs_code merger_restore(struct merger_request *r) {
    return merger_change(r, svi_merge_restore);
}

static svs_code merger_stop(struct merger_request *r) {
    r->control->stop = true;
    return SVS_OK;
}

static const struct {
    const char *name;
    svs_code (*run)(struct merger_request *r);
} operations[] = {
#define X(name) {#name, merger_##name},
    SVI_MERGER_OPS(X)
#undef X
};

#define OPERATIONS (sizeof operations / sizeof *operations)

static svs_code fail_unknown_op(const char *op, svs_error *err) {
    char list[160] = "", name[64];
    for (size_t i = 0; i < OPERATIONS; i++)
        svi_list_add(list, sizeof list, operations[i].name, strlen(operations[i].name));
    return svi_fail(err, SVS_UNKNOWN_OP, "a merge does not support the operation %s: use one of %s",
                    svi_escape(name, sizeof name, op, strlen(op)), list);
}

/* JSON becomes msgpack first, so that both are read by one table. */
static svs_code merger_parse(struct merger_request *r, const void *request, size_t length) {
    static const struct svi_field fields[] = {
        SVI_FIELD_STRING(struct merger_request, op),
        {"part", SVI_FIELD_TEXT, offsetof(struct merger_request, part), 0, SVI_PART_MAX + 1, NULL, true}};
    struct svi_merger_control *c = r->control;
    if (svi_json_begins(request, length)) {
        c->request.size = 0;
        SVI_TRY(svi_json_message(&c->json, request, length, &c->request, r->err));
        request = c->request.data;
        length = c->request.size;
    }
    SVI_TRY(svi_msgpack_check(request, length, SVI_DEPTH_MAX, r->err));
    return svi_fields_read("request", SVI_FIELDS(fields), request, (const uint8_t *)request + length, r,
                           r->err);
}

static svs_code merger_handle(struct merger_request *r, const void *request, size_t length) {
    SVI_TRY(merger_parse(r, request, length));
    if (svi_merger_solve(r->state))
        svi_merger_publish_model(r->state);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, r->op) == 0)
            return operations[i].run(r);
    return fail_unknown_op(r->op, r->err);
}

svs_code svi_merger_control_refuse(const svs_error *why, struct svi_bytes *out) {
    struct svi_pack reply;
    out->size = 0;
    svi_pack_begin(&reply, out);
    svi_pack_map(&reply, 2);
    svi_put_error(&reply, why);
    return svi_pack_end(&reply);
}

svs_code svi_merger_control_handle(struct svi_merger_control *c, const void *request, size_t length,
                                   struct svi_bytes *out) {
    struct svi_pack reply;
    svs_error err = {0};
    struct merger_request r = {.control = c, .state = c->state, .reply = &reply, .err = &err};
    out->size = 0;
    svi_pack_begin(&reply, out);
    const struct svi_open_map map = svi_pack_open(&reply);
    svi_put_bool(&reply, "ok", true);
    if (merger_handle(&r, request, length) != SVS_OK)
        return svi_merger_control_refuse(&err, out);
    svi_pack_close(&reply, map);
    return svi_pack_end(&reply);
}

void svi_merger_control_clear(struct svi_merger_control *c) {
    svi_json_input_clear(&c->json);
    svi_bytes_clear(&c->request);
}
