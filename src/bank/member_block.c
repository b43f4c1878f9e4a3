/* The first-order members: the heads of the three blocks, and the blocks as parts of a bank.
 *
 * The order of the heads in a block is that of its members in the table of members.c. */
#include "bank/member_block.h"

#include "base/fail.h"

struct member_heads {
    struct svi_block_options of[2]; /* by task */
};

static const struct member_heads member_block_raw = {
    {{.kind = SVI_BLOCK_RAW,
      .head_count = 3,
      .head = {{SVI_STEP_PA, 1, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_ADAGRAD, 0.3F, 0.999F}}},
     {.kind = SVI_BLOCK_RAW, .head_count = 2, .head = {{SVI_STEP_NLMS, 1, 0}, {SVI_STEP_NLMS, 0.1F, 0}}}}};

static const struct member_heads member_block_products = {
    {{.kind = SVI_BLOCK_PRODUCTS,
      .head_count = 2,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_ADAGRAD, 0.03F, 0}}},
     {.kind = SVI_BLOCK_PRODUCTS, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}}};

static const struct member_heads member_block_fourier = {
    {{.kind = SVI_BLOCK_FOURIER,
      .head_count = 3,
      .head = {{SVI_STEP_ADAGRAD, 0.3F, 0}, {SVI_STEP_PA, 0.01F, 0}, {SVI_STEP_PA, 0.001F, 0}}},
     {.kind = SVI_BLOCK_FOURIER, .head_count = 1, .head = {{SVI_STEP_NLMS, 0.1F, 0}}}}};

static struct svi_block_options member_block_options(const struct svi_member_part *p) {
    const struct member_heads *heads = p->ops->options;
    struct svi_block_options o = heads->of[p->c->regress];
    o.task = p->c->host->task;
    o.seed = p->c->seed;
    o.isa = p->c->host->isa;
    return o;
}

/* Reserves all classes of the stream at once, so that a label never allocates. */
static svs_code member_block_init(const struct svi_member_part *p, int d, svs_error *err) {
    const struct svi_block_options o = member_block_options(p);
    (void)d;
    SVI_TRY(svi_block_init(p->self, &o, err));
    return p->c->regress ? SVS_OK : svi_block_reserve_classes(p->self, p->c->host->max_classes, err);
}

static void member_block_clear(const struct svi_member_part *p) {
    if (!p->on)
        svi_block_clear(p->self);
}

static void member_block_reset(const struct svi_member_part *p) {
    svi_block_empty(p->self);
}

static svs_code member_block_grow(const struct svi_member_part *p, int d, svs_error *err) {
    return svi_block_grow(p->self, d, err);
}

static void member_block_renew(const struct svi_member_part *p, int feature) {
    svi_block_renew(p->self, feature);
}

static void member_block_add_classes(const struct svi_member_part *p) {
    svi_block_add_classes(p->self, p->c->classes);
}

/* The block returns the heads' scores one after another; the bank wants them `stride` apart. They move
 * from the last to the first, so that none is overwritten. A plain loop, because a head usually has one
 * score. */
static void member_block_score(const struct svi_member_part *p, double *scores) {
    const struct svi_block *b = p->self;
    const size_t rows = (size_t)svi_block_rows(b), stride = (size_t)p->c->stride;
    svi_block_score(p->self, p->c->z, scores);
    for (size_t h = (size_t)b->o.head_count; h-- > 1;)
        for (size_t r = rows; r-- > 0;)
            scores[h * stride + r] = scores[h * rows + r];
}

static svs_code member_block_learn(const struct svi_member_part *p, const struct svi_member_lesson *l,
                                   svs_error *err) {
    (void)err;
    if (p->c->regress)
        svi_block_learn_target(p->self, l->held->target, l->held->weight);
    else
        svi_block_learn(p->self, l->held->label, l->held->weight);
    return SVS_OK;
}

/* Only a raw block has weights in raw units. After a growth that failed for want of memory the block may
 * have features that the standardiser lacks, and without its moments there are no raw units; and a new
 * class may not have reached the block yet. */
static void member_block_model(const struct svi_member_part *p, int i, struct svi_member_model *m) {
    const struct svi_block *b = p->self;
    const size_t rows = (size_t)m->rows, d = (size_t)m->d;
    if (b->o.kind == SVI_BLOCK_FOURIER)
        m->fourier = SVI_FOURIER_COUNT;
    if (b->o.kind != SVI_BLOCK_RAW || !m->own || svi_block_rows(b) != m->rows || b->d != m->d ||
        m->standard->d < m->d)
        return;
    for (size_t r = 0; r < rows; r++)
        m->own[rows * d + r] = svi_block_weights(b, i, (int)r, m->standard, m->own + r * d);
    m->W = m->own;
    m->b = m->own + rows * d;
}

static void member_block_archive(struct svi_archive *a, const struct svi_member_part *p) {
    if (p->on)
        svi_block_archive(a, p->self, p->c->host->max_features, p->c->host->max_classes);
}

static bool member_block_fits(const struct svi_member_part *p) {
    const struct svi_block *b = p->self;
    return b->d == p->c->d && b->classes == (p->c->regress ? 0 : p->c->classes);
}

static double member_block_bytes(const struct svi_member_part *p) {
    const struct svi_block_options o = member_block_options(p);
    return o.kind != SVI_BLOCK_PRODUCTS || p->c->d <= SVI_PRODUCTS_MAX
               ? svi_block_memory(&o, p->c->d, p->c->host->max_classes)
               : 0;
}

#define MEMBER_BLOCK                                                                                         \
    .size = sizeof(struct svi_block), .init = member_block_init, .clear = member_block_clear,                \
    .reset = member_block_reset, .grow = member_block_grow, .renew = member_block_renew,                     \
    .add_classes = member_block_add_classes, .score = member_block_score, .learn = member_block_learn,       \
    .model = member_block_model, .archive = member_block_archive, .fits = member_block_fits,                 \
    .bytes = member_block_bytes

const struct svi_member_ops svi_member_raw = {MEMBER_BLOCK, .options = &member_block_raw};
const struct svi_member_ops svi_member_products = {MEMBER_BLOCK, .options = &member_block_products};
const struct svi_member_ops svi_member_fourier = {MEMBER_BLOCK, .options = &member_block_fourier};

struct svi_block *svi_member_block_fourier(const struct svi_member_context *c) {
    return svi_member_part_of(c, &svi_member_fourier)->self;
}
