#include "config/settings_change.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "wire/control_command.h"

/* The value as a settings file would have it; "" for what cannot be one. */
static const char *setting_text(const struct svi_item *item, char *out, size_t size) {
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
        return svi_fail(err, SVS_WRONG_TYPE, "set is a map of settings: its keys are strings");
    svi_escape(key, sizeof key, (const char *)name->body, name->length);
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    if (row->change == SVI_CHANGE_MODEL)
        return svi_fail(
            err, SVS_SETTING,
            "%s cannot be changed while the model lives: start a new one with it (in another state.dir)",
            key);
    if (!svi_change_any_time(row->change))
        return svi_fail(err, SVS_SETTING, "%s can only be set at a start: end the process and give --%s", key,
                        key);
    const svs_value v = svi_item_value(value);
    if (v.kind == SVS_NONE)
        return svi_fail(err, SVS_WRONG_TYPE, "%s is %s: its value is a string, a number or a bool", key,
                        svi_item_name(value));
    if (v.kind == SVS_STR && v.length >= sizeof text)
        return svi_fail(err, SVS_SETTING, "%s has %u bytes: at most %zu can be set while the stream runs",
                        key, v.length, sizeof text - 1);
    return svi_settings_set(s, key, setting_text(value, text, sizeof text), err);
}

/* A classifier comes and goes with its state alone, and without one nothing of it has a meaning. */
static svs_code change_check_method(const struct svi_settings *s, const struct svi_settings *changed,
                                    svs_error *err) {
    const bool none = s->method == SVI_METHOD_NONE;
    if (none != (changed->method == SVI_METHOD_NONE))
        return svi_fail(
            err, SVS_SETTING,
            "method can change between auto, alsvm and falsvm only: start a new state with method %s (in "
            "another state.dir)",
            svi_settings_word("method", changed->method));
    if (none && svi_settings_differ_in(s, changed, SVI_CHANGE_RELEARN))
        return svi_fail(
            err, SVS_SETTING,
            "C, window, window.seconds, forget, scale and class.weight are of the classifier, which "
            "method none does not have");
    return SVS_OK;
}

/* What has no effect beside a budget is not taken as if it had. */
static svs_code change_check_alerts(const struct svi_settings *s, const struct svi_settings *changed,
                                    svs_error *err) {
    const bool p = s->alert_p != changed->alert_p, fdr = s->alert_fdr != changed->alert_fdr;
    if (strcmp(changed->alert_budget, "none") == 0 || !(p || fdr))
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "%s decides nothing while alert.budget is %.40s: set alert.budget none with it, or another "
        "budget instead",
        p ? "alert.p" : "alert.fdr", changed->alert_budget);
}

svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err) {
    svs_code code = svi_settings_check(changed, err);
    code = code == SVS_OK ? change_check_method(s, changed, err) : code;
    return code == SVS_OK ? change_check_alerts(s, changed, err) : code;
}

svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             svs_error *err) {
    struct svi_item name, value;
    if (set->type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "set is a map of settings and their values");
    struct svi_settings *changed = svi_alloc(sizeof *changed);
    svs_code code = changed ? SVS_OK : svi_fail_memory(err, "the settings");
    const uint8_t *at = set->body;
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
