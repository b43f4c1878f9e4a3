/* Two formats of nearly the same lines. They differ in four places: OpenMetrics names a family of counters
 * without `_total`, has the type info, a line UNIT, and ends in `# EOF`.
 *
 * Both end a label at a quote and a sample at a line feed, and escape these and the backslash by a backslash.
 * Other control characters are allowed by the letter but not by every reader, so a label goes through
 * svi_escape first: it writes them, and malformed bytes, as \xNN. What is left are quotes and backslashes. */
#include "exposition.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

static const char *const type_words[] = {
    [HTTP_GAUGE] = "gauge", [HTTP_COUNTER] = "counter", [HTTP_HISTOGRAM] = "histogram", [HTTP_INFO] = "info"};

/* ---- negotiation */

/* One range of an Accept header: "type/subtype; q=0.5". Fills what it is and its weight, in thousandths. */
struct media_range {
    const char *type;
    size_t length;
    int weight;
    bool current; /* no version, or one that begins with 1. */
};

static const char *accept_range(const char *at, struct media_range *r) {
    const char *end = at + strcspn(at, ",");
    at += strspn(at, " \t");
    *r = (struct media_range){.type = at, .length = strcspn(at, "; \t,"), .weight = 1000, .current = true};
    for (const char *p = at + strcspn(at, ";,"); p < end; p += strcspn(p, ";,")) {
        p++;
        p += strspn(p, " \t");
        if (strncasecmp(p, "q=", 2) == 0) {
            const double q = strtod(p + 2, NULL);
            r->weight = q >= 0 && q <= 1 ? (int)(1000 * q + 0.5) : 0;
        }
        if (strncasecmp(p, "version=", 8) == 0)
            r->current = strncmp(p + 8 + (p[8] == '"'), "1.", 2) == 0;
    }
    return *end ? end + 1 : end;
}

static bool range_is(const struct media_range *r, const char *type) {
    return strlen(type) == r->length && strncasecmp(r->type, type, r->length) == 0;
}

bool http_exposition_negotiate(const char *accept) {
    int open = 0, plain = 0;
    struct media_range r;
    while (accept && *accept) {
        accept = accept_range(accept, &r);
        if (range_is(&r, "application/openmetrics-text") && r.current && r.weight > open)
            open = r.weight;
        if (range_is(&r, "text/plain") && r.weight > plain)
            plain = r.weight;
    }
    return open > 0 && open >= plain;
}

const char *http_exposition_type(bool openmetrics) {
    return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                       : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- pieces of a line */

static void exposition_add(struct http_exposition *x, const char *bytes, size_t size) {
    x->failed = x->failed || svi_bytes_append(x->out, bytes, size) != SVS_OK;
}

static void exposition_text(struct http_exposition *x, const char *text) {
    exposition_add(x, text, strlen(text));
}

/* The text with quotes, backslashes and line feeds escaped. */
static void exposition_escaped(struct http_exposition *x, const char *text) {
    while (*text) {
        const size_t plain = strcspn(text, "\\\"\n");
        exposition_add(x, text, plain);
        text += plain;
        if (*text)
            exposition_text(x, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        text += *text != '\0';
    }
}

char *http_exposition_number(double value, char out[HTTP_NUMBER_BYTES]) {
    if (!isfinite(value))
        return strcpy(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, HTTP_NUMBER_BYTES, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return out;
}

static void exposition_number(struct http_exposition *x, double value) {
    char text[HTTP_NUMBER_BYTES];
    exposition_text(x, http_exposition_number(value, text));
}

static void exposition_label(struct http_exposition *x, const struct http_label *l, bool first) {
    char value[HTTP_LABEL_BYTES];
    exposition_text(x, first ? "{" : ",");
    exposition_text(x, l->name);
    exposition_text(x, "=\"");
    exposition_escaped(x, svi_escape(value, sizeof value, l->value, strlen(l->value)));
    exposition_text(x, "\"");
}

/* ---- families and samples */

void http_exposition_begin(struct http_exposition *x, bool openmetrics, struct svi_bytes *out) {
    *x = (struct http_exposition){.out = out, .openmetrics = openmetrics};
    out->size = 0;
}

/* The name without the suffix of a type. */
static void family_base(const struct http_family *f, char out[HTTP_FAMILY_BYTES]) {
    snprintf(out, HTTP_FAMILY_BYTES, "%s%s%s%s%s%s", f->prefix ? f->prefix : "", f->prefix ? "_" : "",
             f->name, f->window ? "_window" : "", f->unit ? "_" : "", f->unit ? f->unit : "");
}

static const char *family_suffix(const struct http_family *f) {
    return f->type == HTTP_COUNTER ? "_total" : f->type == HTTP_INFO ? "_info" : "";
}

char *http_exposition_name(const struct http_family *f, char out[HTTP_FAMILY_BYTES]) {
    family_base(f, out);
    return strncat(out, family_suffix(f), HTTP_FAMILY_BYTES - strlen(out) - 1);
}

void http_exposition_family(struct http_exposition *x, const struct http_family *f) {
    x->family = *f;
    x->headed = false;
}

static void exposition_comment(struct http_exposition *x, const char *what, const char *name,
                               const char *text) {
    exposition_text(x, "# ");
    exposition_text(x, what);
    exposition_text(x, " ");
    exposition_text(x, name);
    exposition_text(x, " ");
    exposition_text(x, text);
    exposition_text(x, "\n");
}

/* Help texts are constants without quotes, backslashes and line feeds: they need no escaping. */
static void exposition_head(struct http_exposition *x) {
    const struct http_family *f = &x->family;
    char name[HTTP_FAMILY_BYTES];
    if (x->headed)
        return;
    x->headed = true;
    if (x->openmetrics)
        family_base(f, name);
    else
        http_exposition_name(f, name);
    exposition_comment(x, "HELP", name, f->help);
    exposition_comment(x, "TYPE", name,
                       f->type == HTTP_INFO && !x->openmetrics ? "gauge" : type_words[f->type]);
    if (x->openmetrics && f->unit)
        exposition_comment(x, "UNIT", name, f->unit);
}

/* One line. `le`: a further label, with its value; NULL: none. */
static void exposition_line(struct http_exposition *x, const char *suffix, const struct http_label *labels,
                            int count, const char *le, double value) {
    char name[HTTP_FAMILY_BYTES];
    exposition_head(x);
    family_base(&x->family, name);
    exposition_text(x, name);
    exposition_text(x, suffix);
    for (int i = 0; i < count; i++)
        exposition_label(x, &labels[i], i == 0);
    if (le)
        exposition_label(x, &(struct http_label){"le", le}, count == 0);
    exposition_text(x, count > 0 || le ? "} " : " ");
    exposition_number(x, value);
    exposition_text(x, "\n");
}

void http_exposition_sample(struct http_exposition *x, const struct http_label *labels, int count,
                            double value) {
    exposition_line(x, family_suffix(&x->family), labels, count, NULL, value);
}

/* The bound of a bucket. OpenMetrics wants every number there to look like a float: 1.0, not 1. */
static const char *bucket_bound(const struct http_exposition *x, double bound, char out[HTTP_NUMBER_BYTES]) {
    http_exposition_number(bound, out);
    if (x->openmetrics && !strpbrk(out, ".eEnN"))
        strcat(out, ".0");
    return out;
}

void http_exposition_histogram(struct http_exposition *x, const struct http_label *labels, int count,
                               const double *bounds, const double *buckets, int bounds_count, double sum) {
    char le[HTTP_NUMBER_BYTES];
    for (int i = 0; i < bounds_count; i++)
        exposition_line(x, "_bucket", labels, count, bucket_bound(x, bounds[i], le), buckets[i]);
    exposition_line(x, "_bucket", labels, count, "+Inf", buckets[bounds_count]);
    exposition_line(x, "_count", labels, count, NULL, buckets[bounds_count]);
    exposition_line(x, "_sum", labels, count, NULL, sum);
}

svs_code http_exposition_end(struct http_exposition *x) {
    if (x->openmetrics)
        exposition_text(x, "# EOF\n");
    return x->failed ? SVS_NO_MEMORY : SVS_OK;
}
