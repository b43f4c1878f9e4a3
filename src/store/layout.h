/* layout.h: opens a state directory whose files have the layout of this program (SVI_STATE_LAYOUT), and
 * leaves one of another layout as it is. */
#ifndef SVI_LAYOUT_H
#define SVI_LAYOUT_H

#include "store/state_dir.h"

/* svi_state_dir_open, after a look at the header of every checkpoint and segment: SVS_UNAVAILABLE names one
 * of another layout, and nothing in the directory was changed, not even its lock. A header that is damaged
 * says nothing of its layout: who reads the file finds out. */
svs_code svi_layout_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err);

#endif
