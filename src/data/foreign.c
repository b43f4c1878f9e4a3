#include "data/foreign.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

/* Files that people hand to text readers, by how they begin, and the command that makes text of them. */
static const struct foreign_kind {
    const char *magic;
    size_t length;
    const char *what, *command; /* %s: its name */
} foreign[] = {
    {"\xfd"
     "7zXZ\0",
     6, "is packed with xz", "xz -dk %s"},
    {"\x28\xb5\x2f\xfd", 4, "is packed with zstd", "zstd -d %s"},
    {"BZh", 3, "is packed with bzip2", "bzip2 -dk %s"},
    {"PK\3\4", 4, "is a zip archive", "unzip %s"},
    {"PAR1\x15", 5, "is a Parquet file",
     "python3 -c 'import pandas, sys; print(pandas.read_parquet(sys.argv[1]).to_csv(index=False))' %s"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8, "is an Excel file", "libreoffice --convert-to csv %s"}};

#define NAME_MOST   40 /* bytes of a name in an error text */
#define BZIP2_PLACE 4  /* where the first block begins, by its own number */
#define BZIP2_BLOCK "1AY&SY"
#define ZIP_LOOK    2048 /* bytes in which the names of a spreadsheet's parts come */

static bool foreign_begins(const struct foreign_kind *f, const unsigned char *first, size_t count) {
    if (count < f->length || memcmp(first, f->magic, f->length) != 0)
        return false;
    return strcmp(f->magic, "BZh") != 0 ||
           (count >= BZIP2_PLACE + strlen(BZIP2_BLOCK) &&
            memcmp(first + BZIP2_PLACE, BZIP2_BLOCK, strlen(BZIP2_BLOCK)) == 0);
}

/* A spreadsheet is a zip archive of parts with names of their own. */
static bool foreign_is_sheet(const unsigned char *first, size_t count) {
    const size_t look = count < ZIP_LOOK ? count : ZIP_LOOK;
    return memmem(first, look, "[Content_Types].xml", 19) || memmem(first, look, "opendocument", 12);
}

svs_code svi_foreign_refuse(const char *file, const unsigned char *first, size_t count, svs_error *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        char command[2 * SVS_ERROR_TEXT], name[SVS_ERROR_TEXT / 2];
        const struct foreign_kind *f = &foreign[i];
        if (!foreign_begins(f, first, count))
            continue;
        const bool sheet = strstr(f->what, "zip") && foreign_is_sheet(first, count);
        svi_escape(name, sizeof name, file ? file : "", file ? strlen(file) : 0);
        snprintf(command, sizeof command, sheet ? "libreoffice --convert-to csv %s" : f->command,
                 name[0] == '\0' || strlen(name) > NAME_MOST ? "FILE" : name);
        return svi_fail(err, SVS_SETTING, "the file %s, not text: make text of it with %s",
                        sheet ? "is a spreadsheet" : f->what, command);
    }
    return SVS_OK;
}
