/* table.h: text as a file, plain or .gz, read as a table. */
#ifndef TEST_SUPPORT_TABLE_H
#define TEST_SUPPORT_TABLE_H

#include "support/problem.h"

#include <unistd.h>
#include <zlib.h>

#include "features/table.h"

/* The file's path; it ends with `name`, which may tell the format. */
static inline const char *table_file(const char *name, const char *text, char path[256]) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, 256, "%s/svmstream_%d_%s", folder ? folder : "/tmp", (int)getpid(), name);
    const size_t length = strlen(text), end = strlen(path);
    bool written;
    if (end > 3 && strcmp(path + end - 3, ".gz") == 0) {
        gzFile f = gzopen(path, "wb");
        written = f && gzwrite(f, text, (unsigned)length) == (int)length;
        written = f && gzclose(f) == Z_OK && written;
    } else {
        FILE *f = fopen(path, "wb");
        written = f && fwrite(text, 1, length, f) == length;
        written = f && fclose(f) == 0 && written;
    }
    if (!written)
        fail_msg("cannot write %s", path);
    return path;
}

/* format auto, label "label" and 1000 features unless the options say otherwise. */
static inline svs_code table_each(struct svi_table *t, const char *name, const char *text,
                                  struct svi_table_options o, svi_table_row *row, void *user,
                                  svs_error *err) {
    char path[256];
    table_file(name, text, path);
    o.reader.format = o.reader.format ? o.reader.format : "auto";
    o.reader.label = o.reader.label ? o.reader.label : "label";
    o.max_features = o.max_features ? o.max_features : 1000;
    svs_code code = svi_table_each(t, path, &o, row, user, err);
    unlink(path);
    return code;
}

static inline svs_code table_read(struct svi_table *t, const char *name, const char *text,
                                  struct svi_table_options o, svs_error *err) {
    return table_each(t, name, text, o, NULL, NULL, err);
}

#endif
