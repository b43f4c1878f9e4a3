/* schema.h: the floor between rows and vectors: what the columns of a stream are, and how the values under
 * their names become features.
 *
 * A COLUMN has a name and holds numbers, one feature each; or words, a category: each value has a feature
 * `name=value`, which is 1 in its rows and 0 in all others; or it is ignored. What a column is follows from
 * the settings, else from its first value. A column whose first values are missing has a feature already,
 * which the first value takes over, so that features stand in the order of the columns' first sight.
 *
 * A CATEGORY has at most `categories_max` features of values; further values share `name=(other)`, or with
 * `hash` one of 2^hash, `name=#17`. A value that no held sample has gives its feature to the next new one.
 * Values too long for a name are cut, and a number made of the whole tells them apart.
 *
 * The CALENDAR adds features of the time of a sample.
 *
 * While all columns hold numbers there is nothing here but the shape (`mixed` is false): names of columns are
 * names of features.
 *
 * A ROW is built between svi_schema_begin_row and svi_schema_end_row. What it would change (columns,
 * features, features that change hands) takes effect by svi_schema_commit; svi_schema_restore takes it back.
 */
#ifndef SVI_SCHEMA_H
#define SVI_SCHEMA_H

#include "features/schema_internal.h"

/* SVS_SETTING, SVS_NO_MEMORY: *s is cleared. */
svs_code svi_schema_init(struct svi_schema *s, const struct svi_schema_options *o, svs_error *err);
void svi_schema_clear(struct svi_schema *s);

/* Bytes of d features at most, without the names. */
double svi_schema_memory(const struct svi_schema_options *o, int d);

/* Columns in the place of features, before there is any: for the schema of a model. SVS_NO_MEMORY. */
svs_code svi_schema_begin_columns(struct svi_schema *s, svs_error *err);

/* ---- columns: in the order of their first sight, with those of a row that is not committed */

int svi_schema_columns(const struct svi_schema *s);
const char *svi_schema_column_name(const struct svi_schema *s, int column);
/* A column of the shape's features alone is a number, or open where no row was taken. */
enum svi_column_kind svi_schema_kind(const struct svi_schema *s, int column);

/* How often columns came or went (as svi_features_changes). */
uint64_t svi_schema_changes(const struct svi_schema *s);

/* The column of that name, which is made where it is new; m: the row in hand, NULL = none; `guess`: where it
 * probably is. -1: SVS_BAD_COLUMN (malformed, not one of the setting features, new where none may be),
 * SVS_WRONG_COLUMNS (closed), SVS_LIMIT, SVS_NO_MEMORY. */
int svi_schema_column(struct svi_schema *s, const struct svi_message *m, const char *name, size_t length,
                      int guess, svs_error *err);

/* Is it a name of the setting `ignore`? */
bool svi_schema_ignores(const struct svi_schema *s, const char *name, size_t length);

/* The column of that name, or -1. */
int svi_schema_find(const struct svi_schema *s, const char *name, size_t length, int guess);

/* SVS_WRONG_COLUMNS with both lists: the cells of a row, and the columns of the stream or of a model. */
svs_code svi_schema_refuse_columns(const struct svi_schema *s, const struct svi_message *m, bool model,
                                   svs_error *err);

/* A column of that name is not used, if there is none yet: so that a model knows it. SVS_NO_MEMORY,
 * SVS_LIMIT. */
svs_code svi_schema_ignore(struct svi_schema *s, const char *name, svs_error *err);

/* From now on a row of cells that are no list costs what it names: nobody else writes to the row of the shape
 * between two of them. SVS_NO_MEMORY. */
svs_code svi_schema_follow(struct svi_schema *s, svs_error *err);

/* After that and svi_schema_row: the features that such a row has set, each once, in any order; all others
 * are 0. NULL: not known. */
static inline int32_t *svi_schema_set(struct svi_schema *s, int *count) {
    *count = s->set_count;
    return s->all_set ? NULL : s->set;
}

/* ---- one row */

/* Begins a row of names: m->kind, d and x are set, all is 0. SVS_WRONG_KIND and others of svi_shape_fits. */
svs_code svi_schema_begin_row(struct svi_schema *s, struct svi_message *m, svs_error *err);

/* The value of a column in this row. SVS_DUPLICATE_KEY; SVS_WRONG_TYPE (a word in a column of numbers),
 * SVS_BAD_COLUMN (a word that is not UTF-8), SVS_LIMIT, SVS_NO_MEMORY. */
svs_code svi_schema_number(struct svi_schema *s, struct svi_message *m, int column, double v, svs_error *err);
svs_code svi_schema_word(struct svi_schema *s, struct svi_message *m, int column, const char *word,
                         size_t length, svs_error *err);
svs_code svi_schema_missing(struct svi_schema *s, struct svi_message *m, int column, svs_error *err);

svs_code svi_schema_cell(struct svi_schema *s, struct svi_message *m, const struct svi_cell *cell, int column,
                         svs_error *err); /* a number, a word or none: by cell->kind */

/* All columns are in: what a row that asks for it did not name is missing. */
void svi_schema_end_row(struct svi_schema *s, struct svi_message *m);

/* m->cells as a row, all of it. SVS_WRONG_COLUMNS names all columns of the row and of the closed schema. */
svs_code svi_schema_row(struct svi_schema *s, struct svi_message *m, svs_error *err);

/* The features of the calendar, where there are any, for a sample of that time. SVS_NOT_SUPPORTED (columns
 * without names), SVS_LIMIT, SVS_BAD_COLUMN (a column has the name), SVS_NO_MEMORY. */
svs_code svi_schema_calendar(struct svi_schema *s, struct svi_message *m, double time, svs_error *err);

/* What is done with missing values of this row. */
enum svi_missing svi_schema_policy(const struct svi_schema *s, const struct svi_message *m);

/* Names of columns that came without a row stay. */
void svi_schema_commit_names(struct svi_schema *s);
bool svi_schema_has_new_names(const struct svi_schema *s); /* that were not committed */

/* The committed name of a feature, also where another value takes it over in the row in hand. NULL: it has
 * none. Valid until the next change. */
const char *svi_schema_name(const struct svi_schema *s, int feature);

/* The unit of the column that the feature is; NULL: it has none, or none is known. */
const char *svi_schema_unit(const struct svi_schema *s, int feature);

/* Takes the row, or takes back what it would have changed. */
void svi_schema_commit(struct svi_schema *s, const struct svi_message *m);
void svi_schema_restore(struct svi_schema *s);

/* The values that an accepted row had not, where something took their place (m->gaps), by column. */
void svi_schema_count_missing(struct svi_schema *s, const struct svi_message *m);
int64_t svi_schema_missed(const struct svi_schema *s, int column);

/* After s->held was set: the committed row has entered; and a row that entered later (a late label). */
void svi_schema_used(struct svi_schema *s);
void svi_schema_used_row(struct svi_schema *s, const double *x, int d);

/* Is the feature one that is never scaled? */
bool svi_schema_unscaled(const struct svi_schema *s, int feature);

/* Of a shape without fixed names, as svi_shape_keep: the features that are flagged stay, and the columns that
 * have one. *columns: for a mixed stream, NULL otherwise. SVS_NO_MEMORY. */
svs_code svi_schema_kept_columns(const struct svi_schema *s, const bool *keep, svs_features **columns,
                                 svs_error *err);
void svi_schema_keep(struct svi_schema *s, const bool *keep, svs_features *names, svs_features *columns);

/* Columns and values between two samples; the shape is archived by itself, before. False: there is nothing
 * but the shape. */
bool svi_schema_archived(const struct svi_schema *s);
void svi_schema_archive(struct svi_archive *a, struct svi_schema *s);
void svi_schema_missing_archive(struct svi_archive *a, struct svi_schema *s); /* after it */

#endif
