/* A bank's description of itself, for the `model.` event.
 *
 * Each member's table gives it as a model in raw units. The windows have raw weights already
 * (svs_learner_model), each in its own memory; those of the first-order models of the row are converted
 * here, into memory of svi_bank_weights. Other members have no weights for raw rows: Fourier models are
 * described by how their features are drawn, products and neighbours only by their influence. Members
 * that run have a place in the stacks (bank_internal.h). */
#include "bank/describe.h"

#include <math.h>
#include <string.h>

#include "bank/bank_internal.h"
#include "bank/member_block.h"
#include "bank/member_trees.h"
#include "base/alloc.h"
#include "base/fail.h"

_Static_assert(SVI_MEMBERS_MAX <= SVI_BANK_MEMBERS, "every member has its place");
_Static_assert(SVI_MIXTURE_EXPERTS == SVI_BANK_MIXED && SVI_MIXTURE_STACKS == SVI_BANK_LOGISTIC,
               "the experts of the mixture are published");

#define OWN_WEIGHTS                                                                                          \
    SVI_HEADS_MAX /* at most this many members need converted weights: the heads of the raw block */

static bool weights_reserve(struct svi_bank_weights *w, size_t count) {
    if (count > w->capacity) {
        double *of = svi_alloc_array(count, sizeof *of);
        if (!of)
            return false;
        svi_free(w->of);
        w->of = of;
        w->capacity = count;
    }
    return true;
}

/* The part of a member; NULL for the host. */
static const struct svi_member_part *describe_part(const svi_bank *b, int member) {
    return member == SVI_MEMBER_HOST ? NULL : svi_member_part_of(&b->c, svi_members[member].ops);
}

/* Appends one member. `own`: memory for its converted weights, or NULL. True: it used that memory. */
static bool describe_member(const svi_bank *b, const svs_model *host, int member, double *own,
                            struct svi_bank_description *t) {
    const struct svi_member *row = &svi_members[member];
    const struct svi_member_part *p = describe_part(b, member);
    const int place = svi_bank_stacked(b, member);
    struct svi_member_description *m = &t->member[t->count++];
    /* The host is described by its own model; any other member starts with none and may fill one in. */
    struct svi_member_model model = {
        .rows = t->rows, .d = t->d, .standard = &b->standard, .own = own, .W = host->W, .b = host->b};
    if (p)
        model.W = model.b = NULL;
    if (p && p->ops->model)
        p->ops->model(p, member - p->first, &model);
    *m = (struct svi_member_description){.name = row->name,
                                         .kind = row->kind[t->task] ? row->kind[t->task] : row->kind[0],
                                         .window = row->window[t->task],
                                         .recent = b->recent[member],
                                         .vote = t->task == SVS_REGRESS ? NAN : b->votes.w[member],
                                         .W = model.W,
                                         .b = model.b,
                                         .fourier = model.fourier};
    for (int i = 0; i < SVI_BANK_STACKS; i++)
        m->stack[i] = svi_stacks_weights(b->stacks, i)[place];
    if (b->mixture) {
        const svi_logistic *l = svi_mixture_logistic(b->mixture);
        for (int i = 0; i < SVI_BANK_LOGISTIC; i++)
            m->logistic[i] = svi_logistic_weights(l, i)[place];
        m->mean = svi_logistic_means(l)[place];
        m->scale = svi_logistic_scales(l)[place];
    }
    return own && model.W == own;
}

static void describe_experts(const svi_bank *b, struct svi_bank_description *t) {
    /* Expert 0 is the vote, or of a regression the best member; experts 1 to 3 are the stacks, with their
     * constants. What turns a score into a probability depends on the number of classes, as in
     * bank_step.c. */
    const struct svi_stacks_options stacks = svi_bank_stacks(&b->o, svi_bank_stacked_count(b));
    for (int i = 0; i < SVI_BANK_EXPERTS; i++) {
        struct svi_expert_description *e = &t->expert[i];
        *e = (struct svi_expert_description){
            .name = i > 0                    ? "stack"
                    : t->task == SVS_REGRESS ? "best"
                                             : "votes",
            .window = i > 0 ? stacks.windows[i - 1] : -1,
            .share = b->experts.w[i],
            .constant = i > 0 ? svi_stacks_weights(b->stacks, i - 1)[svi_bank_stacked_count(b)] : 0};
        if (t->task == SVS_CLASSIFY && t->class_count == 2)
            e->slope = b->slope[i].a;
        else if (t->task == SVS_CLASSIFY && t->class_count > 2)
            e->law = svi_calibrator_law(b->calibrator[i], t->class_count);
    }
}

/* In the order of bank/mixture.h. */
static void describe_mixture(const svi_bank *b, struct svi_bank_description *t) {
    static const char *const names[SVI_BANK_MIXED] = {"combined", "logistic", "logistic", "rate", "rate"};
    t->mixed_count = SVI_BANK_MIXED;
    for (int i = 0; i < SVI_BANK_MIXED; i++) {
        const int stack = i - SVI_MIXTURE_LOGISTIC, rate = i - SVI_MIXTURE_RATES;
        struct svi_mixed_description *e = &t->mixed[i];
        *e =
            (struct svi_mixed_description){.name = names[i],
                                           .share = svi_mixture_shares(b->mixture)->w[i],
                                           .counts = rate >= 0 ? svi_mixture_counts(b->mixture, rate) : NULL};
        if (stack < 0 || stack >= SVI_MIXTURE_STACKS)
            continue;
        e->keep = svi_mixture_keep(stack);
        e->constant =
            svi_logistic_weights(svi_mixture_logistic(b->mixture), stack)[svi_bank_stacked_count(b)];
    }
}

/* The forests, where they run. Their nodes are packed into memory of `w`. */
static svs_code describe_trees(const svi_bank *b, struct svi_bank_weights *w, struct svi_bank_description *t,
                               svs_error *err) {
    const struct svi_member_part *p = svi_member_part_of(&b->c, &svi_member_trees);
    for (int k = 0; p->on && k < SVI_BANK_FORESTS; k++) {
        struct svi_member_forest from;
        svi_member_trees_forest(&b->c, k, &from);
        if (from.of->rows == 0)
            continue;
        if (!w->trees && !(w->trees = svi_alloc(sizeof *w->trees)))
            return svi_fail_memory(err, "the trees of a bank");
        struct svi_forest_description *f = &t->forest[t->forest_count++];
        *f = (struct svi_forest_description){.member = svi_members[p->first + k].name,
                                             .version = from.version,
                                             .rows = from.of->rows,
                                             .trees = from.of->trees,
                                             .base = from.of->base,
                                             .first = from.of->first,
                                             .size = (size_t)from.of->count * SVI_FOREST_NODE};
        if (f->size <= SVI_BANK_TREE_BYTES) {
            svi_free(w->trees->nodes[k]);
            if (!(w->trees->nodes[k] = svi_alloc_plain(f->size + 1)))
                return svi_fail_memory(err, "the trees of a bank");
            svi_forest_pack(from.of, w->trees->nodes[k]);
            f->nodes = w->trees->nodes[k];
        }
        if (from.masked) {
            svi_free(w->trees->zero[k]);
            if (!(w->trees->zero[k] = svi_alloc_plain_array((size_t)from.columns, sizeof *w->trees->zero[k])))
                return svi_fail_memory(err, "the trees of a bank");
            for (int j = 0; j < from.columns; j++)
                if (from.masked[j])
                    w->trees->zero[k][f->zero_count++] = j;
            f->zero = w->trees->zero[k];
        }
        t->origin = from.origin;
        t->origins = from.origins;
        t->target_origin = from.target_origin;
        t->sure = from.sure;
    }
    return SVS_OK;
}

svs_code svi_bank_describe(const svi_bank *b, svs_learner *host, struct svi_bank_weights *w,
                           struct svi_bank_description *t, svs_error *err) {
    const struct svi_block *fourier = svi_member_block_fourier(&b->c);
    svs_model model;
    int own = 0;
    SVI_TRY(svs_learner_model(host, &model, err));
    const size_t rows = (size_t)model.rows, d = (size_t)model.d;
    /* After a growth that failed the standardiser may have fewer features: then raw units are unknown. */
    const bool known = b->standard.d >= model.d;
    if (!weights_reserve(w, OWN_WEIGHTS * rows * (d + 1)))
        return svi_fail_memory(err, "the weights of a bank");
    *t = (struct svi_bank_description){.task = b->o.host.task,
                                       .d = model.d,
                                       .rows = model.rows,
                                       .class_count = model.class_count,
                                       .classes = model.classes,
                                       .clip = b->c.regress ? MAX_INPUT : CLIP,
                                       .center = b->c.center,
                                       .unit = b->unit,
                                       .mean = known ? b->standard.moments.mean : NULL,
                                       .scale = known ? b->standard.moments.inverse : NULL};
    /* Seed and spread reproduce the Fourier features: a reader can make them too. */
    if (fourier->spread > 0) {
        t->fourier = SVI_FOURIER_COUNT;
        t->seed = fourier->o.seed;
        t->spread = fourier->spread;
    }
    /* Each member that converts its weights takes the next slot of rows x (d + 1) values. */
    for (int m = 0; m < svi_member_count; m++)
        if (svi_bank_runs(b, m))
            own += describe_member(b, &model, m,
                                   own < OWN_WEIGHTS ? w->of + (size_t)own * rows * (d + 1) : NULL, t);
    describe_experts(b, t);
    if (b->mixture)
        describe_mixture(b, t);
    return describe_trees(b, w, t, err);
}

void svi_bank_weights_sent(struct svi_bank_weights *w, struct svi_bank_description *t) {
    for (int i = 0; i < t->forest_count; i++) {
        struct svi_forest_description *f = &t->forest[i];
        f->sent = w->trees->sent[i] == f->version;
        w->trees->sent[i] = f->version;
    }
}

void svi_bank_weights_clear(struct svi_bank_weights *w) {
    svi_free(w->of);
    for (int k = 0; w->trees && k < SVI_BANK_FORESTS; k++) {
        svi_free(w->trees->nodes[k]);
        svi_free(w->trees->zero[k]);
    }
    svi_free(w->trees);
    *w = (struct svi_bank_weights){0};
}

double svi_bank_weights_memory(int d, int classes) {
    return 8.0 * OWN_WEIGHTS * (classes > 2 ? classes : 1) * (d + 1) + (double)sizeof(struct svi_bank_trees) +
           SVI_BANK_FORESTS * ((double)SVI_BANK_TREE_BYTES + 4.0 * (d + 1));
}

void svi_bank_member_table(const svi_bank *b, struct svi_member_scores *m) {
    m->count = 0;
    for (int i = 0; i < svi_member_count; i++) {
        const double *scores = svi_bank_member_scores(b, i, &m->rows, NULL);
        if (!scores)
            continue;
        m->name[m->count] = svi_members[i].name;
        m->scores[m->count++] = scores;
    }
}
