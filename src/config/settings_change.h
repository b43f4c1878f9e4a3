/* settings_change.h: settings that are changed while the stream runs ({op: config, set: {key: value}}). */
#ifndef SVI_SETTINGS_CHANGE_H
#define SVI_SETTINGS_CHANGE_H

#include "config/settings.h"
#include "wire/cursor.h"

/* Takes over the settings of the map `set` (an item of checked bytes), all of them or none. `before`: it was
 * recorded when only those of SVI_CHANGE_LIVE could change. SVS_SETTING: one is unknown, is not allowed to
 * change now, or does not go with the others. SVS_WRONG_TYPE, SVS_NO_MEMORY. */
svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             bool before, svs_error *err);

/* May a process with the settings *s go on with *changed? SVS_SETTING. */
svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err);

/* Has a row another value in the one than in the other? */
bool svi_settings_differ(const struct svi_settings *a, const struct svi_settings *b,
                         const struct svi_setting *row);

/* Is there a row of that class in which they differ? */
bool svi_settings_differ_in(const struct svi_settings *a, const struct svi_settings *b,
                            enum svi_change_class of);

/* For people, what changes from `a` to `b` beyond SVI_CHANGE_LIVE: "C 1 -> 10, window 1000 -> 5000"; empty:
 * nothing. Returns out. */
char *svi_settings_differences(const struct svi_settings *a, const struct svi_settings *b, char *out,
                               size_t size);

#endif
