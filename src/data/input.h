/* input.h: the bytes of a file or pipe, inflated when they are gzip, in one buffer from which lines are cut.
 *
 * gzip is recognised by its first two bytes, so a pipe works too; several members may follow each other. The
 * bytes not yet taken are buffer[at .. end). svi_input_fill moves them to the front, which invalidates
 * pointers into the buffer. SVI_INPUT_PAD bytes after `end` may be read, and written until the next fill. */
#ifndef SVI_INPUT_H
#define SVI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "svmstream/error.h"

#define SVI_INPUT_CHUNK ((size_t)256 << 10) /* bytes of one read or one step of inflate, at most */
#define SVI_INPUT_PAD   32

enum svi_packing { SVI_PACKING_UNKNOWN = 0, SVI_PACKING_NONE, SVI_PACKING_GZIP };

struct svi_input {
    char *buffer; /* capacity + SVI_INPUT_PAD bytes; owned */
    size_t at, end, capacity;
    bool ended; /* the end of the file was reached; inflated bytes may be pending */

    int fd;
    bool opened; /* opened here, so closed here */
    const char *name;
    int64_t taken, size; /* bytes read from the file, and its size; -1 = unknown */

    enum svi_packing packing;
    z_stream *z;           /* gzip only; owned */
    unsigned char *packed; /* SVI_INPUT_CHUNK bytes, inflate's input; owned */
    bool between;          /* the last gzip member is complete */
};

/* Opens `path` ("-": standard input; kept as a view) with a buffer for lines of up to `longest` bytes.
 * SVS_IO, SVS_NO_MEMORY; *s is closed then. */
svs_code svi_input_open(struct svi_input *s, const char *path, size_t longest, svs_error *err);
void svi_input_close(struct svi_input *s);

/* Can svi_input_fill add bytes without reading from the file? */
bool svi_input_pending(const struct svi_input *s);

/* Inflates what is pending, else does one read(2) and inflates that. At most `longest` bytes may be left
 * untaken. Adds nothing, without an error, when a signal interrupts or a nonblocking descriptor is empty.
 * SVS_IO (also damaged or truncated gzip), SVS_NO_MEMORY. */
svs_code svi_input_fill(struct svi_input *s, svs_error *err);

#endif
