/* features.h: the names of the columns. A name gets the next column when it is first seen.
 *
 * Names are 1 to SVS_NAME_MAX bytes of valid UTF-8. Columns count from 0 and are never reused.
 * Lookup is O(1); adding allocates. Not safe for use by two threads at once. */
#ifndef SVMSTREAM_FEATURES_H
#define SVMSTREAM_FEATURES_H

#include <stddef.h>

#include "svmstream/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct svs_features svs_features;

/* An empty registry for at most `max` names (1 to 1,000,000). NULL on failure. Owner: the caller. */
SVS_API svs_features *svs_features_new(int max, svs_error *err);

/* Frees *f and sets it to NULL; *f may be NULL. */
SVS_API void svs_features_free(svs_features **f);

/* How many names there are: columns 0 .. count - 1. */
SVS_API int svs_features_count(const svs_features *f);

/* The column of a name, or -1. `name` need not be NUL-terminated. */
SVS_API int svs_features_find(const svs_features *f, const char *name, size_t length);

/* The column of a name, which is given the next free column if it has none. -1 on failure:
 * SVS_LIMIT (full), SVS_BAD_COLUMN (length or UTF-8), SVS_NO_MEMORY. */
SVS_API int svs_features_add(svs_features *f, const char *name, size_t length, svs_error *err);

/* The name of a column (NUL-terminated; valid until it is removed), or NULL when there is none. */
SVS_API const char *svs_features_name(const svs_features *f, int column);

/* Takes back the newest names so that `count` stay: a refused sample leaves no trace. */
SVS_API void svs_features_truncate(svs_features *f, int count);

#ifdef __cplusplus
}
#endif
#endif
