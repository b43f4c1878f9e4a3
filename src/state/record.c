/* Applying a record of the journal. Each kind calls the function that applied it the first time; what was
 * refused then is refused again. Read svi_record_apply first, then the kinds. */
#include "state/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "config/settings_record.h"
#include "fleet/fleet.h"
#include "state/load_record.h"
#include "wire/archive_file.h"

#define STEP_MAX 1e12 /* seconds (31,000 years): a longer step is damage */

/* The start of a process: its settings, in the order of write_ahead_settle and write_ahead_start: first
 * higher limits, then the change of settings, then the begin. */
static svs_code apply_start(svi_stream **stream, struct svi_settings *s, const struct svi_record *r,
                            svs_error *err) {
    svs_code code = svi_settings_unpack(s, "the journal's settings", r->payload, r->size, err);
    if (code != SVS_OK)
        return code;
    if (svi_settings_raised(s, svi_stream_settings(*stream)) && svi_stream_widen(stream, s, err) != SVS_OK)
        return err->code;
    code = svi_stream_configure(*stream, s, r->now, NULL, err);
    svi_stream_begin(*stream, r->now);
    if (code == SVS_OK || code == SVS_NO_MEMORY)
        return code;
    *s = *svi_stream_settings(*stream); /* refused then as well: that process ended and changed nothing */
    return SVS_OK;
}

static svs_code apply_refusal(svi_stream *stream, const struct svi_record *r, svs_error *err) {
    char text[64 + SVS_ERROR_TEXT];
    if (r->size >= sizeof text)
        return svi_fail(err, SVS_DAMAGED, "record %" PRIu64 " is a refusal of %zu bytes", r->number, r->size);
    memcpy(text, r->payload, r->size);
    text[r->size] = '\0';
    char *reason = text + strcspn(text, " ");
    if (*reason)
        *reason++ = '\0';
    svi_stream_refuse(stream, svi_code_by_name(text), reason, NULL, 0, r->now);
    return SVS_OK;
}

static void archive_step(struct svi_archive *a, double *step) {
    svi_archive_double(a, "step", step);
    svi_archive_check(a, fabs(*step) <= STEP_MAX, "the clock was not moved that far");
}

svs_code svi_record_pack_clock(double step, struct svi_bytes *out) {
    struct svi_archive_out to;
    svs_error err;
    svi_archive_out_begin(&to, out, "clock", &err);
    archive_step(&to.archive, &step);
    return svi_archive_out_end(&to);
}

static svs_code apply_clock(svi_stream *stream, const struct svi_record *r, svs_error *err) {
    struct svi_archive_in from;
    double step = 0;
    svi_archive_in_begin(&from, r->payload, r->size, "clock", err);
    archive_step(&from.archive, &step);
    SVI_TRY(svi_archive_in_end(&from));
    svi_stream_move_clock(stream, step, r->now);
    return SVS_OK;
}

/* A command that failed the first time fails again, which is no failure of the recovery. Lack of memory is
 * one: the command may have succeeded then. */
static svs_code apply_command(svi_stream *stream, struct svi_settings *s, const struct svi_record *r,
                              svs_error *err) {
    struct svi_command c;
    svs_code code = svi_command_read(&c, r->payload, r->size, err);
    /* A reset is of kind SVI_RECORD_RESET where it drops features and classes. It is of kind CONTROL with
     * input of text rows, whose columns are fixed. */
    c.keeps_shape = r->kind == SVI_RECORD_CONTROL;
    if (code == SVS_OK)
        code = svi_stream_command(stream, &c, s, r->now, NULL, err);
    return code == SVS_NO_MEMORY ? code : SVS_OK;
}

static svs_code apply_load(svi_stream *stream, struct svi_settings *s, const struct svi_record *r,
                           svs_error *err) {
    struct svi_load l = {0};
    svs_code code = svi_load_unpack(&l, stream, r->payload, r->size, err);
    if (code == SVS_OK)
        svi_load_apply(&l, stream, s, r->now);
    svi_load_clear(&l);
    return code;
}

/* It fitted when it was written. With other settings (a trial) it may not, and is left out as it would have
 * been. */
static svs_code apply_merged(svi_stream *stream, const struct svi_record *r, svs_error *err) {
    const svs_code code = svi_engine_take_merged(svi_stream_root(stream), r->payload, r->size, err);
    return code == SVS_NO_MEMORY ? code : SVS_OK;
}

static svs_code apply_prior(svi_stream *stream, const struct svi_record *r, svs_error *err) {
    const svs_code code = svi_fleet_merged_take(stream, r->payload, r->size, err);
    return code == SVS_NO_MEMORY ? code : SVS_OK;
}

svs_code svi_record_apply(svi_stream **stream, struct svi_settings *s, const struct svi_record *r,
                          struct svi_receipt *receipt, svs_error *err) {
    struct svi_envelope env;
    switch (r->kind) {
    case SVI_RECORD_FRAME:
    case SVI_RECORD_SOURCED: /* elements that were refused then are refused again, with the same events */
        svi_envelope_read(&env, r->payload, r->size);
        svi_stream_apply(*stream, &env, r->now, r->kind == SVI_RECORD_SOURCED, receipt);
        return SVS_OK;
    case SVI_RECORD_CONTROL:
    case SVI_RECORD_RESET:
    case SVI_RECORD_MODEL:
    case SVI_RECORD_CONFIG:
        return apply_command(*stream, s, r, err);
    case SVI_RECORD_REFIT:
        return svi_engine_refit_repeat(svi_stream_root(*stream), r->payload, r->size, err);
    case SVI_RECORD_REFUSAL:
        return apply_refusal(*stream, r, err);
    case SVI_RECORD_STATS:
        svi_stream_publish_stats(*stream, NULL, r->now);
        return SVS_OK;
    case SVI_RECORD_START:
        return apply_start(stream, s, r, err);
    /* A process that ends publishes its model: the event counts, so it is numbered here too. */
    case SVI_RECORD_STOP:
        svi_engine_publish_model(svi_stream_root(*stream), true);
        return SVS_OK;
    case SVI_RECORD_CLOCK:
        return apply_clock(*stream, r, err);
    case SVI_RECORD_LOAD:
        return apply_load(*stream, s, r, err);
    /* publish.seconds had passed, which is measured outside of the stream: model and stats went out.
     * SVI_RECORD_TIME is time that the stream itself waited for: a deadline. */
    case SVI_RECORD_PUBLISH:
        svi_stream_publish_due(*stream, r->now);
        return SVS_OK;
    case SVI_RECORD_TIME:
        svi_stream_pass(*stream, r->now);
        return SVS_OK;
    case SVI_RECORD_MERGED:
        return apply_merged(*stream, r, err);
    case SVI_RECORD_PRIOR:
        return apply_prior(*stream, r, err);
    default:
        return svi_fail(err, r->kind < SVI_RECORD_FRAME ? SVS_DAMAGED : SVS_UNAVAILABLE,
                        "record %" PRIu64 " is of the unknown kind %d: use the later version that wrote it",
                        r->number, r->kind);
    }
}
