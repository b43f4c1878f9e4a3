#include "data/csv_cells.h"

#include <string.h>

char svi_csv_delimiter(struct svi_span line, int *count) {
    static const char candidates[] = ",;\t|";
    int counts[4] = {0}, best = 0;
    bool quoted = false;
    for (const char *p = line.at; p < line.end; p++) {
        /* A doubled quote toggles twice, so it needs no special case. */
        quoted ^= *p == '"';
        const char *which = memchr(candidates, *p, 4);
        if (which && !quoted)
            counts[which - candidates]++;
    }
    for (int i = 1; i < 4; i++)
        if (counts[i] > counts[best])
            best = i;
    *count = counts[best];
    return candidates[best];
}

const char *svi_csv_closing_quote(const char *p, const char *end) {
    /* A quote ends the cell unless another one follows at once. */
    for (; p < end; p++)
        if (*p == '"' && (p + 1 == end || p[1] != '"'))
            return p;
        else if (*p == '"')
            p++;
    return end;
}

/* `p` is after the opening quote. */
static const char *csv_cells_cut_quoted(const char *p, const char *end, char delimiter,
                                        struct svi_span *cell) {
    *cell = (struct svi_span){p, svi_csv_closing_quote(p, end)};
    if (cell->end == end)
        return NULL;
    p = cell->end + 1;
    while (p < end && svi_csv_is_space(*p, delimiter))
        p++;
    return p == end || *p == delimiter ? p : NULL;
}

const char *svi_csv_cut(const char *p, const char *end, char delimiter, struct svi_span *cell) {
    while (p < end && svi_csv_is_space(*p, delimiter))
        p++;
    if (p < end && *p == '"')
        return csv_cells_cut_quoted(p + 1, end, delimiter, cell);
    const char *stop = memchr(p, delimiter, (size_t)(end - p));
    if (!stop)
        stop = end;
    *cell = svi_trim((struct svi_span){p, stop});
    return stop;
}
