/* The texts of the settings of rules and alerts: which rules are on, delays of rules, limits of columns, the
 * budget.
 *
 * The settings table (settings.c) holds them as plain text. Each is parsed in this file only, and twice: by
 * the check of the settings, which reports the error, and by the modules that apply it, some of which ignore
 * an error because the check has passed. The order of the rules and their names are in rule_settings.h, which
 * is the part to read first; the loops here rely on that order.
 *
 * Entries of a list are separated by commas. An error shows the entry as it was written, says what is wrong
 * with it, and how to write it. A list of limits may be long and is not stored in parsed form: svi_limit_next
 * reads one entry after the other, and relies on the check before. In the order of the file: names of rules,
 * delays, limits, the budget. */
#include "config/rule_settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/fail.h"
#include "base/limits.h"
#include "data/cell.h"
#include "svmstream/value.h"

#define SHOWN          84   /* bytes of an entry in an error text */
#define NUMBER         40   /* bytes of a number, the NUL included */
#define BUDGET_LOWEST  1e-4 /* alerts per unit of time */
#define BUDGET_HIGHEST 1e4

/* From the list that also makes the constants: a name cannot belong to another number. */
const char *svi_rule_name(enum svi_rule rule) {
#define X(constant, name, about) #name,
    static const char *const names[SVI_RULES] = {SVI_RULES_ALL(X)};
#undef X
    return names[rule];
}

/* The longest number that a double needs, 17 digits with signs, point and exponent, has 24 bytes. A longer
 * text is refused, whatever its value. */
bool svi_setting_number(const char *text, size_t length, double *value) {
    char copy[NUMBER], *end;
    /* The characters are checked because strtod also takes spaces, hexadecimals, NaN and infinities; the copy
     * ends where the entry does. */
    if (length == 0 || length >= sizeof copy || strspn(text, "0123456789+-.eE") < length)
        return false;
    /* Within these characters strtod still overflows to infinity, which the bound at the end refuses. */
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, &end);
    return *end == '\0' && fabs(*value) <= SVI_VALUE_MAX;
}

/* Switches on the rules that alert.rules lists. `none` stands alone: within a list it is a word that no rule
 * has. An empty entry is refused too, so a comma at the end is an error. */
static svs_code rule_settings_names(const char *text, bool *on, svs_error *err) {
    char shown[SHOWN];
    if (strcmp(text, "none") == 0)
        return SVS_OK;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        int rule = SVI_RULE_LIMITS + 1; /* the first and the last rule follow from other settings */
        while (rule < SVI_RULE_SILENT && (strlen(svi_rule_name((enum svi_rule)rule)) != length ||
                                          memcmp(svi_rule_name((enum svi_rule)rule), at, length) != 0))
            rule++;
        if (rule == SVI_RULE_SILENT)
#define X(constant, name, about) #name ", "
            return svi_fail(err, SVS_SETTING,
                            "alert.rules: '%s' is not a rule (none, or some of " SVI_RULES_CHOSEN(
                                X) "separated by commas)",
                            svi_escape(shown, sizeof shown, at, length));
#undef X
        /* A second entry of a rule is harmless here: it says the same. Delays and limits refuse it, because
         * there two entries can differ. */
        on[rule] = true;
        at += length;
        if (*at == '\0')
            return SVS_OK;
    }
}

svs_code svi_rule_settings_read(const char *rules, const char *absent, const char *limits,
                                struct svi_rule_settings *out, svs_error *err) {
    char shown[SHOWN];
    const size_t length = strlen(absent);
    /* All else begins as off or 0. `limits` counts if it is not empty; svi_limits_check reads what it
     * says. */
    *out = (struct svi_rule_settings){.on[SVI_RULE_LIMITS] = limits[0] != '\0'};
    SVI_TRY(rule_settings_names(rules, out->on, err));
    /* alert.absent none overrides alert.rules; a time alone does not switch the rule on. A time of 0 is
     * refused: 0 means auto in the parsed form. */
    if (strcmp(absent, "none") == 0)
        out->on[SVI_RULE_ABSENT] = false;
    else if (strcmp(absent, "auto") != 0 &&
             (!svi_setting_number(absent, length, &out->absent) || !(out->absent > 0)))
        return svi_fail(err, SVS_SETTING,
                        "alert.absent: '%s' is not a time (none, auto, or seconds above 0 and at most 1e100)",
                        svi_escape(shown, sizeof shown, absent, length));
    /* A silent stream is absent as a whole, so one setting switches both rules. This follows last, when both
     * texts have decided about `absent`. */
    out->on[SVI_RULE_SILENT] = out->on[SVI_RULE_ABSENT];
    return SVS_OK;
}

/* ---- delays */

#define MAX_DELAY      86400.0 /* seconds */
#define MAX_DELAY_ROWS 100000

/* A time, or a number of rows: "3rows". False: neither, or too long. */
static bool delay_read(const char *text, size_t length, struct svi_rule_delay *out) {
    static const char rows[] = "rows";
    const size_t unit = sizeof rows - 1;
    double number;
    /* A delay is over when both its seconds and its rows are. A time therefore asks for one row, the first,
     * and a number of rows asks for no seconds. */
    *out = (struct svi_rule_delay){.given = true, .rows = 1};
    /* The unit alone is no number of rows. It takes this branch as well, and is no time either. */
    if (length <= unit || memcmp(text + length - unit, rows, unit) != 0)
        return svi_duration_read(text, length, &out->seconds) && out->seconds <= MAX_DELAY;
    length -= unit;
    length -= length > 1 && text[length - 1] == ' ';
    if (!svi_setting_number(text, length, &number) || !(number >= 1 && number <= MAX_DELAY_ROWS) ||
        number != trunc(number))
        return false;
    out->rows = (int64_t)number;
    return true;
}

/* The rule of that name. SVI_RULES: no rule has it. */
static int rule_named(const char *name, size_t length) {
    int rule = 0;
    while (rule < SVI_RULES && (strlen(svi_rule_name((enum svi_rule)rule)) != length ||
                                memcmp(svi_rule_name((enum svi_rule)rule), name, length) != 0))
        rule++;
    return rule;
}

/* Parses one entry, RULE:TIME. Its first ':' ends the rule, because no rule has one in its name; in `limits`
 * it is the last one, because columns may have some. The rule is checked first: it is the index of the
 * rest. */
static svs_code delay_entry(const char *entry, size_t length, bool off, struct svi_rule_delay *out,
                            svs_error *err) {
    const char *key = off ? "alert.offdelay" : "alert.ondelay";
    const char *colon = memchr(entry, ':', length);
    const size_t name = colon ? (size_t)(colon - entry) : length;
    const int rule = rule_named(entry, name);
    char shown[SHOWN];
    svi_escape(shown, sizeof shown, entry, length);
#define X(constant, name, about) #name " "
    if (!colon || rule == SVI_RULES)
        return svi_fail(
            err, SVS_SETTING,
            "%s: '%s' is not RULE:TIME (none, or such entries separated by commas; the rules: " SVI_RULES_ALL(
                X) "; the times: 30s, 5min, 1h, or 3rows)",
            key, shown);
#undef X
    /* A step is over with its row, and a silence has no rows: what opens these alerts are other settings. */
    if (!off && (rule == SVI_RULE_RATE || rule == SVI_RULE_SILENT))
        return svi_fail(err, SVS_SETTING, "%s: '%s': %s", key, shown,
                        rule == SVI_RULE_RATE
                            ? "rate compares single rows and has no on-delay: leave it out"
                            : "set alert.absent instead, the time until a stream is silent");
    /* Of two times for one rule, one would be ignored without notice. */
    if (out[rule].given)
        return svi_fail(err, SVS_SETTING, "%s: '%s' is the second entry of its rule: leave one out", key,
                        shown);
    if (!delay_read(colon + 1, length - name - 1, &out[rule]))
        return svi_fail(
            err, SVS_SETTING,
            "%s: '%s' has no valid delay (0 to 1 day, as 30s, 5min or 1h, or 1 to %d rows, as 3rows)", key,
            shown, MAX_DELAY_ROWS);
    return SVS_OK;
}

svs_code svi_rule_delays_read(const char *text, bool off, struct svi_rule_delay out[SVI_RULES],
                              svs_error *err) {
    /* Cleared first: delay_entry takes `given` for an earlier entry of this text. */
    memset(out, 0, SVI_RULES * sizeof *out);
    if (strcmp(text, "none") == 0)
        return SVS_OK;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        SVI_TRY(delay_entry(at, length, off, out, err));
        at += length;
        if (*at == '\0')
            return SVS_OK;
    }
}

/* ---- limits */

/* Parses an entry of `limits`. Returns NULL, or the fault for an error text. */
static const char *limit_read(const char *entry, size_t length, struct svi_limit *out) {
    /* From the end: the last ':' ends the column, because a column may contain others and a limit cannot. */
    size_t name = length;
    while (name > 0 && entry[name - 1] != ':')
        name--;
    /* The longest name is a pattern of keys, a '.' and a column. Whether the stream has keys is not known
     * here; limit_check is stricter where it has not. */
    if (name < 2 || name - 1 > SVS_KEY_MAX + 1 + SVS_NAME_MAX)
        return "has no column before a ':'";
    /* The first ".." separates the limits: a number contains one point at most. */
    const char *low = entry + name, *end = entry + length, *dots = low;
    while (dots + 1 < end && (dots[0] != '.' || dots[1] != '.'))
        dots++;
    if (dots + 1 >= end)
        return "has no '..' between its limits";
    const char *high = dots + 2;
    /* An omitted side is infinite, so no comparison with a limit needs to know whether it was given. */
    *out = (struct svi_limit){.column = entry, .length = name - 1, .low = -INFINITY, .high = INFINITY};
    if (low == dots && high == end)
        return "has no limit on either side of '..'";
    if ((low < dots && !svi_setting_number(low, (size_t)(dots - low), &out->low)) ||
        (high < end && !svi_setting_number(high, (size_t)(end - high), &out->high)))
        return "has a limit that is not a number of at most 1e100";
    return out->low <= out->high ? NULL : "has a lower limit above its upper one";
}

/* An entry that is wrong would end the list early and silently. Only the check before excludes that. */
bool svi_limit_next(const char **at, struct svi_limit *limit) {
    if (**at == '\0')
        return false;
    const size_t length = strcspn(*at, ",");
    const char *wrong = limit_read(*at, length, limit);
    *at += length + ((*at)[length] == ',');
    return wrong == NULL;
}

/* From the left, so the longest name is asked for first: with a column a.b and a column b, the entry a.b is
 * the column, and not b of the keys a. Without keys every dot belongs to the name. */
size_t svi_limit_column(const struct svi_limit *limit, bool keyed, svi_limit_has *has, const void *user) {
    for (size_t at = 0; at < limit->length; at++)
        if ((at == 0 || (keyed && limit->column[at - 1] == '.')) &&
            has(user, limit->column + at, limit->length - at))
            return at;
    return limit->length;
}

static bool limit_is_feature(const void *features, const char *name, size_t length) {
    return svi_span_listed((struct svi_span){name, name + length}, features);
}

/* Does the entry name keys, of a stream that has none? Only a pattern shows it: a column may have dots. */
static bool limit_names_keys(const struct svi_limit *limit) {
    const char *star = memchr(limit->column, '*', limit->length);
    return star && memchr(star, '.', limit->length - (size_t)(star - limit->column));
}

/* Checks one entry against the ones before it: two limits for one column would hide an error of the user. */
static svs_code limit_check(const char *limits, const char *features, bool keyed, const char *entry,
                            size_t length, svs_error *err) {
    char shown[SHOWN], all[2 * SHOWN];
    struct svi_limit limit, earlier;
    const char *wrong = limit_read(entry, length, &limit), *at = limits;
    svi_escape(shown, sizeof shown, entry, length);
    /* The order of the checks: the form, the keys, the column, and last the entries before. Each one relies
     * on the form. */
    if (!wrong && !keyed && limit.length > SVS_NAME_MAX)
        wrong = "has no column before a ':'";
    if (wrong)
        return svi_fail(
            err, SVS_SETTING,
            "limits: '%s' %s: write COLUMN:LOW..HIGH, COLUMN:LOW.. or COLUMN:..HIGH, separated by commas",
            shown, wrong);
    if (!keyed && limit_names_keys(&limit))
        return svi_fail(err, SVS_SETTING,
                        "limits: '%s' names keys before a '.', but this stream has no keys (see the setting "
                        "key): write COLUMN:LOW..HIGH",
                        shown);
    /* Without `features` any column passes: columns may be added at any time, and an entry waits for its own.
     * The engine reports an entry whose column the first sample does not have. */
    if (features && features[0] &&
        svi_limit_column(&limit, keyed, limit_is_feature, features) == limit.length)
        return svi_fail(err, SVS_SETTING, "limits: '%s' does not name a column of features (%s)", shown,
                        svi_escape(all, sizeof all, features, strlen(features)));
    /* Equal means equal as text. A key and a pattern that matches it may both be given, since the narrower
     * one comes first when a column looks for its limits (src/manual/alerts.md). */
    /* Entries before this one have passed the check, so svi_limit_next may read them. */
    while (at < entry && svi_limit_next(&at, &earlier))
        if (earlier.length == limit.length && memcmp(earlier.column, limit.column, limit.length) == 0)
            return svi_fail(err, SVS_SETTING, "limits: '%s' is the second entry of its column: leave one out",
                            shown);
    return SVS_OK;
}

svs_code svi_limits_check(const char *limits, const char *features, bool keyed, svs_error *err) {
    for (const char *at = limits; limits[0]; at++) {
        const size_t length = strcspn(at, ",");
        svs_code code = limit_check(limits, features, keyed, at, length, err);
        at += length;
        if (code != SVS_OK || *at == '\0')
            return code;
    }
    return SVS_OK;
}

svs_code svi_settings_alert_budget_read(const char *text, double *a_day, svs_error *err) {
    static const struct {
        const char *name;
        double days;
    } units[] = {{"/hour", 1.0 / 24}, {"/day", 1}, {"/week", 7}};
    char *end;
    /* No check of the characters is needed: infinity and NaN are outside the range, and what follows the
     * number must be a unit. */
    const double number = strtod(text, &end);
    /* 0 means none, so it also marks a text that no unit fits. The range excludes 0: no budget is taken for
     * none. */
    *a_day = 0;
    if (strcmp(text, "none") == 0)
        return SVS_OK;
    /* The range bounds the number as it was written, whatever its unit; the error text states it in this
     * form. */
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > text && strcmp(end, units[i].name) == 0 && number >= BUDGET_LOWEST &&
            number <= BUDGET_HIGHEST)
            *a_day = number / units[i].days;
    if (*a_day > 0)
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "alert.budget: '%.40s' is not an allowed value (none, or a number of alerts from 0.0001 to "
        "10000 and /hour, /day or /week, e.g. 1/day)",
        text);
}
