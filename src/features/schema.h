/* schema.h: the layer between rows and vectors: what the columns of a stream are, and how the values under
 * their names become features.
 *
 * A COLUMN has a name and holds numbers, one feature each; or words, a category, in which each value has a
 * feature `name=value` that is 1 in its rows and 0 in all others; or it is ignored. The settings decide, else
 * the first value. A column whose first values are missing already has a feature, which the first value takes
 * over, so that features stand in the order in which columns were first seen.
 *
 * A CATEGORY has at most `categories_max` features of values; further values share `name=(other)`, or with
 * `hash` one of 2^hash features, `name=#17`. A value that no held sample has gives its feature to the next
 * new one. Values too long for a name are cut, and a hash of the whole value keeps them apart.
 *
 * The CALENDAR adds features of a sample's time.
 *
 * While all columns hold numbers the schema is only the shape (`mixed` is false): names of columns are names
 * of features.
 *
 * A ROW is built between svi_schema_begin_row and svi_schema_end_row. Its changes (columns, features,
 * features that are moved) become permanent by svi_schema_commit; svi_schema_restore undoes them. */
#ifndef SVI_SCHEMA_H
#define SVI_SCHEMA_H

#include "features/schema_internal.h"

/* Makes a schema without columns. SVS_SETTING, SVS_NO_MEMORY: *s is cleared. */
svs_code svi_schema_init(struct svi_schema *s, const struct svi_schema_options *o, svs_error *err);
void svi_schema_clear(struct svi_schema *s);

/* Estimate of the bytes of a schema with d features. */
double svi_schema_memory(const struct svi_schema_options *o, int d);

/* Switches an empty schema to columns, for the schema of a model. SVS_NO_MEMORY. */
svs_code svi_schema_begin_columns(struct svi_schema *s, svs_error *err);

/* ---- columns: in the order in which they were first seen, including those of a row that is not committed */

int svi_schema_columns(const struct svi_schema *s);
const char *svi_schema_column_name(const struct svi_schema *s, int column);
/* The kind of a column. While the schema is only the shape: a number, or open before the first row. */
enum svi_column_kind svi_schema_kind(const struct svi_schema *s, int column);

/* How often columns were added, removed or renamed (as svi_feature_names_changes). */
uint64_t svi_schema_changes(const struct svi_schema *s);

/* The column of that name, added if it is new. m: the current row; NULL: no row. `guess`: where the
 * column probably is. Returns -1 on failure: SVS_BAD_COLUMN (malformed, not in the setting
 * `features`, or new where columns.new refuses it), SVS_WRONG_COLUMNS (closed), SVS_LIMIT,
 * SVS_NO_MEMORY. */
int svi_schema_column(struct svi_schema *s, const struct svi_message *m, const char *name, size_t length,
                      int guess, svs_error *err);

/* Is the name in the setting `ignore`? */
bool svi_schema_ignores(const struct svi_schema *s, const char *name, size_t length);

/* The column of that name, or -1; `guess`: where it probably is. */
int svi_schema_find(const struct svi_schema *s, const char *name, size_t length, int guess);

/* Fails with SVS_WRONG_COLUMNS and both lists: the cells of the row, and the columns of the stream or
 * (`model`) of a model. */
svs_code svi_schema_refuse_columns(const struct svi_schema *s, const struct svi_message *m, bool model,
                                   svs_error *err);

/* Adds an ignored column of that name, unless one exists: a model then knows it. SVS_NO_MEMORY, SVS_LIMIT. */
svs_code svi_schema_ignore(struct svi_schema *s, const char *name, svs_error *err);

/* From now on the cost of a row of unlisted cells is that of what it names. Between two of them nobody else
 * may write to the row of the shape. SVS_NO_MEMORY. */
svs_code svi_schema_follow(struct svi_schema *s, svs_error *err);

/* After svi_schema_follow and svi_schema_row: the features that the row has set, each once, in any order; all
 * others are 0. NULL: not known. */
static inline int32_t *svi_schema_set(struct svi_schema *s, int *count) {
    *count = s->set_count;
    return s->all_set ? NULL : s->set;
}

/* ---- one row */

/* Begins a row of names: sets m->kind, m->d and m->x, all values 0. SVS_WRONG_KIND and others of
 * svi_shape_fits. */
svs_code svi_schema_begin_row(struct svi_schema *s, struct svi_message *m, svs_error *err);

/* Set the value of a column in this row: a number, a word, or missing. SVS_DUPLICATE_KEY; SVS_WRONG_TYPE (a
 * word in a column of numbers), SVS_BAD_COLUMN (a word that is not UTF-8), SVS_LIMIT, SVS_NO_MEMORY. */
svs_code svi_schema_number(struct svi_schema *s, struct svi_message *m, int column, double v, svs_error *err);
svs_code svi_schema_word(struct svi_schema *s, struct svi_message *m, int column, const char *word,
                         size_t length, svs_error *err);
svs_code svi_schema_missing(struct svi_schema *s, struct svi_message *m, int column, svs_error *err);

svs_code svi_schema_cell(struct svi_schema *s, struct svi_message *m, const struct svi_cell *cell, int column,
                         svs_error *err); /* one of these, by cell->kind */

/* Ends the row: columns that it did not name are missing if the row asks for that (m->absent). */
void svi_schema_end_row(struct svi_schema *s, struct svi_message *m);

/* Builds the whole row from m->cells. SVS_WRONG_COLUMNS lists all columns of the row and of the closed
 * schema. */
svs_code svi_schema_row(struct svi_schema *s, struct svi_message *m, svs_error *err);

/* Sets the features of the calendar, if there are any, for a sample of that time (seconds since 1970).
 * SVS_NOT_SUPPORTED (columns without names), SVS_LIMIT, SVS_BAD_COLUMN (a column has the name),
 * SVS_NO_MEMORY. */
svs_code svi_schema_calendar(struct svi_schema *s, struct svi_message *m, double time, svs_error *err);

/* How missing values of this row are replaced: by the setting, else as the row asks, else it is refused. */
enum svi_missing svi_schema_policy(const struct svi_schema *s, const struct svi_message *m);

/* Keeps the names of columns that were added without a row. */
void svi_schema_commit_names(struct svi_schema *s);
bool svi_schema_has_new_names(const struct svi_schema *s); /* not committed yet */

/* The committed name of a feature, even if another value takes it over in the current row. NULL: it has none.
 * Valid until the next change. */
const char *svi_schema_name(const struct svi_schema *s, int feature);

/* The unit of the feature's column; NULL: none, or unknown. */
const char *svi_schema_unit(const struct svi_schema *s, int feature);

/* Accepts the row, or undoes what it has changed. */
void svi_schema_commit(struct svi_schema *s, const struct svi_message *m);
void svi_schema_restore(struct svi_schema *s);

/* Counts, by column, the values of an accepted row that were replaced (m->gaps), and categories without a
 * value. */
void svi_schema_count_missing(struct svi_schema *s, const struct svi_message *m);
int64_t svi_schema_missed(const struct svi_schema *s, int column);

/* Notes the values of the committed row as held, after s->held was set; svi_schema_used_row does the same for
 * a row that entered later (a late label). */
void svi_schema_used(struct svi_schema *s);
void svi_schema_used_row(struct svi_schema *s, const double *x, int d);

/* Is the feature exempt from scaling: a category's value, or named by the setting `unscaled`? */
bool svi_schema_unscaled(const struct svi_schema *s, int feature);

/* Drop features, as svi_shape_keep: the flagged features stay, and the columns that own one. *columns: of a
 * mixed stream, else NULL. SVS_NO_MEMORY, in the first step only. */
svs_code svi_schema_kept_columns(const struct svi_schema *s, const bool *keep, svs_features **columns,
                                 svs_error *err);
void svi_schema_keep(struct svi_schema *s, const bool *keep, svs_features *names, svs_features *columns);

/* Archives columns and values between two samples, after the shape, which is archived separately. False: the
 * schema is only the shape. */
bool svi_schema_archived(const struct svi_schema *s);
void svi_schema_archive(struct svi_archive *a, struct svi_schema *s);
void svi_schema_missing_archive(struct svi_archive *a, struct svi_schema *s); /* after svi_schema_archive */

#endif
