/* What a stream is at present: figures, report, model, columns, classes and settings; and what changes it
 * from outside: settings and verdicts.
 *
 * Whatever is returned as a pointer lies in buffers of the stream, which the next call may use. Functions
 * that read wait for the other threads first. Figures and reports are those of the rooms below: nothing is
 * computed here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "library/library_internal.h"
#include "report/quality_report.h"
#include "wire/control_command.h"
#include "wire/json.h"

const svs_figure *svs_stream_figures(svs_stream *s, int *count) {
    const struct svi_figure *of;
    *count = svi_stream_figures(s->stream, NULL, svi_arrival_clock_now(&s->clock), &of);
    if (*count > s->figure_capacity) {
        svs_figure *wider = svi_alloc_plain_array((size_t)*count, sizeof *wider);
        if (!wider) {
            *count = 0;
            return NULL;
        }
        svi_free(s->figures);
        s->figures = wider;
        s->figure_capacity = *count;
    }
    for (int i = 0; i < *count; i++)
        s->figures[i] = (svs_figure){.name = of[i].name,
                                     .value = of[i].type == SVI_COUNT    ? (double)of[i].as.count
                                              : of[i].type == SVI_NUMBER ? of[i].as.number
                                                                         : NAN,
                                     .text = of[i].type == SVI_TEXT ? of[i].as.text : NULL,
                                     .integral = of[i].type == SVI_COUNT};
    return s->figures;
}

/* ---- report */

/* Writes to the text through a FILE, since what prints a table is meant for one. */
static ssize_t library_write_text(void *text, const char *bytes, size_t size) {
    return svi_bytes_append(text, bytes, size) == SVS_OK ? (ssize_t)size : 0;
}

static svs_code library_report_table(svs_stream *s, const struct svi_quality_report *report, svs_error *err) {
    FILE *to = fopencookie(&s->text, "w", (cookie_io_functions_t){.write = library_write_text});
    if (to)
        svi_quality_report_print(report, to);
    const bool written = to && fflush(to) == 0 && !ferror(to);
    return to && fclose(to) == 0 && written ? SVS_OK : svi_fail_memory(err, "the report");
}

static svs_code library_report_json(svs_stream *s, const struct svi_quality_report *report, svs_error *err) {
    struct svi_bytes map = {0};
    svs_code code = svi_quality_report_pack(report, &map, err);
    if (code == SVS_OK && (code = svi_json_msgpack(&s->text, map.data, map.size, err)) == SVS_NO_MEMORY)
        svi_fail_memory(err, "the report");
    svi_bytes_clear(&map);
    return code;
}

const char *svs_stream_report(svs_stream *s, double seconds, bool json, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svi_stream_settle(s->stream);
    const struct svi_quality_report report = {.stream = s->stream,
                                              .rows =
                                                  svi_stream_seen(s->stream) + svi_stream_refused(s->stream),
                                              .seconds = seconds,
                                              .now = svi_arrival_clock_now(&s->clock)};
    s->text.size = 0;
    if (svi_settings_keyed(svi_stream_settings(s->stream)) && !json) {
        svi_fail(err, SVS_NOT_SUPPORTED,
                 "the table is of one model, and with the setting key there is one for "
                 "each key: ask for the JSON");
        return NULL;
    }
    svs_code code = json ? library_report_json(s, &report, err) : library_report_table(s, &report, err);
    if (code == SVS_OK && (code = svi_bytes_append(&s->text, "", 1)) != SVS_OK)
        svi_fail_memory(err, "the report");
    return code == SVS_OK ? (const char *)s->text.data : NULL;
}

/* ---- classes, columns, counts */

static svs_code library_model(svs_stream *s, const char *key, svs_model *m, struct svi_event *event,
                              svs_error *err) {
    svs_value unread;
    svi_library_changed(s);
    svi_stream_settle(s->stream);
    SVI_TRY(svi_library_key(s, key, &unread, err));
    if (svi_stream_settings(s->stream)->method == SVI_METHOD_NONE)
        return svi_fail(err, SVS_UNAVAILABLE, "method none learns no model");
    return svi_stream_model_event(s->stream, key ? key : "", m, event, err);
}

svs_code svs_stream_model(svs_stream *s, const char *key, svs_model *m, svs_error *err) {
    svs_error local;
    struct svi_event event;
    return library_model(s, key, m, &event, err ? err : &local);
}

const void *svs_stream_model_event(svs_stream *s, const char *key, size_t *size, svs_error *err) {
    svs_error local;
    svs_model m;
    struct svi_event event;
    err = err ? err : &local;
    *size = 0;
    if (library_model(s, key, &m, &event, err) != SVS_OK)
        return NULL;
    if (svi_event_encode(&event, &s->text) != SVS_OK) {
        svi_fail_memory(err, "the model");
        return NULL;
    }
    *size = s->text.size;
    return s->text.data;
}

int svs_stream_class_count(svs_stream *s) {
    return svi_engine_classes(svi_stream_settle(s->stream));
}

svs_value svs_stream_class(svs_stream *s, int index) {
    return svi_engine_class(svi_stream_settle(s->stream), index);
}

int svs_stream_rows(svs_stream *s) {
    const struct svi_settings *settings = svi_stream_settings(s->stream);
    const int classes = svs_stream_class_count(s);
    return settings->method == SVI_METHOD_NONE ? 0
           : settings->task == SVS_REGRESS     ? 1
           : classes < 3                       ? 1
                                               : classes;
}

int svs_stream_columns(svs_stream *s) {
    const struct svi_schema *schema = svi_engine_schema(svi_stream_settle(s->stream));
    const int named = svi_schema_columns(schema);
    return named > 0 ? named : schema->shape.d;
}

const char *svs_stream_column(svs_stream *s, int column) {
    return column >= 0 && column < svs_stream_columns(s)
               ? svi_schema_column_name(svi_engine_schema(svi_stream_settle(s->stream)), column)
               : NULL;
}

int svs_stream_features(svs_stream *s) {
    return svi_engine_features(svi_stream_settle(s->stream));
}

const char *svs_stream_feature(svs_stream *s, int feature) {
    return feature >= 0 && feature < svs_stream_features(s)
               ? svi_schema_name(svi_engine_schema(svi_stream_settle(s->stream)), feature)
               : NULL;
}

int64_t svs_stream_seen(svs_stream *s) {
    return svi_stream_seen(s->stream);
}

uint64_t svs_stream_version(svs_stream *s) {
    return svi_engine_version(svi_stream_settle(s->stream));
}

/* ---- settings */

const char *svs_stream_setting(svs_stream *s, const char *key) {
    const struct svi_setting *row = key ? svi_settings_row(key) : NULL;
    s->text.size = 0;
    if (!row || svi_bytes_reserve(&s->text, SVI_SETTINGS_LINE) != SVS_OK)
        return NULL;
    return svi_settings_value(svi_stream_settings(s->stream), row, (char *)s->text.data, s->text.capacity);
}

/* One after another on a copy, and checked together at the end: a pair that depends on another may come
 * first. */
static svs_code library_change(struct svi_settings *changed, const svs_setting *settings, int count,
                               svs_error *err) {
    for (int i = 0; i < count; i++) {
        if (!settings[i].key || !settings[i].value)
            return svi_fail(err, SVS_INVALID, "setting %d has no %s", i, settings[i].key ? "value" : "key");
        SVI_TRY(svi_library_takes(settings[i].key, err));
        const struct svi_setting *row = svi_settings_row(settings[i].key);
        if (!svi_change_any_time(row->change))
            return svi_fail(err, SVS_SETTING, "%s is fixed when a stream is made: make another one",
                            settings[i].key);
        SVI_TRY(svi_settings_set(changed, settings[i].key, settings[i].value, err));
    }
    return SVS_OK;
}

svs_code svs_stream_configure(svs_stream *s, const svs_setting *settings, int count, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svi_library_changed(s);
    svi_stream_settle(s->stream);
    struct svi_settings *changed = svi_new(sizeof *changed, "the settings of a stream", err);
    if (!changed)
        return SVS_NO_MEMORY;
    *changed = *svi_stream_settings(s->stream);
    svs_code code = library_change(changed, settings, count, err);
    if (code == SVS_OK)
        code = svi_settings_change_allowed(svi_stream_settings(s->stream), changed, err);
    if (code == SVS_OK)
        code = svi_stream_configure(s->stream, changed, svi_arrival_clock_now(&s->clock), NULL, err);
    if (code == SVS_OK && svi_settings_given(changed, svi_settings_row("alert.interval")))
        s->interval = changed->alert_interval;
    svi_free(changed);
    return code;
}

/* ---- verdict */

static struct svi_item library_text_item(const char *text) {
    return (struct svi_item){
        .type = SVI_STRING, .length = (uint32_t)strlen(text), .body = (const uint8_t *)text};
}

svs_code svs_stream_verdict(svs_stream *s, int64_t alert, const char *key, bool confirmed, const char *by,
                            svs_error *err) {
    svs_error local;
    svs_value unread;
    const struct svi_item absent = {.type = SVI_ITEM_TYPE_COUNT};
    const struct svi_command c = {.op = SVI_COMMAND_ALERT,
                                  .id = absent,
                                  .y = absent,
                                  .key = key && key[0] ? library_text_item(key) : absent,
                                  .alert = {.type = SVI_INT, .i = alert},
                                  .verdict = {.type = SVI_BOOL, .i = confirmed},
                                  .by = by ? library_text_item(by) : absent};
    err = err ? err : &local;
    svi_library_changed(s);
    SVI_TRY(svi_library_key(s, key, &unread, err));
    return svi_stream_command(s->stream, &c, NULL, svi_arrival_clock_now(&s->clock), NULL, err);
}
