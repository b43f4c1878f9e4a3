/* settings_record.h: the settings that a kept state was made with, what a restart with others does, what may
 * change while the stream runs, and in what two differ.
 *
 * Recorded are the rows of every change class but SVI_CHANGE_START, which hold for one start only. */
#ifndef SVI_SETTINGS_RECORD_H
#define SVI_SETTINGS_RECORD_H

#include "config/settings.h"
#include "wire/cursor.h"
#include "wire/event.h"

/* Appends them as YAML text. SVS_NO_MEMORY. */
svs_code svi_settings_pack(const struct svi_settings *s, struct svi_bytes *out, svs_error *err);

/* The rows of such a text, and defaults for the others; none counts as given. `from` names it in error texts.
 * SVS_SETTING, SVS_NO_MEMORY. */
svs_code svi_settings_unpack(struct svi_settings *s, const char *from, const void *bytes, size_t size,
                             svs_error *err);

/* The settings to continue with: `s` holds those of the present start and becomes them. A row that was not
 * given takes the kept value; a given one of SVI_CHANGE_MODEL must agree with it, one of SVI_CHANGE_LIMIT
 * must not be lower. SVS_SETTING: which row, both values, what to do. */
svs_code svi_settings_merge(struct svi_settings *s, const struct svi_settings *kept, svs_error *err);

/* Is a limit of `s` above that of `kept`? */
bool svi_settings_raised(const struct svi_settings *s, const struct svi_settings *kept);

/* Going back to an older state: what it is taken up with (*then: its settings; the limits are those of now),
 * and what of it holds from then on (the rows that shape the model; all others stay as they are). */
void svi_settings_keep_limits(struct svi_settings *then, const struct svi_settings *now);
void svi_settings_go_back(struct svi_settings *s, const struct svi_settings *then);

/* Takes the rows of SVI_CHANGE_LIVE from `from`. */
void svi_settings_adopt_live(struct svi_settings *s, const struct svi_settings *from);

/* Takes the rows that may change at any time from `from`. True: some changed. */
bool svi_settings_adopt(struct svi_settings *s, const struct svi_settings *from);

/* Has a row another value in the one than in the other? */
bool svi_settings_differ(const struct svi_settings *a, const struct svi_settings *b,
                         const struct svi_setting *row);

/* Is there a row of that class in which they differ? */
bool svi_settings_differ_in(const struct svi_settings *a, const struct svi_settings *b,
                            enum svi_change_class of);

/* For people, what changes from `a` to `b` beyond SVI_CHANGE_LIVE: "C 1 -> 10, window 1000 -> 5000"; long
 * values, and what does not fit, end in "..."; empty: nothing. size: 160 at least. Returns out. */
char *svi_settings_differences(const struct svi_settings *a, const struct svi_settings *b, char *out,
                               size_t size);

/* {op: config, set: {key: value}}: takes over the settings of the map `set` (an item of checked bytes), all
 * of them or none. SVS_SETTING: one is unknown, is not allowed to change now, or does not go with the others.
 * SVS_WRONG_TYPE, SVS_NO_MEMORY. */
svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             svs_error *err);

/* May a process with the settings *s go on with *changed? SVS_SETTING. */
svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err);

#endif
