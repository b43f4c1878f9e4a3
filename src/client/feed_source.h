/* feed_source.h: under which name the files of `feed` go to a process that acknowledges. */
#ifndef SVI_FEED_SOURCE_H
#define SVI_FEED_SOURCE_H

#include <stdbool.h>

#include "svmstream/value.h"

/* Can all of them be read again from the beginning (regular files)? */
bool feed_source_replays(const char *const *paths, int count);

/* A name for these files that the next run finds again: the first one's, and a number made from this host's
 * name, all paths and the files' first two lines (so that another file that takes the place of this one is
 * another source, and one that grows is not). */
void feed_source_name(const char *const *paths, int count, char name[SVS_NAME_MAX + 1]);

#endif
