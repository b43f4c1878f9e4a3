/* learner_walk.h: random calls on a learner, the same for as many learners as one likes, and its state as
 * bytes. */
#ifndef TEST_SUPPORT_LEARNER_WALK_H
#define TEST_SUPPORT_LEARNER_WALK_H

#include <stdlib.h>
#include <string.h>

#include "learner/learner_archive.h"
#include "learner/learner_internal.h"
#include "reference.h"
#include "wire/archive_file.h"

#define WALK_MAX_D 160

enum walk_ids { WALK_NO_IDS = 0, WALK_INTS, WALK_NAMES, WALK_ALL_IDS };

struct walk {
    svs_options o;
    int d, most; /* features at first and at last */
    int classes;
    double spread; /* raw scales differ by up to this */
    enum walk_ids ids;
    bool weights, late, forgets, resets;
    double bursts; /* size of rare large samples, 0 = none */
    uint64_t seed;
    double time;
    char name[SVS_NAME_MAX];
    double x[WALK_MAX_D];
};

enum walk_verb { WALK_STEP = 0, WALK_LABEL, WALK_FORGET, WALK_GROW, WALK_RESET };

struct walk_call {
    enum walk_verb verb;
    svs_sample s; /* x, id, y point into the walk */
    double time;
    int d;
};

/* All that a call gave; bytes that are nothing are 0. */
struct walk_outcome {
    svs_code code;
    svs_step step; /* scores: NULL */
    double scores[64];
    int count;
};

static inline bool walk_chance(struct walk *w, double p) {
    return ref_uniform(&w->seed) < p;
}

static inline svs_value walk_label(const struct walk *w, int k, double x) {
    static const char *const names[] = {"red", "green", "blue", "black", "wei\xc3\x9f", "grey"};
    if (w->o.task == SVS_REGRESS)
        return k % 2 ? svs_int(k) : svs_real(x);
    return k % 2 ? svs_int(k - 3) : svs_str(names[k % 6]);
}

static inline svs_value walk_id(struct walk *w) {
    int k = (int)(ref_uniform(&w->seed) * 61);
    if (w->ids == WALK_NO_IDS || (w->ids == WALK_ALL_IDS && k % 5 == 0))
        return svs_none();
    if (w->ids == WALK_INTS || (w->ids == WALK_ALL_IDS && k % 2))
        return svs_int(k * (int64_t)100000000000007);
    memset(w->name, 'a' + k % 26, sizeof w->name);
    return (svs_value){.kind = SVS_STR, .length = 1 + (uint32_t)k, .as.s = w->name};
}

static inline struct walk_call walk_next(struct walk *w) {
    struct walk_call c = {.verb = WALK_STEP, .d = w->d};
    double size = w->bursts > 0 && walk_chance(w, 0.02) ? w->bursts : 1;
    int k = (int)(ref_uniform(&w->seed) * w->classes);
    w->time += ref_uniform(&w->seed);
    for (int j = 0; j < w->d; j++)
        w->x[j] =
            size * pow(w->spread, (double)j / WALK_MAX_D) * (ref_gauss(&w->seed) + 0.4 * k * (j % 3) + 5);
    c.s = (svs_sample){w->x, w->d, walk_id(w), walk_label(w, k, w->d ? w->x[0] : k),
                       w->weights ? 0.1 + ref_uniform(&w->seed) : 1};
    c.time = w->time;
    if (w->resets && walk_chance(w, 0.003))
        c.verb = WALK_RESET;
    else if (w->d < w->most && walk_chance(w, 0.06))
        c.verb = WALK_GROW, c.d = w->d += 1 + (walk_chance(w, 0.1) && w->d + 7 <= w->most) * 6;
    else if (w->forgets && walk_chance(w, 0.12))
        c.verb = WALK_FORGET;
    else if (w->late && walk_chance(w, 0.25))
        c.verb = WALK_LABEL;
    else if (w->late && walk_chance(w, 0.35))
        c.s.y = svs_none();
    return c;
}

static inline void walk_do(svs_learner *l, const struct walk_call *c, struct walk_outcome *out) {
    svs_error err = {0};
    memset(out, 0, sizeof *out);
    switch (c->verb) {
    case WALK_STEP:
        out->code = svs_learner_step(l, &c->s, c->time, &out->step, &err);
        break;
    case WALK_LABEL:
        out->code = svs_learner_label(l, c->s.id, c->s.y, c->time, &out->step, &err);
        break;
    case WALK_FORGET:
        out->code = svs_learner_forget(l, c->s.id, c->time, &out->count, &err);
        break;
    case WALK_GROW:
        out->code = svs_learner_grow(l, c->d, &err);
        break;
    case WALK_RESET:
        svs_learner_reset(l);
        break;
    }
    for (int k = 0; out->step.scores && k < out->step.rows && k < 64; k++)
        out->scores[k] = out->step.scores[k];
    out->step.scores = NULL;
}

/* A new learner after so many calls. */
static inline svs_learner *walk_far(struct walk *w, int steps) {
    svs_error err;
    struct walk_outcome out;
    svs_learner *l = svs_learner_new(&w->o, w->d, &err);
    for (int i = 0; l && i < steps; i++) {
        struct walk_call c = walk_next(w);
        walk_do(l, &c, &out);
    }
    return l;
}

static inline bool walk_same_double(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline bool walk_same(const struct walk_outcome *a, const struct walk_outcome *b) {
    const svs_step *s = &a->step, *t = &b->step;
    return a->code == b->code && a->count == b->count &&
           memcmp(a->scores, b->scores, sizeof a->scores) == 0 && s->rows == t->rows &&
           s->class_count == t->class_count && s->predicted == t->predicted && s->label == t->label &&
           walk_same_double(s->target, t->target) && s->version == t->version &&
           walk_same_double(s->leverage, t->leverage) && s->learned == t->learned &&
           s->waiting == t->waiting && s->removed == t->removed;
}

/* Replaces `bytes`. */
static inline svs_code walk_save(svs_learner *l, struct svi_bytes *bytes, svs_error *err) {
    struct svi_archive_out out;
    bytes->size = 0;
    svi_archive_out_begin(&out, bytes, "learner", err);
    svi_learner_archive(&out.archive, l);
    return svi_archive_out_end(&out);
}

/* A learner made with d features and loaded; NULL: *err says why. */
static inline svs_learner *walk_load(const svs_options *o, int d, const void *bytes, size_t size,
                                     svs_error *err) {
    struct svi_archive_in in;
    svs_learner *l = svs_learner_new(o, d, err);
    if (!l)
        return NULL;
    svi_archive_in_begin(&in, bytes, size, "learner", err);
    if (svi_archive_ok(&in.archive))
        svi_learner_archive(&in.archive, l);
    if (svi_archive_in_end(&in) != SVS_OK)
        svs_learner_free(&l);
    return l;
}

/* The value behind the key of a field (its first byte of content), or NULL. */
static inline uint8_t *walk_field(const struct svi_bytes *bytes, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i + length + 16 < bytes->size; i++) {
        uint8_t *at = bytes->data + i;
        if (at[0] != 0xd9 || at[1] != length || memcmp(at + 2, name, length) != 0)
            continue;
        at += 2 + length;
        return at + (*at == 0xc9 ? 6 : *at == 0xc6 ? 5 : 1);
    }
    return NULL;
}

#endif
