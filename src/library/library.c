/* A stream inside another program: making it from settings, and its end.
 *
 * Settings take the way of a command line: defaults, those of the maker, those that are given, then the rules
 * by which open settings follow from given ones, then the checks. What was given is noted as text, so that a
 * saved stream is made again in the same way. Sockets, files and the names of columns in text files have no
 * meaning here: giving one of their settings is refused, as a command refuses a flag that does nothing. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "library/library_internal.h"
#include "svmstream/auto.h"
#include "svmstream/monitor.h"

/* Settings that a stream inside a program has; with a dot at the end, all of that beginning. */
static const char *const library_settings[] = {
    "stream",  "task",     "method",       "auto.budget",   "C",           "window",   "window.seconds",
    "forget",  "scale",    "class.weight", "decision.cost", "interval",    "features", "key",
    "key.",    "keys.",    "categories",   "numbers",       "ignore",      "unscaled", "categories.max",
    "hash",    "calendar", "zone",         "drift.",        "columns.new", "missing",  "outlier",
    "refit",   "refit.",   "serve",        "novelty",       "novelty.",    "alert.",   "limits",
    "context", "labels.",  "ts.ahead",     "max.features",  "max.classes", "threads",  "seed"};

svs_code svi_library_takes(const char *key, svs_error *err) {
    if (!svi_settings_row(key))
        return svi_settings_unknown(key, err);
    for (size_t i = 0; i < sizeof library_settings / sizeof library_settings[0]; i++) {
        const char *known = library_settings[i];
        const size_t length = strlen(known);
        if (known[length - 1] == '.' ? strncmp(key, known, length) == 0 : strcmp(key, known) == 0)
            return SVS_OK;
    }
    return svi_fail(err, SVS_SETTING,
                    "the setting %s does nothing for a stream inside a program: leave it out", key);
}

/* ---- given settings */

static char *library_copy(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = svi_alloc_plain(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static void library_ungive(struct svi_library_given *g) {
    for (int i = 0; i < 2 * g->count; i++)
        svi_free(g->of[i]);
    svi_free(g->of);
    *g = (struct svi_library_given){0};
}

static int library_place(const struct svi_library_given *g, const char *key) {
    int i = 0;
    while (i < g->count && strcmp(g->of[2 * i], key) != 0)
        i++;
    return i;
}

svs_code svi_library_give(struct svi_library_given *g, const svs_setting *settings, int count,
                          svs_error *err) {
    for (int i = 0; i < count; i++) {
        const int at = library_place(g, settings[i].key);
        char *key = at == g->count ? library_copy(settings[i].key) : NULL,
             *value = library_copy(settings[i].value);
        char **of = at == g->count && key && value
                        ? svi_realloc_plain(g->of, (size_t)g->count * 2 * sizeof *of,
                                            ((size_t)g->count + 1) * 2 * sizeof *of)
                        : g->of;
        if (!value || !of || (at == g->count && !key)) {
            svi_free(key);
            svi_free(value);
            return svi_fail_memory(err, "the settings of a stream");
        }
        g->of = of;
        if (at == g->count) {
            of[2 * g->count++] = key;
        } else {
            svi_free(of[2 * at + 1]);
        }
        of[2 * at + 1] = value;
    }
    return SVS_OK;
}

static svs_code library_set(struct svi_settings *to, const svs_setting *settings, int count, svs_error *err) {
    for (int i = 0; i < count; i++) {
        if (!settings[i].key || !settings[i].value)
            return svi_fail(err, SVS_INVALID, "setting %d has no %s", i, settings[i].key ? "value" : "key");
        SVI_TRY(svi_library_takes(settings[i].key, err));
        SVI_TRY(svi_settings_set(to, settings[i].key, settings[i].value, err));
    }
    return SVS_OK;
}

/* As for `eval`: nothing is published, and a row without a time counts for a fixed interval. */
static svs_code library_settle(struct svi_settings *s, double *interval, svs_error *err) {
    const char *by;
    svi_settings_settle_method(s);
    SVI_TRY(svi_settings_settle_alerts(s, &by, err));
    SVI_TRY(svi_settings_check(s, err));
    const bool given = svi_settings_given(s, svi_settings_row("alert.interval"));
    *interval = given ? s->alert_interval : 0;
    s->scores = SVI_SCORES_NONE;
    s->publish_every = 0;
    s->publish_seconds = 0;
    s->publish_sums = 0;
    s->alert_interval = given ? s->alert_interval : SVI_FILE_INTERVAL;
    if (!svi_settings_given(s, svi_settings_row("keys.quota")))
        s->keys_quota = s->keys_max; /* all rows are of one source */
    return SVS_OK;
}

/* ---- a stream */

/* Rows that hold for one start are not recorded; `threads` is, by the part on which bits depend. */
static svs_code library_recorded(struct svi_settings *s, const struct svi_bytes *recorded, svs_error *err) {
    struct svi_settings *kept = svi_new(sizeof *kept, "the settings of a stream", err);
    if (!kept)
        return SVS_NO_MEMORY;
    const svs_code code = svi_settings_unpack(kept, "the saved stream", recorded->data, recorded->size, err);
    for (const struct svi_setting *row = svi_settings_table; row->key && code == SVS_OK; row++)
        if (row->change != SVI_CHANGE_START && row != svi_settings_row("threads"))
            memcpy(svi_settings_field(s, row), svi_settings_field(kept, row), row->size);
    svi_free(kept);
    return code == SVS_OK ? svi_settings_check(s, err) : code;
}

static svs_code library_begin(svs_stream *s, struct svi_settings *settings, const struct svi_bytes *recorded,
                              svs_error *err) {
    SVI_TRY(library_settle(settings, &s->interval, err));
    if (recorded)
        SVI_TRY(library_recorded(settings, recorded, err));
    s->stream = svi_stream_new(settings, 0, svi_library_sink, s, err);
    if (!s->stream)
        return err->code;
    s->kept = svi_stream_alerts(s->stream);
    svi_arrival_clock_start(&s->clock);
    svi_stream_leave_scores_unnumbered(s->stream);
    if (svi_settings_two_threads(settings))
        svi_stream_use_threads(s->stream);
    s->results.capacity = (int)(settings->max_classes > 1 ? settings->max_classes : 1);
    return svi_library_reserve(s, err);
}

/* `first` before `settings`, then those of a state, if there is one. */
static svs_stream *library_new(const svs_setting *first, int first_count, const svs_setting *settings,
                               int count, const struct svi_bytes *recorded, svs_error *err) {
    svs_error local;
    err = err ? err : &local;
    svs_stream *s = svi_new(sizeof *s, "a stream", err);
    struct svi_settings *made = s ? svi_new(sizeof *made, "the settings of a stream", err) : NULL;
    svs_code code = made ? SVS_OK : SVS_NO_MEMORY;
    if (code == SVS_OK && (count < 0 || (count > 0 && !settings)))
        code = svi_fail(err, SVS_INVALID, "%d settings without a list", count);
    if (made)
        svi_settings_default(made);
    if (code == SVS_OK)
        code = library_set(made, first, first_count, err);
    if (code == SVS_OK)
        code = library_set(made, settings, count, err);
    if (code == SVS_OK)
        code = svi_library_give(&s->given, first, first_count, err);
    if (code == SVS_OK)
        code = svi_library_give(&s->given, settings, count, err);
    if (code == SVS_OK)
        code = library_begin(s, made, recorded, err);
    svi_free(made);
    if (code != SVS_OK)
        svs_stream_free(&s);
    return s;
}

svs_stream *svi_library_new_kept(const svs_setting *settings, int count, const struct svi_bytes *recorded,
                                 svs_error *err) {
    return library_new(NULL, 0, settings, count, recorded, err);
}

svs_stream *svs_stream_new(const svs_setting *settings, int count, svs_error *err) {
    return library_new(NULL, 0, settings, count, NULL, err);
}

svs_auto *svs_auto_new(const svs_setting *settings, int count, svs_error *err) {
    static const svs_setting first[] = {{"method", "auto"},
                                        {"novelty", "none"},
                                        {"alert.rules", "none"},
                                        {"missing", "mean"},
                                        {"threads", "1"}};
    return library_new(first, sizeof first / sizeof first[0], settings, count, NULL, err);
}

svs_monitor *svs_monitor_new(const svs_setting *settings, int count, svs_error *err) {
    static const svs_setting first[] = {
        {"method", "none"}, {"novelty", "fosvm1"}, {"missing", "mean"}, {"threads", "1"}};
    return library_new(first, sizeof first / sizeof first[0], settings, count, NULL, err);
}

void svs_stream_free(svs_stream **s) {
    svs_stream *of = s ? *s : NULL;
    if (!of)
        return;
    svi_stream_free(&of->stream);
    library_ungive(&of->given);
    svi_free(of->columns.first);
    svi_free(of->columns.other);
    svi_free(of->columns.text);
    svi_free(of->results.values);
    svi_scoring_clear(&of->scoring);
    svi_library_alerts_clear(&of->of_row);
    svi_library_alerts_clear(&of->of_all);
    svi_bytes_clear(&of->event);
    svi_bytes_clear(&of->text);
    svi_free(of->wide);
    svi_free(of->figures);
    svi_free(of);
    *s = NULL;
}
