#include "bank/windows.h"

#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_renew.h"

static svs_options windows_options(const svs_options *host, const struct svi_window_kind *kind) {
    svs_options o = *host;
    o.window = kind->window;
    o.rule = kind->rule;
    o.forget = kind->forget;
    o.labels_ttl = 0;
    return o;
}

svs_code svi_windows_init(struct svi_windows *w, const svs_options *host, const struct svi_window_kind *kinds,
                          int count, uint32_t on, int d, svs_error *err) {
    *w = (struct svi_windows){.count = count};
    for (int i = 0; i < count; i++) {
        const svs_options o = windows_options(host, &kinds[i]);
        if (on >> i & 1 && !(w->of[i] = svs_learner_new(&o, d, err)))
            return err->code;
        if (w->of[i])
            svi_learner_relax(w->of[i]);
    }
    return SVS_OK;
}

void svi_windows_clear(struct svi_windows *w) {
    for (int i = 0; i < w->count; i++)
        svs_learner_free(&w->of[i]);
    w->count = 0;
}

void svi_windows_keep(struct svi_windows *w, uint32_t on) {
    for (int i = 0; i < w->count; i++)
        if (!(on >> i & 1))
            svs_learner_free(&w->of[i]);
}

void svi_windows_reset(struct svi_windows *w) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_reset(w->of[i]);
}

svs_code svi_windows_grow(struct svi_windows *w, int d, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < w->count && code == SVS_OK; i++)
        if (w->of[i] && d > svs_learner_dimension(w->of[i]))
            code = svs_learner_grow(w->of[i], d, err);
    return code;
}

void svi_windows_unscaled(struct svi_windows *w, int feature) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_unscaled(w->of[i], feature);
}

void svi_windows_renew(struct svi_windows *w, int feature) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svi_learner_renew(w->of[i], feature);
}

void svi_windows_scale_from(struct svi_windows *w, int first) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svi_learner_scale_from(w->of[i], first);
}

svs_code svi_windows_meet_class(struct svi_windows *w, svs_value y, svs_error *err) {
    svs_code code = SVS_OK;
    for (int i = 0; i < w->count && code == SVS_OK; i++)
        code = w->of[i] ? svi_learner_meet_class(w->of[i], y, err) : SVS_OK;
    return code;
}

void svi_windows_score(struct svi_windows *w, const double *x, double *scores, int stride) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_scores(w->of[i], x, scores + (size_t)i * (size_t)stride);
}

svs_code svi_windows_learn(struct svi_windows *w, const svs_sample *s, double time, svs_error *err) {
    svs_code worst = SVS_OK;
    for (int i = 0; i < w->count; i++) {
        if (!w->of[i])
            continue;
        svs_code code = svs_learner_step(w->of[i], s, time, &w->step[i], err);
        if (code != SVS_OK && code != SVS_NO_MEMORY && s->y.kind != SVS_REAL)
            code = svi_learner_meet_class(w->of[i], s->y, err);
        worst = code == SVS_NO_MEMORY ? code : worst;
    }
    return worst;
}

void svi_windows_forget(struct svi_windows *w, svs_value id, double time) {
    for (int i = 0; i < w->count; i++)
        if (w->of[i])
            svs_learner_forget(w->of[i], id, time, NULL, NULL);
}

void svi_windows_archive(struct svi_archive *a, struct svi_windows *w) {
    const bool before = a->followed;
    a->followed = true;
    for (int i = 0; i < w->count && svi_archive_ok(a); i++)
        if (w->of[i])
            svi_learner_archive(a, w->of[i]);
    a->followed = before;
}

double svi_windows_memory(const svs_options *host, const struct svi_window_kind *kinds, int count,
                          uint32_t on, int d, int classes) {
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        if (!(on >> i & 1))
            continue;
        const svs_options o = windows_options(host, &kinds[i]);
        bytes += svs_learner_memory(&o, d, classes);
    }
    return bytes;
}
