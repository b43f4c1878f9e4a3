/* The figures of all streams, family by family: a family must not be interrupted, so streams are the inner
 * loop. */
#include <math.h>

#include "figures.h"

/* A figure of each stream, without a status too. NAN: of this one there is no sample. */
static void write_each(struct http_exposition *x, const struct http_family *family,
                       const struct http_shown *shown, int count,
                       double (*value)(const struct http_shown *)) {
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, family);
    for (int i = 0; i < count; i++) {
        labels[0] = (struct http_label){"stream", shown[i].stream};
        if (!isnan(value(&shown[i])))
            http_exposition_sample(x, labels, 1, value(&shown[i]));
    }
}

static double shown_up(const struct http_shown *s) {
    return s->up;
}

static double shown_age(const struct http_shown *s) {
    return s->age;
}

static double shown_refit(const struct http_shown *s) {
    return s->figures ? s->figures->refit_failed : NAN;
}

static double shown_novelty(const struct http_shown *s) {
    return s->figures ? s->figures->novelty_failed : NAN;
}

static double shown_unknown(const struct http_shown *s) {
    return s->figures ? s->figures->unknown : NAN;
}

static void write_states(struct http_exposition *x, const struct http_shown *shown, int count) {
    static const struct {
        struct http_family family;
        double (*value)(const struct http_shown *);
    } rows[] = {
        {{"svmstream", "up", NULL, HTTP_GAUGE, false, "1 if the stream answers, else 0"}, shown_up},
        {{"svmstream", "status_age", "seconds", HTTP_GAUGE, false, "Time since the last status"}, shown_age},
        {{"svmstream", "refit_failing", NULL, HTTP_GAUGE, false, "1 if the last refit that was due failed"},
         shown_refit},
        {{"svmstream", "novelty_failed", NULL, HTTP_GAUGE, false,
          "1 if novelty has failed and there is no p any more"},
         shown_novelty},
        {{"svmstream", "status_unknown_keys", NULL, HTTP_GAUGE, false,
          "Keys of the status that are not among these metrics, of a newer stream"},
         shown_unknown},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        write_each(x, &rows[i].family, shown, count, rows[i].value);
}

static void write_info(struct http_exposition *x, const struct http_shown *shown, int count) {
    static const struct http_family family = {
        "svmstream", "stream", NULL,
        HTTP_INFO,   false,    "Version and task of a stream, and the model whose scores it publishes"};
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, &family);
    for (int i = 0; i < count; i++) {
        const struct http_figures *f = shown[i].figures;
        int n = 1;
        labels[0] = (struct http_label){"stream", shown[i].stream};
        if (!f)
            continue;
        labels[n++] = (struct http_label){"version", f->version};
        labels[n++] = (struct http_label){"task", f->task};
        labels[n++] = (struct http_label){"serving", f->serving};
        http_exposition_sample(x, labels, n, 1);
    }
}

static void write_refused(struct http_exposition *x, const struct http_shown *shown, int count) {
    static const struct http_family family = {"svmstream",  "refusals", NULL,
                                              HTTP_COUNTER, false,      "Refusals and notices by their code"};
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, &family);
    for (int i = 0; i < count; i++) {
        labels[0] = (struct http_label){"stream", shown[i].stream};
        for (int code = 0; shown[i].figures && code <= SVS_CODE_COUNT; code++) {
            labels[1] =
                (struct http_label){"code", code == SVS_CODE_COUNT ? "other" : svs_code_name((svs_code)code)};
            if (shown[i].figures->refused[code] > 0)
                http_exposition_sample(x, labels, 2, shown[i].figures->refused[code]);
        }
    }
}

static void write_row(struct http_exposition *x, int row, const struct http_shown *shown, int count) {
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, &http_figures_table[row].family);
    for (int i = 0; i < count; i++) {
        const struct http_figures *f = shown[i].figures;
        labels[0] = (struct http_label){"stream", shown[i].stream};
        if (f && f->known[row])
            http_exposition_sample(x, labels, 1, f->value[row]);
    }
}

static void write_class_row(struct http_exposition *x, int row, const struct http_shown *shown, int count) {
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, &http_figures_classes[row].family);
    for (int i = 0; i < count; i++) {
        const struct http_figures *f = shown[i].figures;
        labels[0] = (struct http_label){"stream", shown[i].stream};
        for (int k = 0; f && k < f->class_count; k++) {
            labels[1] = (struct http_label){"class", f->classes[k].label};
            if (!isnan(f->classes[k].value[row]))
                http_exposition_sample(x, labels, 2, f->classes[k].value[row]);
        }
    }
}

static void write_latency(struct http_exposition *x, const struct http_shown *shown, int count) {
    struct http_label labels[HTTP_LABELS_MAX];
    http_exposition_family(x, &http_figures_latency);
    for (int i = 0; i < count; i++) {
        labels[0] = (struct http_label){"stream", shown[i].stream};
        if (!shown[i].figures || shown[i].figures->latency.bounds_count == 0)
            continue;
        const struct http_latency *l = &shown[i].figures->latency;
        http_exposition_histogram(x, labels, 1, l->bounds, l->buckets, l->bounds_count, l->sum);
    }
}

void http_figures_write(struct http_exposition *x, const struct http_shown *shown, int count) {
    write_states(x, shown, count);
    write_info(x, shown, count);
    for (int row = 0; http_figures_table[row].key; row++)
        write_row(x, row, shown, count);
    write_refused(x, shown, count);
    write_latency(x, shown, count);
    for (int row = 0; http_figures_classes[row].key; row++)
        write_class_row(x, row, shown, count);
}
