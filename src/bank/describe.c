/* What a bank tells of itself.
 *
 * The windows have their weights in raw units already (svs_learner_model), each in memory of its own; those
 * of the first-order models of the row are brought into them here. Other members have no weights for raw
 * rows: of the models of Fourier features it says how these are drawn, of products and neighbours only
 * what they count for. A member's weight in a stack is that of its place in the table, whether it runs or
 * not: those that do not have given 0. */
#include "bank/describe.h"

#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "base/alloc.h"
#include "base/fail.h"

#define RAW_FIRST     SVI_MEMBER_PA
#define FOURIER_FIRST SVI_MEMBER_FOURIER_ADAGRAD

_Static_assert(SVI_MEMBERS <= SVI_BANK_MEMBERS, "there is room for every member");

static bool weights_reserve(struct svi_bank_weights *w, size_t count) {
    if (count > w->room) {
        double *of = svi_alloc_array(count, sizeof *of);
        if (!of)
            return false;
        svi_free(w->of);
        *w = (struct svi_bank_weights){of, count};
    }
    return true;
}

/* Those of a first-order model of the row, if all parts have all of it: where memory was refused while
 * features were added, a block may have features that the standardiser has not, and raw units are its to
 * know. */
static void describe_head(const svi_bank *b, int head, struct svi_bank_weights *w,
                          const struct svi_bank_told *t, struct svi_member_told *m) {
    const struct svi_block *raw = &b->block[RAW];
    const size_t rows = (size_t)t->rows, d = (size_t)t->d;
    double *own = w->of + (size_t)head * rows * (d + 1);
    if (svi_block_rows(raw) != t->rows || raw->d != t->d || /* no sample of the newest class yet */
        b->standard.d < t->d)
        return;
    for (int r = 0; r < t->rows; r++)
        own[rows * d + (size_t)r] = svi_block_weights(raw, head, r, &b->standard, own + (size_t)r * d);
    m->W = own;
    m->b = own + rows * d;
}

static void describe_window(svs_learner *l, const struct svi_bank_told *t, struct svi_member_told *m) {
    svs_model model;
    if (l && svs_learner_model(l, &model, NULL) == SVS_OK && model.rows == t->rows && model.d == t->d) {
        m->W = model.W;
        m->b = model.b;
    }
}

static void describe_member(const svi_bank *b, svs_learner *host, int member, struct svi_bank_weights *w,
                            struct svi_bank_told *t) {
    const struct svi_member_kind *kind = &svi_member_table[member];
    const int head = member - RAW_FIRST, window = member - SVI_MEMBER_WINDOW_50,
              fourier = member - FOURIER_FIRST;
    struct svi_member_told *m = &t->member[t->count++];
    *m = (struct svi_member_told){.name = kind->name,
                                  .kind = kind->kind[t->task],
                                  /* of a regression it is three of the last 5000 too */
                                  .window = t->task == SVS_REGRESS && member == SVI_MEMBER_NEAREST
                                                ? svi_member_table[SVI_MEMBER_NEAREST_5].window
                                                : kind->window,
                                  .recent = b->recent[member],
                                  .vote = t->task == SVS_REGRESS ? NAN : b->votes.w[member]};
    for (int i = 0; i < SVI_BANK_STACKS; i++)
        m->stack[i] = svi_stacks_weights(b->stacks, i)[member];
    if (member == SVI_MEMBER_HOST)
        describe_window(host, t, m);
    else if (window >= 0 && window < b->windows.count)
        describe_window(b->windows.of[window], t, m);
    else if (head >= 0 && head < b->block[RAW].o.head_count)
        describe_head(b, head, w, t, m);
    else if (fourier >= 0 && fourier < b->block[FOURIER].o.head_count)
        m->fourier = SVI_FOURIER_COUNT;
}

static void describe_experts(const svi_bank *b, struct svi_bank_told *t) {
    const struct svi_stacks_options stacks = svi_bank_stacks(&b->o);
    for (int i = 0; i < SVI_BANK_EXPERTS; i++) {
        struct svi_expert_told *e = &t->expert[i];
        *e = (struct svi_expert_told){.name = i > 0                    ? "stack"
                                              : t->task == SVS_REGRESS ? "best"
                                                                       : "votes",
                                      .window = i > 0 ? stacks.windows[i - 1] : -1,
                                      .share = b->experts.w[i],
                                      .constant =
                                          i > 0 ? svi_stacks_weights(b->stacks, i - 1)[SVI_MEMBERS] : 0};
        if (t->task == SVS_CLASSIFY && t->class_count == 2)
            e->slope = b->slope[i].a;
        else if (t->task == SVS_CLASSIFY && t->class_count > 2)
            e->law = svi_calibrator_law(b->calibrator[i], t->class_count);
    }
}

svs_code svi_bank_describe(const svi_bank *b, svs_learner *host, struct svi_bank_weights *w,
                           struct svi_bank_told *t, svs_error *err) {
    const struct svi_block *raw = &b->block[RAW], *fourier = &b->block[FOURIER];
    svs_model model;
    SVI_TRY(svs_learner_model(host, &model, err));
    const size_t rows = (size_t)model.rows, d = (size_t)model.d;
    const bool known = b->standard.d >= model.d;
    if (!weights_reserve(w, (size_t)raw->o.head_count * rows * (d + 1)))
        return svi_fail_memory(err, "the weights of a bank");
    *t = (struct svi_bank_told){.task = b->o.host.task,
                                .d = model.d,
                                .rows = model.rows,
                                .class_count = model.class_count,
                                .classes = model.classes,
                                .clip = b->regress ? INPUT_MOST : CLIP,
                                .center = b->center,
                                .unit = b->unit,
                                .mean = known ? b->standard.moments.mean : NULL,
                                .scale = known ? b->standard.moments.inverse : NULL};
    if (fourier->spread > 0) {
        t->fourier = SVI_FOURIER_COUNT;
        t->seed = fourier->o.seed;
        t->spread = fourier->spread;
    }
    for (int m = 0; m < SVI_MEMBERS; m++)
        if (svi_bank_runs(b, m))
            describe_member(b, host, m, w, t);
    describe_experts(b, t);
    return SVS_OK;
}

void svi_bank_weights_clear(struct svi_bank_weights *w) {
    svi_free(w->of);
    *w = (struct svi_bank_weights){0};
}

double svi_bank_weights_memory(int d, int classes) {
    return 8.0 * SVI_HEADS_MAX * (classes > 2 ? classes : 1) * (d + 1);
}

void svi_bank_said(const svi_bank *b, struct svi_members_said *m) {
    m->count = 0;
    for (int i = 0; i < SVI_MEMBERS; i++) {
        const double *scores = svi_bank_member_scores(b, i, &m->rows, NULL);
        if (!scores)
            continue;
        m->name[m->count] = svi_member_table[i].name;
        m->scores[m->count++] = scores;
    }
}
