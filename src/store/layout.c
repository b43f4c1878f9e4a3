#include "store/layout.h"

#include <string.h>

#include "base/alloc.h"
#include "store/checkpoint_file.h"
#include "store/checksum.h"
#include "store/read_buffer.h"

/* Bytes read of a file. A checkpoint's header contains the settings: if it is longer than this, its layout is
 * checked only when the checkpoint is read. */
#define HEAD_BYTES ((size_t)SVI_READ_BUFFER)

static svs_code layout_check_file(struct svi_read_buffer *b, const struct svi_state_dir *dir,
                                  const char *prefix, uint64_t number, svs_error *err) {
    char name[SVI_FILE_NAME];
    const uint8_t *bytes;
    uint64_t found = SVI_STATE_LAYOUT;
    svs_code code = svi_read_buffer_open(b, dir, svi_state_dir_name(name, prefix, number), err);
    const size_t size = b->size < HEAD_BYTES ? (size_t)b->size : HEAD_BYTES;
    if (code == SVS_OK && size > 0 && (code = svi_read_buffer_at(b, 0, size, &bytes, err)) == SVS_OK)
        found = strcmp(prefix, SVI_JOURNAL) == 0 ? svi_segment_layout(bytes, size)
                                                 : svi_checkpoint_layout(bytes, size);
    if (found != SVI_STATE_LAYOUT)
        return svi_fail_layout(err, dir->path, name, found);
    /* A file that cannot be read is not this function's concern: its reader reports it with advice. */
    return code == SVS_NO_MEMORY ? code : SVS_OK;
}

static svs_code layout_check(const struct svi_state_dir *dir, svs_error *err) {
    static const char *const prefixes[] = {SVI_CHECKPOINT, SVI_JOURNAL};
    struct svi_read_buffer b = {.fd = -1};
    svs_code code = SVS_OK;
    for (int i = 0; i < 2 && code == SVS_OK; i++) {
        uint64_t *numbers;
        int count;
        code = svi_state_dir_list(dir, prefixes[i], &numbers, &count, err);
        /* Newest first: the newest file is the likeliest to have another layout. */
        for (int k = count - 1; k >= 0 && code == SVS_OK; k--)
            code = layout_check_file(&b, dir, prefixes[i], numbers[k], err);
        svi_free(numbers);
    }
    svi_read_buffer_clear(&b);
    return code;
}

svs_code svi_layout_open(struct svi_state_dir *dir, const char *path, bool write, svs_error *err) {
    /* Opened for reading first, even to write: opening to write creates the lock and removes unfinished
     * files, which a directory of another layout must not suffer. */
    svs_code code = svi_state_dir_open(dir, path, false, write ? NULL : err);
    if (code == SVS_OK && (code = layout_check(dir, err)) != SVS_OK) {
        svi_state_dir_close(dir);
        return code;
    }
    if (!write)
        return code;
    svi_state_dir_close(dir); /* also if it could not be opened: it may not exist yet */
    return svi_state_dir_open(dir, path, true, err);
}
