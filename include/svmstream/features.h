/* features.h: a registry of column names. A name gets the next column when it is added.
 *
 * Names are 1 to SVS_NAME_MAX bytes of valid UTF-8. Columns count from 0 and are never reused.
 * Lookup is O(1); adding allocates. Use one registry from one thread at a time. */
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

/* The number of names: columns 0 .. count - 1. */
SVS_API int svs_features_count(const svs_features *f);

/* The column of a name, or -1. `name` need not be NUL-terminated. */
SVS_API int svs_features_find(const svs_features *f, const char *name, size_t length);

/* The column of a name; a new name gets the next free column. -1 on failure:
 * SVS_LIMIT (full), SVS_BAD_COLUMN (length or UTF-8), SVS_NO_MEMORY. */
SVS_API int svs_features_add(svs_features *f, const char *name, size_t length, svs_error *err);

/* The name of a column (NUL-terminated, valid until it is removed), or NULL for other numbers. */
SVS_API const char *svs_features_name(const svs_features *f, int column);

/* Removes the newest names until `count` remain, so that a refused sample leaves no trace. */
SVS_API void svs_features_truncate(svs_features *f, int count);

#ifdef __cplusplus
}
#endif
#endif
