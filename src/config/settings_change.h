/* settings_change.h: settings that are changed while the stream runs ({op: config, set: {key: value}}). */
#ifndef SVI_SETTINGS_CHANGE_H
#define SVI_SETTINGS_CHANGE_H

#include "config/settings.h"
#include "wire/cursor.h"

/* Takes over the settings of the map `set` (an item of checked bytes), all of them or none. SVS_SETTING: one
 * is unknown, is not allowed to change now, or does not go with the others. SVS_WRONG_TYPE, SVS_NO_MEMORY. */
svs_code svi_settings_change(struct svi_settings *s, const struct svi_item *set, const uint8_t *end,
                             svs_error *err);

/* May a process with the settings *s go on with *changed? SVS_SETTING. */
svs_code svi_settings_change_allowed(const struct svi_settings *s, const struct svi_settings *changed,
                                     svs_error *err);

#endif
