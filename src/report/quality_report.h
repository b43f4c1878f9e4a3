/* quality_report.h: results for a file that a stream has read: its rows, classes and quality figures, as a
 * table for people or as a map for programs. */
#ifndef SVI_QUALITY_REPORT_H
#define SVI_QUALITY_REPORT_H

#include <stdio.h>

#include "fleet/stream.h"

struct svi_quality_report {
    svi_stream *stream;
    int64_t rows;
    double seconds; /* duration of the run */
    double now;     /* arrival clock */
};

/* The first lines, or pairs, of every report of a file: rows, refusals, duration; as pairs also all figures
 * of the stream. */
void svi_quality_report_print_head(const struct svi_quality_report *r, FILE *to);
struct svi_pack;
void svi_quality_report_put_head(const struct svi_quality_report *r, struct svi_pack *p);

/* Prints the report. */
void svi_quality_report_print(const struct svi_quality_report *r, FILE *to);

/* Appends everything in the stats and what is too long for these: every class, and the confusion matrix.
 * SVS_NO_MEMORY. */
svs_code svi_quality_report_pack(const struct svi_quality_report *r, struct svi_bytes *out, svs_error *err);

#endif
