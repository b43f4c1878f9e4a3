/* Errors in the first 100 samples of each key, scored before they are learned. The model of all
 * keys is a prior (key.prior), or there is none, or one model serves all keys. The streams are
 * weather in 50 keys by year, one after the other, and elec2 in 7 by day of the week, as they come.
 * Two more have 1,000 keys at random. In one, the models are the same up to a shift; in the other,
 * the model is the same at levels of their own.
 *
 *   bench_prior [WORTH ...]   10 */
#include "bench/bench.h"
#include "fleet/fleet.h"
#include "wire/event.h"

#define D_MAX 16
#define FIRST 100

struct sample {
    double x[D_MAX];
    int label, key;
};

struct set {
    const char *name;
    struct sample *of;
    int count, d, keys;
};

static void sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

/* ---- the sets */

static struct set read_csv(const char *name, int d, int key_column, int rows_a_key) {
    struct set s = {name, calloc(200000, sizeof *s.of), 0, d, 0};
    char command[500], line[1000];
    const char *data = getenv("SVMSTREAM_DATA");
    snprintf(command, sizeof command, "zcat '%s/%s.csv.gz' 2>/dev/null", data ? data : ".", name);
    FILE *f = popen(command, "r");
    if (!f || !fgets(line, sizeof line, f)) {
        printf("  %s is not there\n", name);
        if (f)
            pclose(f);
        return s;
    }
    while (s.count < 200000 && fgets(line, sizeof line, f)) {
        struct sample *one = &s.of[s.count];
        char *at = line;
        double v[D_MAX + 1];
        for (int j = 0; j <= d + (key_column >= 0); j++, at += *at == ',')
            v[j] = strtod(at, &at);
        for (int j = 0, to = 0; j <= d + (key_column >= 0); j++)
            if (j == key_column)
                one->key = (int)v[j] - 1;
            else if (to < d)
                one->x[to++] = v[j];
            else
                one->label = v[j] > 0;
        if (key_column < 0)
            one->key = s.count / rows_a_key;
        s.keys = one->key >= s.keys ? one->key + 1 : s.keys;
        s.count++;
    }
    pclose(f);
    return s;
}

/* The score of a key is shifted, or its features lie `apart` deviations from others. */
static struct set make_fleet(const char *name, int keys, int a_key, double shifted, double apart) {
    struct set s = {name, calloc((size_t)(keys * a_key), sizeof *s.of), keys * a_key, 10, keys};
    uint64_t seed = 5;
    double w[10], *shift = calloc((size_t)keys, sizeof *shift);
    for (int j = 0; j < 10; j++)
        w[j] = bench_gauss(&seed);
    double(*level)[10] = calloc((size_t)keys, sizeof *level);
    for (int k = 0; k < keys; k++) {
        shift[k] = shifted * bench_gauss(&seed);
        for (int j = 0; j < 10; j++)
            level[k][j] = apart * bench_gauss(&seed);
    }
    for (int i = 0; i < s.count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        struct sample *one = &s.of[i];
        one->key = (int)((seed >> 33) % (uint64_t)keys);
        double score = shift[one->key] + bench_gauss(&seed);
        for (int j = 0; j < 10; j++) {
            one->x[j] = bench_gauss(&seed);
            score += w[j] * one->x[j];
            one->x[j] += level[one->key][j];
        }
        one->label = score > 0;
    }
    free(shift);
    free(level);
    return s;
}

/* ---- the runs */

static svi_stream *make_engine(const char *key, const char *worth, const char *window) {
    struct svi_settings s;
    svs_error err = {0};
    const char *const given[] = {"key",   key,      "novelty",         "none",        "window",
                                 window,  "method", "alsvm",           "alert.rules", "none",
                                 "refit", "none",   "publish.seconds", "0",           "drift.rate",
                                 "0",     NULL};
    svi_settings_default(&s);
    for (int i = 0; given[i]; i += 2)
        if (svi_settings_set(&s, given[i], given[i + 1], &err) != SVS_OK)
            bench_die(err.text);
    if (key[0] && svi_settings_set(&s, "key.prior", worth, &err) != SVS_OK)
        bench_die(err.text);
    svi_settings_settle_method(&s);
    svi_stream *e = svi_stream_new(&s, 1, sink, NULL, &err);
    if (!e)
        bench_die(err.text);
    return e;
}

/* Share of the first samples of each key that are scored wrongly, or not at all. */
static double run(const struct set *s, const char *key, const char *worth, const char *window) {
    svi_stream *e = make_engine(key, worth, window);
    int *seen = calloc((size_t)s->keys, sizeof *seen);
    int64_t right = 0, first = 0;
    struct svi_bytes frame = {0};
    for (int i = 0; i < s->count; i++) {
        const struct sample *one = &s->of[i];
        struct svi_stream_progress before, after;
        struct svi_envelope env;
        char name[16];
        snprintf(name, sizeof name, "k%d", one->key);
        const struct svi_message m = {.has_x = true,
                                      .kind = SVI_DENSE,
                                      .d = s->d,
                                      .x = (double *)one->x,
                                      .y = svs_int(one->label),
                                      .ts = NAN,
                                      .weight = 1,
                                      .n = -1,
                                      .key = key[0] ? svs_str(name) : svs_none()};
        frame.size = 0;
        svi_message_encode(&m, NULL, false, &frame);
        svi_envelope_read(&env, frame.data, frame.size);
        svi_stream_progress(e, &before);
        svi_stream_apply(e, &env, 1e6 + i, false, NULL);
        svi_stream_progress(e, &after);
        if (seen[one->key]++ < FIRST) {
            first++;
            right += after.sums.right - before.sums.right;
        }
    }
    svi_bytes_clear(&frame);
    svi_stream_free(&e);
    free(seen);
    return 1 - (double)right / (double)first;
}

int main(int argc, char **argv) {
    struct set sets[] = {
        read_csv("weather", 8, -1, 365), read_csv("elec2", 7, 1, 0),
        make_fleet("one model up to a shift", bench_pick(50, 1000, 1000), 200, 1, 0),
        make_fleet("one model, levels 2.5 deviations apart", bench_pick(50, 1000, 1000), 200, 0, 2.5)};
    const char *const usual[] = {"10"}, *const *worth = argc > 1 ? (const char *const *)argv + 1 : usual;
    const int worths = argc > 1 ? argc - 1 : 1;
    printf("errors in the first %d samples of each key; window 1000\n", FIRST);
    for (int i = bench_pick(2, 0, 0); i < bench_pick(3, 4, 4); i++) {
        if (sets[i].count == 0)
            continue;
        const double one = 100 * run(&sets[i], "", "", "1000"), own = 100 * run(&sets[i], "key", "0", "1000");
        double prior = 0;
        printf("  %s, %d keys: one model for all %.2f %%, without prior %.2f %%", sets[i].name, sets[i].keys,
               one, own);
        for (int k = 0; k < worths; k++) {
            const double errors = 100 * run(&sets[i], "key", worth[k], "1000");
            printf(", prior worth %s %.2f %%", worth[k], errors);
            prior = k == 0 ? errors : prior;
        }
        printf("\n");
        bench_row(
            (struct bench_row){
                .ours = prior, .peer = own, .unit = "%", .ratio = prior / own, .bar = "<= 1", .exact = true},
            "errors of 100 first samples of a key, with / without prior, %s", sets[i].name);
        free(sets[i].of);
    }
    return bench_end();
}
