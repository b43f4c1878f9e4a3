/* exposition.h: writes metrics in Prometheus' text format 0.0.4 or in OpenMetrics 1.0.
 *
 * A family is announced once, by http_exposition_family, and its samples follow before the next family: both
 * formats demand it. Its head is written with the first sample, so a family without samples leaves no trace.
 * Values of labels are escaped and made valid UTF-8 here, whatever they hold; names of families and labels
 * are constants of the program. */
#ifndef HTTP_EXPOSITION_H
#define HTTP_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum http_metric_type { HTTP_GAUGE, HTTP_COUNTER, HTTP_HISTOGRAM, HTTP_INFO };

/* One family. The whole name is PREFIX_name[_window][_unit], and of a counter's samples _total behind it, of
 * an info's _info. */
struct http_family {
    const char *prefix; /* "svmstream"; NULL: the name stands alone, as process_... by convention */
    const char *name;
    const char *unit; /* "seconds", "bytes", "ratio"; NULL: none */
    enum http_metric_type type;
    bool window; /* over the window rather than from the beginning */
    const char *help;
};

#define HTTP_FAMILY_BYTES 128 /* longest whole name, with suffix and NUL */
#define HTTP_LABEL_BYTES  512 /* longest value of a label; a longer one is cut */
#define HTTP_LABELS_MAX   8   /* of one sample */

struct http_label {
    const char *name, *value;
};

struct http_exposition {
    struct svi_bytes *out; /* not owned */
    bool openmetrics;
    bool failed; /* memory was short: `out` is not to be used */
    bool headed; /* the head of `family` is written */
    struct http_family family;
};

/* Does a client with this Accept header (NULL: absent) get OpenMetrics? It must name that type, and not
 * prefer plain text. */
bool http_exposition_negotiate(const char *accept);

/* The content type of either format. */
const char *http_exposition_type(bool openmetrics);

void http_exposition_begin(struct http_exposition *x, bool openmetrics, struct svi_bytes *out);

/* The whole name of a family as in its samples (of a histogram without _bucket and so on). Returns `out`. */
char *http_exposition_name(const struct http_family *f, char out[HTTP_FAMILY_BYTES]);

void http_exposition_family(struct http_exposition *x, const struct http_family *f);

/* A sample of the current family. labels: `count` <= HTTP_LABELS_MAX. A value may be infinite or NaN. */
void http_exposition_sample(struct http_exposition *x, const struct http_label *labels, int count,
                            double value);

/* A histogram: buckets[i] = observations up to bounds[i] seconds, not falling; buckets[bounds_count] = all of
 * them; sum of all observations. */
void http_exposition_histogram(struct http_exposition *x, const struct http_label *labels, int count,
                               const double *bounds, const double *buckets, int bounds_count, double sum);

/* The last line. SVS_NO_MEMORY: `out` is incomplete. */
svs_code http_exposition_end(struct http_exposition *x);

/* A number as both formats read it, at most 32 bytes with the NUL: the shortest text that gives the same
 * double. */
#define HTTP_NUMBER_BYTES 32
char *http_exposition_number(double value, char out[HTTP_NUMBER_BYTES]);

#endif
