/* input.h: the bytes of a file or pipe, unpacked when they are gzip, in one buffer from which lines are cut.
 *
 * gzip is known by its first two bytes, so it may come from a pipe; members may follow each other. The bytes
 * not yet taken are buffer[at .. end); svi_input_fill moves them to the front, so pointers into them end
 * there. After `end` SVI_INPUT_PAD bytes may be read, and written before the next fill. */
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
    bool ended; /* nothing more will come */

    int fd;
    bool opened; /* by us: to be closed */
    const char *name;
    int64_t taken, size; /* bytes of the file; size -1 when unknown */

    enum svi_packing packing;
    z_stream *z;           /* gzip only; owned */
    unsigned char *packed; /* SVI_INPUT_CHUNK bytes not yet inflated: z->next_in; owned */
    bool between;          /* at the end of a member */
};

/* Opens `path` ("-": standard input; kept as a view) with room for a line of `longest` bytes. SVS_IO,
 * SVS_NO_MEMORY. */
svs_code svi_input_open(struct svi_input *s, const char *path, size_t longest, svs_error *err);
void svi_input_close(struct svi_input *s);

/* Can svi_input_fill bring bytes without reading? */
bool svi_input_pending(const struct svi_input *s);

/* Inflates what is pending, else read(2)s once and inflates that. At most `longest` bytes may be left
 * untaken. Brings no bytes, without failing, when a signal comes first or a nonblocking descriptor has none.
 * SVS_IO, also for damaged or cut gzip; SVS_NO_MEMORY. */
svs_code svi_input_fill(struct svi_input *s, svs_error *err);

#endif
