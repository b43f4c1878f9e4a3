/* settings_record.h: the settings recorded in a kept state: merging them at a restart, changing them while
 * the stream runs, and comparing two sets of them.
 *
 * The rows of every change class are recorded except SVI_CHANGE_START, which holds for one start only. */
#ifndef SVI_SETTINGS_RECORD_H
#define SVI_SETTINGS_RECORD_H

#include "config/settings.h"
#include "wire/cursor.h"
#include "wire/event.h"

/* Appends the recorded rows as YAML text. SVS_NO_MEMORY. */
svs_code svi_settings_pack(const struct svi_settings *s, struct svi_bytes *out, svs_error *err);

/* Sets *s from such a text: recorded rows, and defaults for the others; no row counts as given. `from` names
 * the text in errors. SVS_SETTING, SVS_NO_MEMORY. */
svs_code svi_settings_unpack(struct svi_settings *s, const char *from, const void *bytes, size_t size,
                             svs_error *err);

/* Merges the settings of this start, *s, with those of the kept state. A recorded row that was not given
 * takes the kept value; a given row of SVI_CHANGE_MODEL must equal it, and one of SVI_CHANGE_LIMIT must not
 * be lower. SVS_SETTING: which row, both values, what to do. */
svs_code svi_settings_merge(struct svi_settings *s, const struct svi_settings *kept, svs_error *err);

/* Is any limit of `s` above that of `kept`? */
bool svi_settings_raised(const struct svi_settings *s, const struct svi_settings *kept);

/* Return to an older state, whose settings are *then. Before it is loaded,
 * svi_settings_keep_limits gives *then the current limits, so that it gets the current capacity.
 * Then svi_settings_go_back gives *s the rows of *then that shape the model; all other rows
 * stay. */
void svi_settings_keep_limits(struct svi_settings *then, const struct svi_settings *now);
void svi_settings_go_back(struct svi_settings *s, const struct svi_settings *then);

/* Copies the rows of SVI_CHANGE_LIVE from `from`. */
void svi_settings_adopt_live(struct svi_settings *s, const struct svi_settings *from);

/* Copies the rows that may change at any time from `from`. True: at least one changed. */
bool svi_settings_adopt(struct svi_settings *s, const struct svi_settings *from);

/* Does the row differ between the two, as a kept state records it? */
bool svi_settings_differ(const struct svi_settings *a, const struct svi_settings *b,
                         const struct svi_setting *row);

/* Do they differ in any row of this class? */
bool svi_settings_differ_in(const struct svi_settings *a, const struct svi_settings *b,
                            enum svi_change_class of);

/* Describes the changes from `a` to `b` in rows that may change at any time, except SVI_CHANGE_LIVE: "C 1 ->
 * 10, window 1000 -> 5000". Long values are shortened, and changes that do not fit are replaced by "..."; "":
 * no changes. size: at least 160. Returns out. */
char *svi_settings_differences(const struct svi_settings *a, const struct svi_settings *b, char *out,
                               size_t size);

/* The request {op: config, set: {key: value}}: applies all settings of the map `set` (an item of checked
 * bytes) or none. SVS_SETTING: one is unknown, may not change now, or contradicts another. SVS_WRONG_TYPE,
 * SVS_NO_MEMORY. */
svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             svs_error *err);

/* May a running process change its settings from *s to *changed? SVS_SETTING: why not. */
svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err);

#endif
