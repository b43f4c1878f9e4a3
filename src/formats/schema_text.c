/* A model's schema as text: a line for each column, then the calendar. The schema is decoded into a struct
 * of its own, which is cleared on every path. */
#include "formats/schema_text.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "wire/decode.h"
#include "wire/schema_map.h"

#define NAME_BYTES  (4 * SVS_NAME_MAX + 8)
#define SHOWN_WORDS 12 /* words shown of a column */

/* Prints the words of a column, up to SHOWN_WORDS: "a, b, (other)". A word's feature is named column=word;
 * the column is left out. */
static void print_words(const struct svi_schema *s, int column, FILE *to) {
    const size_t name = strlen(svi_schema_column_name(s, column));
    char text[NAME_BYTES];
    int count = 0;
    for (int j = 0; j < s->shape.d; j++) {
        const char *feature = svs_features_name(s->shape.names, j);
        if (s->owner[j] != column || !s->one_hot[j] || count++ >= SHOWN_WORDS)
            continue;
        if (strlen(feature) > name && feature[name] == '=')
            feature += name + 1;
        fprintf(to, "%s%s", count > 1 ? ", " : "", svi_escape(text, sizeof text, feature, strlen(feature)));
    }
    fprintf(to, count > SHOWN_WORDS ? " and %d more\n" : "\n", count - SHOWN_WORDS);
}

svs_code svi_schema_print(const svs_model *m, FILE *to, svs_error *err) {
    struct svi_model_schema schema;
    const struct svi_schema *s = &schema.schema;
    const uint8_t *at = m->schema;
    char name[NAME_BYTES];
    svs_code code = at ? svi_schema_decode(&schema, m->features, m->d, at, at + m->schema_size, err) : SVS_OK;
    /* A failed decode leaves parts that must be freed. */
    if (at && code != SVS_OK)
        svi_model_schema_clear(&schema);
    if (!at || code != SVS_OK)
        return code;
    fputc('\n', to);
    for (int c = 0; c < svi_schema_columns(s); c++) {
        const char *column = svi_schema_column_name(s, c);
        const int feature = s->column[c].now.feature;
        fprintf(to, "column %s  ", svi_escape(name, sizeof name, column, strlen(column)));
        /* A number's mean is what a missing value becomes; a column without a value yet has no kind. */
        switch (svi_schema_kind(s, c)) {
        case SVI_COLUMN_CATEGORY:
            fprintf(to, "words: ");
            print_words(s, c, to);
            break;
        case SVI_COLUMN_NUMBER:
            fprintf(to,
                    feature >= 0 && !isnan(schema.mean[feature]) ? "number, %.6g where it is missing\n"
                                                                 : "number\n",
                    feature >= 0 ? schema.mean[feature] : 0);
            break;
        case SVI_COLUMN_IGNORED:
            fprintf(to, "ignored\n");
            break;
        default:
            fprintf(to, "no value yet\n");
        }
    }
    if (s->calendar >= 0)
        fprintf(to, "calendar %s%s%s\n", s->calendar_day ? "day" : "",
                s->calendar_day && s->calendar_week ? "," : "", s->calendar_week ? "week" : "");
    svi_model_schema_clear(&schema);
    return SVS_OK;
}

svs_code svi_schema_measure(const char *const *features, int d, const uint8_t *at, const uint8_t *end,
                            size_t *size, svs_error *err) {
    struct svi_model_schema schema;
    /* The walk stays within the checked bytes; the decode sees only the schema's own. */
    const uint8_t *after = at;
    svi_walk(&after, end, SVI_DEPTH_MAX);
    *size = (size_t)(after - at);
    svs_code code = svi_schema_decode(&schema, features, d, at, after, err);
    svi_model_schema_clear(&schema);
    return code;
}
