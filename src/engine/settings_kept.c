#include "engine/settings_kept.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static svs_code append(struct svi_bytes *out, const char *text, size_t n) {
    return n == 0 ? SVS_OK : svi_bytes_append(out, text, n);
}

/* In quotes, which every row takes. */
static svs_code pack_row(const struct svi_settings *s, const struct svi_setting *row, struct svi_bytes *out) {
    char value[sizeof s->features];
    svi_settings_value(s, row, value, sizeof value);
    svs_code code = append(out, row->key, strlen(row->key));
    if (code == SVS_OK)
        code = append(out, ": \"", 3);
    for (const char *at = value; *at && code == SVS_OK; at++) {
        if (*at == '"' || *at == '\\')
            code = append(out, "\\", 1);
        if (code == SVS_OK)
            code = append(out, at, 1);
    }
    return code == SVS_OK ? append(out, "\"\n", 2) : code;
}

svs_code svi_settings_pack(const struct svi_settings *s, struct svi_bytes *out, svs_error *err) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    for (int i = 0; i < count; i++)
        if (svi_settings_nature(&table[i]) != SVI_NATURE_OUTSIDE && pack_row(s, &table[i], out) != SVS_OK)
            return svi_fail_memory(err, "the settings of a kept state");
    return SVS_OK;
}

svs_code svi_settings_unpack(struct svi_settings *s, const char *from, const void *bytes, size_t size,
                             svs_error *err) {
    svi_settings_default(s);
    svs_code code = svi_settings_read(s, from, bytes, size, err);
    memset(s->given, 0, sizeof s->given);
    return code;
}

static void *field(struct svi_settings *s, const struct svi_setting *row) {
    return (char *)s + row->offset;
}

static const void *kept_field(const struct svi_settings *s, const struct svi_setting *row) {
    return (const char *)s + row->offset;
}

static bool same(const struct svi_settings *a, const struct svi_settings *b, const struct svi_setting *row) {
    char one[sizeof a->features], other[sizeof a->features];
    svi_settings_value(a, row, one, sizeof one);
    svi_settings_value(b, row, other, sizeof other);
    return strcmp(one, other) == 0;
}

static const char *shown(const struct svi_settings *s, const struct svi_setting *row, char *out,
                         size_t size) {
    const char *value = svi_settings_value(s, row, out, size);
    return *value ? value : "(empty)";
}

static svs_code refuse(const struct svi_settings *s, const struct svi_settings *kept,
                       const struct svi_setting *row, const char *fault, svs_error *err) {
    char given[sizeof s->features], there[sizeof s->features];
    return svi_fail(
        err, SVS_SETTING,
        "%s is %.60s, but the state in %.80s was made with %.60s%s: leave %s out, or name another "
        "state.dir",
        row->key, shown(s, row, given, sizeof given), s->state_dir, shown(kept, row, there, sizeof there),
        fault, row->key);
}

static int64_t limit(const struct svi_settings *s, const struct svi_setting *row) {
    int64_t n;
    memcpy(&n, kept_field(s, row), sizeof n);
    return n;
}

static svs_code merge_row(struct svi_settings *s, const struct svi_settings *kept,
                          const struct svi_setting *row, svs_error *err) {
    const enum svi_setting_nature nature = svi_settings_nature(row);
    const bool given = svi_settings_given(s, row);
    if (nature == SVI_NATURE_MODEL && given && !same(s, kept, row))
        return refuse(s, kept, row, "", err);
    if (nature == SVI_NATURE_LIMIT && given && limit(s, row) < limit(kept, row))
        return refuse(s, kept, row, " and can only be raised", err);
    if (nature != SVI_NATURE_OUTSIDE && !given)
        memcpy(field(s, row), kept_field(kept, row), row->size);
    return SVS_OK;
}

svs_code svi_settings_merge(struct svi_settings *s, const struct svi_settings *kept, svs_error *err) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    svs_code code = SVS_OK;
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = merge_row(s, kept, &table[i], err);
    return code;
}

bool svi_settings_raised(const struct svi_settings *s, const struct svi_settings *kept) {
    int count;
    bool raised = false;
    const struct svi_setting *table = svi_settings_table(&count);
    for (int i = 0; i < count; i++)
        raised = raised || (svi_settings_nature(&table[i]) == SVI_NATURE_LIMIT &&
                            limit(s, &table[i]) > limit(kept, &table[i]));
    return raised;
}

bool svi_settings_adopt(struct svi_settings *s, const struct svi_settings *from) {
    int count;
    bool changed = false;
    const struct svi_setting *table = svi_settings_table(&count);
    for (int i = 0; i < count; i++) {
        const struct svi_setting *row = &table[i];
        if (svi_settings_nature(row) != SVI_NATURE_LIVE || same(s, from, row))
            continue;
        memcpy(field(s, row), kept_field(from, row), row->size);
        changed = true;
    }
    return changed;
}
