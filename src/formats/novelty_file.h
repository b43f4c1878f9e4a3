/* novelty_file.h: one-class models as files: a msgpack map {format: "svmstream-novelty", v: 1, ...,
 * crc: N} (checked_file.h). Its fields:
 *  - d, lags, differences, kernel, degree, fosvm, theta, trained, trimmed;
 *  - features: nil or d names;
 *  - center, inverse: ext 2, d doubles each; both nil when not scaled;
 *  - schema: as in a model, only where raw rows are more than numbers;
 *  - members: an array of maps of gamma, share, rho, worst, violation, rounds, outside, z (ext 2)
 *    and support (ext 2: one vector of d values for each z). */
#ifndef SVI_NOVELTY_FILE_H
#define SVI_NOVELTY_FILE_H

#include "svmstream/novelty.h"

/* Writes a model atomically; "-" = standard output. SVS_IO, SVS_NO_MEMORY. */
svs_code svi_novelty_file_write(const svs_novelty_model *m, const char *path, svs_error *err);

/* Reads a model; nothing in the file is trusted. "-" = standard input. Owner: the caller. NULL: SVS_IO,
 * SVS_NO_MEMORY, SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE
 * (not a novelty model, a missing key, lengths that contradict each other), SVS_UNAVAILABLE (a newer
 * version), SVS_INVALID (checksum), SVS_NOT_FINITE, SVS_LIMIT. */
svs_novelty_model *svi_novelty_file_read(const char *path, svs_error *err);

/* The same for the bytes of a file. */
svs_novelty_model *svi_novelty_file_decode(const void *bytes, size_t size, svs_error *err);

#endif
