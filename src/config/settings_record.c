/* The life of settings after the first start.
 *
 * A kept state records them as text (svi_settings_pack). A restart merges the given ones with the recorded
 * ones (svi_settings_merge). A return to an older state restores those that shape the model
 * (svi_settings_go_back). A command changes some while the stream runs (svi_settings_change), on a copy that
 * replaces them only after all checks. The change class of a row decides what is allowed, so almost nothing
 * here names a setting; the exception is `threads`, of which only the part that affects bits is recorded. */
#include "config/settings_record.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/control_command.h"

/* The value as a kept state records it: of `threads` only the number of computing threads, which affects
 * bits. */
static char *settings_record_value(const struct svi_settings *s, const struct svi_setting *row, char *out,
                                   size_t size) {
    svi_settings_value(s, row, out, size);
    if (row->offset == offsetof(struct svi_settings, threads))
        snprintf(out, size, "%d", svi_settings_blas_threads(s));
    return out;
}

svs_code svi_settings_pack(const struct svi_settings *s, struct svi_bytes *out, svs_error *err) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        char line[SVI_SETTINGS_LINE];
        if (row->change == SVI_CHANGE_START)
            continue;
        /* Quoted: a text may hold what YAML reads in another way (null, " #", ": "). */
        size_t size = svi_settings_line(s, row, true, line);
        if (row->offset == offsetof(struct svi_settings, threads))
            size =
                (size_t)snprintf(line, sizeof line, "%s: \"%d\"\n", row->key, svi_settings_blas_threads(s));
        if (svi_bytes_append(out, line, size) != SVS_OK)
            return svi_fail_memory(err, "the settings of a kept state");
    }
    return SVS_OK;
}

svs_code svi_settings_unpack(struct svi_settings *s, const char *from, const void *bytes, size_t size,
                             svs_error *err) {
    svi_settings_default(s);
    svs_code code = svi_settings_read(s, from, size > 0 ? bytes : "", size, err);
    s->threads = s->threads == 1 ? 0 : s->threads; /* 1 was recorded for 0 too: the default decides */
    memset(s->given, 0, sizeof s->given);
    return code;
}

bool svi_settings_differ(const struct svi_settings *a, const struct svi_settings *b,
                         const struct svi_setting *row) {
    /* As text, so that the comparison is the one that a kept state allows: its values were text as well. */
    char one[SVI_FEATURES_MAX], other[SVI_FEATURES_MAX];
    settings_record_value(a, row, one, sizeof one);
    settings_record_value(b, row, other, sizeof other);
    return strcmp(one, other) != 0;
}

bool svi_settings_differ_in(const struct svi_settings *a, const struct svi_settings *b,
                            enum svi_change_class of) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (row->change == of && svi_settings_differ(a, b, row))
            return true;
    return false;
}

/* Writes one change: "C 1 -> 10". */
static void settings_record_show(const struct svi_settings *a, const struct svi_settings *b,
                                 const struct svi_setting *row, char *out, size_t size) {
    char value[SVI_FEATURES_MAX], shown[2][48];
    const struct svi_settings *const of[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        svi_settings_value(of[i], row, value, sizeof value);
        svi_escape(shown[i], sizeof shown[i], value[0] ? value : "(empty)",
                   strlen(value[0] ? value : "(empty)"));
    }
    snprintf(out, size, "%s %s -> %s", row->key, shown[0], shown[1]);
}

char *svi_settings_differences(const struct svi_settings *a, const struct svi_settings *b, char *out,
                               size_t size) {
    char one[160];
    size_t length = 0;
    out[0] = '\0';
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        if (row->change < SVI_CHANGE_ONWARD || !svi_settings_differ(a, b, row))
            continue;
        settings_record_show(a, b, row, one, sizeof one);
        if (length + strlen(one) + 8 > size) { /* ", " before it and ", ..." after it must fit */
            snprintf(out + length, size - length, ", ...");
            break;
        }
        length += (size_t)snprintf(out + length, size - length, "%s%s", length ? ", " : "", one);
    }
    return out;
}

static svs_code settings_record_refuse(const struct svi_settings *s, const struct svi_settings *kept,
                                       const struct svi_setting *row, const char *fault, svs_error *err) {
    char given[SVI_FEATURES_MAX], there[SVI_FEATURES_MAX];
    settings_record_value(s, row, given, sizeof given);
    settings_record_value(kept, row, there, sizeof there);
    return svi_fail(err, SVS_SETTING,
                    "%s is %.60s, but the state in %.80s was created with %.60s%s: remove %s, or use another "
                    "state.dir",
                    row->key, given[0] ? given : "(empty)", s->state_dir, there[0] ? there : "(empty)", fault,
                    row->key);
}

/* Is the row lower in a than in b? Only for limits, which are all integers. */
static bool settings_record_lower(const struct svi_settings *a, const struct svi_settings *b,
                                  const struct svi_setting *row) {
    return *(const int64_t *)svi_settings_field(a, row) < *(const int64_t *)svi_settings_field(b, row);
}

svs_code svi_settings_merge(struct svi_settings *s, const struct svi_settings *kept, svs_error *err) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        const bool given = svi_settings_given(s, row);
        if (row->change == SVI_CHANGE_MODEL && given && svi_settings_differ(s, kept, row))
            return settings_record_refuse(s, kept, row, "", err);
        if (row->change == SVI_CHANGE_LIMIT && given && settings_record_lower(s, kept, row))
            return settings_record_refuse(s, kept, row, " and can only be raised", err);
        if (row->change != SVI_CHANGE_START && !given && svi_settings_differ(s, kept, row))
            memcpy(svi_settings_field(s, row), svi_settings_field(kept, row), row->size);
    }
    return SVS_OK;
}

bool svi_settings_raised(const struct svi_settings *s, const struct svi_settings *kept) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (row->change == SVI_CHANGE_LIMIT && settings_record_lower(kept, s, row))
            return true;
    return false;
}

/* Copies the rows of some change classes: bit c of `classes` stands for class c. */
static void settings_record_copy(struct svi_settings *to, const struct svi_settings *from, unsigned classes) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (classes >> row->change & 1)
            memcpy(svi_settings_field(to, row), svi_settings_field(from, row), row->size);
}

void svi_settings_keep_limits(struct svi_settings *then, const struct svi_settings *now) {
    settings_record_copy(then, now, 1u << SVI_CHANGE_LIMIT);
}

void svi_settings_go_back(struct svi_settings *s, const struct svi_settings *then) {
    settings_record_copy(s, then, ~(1u << SVI_CHANGE_START | 1u << SVI_CHANGE_LIVE | 1u << SVI_CHANGE_LIMIT));
}

void svi_settings_adopt_live(struct svi_settings *s, const struct svi_settings *from) {
    settings_record_copy(s, from, 1u << SVI_CHANGE_LIVE);
}

bool svi_settings_adopt(struct svi_settings *s, const struct svi_settings *from) {
    bool changed = false;
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (svi_change_any_time(row->change) && svi_settings_differ(s, from, row)) {
            memcpy(svi_settings_field(s, row), svi_settings_field(from, row), row->size);
            changed = true;
        }
    return changed;
}

/* ---- settings that change while the stream runs */

/* Writes a value as in a settings file; "" for a type that cannot be a value. */
static const char *change_value_text(const struct svi_item *item, char *out, size_t size) {
    const svs_value v = svi_item_value(item);
    out[0] = '\0';
    if (item->type == SVI_BOOL)
        snprintf(out, size, "%s", item->i ? "yes" : "no");
    else if (v.kind == SVS_STR)
        snprintf(out, size, "%.*s", (int)v.length, v.as.s);
    else if (v.kind == SVS_INT)
        snprintf(out, size, "%" PRId64, v.as.i);
    else if (v.kind == SVS_REAL)
        snprintf(out, size, "%.17g", v.as.r);
    return out;
}

static svs_code change_one(struct svi_settings *s, const struct svi_item *name, const struct svi_item *value,
                           svs_error *err) {
    char key[64], text[SVI_TEXT_MAX];
    if (name->type != SVI_STRING)
        return svi_fail(err, SVS_WRONG_TYPE, "set must be a map of settings whose keys are strings");
    svi_escape(key, sizeof key, (const char *)name->body, name->length);
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    if (row->change == SVI_CHANGE_MODEL)
        return svi_fail(
            err, SVS_SETTING,
            "%s is fixed for the lifetime of a model: start a new model with it (in another state.dir)", key);
    if (!svi_change_any_time(row->change))
        return svi_fail(err, SVS_SETTING, "%s can only change at a start: restart the process with --%s", key,
                        key);
    const svs_value v = svi_item_value(value);
    if (v.kind == SVS_NONE)
        return svi_fail(err, SVS_WRONG_TYPE, "%s is %s: its value must be a string, a number or a bool", key,
                        svi_item_name(value));
    if (v.kind == SVS_STR && v.length >= sizeof text)
        return svi_fail(err, SVS_SETTING, "%s has %u bytes: a change while the stream runs takes at most %zu",
                        key, v.length, sizeof text - 1);
    return svi_settings_set(s, key, change_value_text(value, text, sizeof text), err);
}

/* A running stream cannot gain or lose its classifier: the kept state has one or not. Without a classifier,
 * its settings are refused rather than ignored. */
static svs_code change_check_method(const struct svi_settings *s, const struct svi_settings *changed,
                                    svs_error *err) {
    const bool none = s->method == SVI_METHOD_NONE;
    if (none != (changed->method == SVI_METHOD_NONE))
        return svi_fail(err, SVS_SETTING,
                        "method can only change between auto, alsvm and falsvm: start a new state with "
                        "method %s (in another state.dir)",
                        svi_settings_word("method", changed->method));
    if (svi_settings_stacked(s) != svi_settings_stacked(changed))
        return svi_fail(err, SVS_SETTING,
                        "with key.shared, method auto is fixed at the first start: start a new state with "
                        "method %s (in another state.dir)",
                        svi_settings_word("method", changed->method));
    if (svi_settings_stacked(s) && s->auto_budget != changed->auto_budget)
        return svi_fail(err, SVS_SETTING,
                        "with key.shared, auto.budget is fixed at the first start: start a new state with "
                        "auto.budget %g (in another state.dir)",
                        changed->auto_budget);
    if (none && svi_settings_differ_in(s, changed, SVI_CHANGE_RELEARN))
        return svi_fail(err, SVS_SETTING,
                        "C, window, window.seconds, forget, scale and class.weight need a classifier, which "
                        "method none does not have");
    return SVS_OK;
}

/* Capacity for samples that wait is made with the learner. */
static svs_code change_check_labels(const struct svi_settings *s, const struct svi_settings *changed,
                                    svs_error *err) {
    if ((s->labels_ttl > 0) == (changed->labels_ttl > 0))
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "labels.ttl can become another number of seconds, but not change %s 0: start a new state "
                    "(in another state.dir)",
                    s->labels_ttl > 0 ? "to" : "from");
}

/* Refuses a change that would have no effect: alert.p and alert.fdr count only without a budget. */
static svs_code change_check_alerts(const struct svi_settings *s, const struct svi_settings *changed,
                                    svs_error *err) {
    const bool p = s->alert_p != changed->alert_p, fdr = s->alert_fdr != changed->alert_fdr;
    /* The budget after the change counts: both may be set in one request. */
    if (strcmp(changed->alert_budget, "none") == 0 || !(p || fdr))
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "%s has no effect with alert.budget %.40s: set alert.budget none too, or change the budget instead",
        p ? "alert.p" : "alert.fdr", changed->alert_budget);
}

svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err) {
    svs_code code =
        svi_settings_check(changed, err); /* as at a start; then what only a running stream forbids */
    code = code == SVS_OK ? change_check_method(s, changed, err) : code;
    code = code == SVS_OK ? change_check_labels(s, changed, err) : code;
    return code == SVS_OK ? change_check_alerts(s, changed, err) : code;
}

svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             svs_error *err) {
    struct svi_item name, value;
    if (set->type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "set must be a map of settings and their values");
    struct svi_settings *changed = svi_alloc(sizeof *changed);
    svs_code code = changed ? SVS_OK : svi_fail_memory(err, "the settings");
    const uint8_t *at = set->body;
    /* One after another on the copy, and checked together at the end: {C, method} may come in any order. */
    if (changed)
        *changed = *s;
    for (uint32_t i = 0; i < set->length && code == SVS_OK; i++) {
        svi_item_read(at, &name);
        svi_walk(&at, end, SVI_WALK_MAX);
        svi_item_read(at, &value);
        svi_walk(&at, end, SVI_WALK_MAX);
        code = change_one(changed, &name, &value, err);
    }
    if (code == SVS_OK)
        code = svi_settings_change_allowed(s, changed, err);
    if (code == SVS_OK)
        svi_settings_adopt(s, changed);
    svi_free(changed);
    return code;
}
