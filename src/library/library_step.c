/* One row at a time, and what is done to rows of earlier calls. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "library/library_internal.h"
#include "wire/control_command.h"

void svi_library_changed(svs_stream *s) {
    s->scoring.ready = false;
}

static void library_outcome(svs_stream *s, svs_outcome *out) {
    *out = (svs_outcome){.prediction = s->results.at_hand, .evidence = s->results.evidence};
}

static void library_no_result(svs_stream *s) {
    s->results.at_hand = (svs_prediction){.y = svs_none(), .predicted = -1};
    s->results.evidence = svi_library_no_evidence;
    s->results.scored = false;
    s->results.block = NULL;
}

/* From the row to a message. A refusal is counted by the stream, like those of the engine. */
static svs_code library_take(svs_stream *s, const svs_row *row, struct svi_message *m, svs_error *err) {
    if (!row->x && !(row->words && row->names))
        return svi_fail(err, SVS_MISSING_X, "the row has no x");
    SVI_TRY(svi_library_name(s, row->names, row->d, err));
    return svi_library_message(s, row, m, err);
}

/* The alerts of a row, if there are any; without memory for them they stay for svs_stream_alerts. */
static void library_row_alerts(svs_stream *s, int64_t before, svs_outcome *out) {
    if ((int64_t)svi_kept_alerts_last(s->kept) == before ||
        svi_library_alerts(s, before, &s->of_row) != SVS_OK)
        return;
    out->alerts = s->of_row.of;
    out->alert_count = s->of_row.count;
}

svs_code svs_stream_step(svs_stream *s, const svs_row *row, svs_outcome *out, svs_error *err) {
    svs_error local;
    svs_outcome unread;
    struct svi_message m;
    err = err ? err : &local;
    out = out ? out : &unread;
    svi_library_changed(s);
    library_no_result(s);
    library_outcome(s, out);
    svs_code code = library_take(s, row, &m, err);
    if (code != SVS_OK) {
        svi_stream_refuse(s->stream, code, err->text, NULL, 0, svi_arrival_clock_now(&s->clock));
        return code;
    }
    const int64_t before = (int64_t)svi_kept_alerts_last(s->kept);
    const double now = svi_library_time(s, &m);
    const bool labelled = m.y.kind != SVS_NONE;
    s->results.wanted = true;
    svi_stream_score_all(s->stream, true);
    code = svi_stream_message(s->stream, &m, NULL, 0, now, err);
    svi_engine_refit_here(svi_stream_root(s->stream));
    svi_stream_score_all(s->stream, false);
    s->results.wanted = false;
    if (code != SVS_OK)
        return code;
    svi_library_took(s, &m, now);
    svi_library_adopt(s);
    library_outcome(s, out);
    out->dropped = !s->results.scored;
    out->learned = s->results.scored && labelled && svi_stream_settings(s->stream)->method != SVI_METHOD_NONE;
    library_row_alerts(s, before, out);
    return SVS_OK;
}

svs_code svs_stream_score(svs_stream *s, const svs_row *row, svs_outcome *out, svs_error *err) {
    svs_error local;
    svs_outcome unread;
    struct svi_message m;
    struct svi_scored scored;
    svs_row plain = *row;
    err = err ? err : &local;
    out = out ? out : &unread;
    plain.id = plain.y = svs_none();
    plain.weight = 0;
    library_no_result(s);
    library_outcome(s, out);
    SVI_TRY(library_take(s, &plain, &m, err));
    const bool keyed = m.key.kind != SVS_NONE;
    if (keyed) /* the scoring at hand is of the root */
        s->scoring.ready = false;
    svs_code code = svi_stream_score_row(s->stream, keyed ? row->key : "", &m, &s->scoring, &scored, err);
    if (code == SVS_OK) {
        svi_library_scored(s, &scored);
        library_outcome(s, out);
    }
    s->scoring.ready = s->scoring.ready && !keyed;
    svi_scored_clear(&scored);
    return code;
}

/* ---- label, forget, reset */

static svs_code library_command(svs_stream *s, enum svi_op op, svs_value id, svs_value y, const char *key,
                                double ts, int *count, svs_error *err) {
    svs_error local;
    struct svi_message m;
    err = err ? err : &local;
    svi_library_changed(s);
    svi_message_begin(&m, NULL);
    m.op = op;
    m.id = id;
    m.ts = ts;
    m.removed = 0;
    svs_code code = svi_library_id(id, err);
    if (code == SVS_OK)
        code = svi_library_label(y, &m.y, err);
    if (code == SVS_OK)
        code = svi_library_key(s, key, &m.key, err);
    if (code == SVS_OK && isinf(ts))
        code = svi_fail(err, SVS_NOT_FINITE, "ts is not finite: NAN stands for the present time");
    if (code != SVS_OK)
        return code;
    s->results.block = NULL;
    code =
        svi_stream_message(s->stream, &m, NULL, 0,
                           s->interval > 0 && isnan(ts) ? s->latest : svi_arrival_clock_now(&s->clock), err);
    if (count)
        *count = code == SVS_OK ? m.removed : 0;
    return code;
}

svs_code svs_stream_label(svs_stream *s, svs_value id, svs_value y, const char *key, double ts,
                          svs_error *err) {
    return library_command(s, SVI_LABEL, id, y, key, ts, NULL, err);
}

svs_code svs_stream_forget(svs_stream *s, svs_value id, const char *key, double ts, int *count,
                           svs_error *err) {
    return library_command(s, SVI_FORGET, id, svs_none(), key, ts, count, err);
}

void svs_stream_reset(svs_stream *s) {
    svi_library_changed(s);
    svi_stream_settle(s->stream);
    svi_engine_reset(svi_stream_root(s->stream));
}
