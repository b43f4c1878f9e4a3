/* svmstream novelty show: a one-class model for people, or as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/novelty.h"
#include "wire/envelope.h"
#include "wire/json.h"
#include "wire/novelty_file.h"

#define NAME_SHOWN 60

void cli_novelty_members(const svs_novelty_model *m, FILE *to) {
    fprintf(to, "%12s %7s %8s %11s %8s %11s %10s %9s\n", "gamma", "share", "support", "rho", "rounds",
            "membership", "violation", "outside");
    for (int i = 0; i < m->members; i++) {
        const svs_novelty_member *e = &m->member[i];
        fprintf(to, "%12.6g %7.4f %8d %11.6g %8" PRId64 " %11.6f %10.2g %9" PRId64 "\n", e->gamma, e->share,
                e->count, e->rho, e->rounds, e->worst, e->violation, e->outside);
    }
}

static void show(const svs_novelty_model *m) {
    char name[NAME_SHOWN];
    printf("method fosvm%d\nkernel %s\n", m->fosvm, cli_novelty_kernel(m->kernel));
    if (m->kernel == SVS_NOVELTY_POLYNOMIAL)
        printf("degree %d\n", m->degree);
    printf("theta %g\nrows %" PRId64 "\ntrimmed %" PRId64 "\nfeatures %d\n", m->theta, m->trained, m->trimmed,
           m->d);
    if (m->lags > 1)
        printf("lags %d%s\n", m->lags, m->differences ? ", as differences" : "");
    putchar('\n');
    cli_novelty_members(m, stdout);
    if (!m->center && !m->features)
        return;
    printf("\n%14s %14s  feature\n", m->center ? "usual" : "", m->center ? "spread" : "");
    for (int j = 0; j < m->d; j++) {
        const char *text = m->features ? m->features[j] : "";
        if (m->center)
            printf("%14.6g %14.6g  ", m->center[j], 1 / m->inverse[j]);
        else
            printf("%14s %14s  ", "", "");
        if (m->features)
            printf("%s\n", svi_escape(name, sizeof name, text, strlen(text)));
        else
            printf("%d\n", j + 1);
    }
}

/* The file itself, which was found to be a model. */
static svs_code show_json(const char *bytes, size_t size, svs_error *err) {
    struct svi_bytes text = {0};
    svs_code code = svi_json_msgpack(&text, bytes, size, err);
    if (code == SVS_OK)
        printf("%.*s\n", (int)text.size, (const char *)text.data);
    svi_bytes_clear(&text);
    return code;
}

int cli_novelty_show(const struct cli_args *a) {
    const char *path = a->positional[1];
    char *bytes;
    size_t size;
    svs_error err = {0};
    svs_novelty_model *m = NULL;
    svs_code code = svi_file_read(path, &bytes, &size, &err);
    if (code == SVS_OK && !(m = svi_novelty_decode(bytes, size, &err)))
        code = err.code;
    if (code == SVS_OK && cli_has(a, "json"))
        code = show_json(bytes, size, &err);
    else if (code == SVS_OK)
        show(m);
    svi_free(bytes);
    svs_novelty_free(&m);
    return code == SVS_OK ? CLI_OK : cli_fail(a, "%.100s: %.150s", path, err.text);
}
