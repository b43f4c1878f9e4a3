/* layout.h: opens a state directory if its files have the layout of this program (SVI_STATE_LAYOUT); a
 * directory of another layout stays untouched. */
#ifndef SVI_LAYOUT_H
#define SVI_LAYOUT_H

#include "store/state_dir.h"

/* svi_state_dir_open, after checking the header of every checkpoint and segment. SVS_UNAVAILABLE names a file
 * of another layout; nothing in the directory was changed, not even its lock. A damaged header is passed: its
 * layout is unknown, and reading the file reports the damage. */
svs_code svi_layout_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err);

#endif
