/* The model in the order of its use: kernel and size, the members with their certificates, then, if the model
 * has them, the scales and names of the features. */
#include "report/novelty_model_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"

#define SHOWN_NAME 60

void svi_novelty_model_report_members(const svs_novelty_model *m, FILE *to) {
    fprintf(to, "%12s %7s %8s %11s %8s %11s %10s %9s\n", "gamma", "share", "support", "rho", "rounds",
            "membership", "violation", "outside");
    for (int i = 0; i < m->members; i++) {
        const svs_novelty_member *e = &m->member[i];
        fprintf(to, "%12.6g %7.4f %8d %11.6g %8" PRId64 " %11.6f %10.2g %9" PRId64 "\n", e->gamma, e->share,
                e->count, e->rho, e->rounds, e->worst, e->violation, e->outside);
    }
}

void svi_novelty_model_report(const svs_novelty_model *m, FILE *to) {
    char name[SHOWN_NAME];
    fprintf(to, "method fosvm%d\nkernel %s\n", m->fosvm, svi_novelty_kernels[m->kernel]);
    if (m->kernel == SVS_NOVELTY_POLYNOMIAL)
        fprintf(to, "degree %d\n", m->degree);
    fprintf(to, "theta %g\nrows %" PRId64 "\ntrimmed %" PRId64 "\nfeatures %d\n", m->theta, m->trained,
            m->trimmed, m->d);
    if (m->lags > 1)
        fprintf(to, "lags %d%s\n", m->lags, m->differences ? ", as differences" : "");
    fputc('\n', to);
    svi_novelty_model_report_members(m, to);
    /* Neither scales nor names: a table of column numbers would be useless. */
    if (!m->center && !m->features)
        return;
    fprintf(to, "\n%14s %14s  feature\n", m->center ? "normal" : "", m->center ? "spread" : "");
    for (int j = 0; j < m->d; j++) {
        const char *text = m->features ? m->features[j] : "";
        if (m->center)
            fprintf(to, "%14.6g %14.6g  ", m->center[j], 1 / m->inverse[j]);
        else
            fprintf(to, "%14s %14s  ", "", "");
        if (m->features)
            fprintf(to, "%s\n", svi_escape(name, sizeof name, text, strlen(text)));
        else
            fprintf(to, "%d\n", j + 1);
    }
}
