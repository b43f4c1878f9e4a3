/* Settings from and to a YAML file. libcyaml reads it by a schema made from the settings table: one optional
 * string a row. It tells what it dislikes only through its log, so the log is caught and put into our words.
 */
#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/settings.h"

#define FILE_MAX (1 << 20) /* bytes of a settings file; a thousand times what the longest needs */
#define WORD_MAX 64

/* What libcyaml logged about the first fault. */
struct fault {
    char said[40];       /* how its message begins: a row of `interesting` */
    char word[WORD_MAX]; /* the key it names, or what libyaml says */
    size_t line;         /* 0 = not told */
};

static const struct {
    const char *begins; /* of the format of the log message */
    bool names;         /* its argument is a key or a text of interest */
} interesting[] = {
    {"Load: Unexpected key", true}, {"Load: Mapping field already seen", true},
    {"Load: libyaml", true},        {"Load: Expecting", false},
    {"Load: STRING length", false}, {"Ignoring documents", false},
};

/* The line of a field is that of its value; of the map as a whole it would be the map's first, which helps
 * nobody. */
static void note_backtrace(struct fault *f, const char *format, va_list arguments) {
    if (strncmp(format, "  in mapping field", 18) != 0)
        return;
    const char *key = va_arg(arguments, const char *);
    if (f->word[0] == '\0')
        svi_escape(f->word, sizeof f->word, key, strlen(key));
    f->line = va_arg(arguments, size_t);
}

static void catch_log(cyaml_log_t level, void *context, const char *format, va_list arguments) {
    struct fault *f = (struct fault *)context;
    (void)level;
    note_backtrace(f, format, arguments);
    for (size_t i = 0; i < sizeof interesting / sizeof interesting[0] && !f->said[0]; i++) {
        if (strncmp(format, interesting[i].begins, strlen(interesting[i].begins)) != 0)
            continue;
        snprintf(f->said, sizeof f->said, "%s", interesting[i].begins);
        if (interesting[i].names) {
            const char *word = va_arg(arguments, const char *);
            svi_escape(f->word, sizeof f->word, word, strlen(word));
        }
    }
}

/* libcyaml's memory goes through our gate, which wants to know the old size: it is kept in front of the
 * block. */
#define HEAD 64

static void *gate(void *context, void *block, size_t size) {
    (void)context;
    char *old = block ? (char *)block - HEAD : NULL;
    if (size == 0) {
        svi_free(old);
        return NULL;
    }
    char *grown =
        size > SIZE_MAX - HEAD ? NULL : svi_realloc(old, old ? *(size_t *)(void *)old : 0, size + HEAD);
    if (!grown)
        return NULL;
    *(size_t *)(void *)grown = size + HEAD;
    return grown + HEAD;
}

/* The texts that were read, by row of the table; NULL = the key is not there. */
struct texts {
    char *of[SVI_SETTING_MAX];
};

static cyaml_schema_field_t field_of(const struct svi_setting *row, int index) {
    cyaml_schema_field_t f = {
        .key = row->key,
        .data_offset = (uint32_t)(index * (int)sizeof(char *)),
        .value = {.type = CYAML_STRING,
                  .flags = (enum cyaml_flag)(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL),
                  .data_size = sizeof(char),
                  .string = {.min = 0, .max = FILE_MAX}},
    };
    return f;
}

/* The refusal of a whole file in words of ours. */
static svs_code refuse_file(const char *name, cyaml_err_t status, const struct fault *f, svs_error *err) {
    char at[96];
    char file[64];
    svi_escape(file, sizeof file, name, strlen(name));
    snprintf(at, sizeof at, f->line ? "%s, line %zu" : "%s", file, f->line);
    if (strcmp(f->said, "Load: Unexpected key") == 0) {
        svs_error unknown;
        svi_settings_unknown(f->word, &unknown);
        return svi_fail(err, SVS_SETTING, "%s: %s", at, unknown.text);
    }
    if (strcmp(f->said, "Load: Mapping field already seen") == 0)
        return svi_fail(err, SVS_SETTING, "%s: %s occurs twice: leave one of them out", file, f->word);
    if (strcmp(f->said, "Load: libyaml") == 0)
        return svi_fail(err, SVS_SETTING, "%s%s: this is not YAML: %s", at, f->line ? " or after" : "",
                        f->word);
    if (strcmp(f->said, "Ignoring documents") == 0)
        return svi_fail(err, SVS_SETTING, "%s: more than one document: leave one map, without ---", at);
    if ((f->said[0] || status == CYAML_ERR_ALIAS) && f->word[0]) /* an alias is not logged */
        return svi_fail(err, SVS_SETTING,
                        "%s: %s takes one value, not a list, a map or an alias (write %s: value)", at,
                        f->word, f->word);
    return svi_fail(err, SVS_SETTING,
                    "%s: the file must be one flat map, a line `key: value` for each setting", at);
}

/* YAML's null is no text, but would become a column of that name. */
static bool is_null(const struct svi_setting *row, const char *text) {
    return row->type == SVI_SET_TEXT && (strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
}

/* Applies what was read to a copy, so that a fault in the last row leaves nothing of the first. */
static svs_code apply(struct svi_settings *s, const char *name, const struct texts *t, svs_error *err) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    struct svi_settings copy = *s;
    char file[64];
    svi_escape(file, sizeof file, name, strlen(name));
    for (int i = 0; i < count; i++) {
        svs_error bad;
        if (!t->of[i])
            continue;
        if (is_null(&table[i], t->of[i]))
            return svi_fail(err, SVS_SETTING,
                            "%s: %s is null: leave it out for its default, or write \"\" for nothing", file,
                            table[i].key);
        svs_code code = svi_settings_set(&copy, table[i].key, t->of[i], &bad);
        if (code != SVS_OK)
            return svi_fail(err, code, "%s: %s", file, bad.text);
    }
    *s = copy;
    return SVS_OK;
}

svs_code svi_settings_read(struct svi_settings *s, const char *name, const void *bytes, size_t length,
                           svs_error *err) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    cyaml_schema_field_t fields[SVI_SETTING_MAX + 1] = {{.key = NULL}};
    for (int i = 0; i < count; i++)
        fields[i] = field_of(&table[i], i);
    const cyaml_schema_value_t schema = {.type = CYAML_MAPPING,
                                         .flags = CYAML_FLAG_POINTER,
                                         .data_size = sizeof(struct texts),
                                         .mapping = {.fields = fields}};
    struct fault fault = {.line = 0};
    const cyaml_config_t config = {.log_fn = catch_log,
                                   .log_ctx = &fault,
                                   .mem_fn = gate,
                                   .log_level = CYAML_LOG_WARNING,
                                   .flags = CYAML_CFG_NO_ALIAS};
    cyaml_data_t *data = NULL;
    cyaml_err_t status = cyaml_load_data(bytes, length, &config, &schema, &data, NULL);
    svs_code code = SVS_OK;
    if (status == CYAML_ERR_OOM)
        code = svi_fail_memory(err, "the settings file");
    else if (status != CYAML_OK || fault.said[0])
        code = refuse_file(name, status, &fault, err);
    else if (data) /* an empty file has none */
        code = apply(s, name, data, err);
    cyaml_free(&config, &schema, data, 0);
    return code;
}

static svs_code refuse_open(const char *path, const char *why, svs_error *err) {
    char file[128];
    return svi_fail(err, SVS_IO, "cannot read the settings file %s: %s",
                    svi_escape(file, sizeof file, path, strlen(path)), why);
}

static svs_code read_whole(struct svi_settings *s, const char *path, FILE *from, char *bytes,
                           svs_error *err) {
    size_t length = fread(bytes, 1, FILE_MAX + 1, from);
    if (ferror(from))
        return refuse_open(path, strerror(errno), err);
    if (length > FILE_MAX)
        return refuse_open(path, "it is larger than 1 MiB", err);
    return svi_settings_read(s, path, bytes, length, err);
}

svs_code svi_settings_load(struct svi_settings *s, const char *path, svs_error *err) {
    FILE *from = fopen(path, "rb");
    if (!from)
        return refuse_open(path, strerror(errno), err);
    char *bytes = svi_alloc(FILE_MAX + 1);
    svs_code code = bytes ? read_whole(s, path, from, bytes, err) : svi_fail_memory(err, "the settings file");
    svi_free(bytes);
    fclose(from);
    return code;
}

static void write_quoted(const char *text, FILE *to) {
    fputc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', to);
        fputc(*text, to);
    }
    fputc('"', to);
}

static void write_row(const struct svi_settings *s, const struct svi_setting *row, FILE *to) {
    char value[sizeof s->features], range[128];
    bool quoted = row->type <= SVI_SET_ADDRESS && !(row->type == SVI_SET_TEXT && row->choices);
    svi_settings_value(s, row, value, sizeof value);
    fprintf(to, "# %s (%s)\n%s: ", row->text, svi_settings_range(row, range, sizeof range), row->key);
    if (quoted)
        write_quoted(value, to);
    else
        fputs(value, to);
    fputc('\n', to);
}

void svi_settings_write(const struct svi_settings *s, FILE *to) {
    int count;
    const struct svi_setting *table = svi_settings_table(&count);
    for (int i = 0; i < count; i++)
        write_row(s, &table[i], to);
}
