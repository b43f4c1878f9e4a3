/* decode.h: msgpack bytes from anybody -> messages, by a bounded cursor of our own that allocates nothing.
 *
 * A frame is one map (one sample) or one array of maps (a batch), and exactly that. svi_frame_open checks the
 * form of the whole frame (complete, nothing behind it, nesting at most SVI_DEPTH_MAX, no header that claims
 * more elements than bytes remain), so that a malformed frame is refused whole; then svi_frame_next judges
 * the elements one at a time. Keys and values: DESIGN table "Samples" (README, section Wire format). */
#ifndef SVI_DECODE_H
#define SVI_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "data/message.h"

#define SVI_DEPTH_MAX                                                                                        \
    8 /* a batch of samples with one map of features is 3 deep; unknown keys may nest a little */

#define SVI_BATCH_MAX 65536 /* elements: what is refused one by one costs an event each */

struct svi_frame {
    const uint8_t *at, *end; /* cursor */
    int64_t left;            /* elements to come */
    const uint8_t *element;  /* start of the element that svi_frame_next read last */
    size_t element_size;     /* its bytes */
};

/* SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP, SVS_WRONG_TYPE (neither map nor
 * array of maps), SVS_TOO_LARGE (a batch of more than SVI_BATCH_MAX). */
svs_code svi_frame_open(struct svi_frame *f, const void *bytes, size_t length, svs_error *err);

/* Decodes the next element (f->left > 0). On failure (SVS_WRONG_TYPE, SVS_NOT_FINITE, SVS_DUPLICATE_KEY,
 * SVS_BAD_COLUMN, SVS_LIMIT, SVS_BAD_LABEL, SVS_BAD_WEIGHT, SVS_BAD_ID, SVS_UNKNOWN_OP, SVS_TOO_LARGE) the
 * cursor still stands behind the element; the shape may hold new names until svi_shape_restore. */
svs_code svi_frame_next(struct svi_frame *f, struct svi_shape *shape, struct svi_message *m, svs_error *err);

/* Is `bytes` exactly one complete object of at most `depth` levels that claims no more than it holds? Run
 * this before msgpack-c sees bytes from outside (its containers are reserved from headers alone). Codes as
 * svi_frame_open. */
svs_code svi_msgpack_check(const void *bytes, size_t length, int depth, svs_error *err);

#endif
