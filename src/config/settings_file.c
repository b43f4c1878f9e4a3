/* Settings from and to a YAML file: one flat map, with a line `key: value` for each setting.
 *
 * libyaml delivers events one at a time. Values go into a copy of the settings, which replaces them after the
 * last event: a fault in the last line leaves no effect of the first. A list, map or alias is refused where
 * it begins, so nothing nests; a file has at most FILE_MAX bytes. Tags, and anchors without an alias, are
 * ignored. */
#include "config/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

#define FILE_MAX (1 << 20) /* bytes; far more than any file of settings needs */

struct yaml_reader {
    yaml_parser_t parser;
    struct svi_settings settings;
    char file[128];
    bool document, map;            /* the document, the map has begun */
    const struct svi_setting *row; /* the row whose value is next; NULL: a key is next */
    size_t line[SVI_SETTING_MAX];  /* line where each row was set, from 1; 0: not set */
    svs_error *err;
};

__attribute__((format(printf, 3, 4))) static svs_code yaml_refuse(const struct yaml_reader *r, yaml_mark_t at,
                                                                  const char *format, ...) {
    char text[SVS_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return svi_fail(r->err, SVS_SETTING, "%s, line %zu, column %zu: %s", r->file, at.line + 1, at.column + 1,
                    text);
}

/* Reports an error of the parser. If it could not decode the text, it gives an offset in bytes and no mark:
 * line and column are counted here. */
static svs_code yaml_refuse_syntax(const struct yaml_reader *r, const char *bytes) {
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    if (p->error == YAML_MEMORY_ERROR)
        return svi_fail_memory(r->err, "the settings file");
    for (size_t i = 0; p->error == YAML_READER_ERROR && i < p->problem_offset; i++) {
        at.column = bytes[i] == '\n' ? 0 : at.column + 1;
        at.line += bytes[i] == '\n';
    }
    if (!p->context)
        return yaml_refuse(r, at, "invalid YAML: %s", p->problem);
    return yaml_refuse(r, at, "invalid YAML: %s %s that begins on line %zu", p->problem, p->context,
                       p->context_mark.line + 1);
}

static svs_code yaml_take_key(struct yaml_reader *r, yaml_mark_t at, const char *key) {
    svs_error unknown;
    r->row = svi_settings_row(key);
    if (!r->row) {
        svi_settings_unknown(key, &unknown);
        return yaml_refuse(r, at, "%s", unknown.text);
    }
    /* YAML parsers differ on which of two equal keys counts: neither does here. */
    size_t *line = &r->line[r->row - svi_settings_table];
    if (*line > 0)
        return yaml_refuse(r, at, "duplicate setting %s, first set on line %zu", key, *line);
    *line = at.line + 1;
    return SVS_OK;
}

/* Sets the row of the last key. YAML's null, unquoted (`plain`), is refused for a text: it would become a
 * column named null. */
static svs_code yaml_take_value(struct yaml_reader *r, yaml_mark_t at, const char *value, bool plain) {
    const struct svi_setting *row = r->row;
    svs_error bad;
    r->row = NULL;
    if (plain && row->type == SVI_SET_TEXT && (strcmp(value, "~") == 0 || strcasecmp(value, "null") == 0))
        return yaml_refuse(r, at, "%s is null: leave it out for its default, or write \"\" for an empty text",
                           row->key);
    if (svi_settings_set(&r->settings, row->key, value, &bad) != SVS_OK)
        return yaml_refuse(r, at, "%s", bad.text);
    return SVS_OK;
}

/* Takes a key or a value, or refuses a node that can be neither. */
static svs_code yaml_take_node(struct yaml_reader *r, const yaml_event_t *e) {
    const char *text = (const char *)e->data.scalar.value;
    /* Outside of the map, or not a scalar where a key is expected. */
    if (!r->map || (!r->row && e->type != YAML_SCALAR_EVENT))
        return yaml_refuse(r, e->start_mark,
                           "expected one flat map, with a line `key: value` for each setting");
    if (e->type != YAML_SCALAR_EVENT)
        return yaml_refuse(r, e->start_mark, "%s takes one value, not %s", r->row->key,
                           e->type == YAML_ALIAS_EVENT            ? "an alias"
                           : e->type == YAML_SEQUENCE_START_EVENT ? "a list"
                                                                  : "a map");
    /* Everything below treats the text as a C string: a NUL would hide its rest. */
    if (strlen(text) != e->data.scalar.length)
        return yaml_refuse(r, e->start_mark, "a text contains a NUL character");
    return r->row ? yaml_take_value(r, e->start_mark, text, e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
                  : yaml_take_key(r, e->start_mark, text);
}

static svs_code yaml_take_event(struct yaml_reader *r, const yaml_event_t *e) {
    const bool document = e->type == YAML_DOCUMENT_START_EVENT, map = e->type == YAML_MAPPING_START_EVENT;
    if ((map && r->map) || e->type == YAML_SCALAR_EVENT || e->type == YAML_SEQUENCE_START_EVENT ||
        e->type == YAML_ALIAS_EVENT)
        return yaml_take_node(r, e);
    if (document && r->document)
        return yaml_refuse(r, e->start_mark, "more than one YAML document: keep one map, without ---");
    r->document = r->document || document;
    r->map = r->map || map;
    return SVS_OK; /* also for ends, whose order the parser guarantees */
}

svs_code svi_settings_read(struct svi_settings *s, const char *name, const void *bytes, size_t length,
                           svs_error *err) {
    struct yaml_reader r = {.settings = *s, .err = err};
    yaml_event_t event = {.type = YAML_NO_EVENT};
    svs_code code = SVS_OK;
    svi_escape(r.file, sizeof r.file, name, strlen(name));
    if (!yaml_parser_initialize(&r.parser))
        return svi_fail_memory(err, "the settings file");
    yaml_parser_set_input_string(&r.parser, bytes, length);
    for (bool end = false; code == SVS_OK && !end; yaml_event_delete(&event)) {
        if (!yaml_parser_parse(&r.parser, &event))
            code = yaml_refuse_syntax(&r, bytes);
        else
            code = yaml_take_event(&r, &event);
        end = event.type == YAML_STREAM_END_EVENT;
    }
    yaml_parser_delete(&r.parser);
    /* A file written by `config default` states every default without choosing it (enum svi_given). */
    for (int i = 0; i < svi_settings_count; i++)
        if (r.line[i] > 0 && svi_settings_is_default(&r.settings, &svi_settings_table[i]))
            r.settings.given[i] = SVI_GIVEN_AS_DEFAULT;
    if (code == SVS_OK)
        *s = r.settings;
    return code;
}

svs_code svi_settings_load(struct svi_settings *s, const char *path, svs_error *err) {
    char file[128];
    char *bytes = svi_alloc(FILE_MAX + 1); /* one byte more shows that the file is too large */
    if (!bytes)
        return svi_fail_memory(err, "the settings file");
    FILE *from = fopen(path, "rb");
    const size_t length = from ? fread(bytes, 1, FILE_MAX + 1, from) : 0;
    const char *fault = !from || ferror(from) ? strerror(errno)
                        : length > FILE_MAX   ? "the file is larger than 1 MiB"
                                              : NULL;
    svs_code code = fault ? svi_fail(err, SVS_IO, "cannot read the settings file %s: %s",
                                     svi_escape(file, sizeof file, path, strlen(path)), fault)
                          : svi_settings_read(s, path, bytes, length, err);
    if (from)
        fclose(from);
    svi_free(bytes);
    return code;
}

/* ---- to YAML */

size_t svi_settings_line(const struct svi_settings *s, const struct svi_setting *row, bool quoted,
                         char *out) {
    char value[SVI_FEATURES_MAX];
    size_t at = (size_t)sprintf(out, "%s: %s", row->key, quoted ? "\"" : "");
    svi_settings_value(s, row, value, sizeof value);
    for (const char *from = value; *from; from++) {
        const int control = svi_text_control(from, strlen(from));
        if (quoted && control > 0) { /* 6 bytes for 3: a value at most doubles (SVI_SETTINGS_LINE) */
            at += (size_t)sprintf(out + at, "\\u%04x", (unsigned)control);
            from += svi_utf8_length(from, strlen(from)) - 1;
            continue;
        }
        if (quoted && (*from == '"' || *from == '\\'))
            out[at++] = '\\';
        out[at++] = *from;
    }
    return at + (size_t)sprintf(out + at, "%s\n", quoted ? "\"" : "");
}

void svi_settings_write(const struct svi_settings *s, FILE *to) {
    for (const struct svi_setting *row = svi_settings_table; row->key; row++) {
        char range[128], line[SVI_SETTINGS_LINE];
        const bool words = row->words && row->type != SVI_SET_ADDRESS;
        svi_settings_line(s, row, row->type <= SVI_SET_ADDRESS && !words, line);
        if (row->type == SVI_SET_TEXT && !words)
            fprintf(to, "# %s\n# %s\n%s", row->text, row->advice, line);
        else
            fprintf(to, "# %s (%s)\n# %s\n%s", row->text, svi_settings_range(row, range, sizeof range),
                    row->advice, line);
    }
}
