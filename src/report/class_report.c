/* The classes with most rows, selected by insertion into a list of fixed length, then averages over all
 * classes. */
#include "report/class_report.h"

#include <inttypes.h>

#include "base/human.h"
#include "quality/class_figures.h"

#define LABEL_BYTES (4 * SVS_NAME_MAX + 4)

static void class_report_row(FILE *to, const char *label, double precision, double recall, double f1,
                             int64_t rows, const char *note) {
    char p[SVI_HUMAN], r[SVI_HUMAN], f[SVI_HUMAN];
    fprintf(to, "%-16s %9s %9s %9s %10" PRId64 "%s\n", label, svi_human_places(p, precision, 4),
            svi_human_places(r, recall, 4), svi_human_places(f, f1, 4), rows, note);
}

/* Does class a precede class b: more rows, or as many and seen earlier? */
static bool class_report_before(const struct svi_class_table *t, int a, int b) {
    const int64_t more = t->all[a].support - t->all[b].support;
    return more > 0 || (more == 0 && a < b);
}

/* Selects the classes with most rows, in descending order, by insertion into a short list. Returns how many.
 */
static int class_report_pick(const struct svi_class_table *t, int *chosen) {
    int count = 0;
    for (int k = 0; k < t->count; k++) {
        int place = count;
        while (place > 0 && class_report_before(t, k, chosen[place - 1]))
            place--;
        if (place == SVI_CLASS_REPORT_ROWS)
            continue;
        count += count < SVI_CLASS_REPORT_ROWS;
        /* Makes a gap at `place`; the last of a full list falls out. */
        for (int i = count - 1; i > place; i--)
            chosen[i] = chosen[i - 1];
        chosen[place] = k;
    }
    return count;
}

void svi_class_report_write(FILE *to, const struct svi_class_table *t, int positive) {
    int chosen[SVI_CLASS_REPORT_ROWS];
    char label[LABEL_BYTES];
    if (t->count < 2)
        return;
    const int count = class_report_pick(t, chosen);
    fprintf(to, "%-16s %9s %9s %9s %10s\n", "class", "precision", "recall", "f1", "rows");
    for (int i = 0; i < count; i++) {
        const struct svi_class_count *c = &t->all[chosen[i]];
        class_report_row(to, svs_value_text(t->classes[chosen[i]], label, sizeof label),
                         svi_class_precision(c), svi_class_recall(c), svi_class_f1(c), c->support,
                         chosen[i] == positive ? "   positive" : "");
    }
    if (count < t->count)
        fprintf(to, "and %d classes with fewer rows\n", t->count - count);
    /* Averages cover all classes, not only those listed. */
    const struct svi_class_averages a = svi_class_averages(t->all, t->count);
    class_report_row(to, "macro average", a.precision, a.recall, a.f1, a.n, "");
    class_report_row(to, "weighted average", a.weighted_precision, (double)a.hits / (double)a.n,
                     a.weighted_f1, a.n, "");
}

void svi_class_report_confusion(FILE *to, const struct svi_class_table *t) {
    char label[LABEL_BYTES];
    fprintf(to, "%-16s", "true \\ predicted");
    for (int k = 0; k < t->count; k++)
        fprintf(to, " %10.10s", svs_value_text(t->classes[k], label, sizeof label));
    fputc('\n', to);
    for (int k = 0; k < t->count; k++) {
        fprintf(to, "%-16s", svs_value_text(t->classes[k], label, sizeof label));
        for (int j = 0; j < t->count; j++)
            fprintf(to, " %10" PRId64, t->confusion[(size_t)k * (size_t)t->count + (size_t)j]);
        fputc('\n', to);
    }
}
