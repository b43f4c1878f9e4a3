#include "config/settings_record.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* The value as a kept state knows it: of threads what decides about bits. */
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
    s->threads = s->threads == 1 ? 0 : s->threads; /* of a second thread nothing is recorded */
    memset(s->given, 0, sizeof s->given);
    return code;
}

bool svi_settings_differ(const struct svi_settings *a, const struct svi_settings *b,
                         const struct svi_setting *row) {
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

/* "C 1 -> 10" */
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
        if (length + strlen(one) + 8 > size) {
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

/* The rows of some change classes, a bit each. */
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
