/* export_file.h: a kept state as one stream of bytes, to move it elsewhere: the files of a state directory
 * that a checkpoint needs, in pieces, each with a check.
 *
 *   header   {format: "svmstream-state", v: layout, program, check}
 *   piece    [kind, number, body (bin), check]   kind: "keys" or "checkpoint"; consecutive pieces of one kind
 *            and number are one file
 *   end      ["end", pieces, "" (bin), check]
 *
 * Checks are chained as in a checkpoint (checkpoint_file.h), so a stream is accepted whole or not at all.
 * Both sides hold one piece at a time. */
#ifndef SVI_EXPORT_FILE_H
#define SVI_EXPORT_FILE_H

#include "base/bytes.h"
#include "store/state_dir.h"

#define SVI_EXPORT_PIECE ((size_t)1 << 16) /* bytes of a body, at most */

/* ---- writing. Zero-initialise, set fd; svi_bytes_clear(&w->object) in any case */

struct svi_export_writer {
    int fd; /* not owned */
    uint64_t check, pieces;
    int64_t bytes; /* written */
    struct svi_bytes object;
};

/* SVS_IO, SVS_DISK_FULL (the text names standard output), SVS_NO_MEMORY. */
svs_code svi_export_writer_begin(struct svi_export_writer *w, svs_error *err);
svs_code svi_export_writer_put(struct svi_export_writer *w, const char *kind, uint64_t number,
                               const void *bytes, size_t size, svs_error *err); /* of any size */
svs_code svi_export_writer_end(struct svi_export_writer *w, svs_error *err);

/* ---- reading. Zero-initialise, set fd; svi_bytes_clear(&r->buffer) in any case */

struct svi_export_reader {
    int fd; /* not owned */
    uint64_t check, pieces;
    uint64_t start;          /* offset in the stream of the first byte in `buffer` */
    size_t at;               /* offset in `buffer` of the next object */
    bool ended;              /* nothing more can be read */
    struct svi_bytes buffer; /* at most one object, and one read */
};

struct svi_export_piece {
    bool end, keys; /* neither: of the checkpoint */
    uint64_t number;
    const uint8_t *body; /* valid until the next call */
    size_t size;
};

/* SVS_EMPTY: nothing was there; SVS_UNAVAILABLE: another layout; SVS_DAMAGED with the byte; SVS_IO,
 * SVS_NO_MEMORY. After a piece with `end` the stream is complete, and nothing follows it. */
svs_code svi_export_reader_begin(struct svi_export_reader *r, svs_error *err);
svs_code svi_export_reader_next(struct svi_export_reader *r, struct svi_export_piece *piece, svs_error *err);

#endif
