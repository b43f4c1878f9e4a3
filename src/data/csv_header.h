/* csv_header.h: what the first line of a CSV says about its columns. */
#ifndef SVI_CSV_HEADER_H
#define SVI_CSV_HEADER_H

#include "data/format.h"

#define SVI_CSV_TEXT (2 * SVS_NAME_MAX) /* longest label or id while its quotes are doubled */

/* What a column is; 0 and above: the feature's place in x. */
enum { SVI_CSV_IGNORED = -1, SVI_CSV_LABEL = -2, SVI_CSV_ID = -3, SVI_CSV_TS = -4, SVI_CSV_WEIGHT = -5 };

struct svi_csv_header {
    int columns, d;                                       /* cells a row, features among them */
    char delimiter;                                       /* comma, semicolon or tab */
    int32_t *roles;                                       /* by column */
    struct svi_span *names;                               /* by column; in `text` */
    char *text;                                           /* copy of the line, its doubled quotes undone */
    char label_text[SVI_CSV_TEXT], id_text[SVI_CSV_TEXT]; /* of the present row */
};

/* Reads the header and gives the shape its names. SVS_SETTING (a wanted column is not there, a name is there
 * twice, the line is numbers), SVS_BAD_COLUMN, SVS_LIMIT, SVS_NO_MEMORY. */
struct svi_csv_header *svi_csv_header_new(const struct svi_reader_options *o, struct svi_shape *shape,
                                          struct svi_span line, svs_error *err);
void svi_csv_header_free(struct svi_csv_header *h);

/* The cell that starts at `p`, blanks and quotes around it dropped, doubled quotes left. Returns the
 * separator behind it or `end`; NULL when its quote does not close properly. */
const char *svi_csv_cut(const struct svi_csv_header *h, const char *p, const char *end,
                        struct svi_span *cell);

/* Undoes doubled quotes; `out` has the length of the cell at least and may be the cell itself. */
struct svi_span svi_csv_unquote(struct svi_span cell, char *out);

#endif
