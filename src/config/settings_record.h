/* settings_kept.h: the settings that a kept state was made with, and what a restart with others does.
 *
 * Kept are the rows that shape the model and those that may change while it lives (svi_settings_nature); rows
 * of the surroundings are those of the present start. */
#ifndef SVI_SETTINGS_KEPT_H
#define SVI_SETTINGS_KEPT_H

#include "engine/settings.h"
#include "wire/event.h"

/* Appends them as YAML text. SVS_NO_MEMORY. */
svs_code svi_settings_pack(const struct svi_settings *s, struct svi_bytes *out, svs_error *err);

/* All rows from such a text, the others by default; none counts as given. `from` names it in error texts.
 * SVS_SETTING, SVS_NO_MEMORY. */
svs_code svi_settings_unpack(struct svi_settings *s, const char *from, const void *bytes, size_t size,
                             svs_error *err);

/* What to go on with: `s` is the present start's and becomes it. A row that was not given takes the kept
 * value; a given one that shapes the model must agree with it, a limit must not be lower. SVS_SETTING: which
 * row, both values, what to do. */
svs_code svi_settings_merge(struct svi_settings *s, const struct svi_settings *kept, svs_error *err);

/* Is a limit of `s` above that of `kept`? */
bool svi_settings_raised(const struct svi_settings *s, const struct svi_settings *kept);

/* The rows that may change while the model lives, from `from`. True: some changed. */
bool svi_settings_adopt(struct svi_settings *s, const struct svi_settings *from);

#endif
