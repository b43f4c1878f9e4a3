#include "wire/bank_map.h"

#include <math.h>

#include "wire/calibration_map.h"

static void put_rows(struct svi_pack *p, const char *key, const double *b, int rows) {
    if (rows == 1)
        svi_put_real(p, key, b[0]);
    else
        svi_put_doubles(p, key, b, (size_t)rows);
}

static void put_bank_member(struct svi_pack *p, const struct svi_bank_told *t,
                            const struct svi_member_told *m) {
    const bool votes = !isnan(m->vote);
    svi_pack_map(p, 4 + (m->window >= 0) + (size_t)votes + (m->W ? 2 : 0) + (m->fourier > 0));
    svi_put_text(p, "name", m->name);
    svi_put_text(p, "kind", m->kind);
    if (m->window >= 0)
        svi_put_int(p, "window", m->window);
    svi_put_real(p, "recent", m->recent);
    if (votes)
        svi_put_real(p, "vote", m->vote);
    svi_put_reals(p, "stacks", m->stack, SVI_BANK_STACKS);
    if (m->W) {
        svi_put_doubles(p, "W", m->W, (size_t)t->rows * (size_t)t->d);
        put_rows(p, "b", m->b, t->rows);
    }
    if (m->fourier > 0)
        svi_put_int(p, "features", m->fourier);
}

static void put_bank_expert(struct svi_pack *p, const struct svi_bank_told *t,
                            const struct svi_expert_told *e) {
    const bool stack = e->window >= 0, sloped = e->slope > 0, calibrated = e->law.a > 0;
    svi_pack_map(p, 2 + (stack ? 2 : 0) + (size_t)sloped + (size_t)calibrated);
    svi_put_text(p, "name", e->name);
    if (stack) {
        svi_put_int(p, "window", e->window);
        svi_put_real(p, "constant", e->constant);
    }
    svi_put_real(p, "share", e->share);
    if (sloped)
        svi_put_real(p, "slope", e->slope);
    if (calibrated)
        svi_put_calibration(p, &e->law, t->rows);
}

size_t svi_bank_keys(const struct svi_bank_told *t) {
    return 10 + (t->task == SVS_REGRESS ? 2 : 0) + (t->fourier > 0);
}

void svi_put_bank(struct svi_pack *p, const struct svi_bank_told *t) {
    svi_put_uint(p, "version", t->version);
    svi_put_bool(p, "serves", t->serves);
    svi_put_text(p, "task", t->task == SVS_REGRESS ? "regress" : "classify");
    svi_put_int(p, "d", t->d);
    svi_pack_key(p, "classes");
    svi_pack_values(p, t->classes, t->class_count);
    svi_pack_key(p, "members");
    svi_pack_array(p, (size_t)t->count);
    for (int i = 0; i < t->count; i++)
        put_bank_member(p, t, &t->member[i]);
    svi_pack_key(p, "experts");
    svi_pack_array(p, SVI_BANK_EXPERTS);
    for (int i = 0; i < SVI_BANK_EXPERTS; i++)
        put_bank_expert(p, t, &t->expert[i]);
    svi_put_real(p, "clip", t->clip);
    if (t->task == SVS_REGRESS) {
        svi_put_real(p, "center", t->center);
        svi_put_real(p, "unit", t->unit);
    }
    svi_put_doubles(p, "mean", t->mean, (size_t)t->d);
    svi_put_doubles(p, "scale", t->scale, (size_t)t->d);
    if (t->fourier == 0)
        return;
    svi_pack_key(p, "fourier");
    svi_pack_map(p, 3);
    svi_put_uint(p, "seed", t->seed);
    svi_put_int(p, "count", t->fourier);
    svi_put_real(p, "spread", t->spread);
}

void svi_put_members(struct svi_pack *p, const struct svi_members_said *m) {
    svi_pack_map(p, (size_t)m->count);
    for (int i = 0; i < m->count; i++) {
        svi_pack_text(p, m->name[i]);
        svi_pack_array(p, (size_t)m->rows);
        for (int r = 0; r < m->rows; r++)
            svi_pack_real(p, m->scores[i][r]);
    }
}
