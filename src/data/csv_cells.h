/* csv_cells.h: how a line of CSV is cut into cells: the separator, quotes (RFC 4180), blanks.
 *
 * A line is [at, end) without its line end; it holds line ends only inside of quotes. Blanks around a cell do
 * not count: spaces and tabs (where tabs do not separate), and CR. */
#ifndef SVI_CSV_CELLS_H
#define SVI_CSV_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "data/cell.h"
#include "data/span.h"

/* The most frequent one of comma, semicolon, tab and bar outside of quotes, comma by default; *count is how
 * often it occurs. */
char svi_csv_delimiter(struct svi_span line, int *count);

static inline bool svi_csv_is_space(char c, char delimiter) {
    return c == ' ' || (c == '\t' && delimiter != '\t');
}

static inline bool svi_csv_is_blank(struct svi_span line, char delimiter) {
    return line.at == line.end || (svi_csv_is_space(*line.at, delimiter) && svi_trim(line).at == line.end);
}

/* The quote that closes the cell whose content begins at `p`; `end`: none does. */
const char *svi_csv_closing_quote(const char *p, const char *end);

/* Cuts the cell that starts at `p`, without the blanks and quotes around it; doubled quotes stay. Returns the
 * separator after the cell or `end`. NULL: text follows the closing quote, or it is absent; only then does
 * the cell extend to `end`: its row continues on the next line. */
const char *svi_csv_cut(const char *p, const char *end, char delimiter, struct svi_span *cell);

/* Undoes doubled quotes. `out` holds at least the length of the cell and may be the cell itself: writing
 * never overtakes reading. */
static inline struct svi_span svi_csv_unquote(struct svi_span cell, char *out) {
    char *to = out;
    for (const char *p = cell.at; p < cell.end; p++) {
        *to++ = *p;
        p += *p == '"' && p + 1 < cell.end && p[1] == '"';
    }
    return (struct svi_span){out, to};
}

#endif
