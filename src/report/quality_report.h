/* quality_report.h: what came of a file that an engine has read: its rows, classes and figures of quality, as
 * a table for people or as a map for programs. */
#ifndef SVI_QUALITY_REPORT_H
#define SVI_QUALITY_REPORT_H

#include "fleet/stream.h"

struct svi_quality_report {
    svi_stream *stream;
    int64_t rows;
    double seconds; /* that it took */
    double now;     /* arrival clock */
};

/* The lines and pairs that begin every report of a file: its rows, what was refused, the time that it took;
 * the pairs go on with all figures of the stream. */
void svi_quality_report_print_head(const struct svi_quality_report *r);
struct svi_pack;
void svi_quality_report_put_head(const struct svi_quality_report *r, struct svi_pack *p);

/* On standard output. */
void svi_quality_report_print(const struct svi_quality_report *r);

/* Appends all that the stats have, and what is too long for them: every class, and how each was taken for
 * which. SVS_NO_MEMORY. */
svs_code svi_quality_report_pack(const struct svi_quality_report *r, struct svi_bytes *out, svs_error *err);

#endif
