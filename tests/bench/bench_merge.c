/* One model of eight parts: the merged one (the exact solution of the union of their windows), the average of
 * their models, and the best single one. Weather, split by temperature into eight ranges with equally many
 * rows, as eight sites of different climate would see it; and the same rows dealt out in turn, where the
 * parts are alike and averaging does no harm.
 *
 * Prequential: in the order of time each row is scored by the models as they were at the last merge (every
 * EVERY rows), then learned by its part. Holdout: the models of the first two thirds score the last third.
 * The central model is one process that learns all rows, in a window as large as all parts' together. Only
 * where no row leaves a window do merged and central model have the same rows: there their scores are
 * compared, without scaling, since the units of a process that scales depend on when it last took them.
 *
 *   bench_merge [PARTS ...]   8 */
#include "bench/bench.h"

#include <math.h>

#include "learner/learner_sums.h"
#include "merge/merge_solve.h"

#define D        8
#define EVERY    200
#define PARTS    64
#define ROWS_MAX 20000
#define WINDOW   1000 /* of a part: the default */

struct row {
    double x[D];
    int label, part;
};

struct weights {
    double w[D], b;
    bool known;
};

enum { MERGED, AVERAGED, CENTRAL, KINDS };

struct parts {
    int count;
    svs_learner *learner[PARTS], *central;
    struct svi_merge merge;
    struct weights single[PARTS], of[KINDS];
    int64_t hits[KINDS], single_hits[PARTS], scored;
    bool rows;       /* no row of the table: another setup */
    double farthest; /* largest |merged - central| of the scores in the holdout */
};

static int read_weather(struct row *rows) {
    char command[500], line[1000];
    const char *examples = getenv("SVMSTREAM_EXAMPLES");
    snprintf(command, sizeof command, "zcat '%s/weather.csv.gz'", examples ? examples : "examples");
    FILE *f = popen(command, "r");
    int count = 0;
    if (!f || !fgets(line, sizeof line, f))
        bench_die("weather.csv.gz cannot be read");
    for (; count < ROWS_MAX && fgets(line, sizeof line, f); count++) {
        char *at = line;
        for (int j = 0; j < D; j++, at += *at == ',')
            rows[count].x[j] = strtod(at, &at);
        rows[count].label = (int)strtod(at, NULL);
    }
    pclose(f);
    return count;
}

static void split(struct row *rows, int count, int parts, bool by_temperature) {
    double *sorted = malloc((size_t)count * sizeof *sorted);
    for (int i = 0; i < count; i++)
        sorted[i] = rows[i].x[0];
    qsort(sorted, (size_t)count, sizeof *sorted, bench_compare);
    for (int i = 0; i < count; i++) {
        int part = 0;
        while (part + 1 < parts && rows[i].x[0] >= sorted[(int64_t)(part + 1) * count / parts])
            part++;
        rows[i].part = by_temperature ? part : i % parts;
    }
    free(sorted);
}

/* How the parts are made. */
struct setup {
    int parts, window;
    bool by_temperature;
    svs_scale scale;
};

static svs_learner *new_learner(const struct setup *how, int window) {
    svs_options o;
    svs_error err;
    svs_options_default(&o);
    o.window = window;
    o.scale = how->scale;
    svs_learner *l = svs_learner_new(&o, D, &err);
    if (!l)
        bench_die(err.text);
    return l;
}

static struct weights weights_of(const svs_model *m) {
    struct weights w = {.b = m->b[0], .known = m->class_count == 2};
    /* The single row scores the second class: label 1 in one order, label 0 in the other. */
    const double sign = m->class_count == 2 && m->classes[1].as.i == 1 ? 1 : -1;
    w.b *= sign;
    for (int j = 0; j < m->d && j < D; j++)
        w.w[j] = sign * m->W[j];
    return w;
}

static double score_of(const struct weights *m, const struct row *r) {
    double s = m->b;
    for (int j = 0; j < D; j++)
        s += m->w[j] * r->x[j];
    return s;
}

static bool is_hit(const struct weights *m, const struct row *r) {
    return m->known && (score_of(m, r) > 0) == (r->label == 1);
}

/* Each part sends a record, as a worker does; the merger solves. */
static void merge(struct parts *p, const struct setup *how, int64_t at) {
    static struct svi_sums record;
    svs_error err;
    struct weights mean = {.known = false};
    double n = 0;
    for (int k = 0; k < p->count; k++) {
        svs_model m;
        svs_value classes[2];
        struct svi_bytes bytes = {0};
        enum svi_merge_taken taken;
        if (svs_learner_class_count(p->learner[k]) < 1)
            continue;
        if (svi_learner_sums(p->learner[k], &record.sums, &err) != SVS_OK)
            bench_die(err.text);
        for (int c = 0; c < record.sums.classes && c < 2; c++)
            classes[c] = svs_learner_class(p->learner[k], c);
        snprintf(record.part, sizeof record.part, "part-%02d", k);
        record.part_epoch = 1;
        record.offset = at;
        record.C = 1;
        record.scale = how->scale;
        record.window = how->window;
        record.classes = classes;
        if (svi_sums_encode(&record, &bytes) != SVS_OK ||
            svi_merge_take(&p->merge, bytes.data, bytes.size, 0, &taken, &err) != SVS_OK)
            bench_die(err.text);
        svi_bytes_clear(&bytes);
        if (svs_learner_class_count(p->learner[k]) < 2 ||
            svs_learner_model(p->learner[k], &m, &err) != SVS_OK)
            continue;
        p->single[k] = weights_of(&m);
        for (int j = 0; j < D; j++)
            mean.w[j] += (double)record.sums.n * p->single[k].w[j];
        mean.b += (double)record.sums.n * p->single[k].b;
        n += (double)record.sums.n;
    }
    for (int j = 0; j < D; j++)
        mean.w[j] /= n;
    mean.b /= n;
    mean.known = n > 0;
    p->of[AVERAGED] = mean;
    if (svi_merge_solve(&p->merge) == SVS_OK)
        p->of[MERGED] = weights_of(p->merge.model);
    svs_model m;
    if (svs_learner_class_count(p->central) == 2 && svs_learner_model(p->central, &m, &err) == SVS_OK)
        p->of[CENTRAL] = weights_of(&m);
}

static void learn(svs_learner *l, const struct row *r) {
    svs_step step;
    svs_error err;
    const svs_sample sample = {.x = r->x, .d = D, .y = svs_int(r->label), .weight = 1};
    if (svs_learner_step(l, &sample, 0, &step, &err) != SVS_OK)
        bench_die(err.text);
}

static void count_row(struct parts *p, const struct row *r) {
    for (int m = 0; m < KINDS; m++)
        p->hits[m] += is_hit(&p->of[m], r);
    for (int k = 0; k < p->count; k++)
        p->single_hits[k] += is_hit(&p->single[k], r);
    const double here = score_of(&p->of[MERGED], r), there = score_of(&p->of[CENTRAL], r);
    p->farthest = fmax(p->farthest, fabs(here - there));
    p->scored++;
}

static void report(const struct parts *p, const char *how) {
    int64_t best = 0, worst = p->scored;
    for (int k = 0; k < p->count; k++) {
        best = p->single_hits[k] > best ? p->single_hits[k] : best;
        worst = p->single_hits[k] < worst ? p->single_hits[k] : worst;
    }
    const double n = (double)p->scored;
    printf("  %-12s %8.3f %9.3f %8.3f %12.3f %13.3f\n", how, (double)p->hits[MERGED] / n,
           (double)p->hits[AVERAGED] / n, (double)p->hits[CENTRAL] / n, (double)best / n, (double)worst / n);
    if (p->rows)
        return;
    bench_row((struct bench_row){.ours = (double)p->hits[MERGED] / n, .peer = (double)p->hits[AVERAGED] / n},
              "weather by temperature, %d parts, %s: merged, averaged", p->count, how);
    bench_row((struct bench_row){.ours = (double)p->hits[MERGED] / n, .peer = (double)best / n},
              "weather by temperature, %d parts, %s: merged, best part", p->count, how);
}

static void clear_counts(struct parts *p) {
    memset(p->hits, 0, sizeof p->hits);
    memset(p->single_hits, 0, sizeof p->single_hits);
    p->scored = 0;
    p->farthest = 0;
}

static void run(struct row *rows, int count, const struct setup *how) {
    static struct parts p;
    const struct svi_merge_options o = {.max_features = 100, .max_classes = 100, .max_bytes = 1e9};
    const bool whole = how->window >= count;
    p = (struct parts){.count = how->parts,
                       .rows = !how->by_temperature || whole || how->scale != SVS_SCALE_STANDARD};
    p.central = new_learner(how, whole ? how->window : how->parts * how->window);
    svi_merge_init(&p.merge, &o);
    for (int k = 0; k < how->parts; k++)
        p.learner[k] = new_learner(how, how->window);
    split(rows, count, how->parts, how->by_temperature);
    printf("  weather, %d rows, %d parts %s, window %s%s\n", count, how->parts,
           how->by_temperature ? "by temperature" : "in turn", whole ? "all rows" : "1000",
           how->scale == SVS_SCALE_NONE ? ", scale none" : "");
    printf("  %-12s %8s %9s %8s %12s %13s\n", "", "merged", "averaged", "central", "best single",
           "worst single");
    for (int i = 0; i < count; i++) {
        if (i > 0 && i % EVERY == 0)
            merge(&p, how, i);
        if (i >= EVERY)
            count_row(&p, &rows[i]);
        learn(p.learner[rows[i].part], &rows[i]);
        learn(p.central, &rows[i]);
        if (i + 1 == 2 * count / 3) { /* the holdout, in between */
            struct parts prequential = p;
            clear_counts(&p);
            merge(&p, how, i + 1);
            for (int j = i + 1; j < count; j++)
                count_row(&p, &rows[j]);
            report(&p, "holdout");
            prequential.farthest = p.farthest;
            prequential.merge = p.merge;
            p = prequential;
        }
    }
    report(&p, "prequential");
    if (whole)
        printf("  merged and central scores of the holdout differ by at most %.1e\n", p.farthest);
    if (whole && how->scale == SVS_SCALE_NONE)
        bench_row((struct bench_row){.ours = p.farthest, .bar = "<= 1e-6", .exact = true},
                  "weather, %d parts: largest difference of scores, merged and central", how->parts);
    printf("\n");
    svi_merge_clear(&p.merge);
    for (int k = 0; k < how->parts; k++)
        svs_learner_free(&p.learner[k]);
    svs_learner_free(&p.central);
}

int main(int argc, char **argv) {
    static struct row rows[ROWS_MAX];
    const int count = read_weather(rows);
    for (int i = 1; i < argc || i == 1; i++) {
        const int parts = argc > 1 ? atoi(argv[i]) : 8;
        if (parts < 1 || parts > PARTS)
            bench_die("PARTS is 1 to 64");
        const struct setup setups[] = {{parts, WINDOW, true, SVS_SCALE_STANDARD},
                                       {parts, WINDOW, false, SVS_SCALE_STANDARD},
                                       {parts, ROWS_MAX, true, SVS_SCALE_STANDARD},
                                       {parts, ROWS_MAX, true, SVS_SCALE_NONE}};
        for (size_t s = bench_quick() ? 3 : 0; s < sizeof setups / sizeof *setups; s++)
            run(rows, count, &setups[s]);
    }
    return bench_end();
}
