/* quads_template.h: the loops of quads.h, compiled once for registers of four doubles, and once in
 * plain C, where the compiler uses two registers of two. QUADS: the name of the table.
 *
 * In order of reading:
 *
 *  - quads and their parts, softmax;
 *  - the law of many classes and its gradient (the lesson);
 *  - the law of two classes, four samples at once;
 *  - a step of the curve;
 *  - the cuts of the quality alarm;
 *  - block moments and outliers.
 *
 * Both builds must agree bit for bit. Expressions are written in one order, min and max follow the
 * processor's instruction (NaN and -0 included), and the build turns fused operations off. */
#include "linalg/quads.h"

#include "linalg/exponential.h"

#define INLINE static inline __attribute__((always_inline))

typedef double quad __attribute__((vector_size(8 * SVI_QUAD)));
typedef long long bits __attribute__((vector_size(8 * SVI_QUAD))); /* from a comparison: all ones or zero */
typedef unsigned long long places __attribute__((vector_size(8 * SVI_QUAD)));
typedef int ints __attribute__((vector_size(4 * SVI_QUAD)));
typedef double quad_at __attribute__((vector_size(8 * SVI_QUAD), aligned(8), may_alias));
typedef svi_two two_at __attribute__((aligned(8), may_alias));
typedef long long bits_at __attribute__((vector_size(8 * SVI_QUAD), aligned(8), may_alias));

INLINE quad splat(double s) {
    return s - (quad){0};
}

INLINE quad get(const double *p) {
    return *(const quad_at *)p;
}

INLINE void put(double *p, quad v) {
    *(quad_at *)p = v;
}

/* The first `left` values, then 0; the memory after them is not touched. */
INLINE quad get_some(const double *p, int left) {
    if (left >= SVI_QUAD)
        return get(p);
    return (quad){p[0], left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, 0};
}

INLINE void put_some(double *p, quad v, int left) {
    if (left >= SVI_QUAD) {
        put(p, v);
        return;
    }
    p[0] = v[0];
    if (left > 1)
        p[1] = v[1];
    if (left > 2)
        p[2] = v[2];
}

INLINE bits first_lanes(int left) {
    return (bits){0, 1, 2, 3} < left - (bits){0};
}

INLINE quad only(bits which, quad v) {
    return (quad)(which & (bits)v);
}

INLINE quad choose(bits which, quad yes, quad no) {
    return (quad)((which & (bits)yes) | (~which & (bits)no));
}

/* a > b ? a : b, so b when either is NaN; and a < b ? a : b. */
#if defined(__AVX__)
INLINE quad larger(quad a, quad b) {
    return __builtin_ia32_maxpd256(a, b);
}
INLINE quad smaller(quad a, quad b) {
    return __builtin_ia32_minpd256(a, b);
}
INLINE bool some(bits b) {
    return __builtin_ia32_movmskpd256((quad)b) != 0;
}
#else
INLINE quad larger(quad a, quad b) {
    return choose(a > b, a, b);
}
INLINE quad smaller(quad a, quad b) {
    return choose(a < b, a, b);
}
INLINE bool some(bits b) {
    return ((b[0] | b[1]) | (b[2] | b[3])) != 0;
}
#endif

/* Clipped to +-most, 0 for NaN. */
INLINE quad within(quad v, double most) {
    return only(v == v, smaller(larger(v, splat(-most)), splat(most)));
}

INLINE double total(quad v) {
    return (v[0] + v[1]) + (v[2] + v[3]);
}

INLINE quad all_of(double c) {
    return (quad){c, c, c, c};
}

SVI_EXPONENTIAL(exp_quad, quad, bits, all_of)
SVI_LOGARITHM(log_quad, quad, bits, places, all_of)

INLINE double largest(quad v) {
    const double a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}

/* Values that can be read and written from k on: padded arrays always hold a whole quad. */
INLINE int left(int n, int k, bool padded) {
    return padded ? SVI_QUAD : n - k;
}

/* Shifting by the largest z keeps exp within [exp(-below), 1]: no overflow, and no p is 0. Lanes after the
 * last class repeat z[0] for the maximum and add 0 to the sum. */
INLINE void softmax_of(const double *z, int n, double below, double *p, bool padded) {
    quad top = splat(z[0]), sum = {0};
    for (int k = 0; k < n; k += SVI_QUAD) {
        quad here = get_some(z + k, left(n, k, padded));
        if (!padded && k + SVI_QUAD > n)
            here = choose(first_lanes(n - k), here, splat(z[0]));
        top = larger(here, top);
    }
    const double most = largest(top);
    for (int k = 0; k < n; k += SVI_QUAD) {
        quad e = exp_quad(larger(get_some(z + k, left(n, k, padded)) - most, splat(-below)));
        if (k + SVI_QUAD > n)
            e = only(first_lanes(n - k), e);
        sum += e;
        put_some(p + k, e, left(n, k, padded));
    }
    const double inverse = 1 / total(sum);
    for (int k = 0; k < n; k += SVI_QUAD)
        put_some(p + k, get_some(p + k, left(n, k, padded)) * inverse, left(n, k, padded));
}

static void softmax(const double *z, int n, double below, double *p) {
    softmax_of(z, n, below, p, false);
}

/* ---- many classes */

/* Lanes beyond the last class get the smallest logit, so they never decide which one is the largest. */
INLINE quad law_logit(double most, quad v, int left) {
    const quad logit = within(v, most);
    return left >= SVI_QUAD ? logit : choose(first_lanes(left), logit, splat(-most));
}

/* a = {a0, a1, a2, a3}, ... -> {a0, b0, c0, d0}, ... */
INLINE void transpose(quad *a, quad *b, quad *c, quad *d) {
#define SHUF __builtin_shufflevector
    const quad ab = SHUF(*a, *b, 0, 4, 2, 6), ab2 = SHUF(*a, *b, 1, 5, 3, 7);
    const quad cd = SHUF(*c, *d, 0, 4, 2, 6), cd2 = SHUF(*c, *d, 1, 5, 3, 7);
    *a = SHUF(ab, cd, 0, 1, 4, 5);
    *b = SHUF(ab2, cd2, 0, 1, 4, 5);
    *c = SHUF(ab, cd, 2, 3, 6, 7);
    *d = SHUF(ab2, cd2, 2, 3, 6, 7);
#undef SHUF
}

/* All knots are multiples of 0.05, so the place of z in a table of 0.05 steps names its line without a
 * search. The four lines are gathered as rows and transposed: base, gain, begin and scale of four classes. */
static void law(const struct svi_classes_law *law, const double *scores, int n) {
    const struct svi_classes_law l = *law; /* a copy, which no store may change */
    for (int k = 0; k < n; k += SVI_QUAD) {
        const quad s = within(get_some(scores + k, n - k), 1e100);
        const quad z = law_logit(l.most, l.a * s + get(l.b + k), n - k);
        const quad inside = smaller(larger(z, splat(-SVI_KNOTS_REACH)), splat(SVI_KNOTS_REACH));
        const ints at = __builtin_convertvector((inside + SVI_KNOTS_REACH) * 20, ints);
        const unsigned char *line = l.line_at;
        const int64_t on[SVI_QUAD] = {line[at[0]], line[at[1]], line[at[2]], line[at[3]]};
        quad base = get(&l.lines[on[0]].base), gain = get(&l.lines[on[1]].base),
             begin = get(&l.lines[on[2]].base), scale = get(&l.lines[on[3]].base);
        transpose(&base, &gain, &begin, &scale);
        for (int i = 0; i < SVI_QUAD; i++)
            l.line[k + i] = on[i];
        put(l.share + k, larger(smaller((inside - begin) * scale, splat(1)), splat(0)));
        put(l.s + k, s);
        put(l.z + k, z);
        put(l.v + k, law_logit(l.most, base + gain * inside + (z - inside), n - k));
    }
    softmax_of(l.v, n, l.most, l.p, true);
}

/* Adds the log loss's slope, p - y, and curvature, p (1 - p), to the two knots around each logit, by shares.
 * Two classes may lie on one line, so the additions go one class after another. */
INLINE void learn_curve(const struct svi_classes_law *l, const struct svi_classes_lesson *m, int n) {
    for (int k = 0; k < n; k += SVI_QUAD) {
        const quad p = get(l->p + k);
        double bend[SVI_QUAD];
        put(bend, p * (1 - p));
        const int end = n - k < SVI_QUAD ? n - k : SVI_QUAD;
        for (int i = 0; i < end; i++) {
            const int64_t at = l->line[k + i];
            const double share = l->share[k + i];
            const svi_two shares = {1 - share, share};
            two_at *more_bend = (two_at *)(m->more_bend + at), *slope = (two_at *)(m->slope + at);
            *more_bend += bend[i] * shares;
            *slope += (l->p[k + i] - (k + i == m->truth)) * shares;
        }
    }
}

/* Mean and variance of the scores by the plain probabilities: slope and curvature of the scale a. Scores so
 * large that a |s| exceeds m->scores shrink together, or one outlier would set the scale. */
INLINE void learn_scores(const struct svi_classes_law *l, struct svi_classes_lesson *m, int n) {
    quad most = {0}, mean = {0}, square = {0};
    for (int k = 0; k < n; k += SVI_QUAD) {
        const quad s = get(l->s + k);
        most = larger((quad)((bits)s & 0x7fffffffffffffff), most);
        mean += get(l->plain + k) * s;
    }
    const double size = largest(most) * l->a, shrink = size > m->scores ? m->scores / size : 1;
    const double middle = total(mean) * shrink;
    for (int k = 0; k < n; k += SVI_QUAD) {
        const quad off = get(l->s + k) * shrink - middle;
        square += get(l->plain + k) * off * off;
    }
    m->mean = middle;
    m->square = total(square);
    m->at_truth = l->s[m->truth] * shrink;
}

/* The doubles of whole numbers from 0 to 2^52 - 1: put into the mantissa of 2^52, which is then subtracted.
 */
INLINE quad numbers(bits v) {
    return (quad)(v | (bits)splat(0x1p52)) - 0x1p52;
}

/* Each offset takes a Newton step of its own. A rare class remembers its curvature for longer: it is seen
 * so seldom that a short memory would forget it between two of its samples. Lanes after the last class keep
 * their values. */
INLINE void learn_offsets(const struct svi_classes_law *l, const struct svi_classes_lesson *m, int n) {
    const double remembered = m->rare * m->samples;
    bits class = {0, 1, 2, 3};
    for (int k = 0; k < n; k += SVI_QUAD) {
        const quad p = get(l->plain + k), b = get(l->b + k), before = get(m->bend + k);
        const quad seen = numbers(*(const bits_at *)(m->seen + k));
        const quad memory = smaller(larger(remembered / (seen + 1.0), splat(m->least)), splat(m->half));
        const quad fade = larger(1 - 1 / memory, (quad){0});
        const quad bend = fade * before + p * (1 - p);
        const quad off = p - only(class == m->truth - (bits){0}, splat(1));
        const quad step = (off + m->pull * (1 - fade) * b) / (bend + m->damp);
        const quad offset = within(b - within(step, m->step), m->most);
        const bits here = k + SVI_QUAD <= n ? ~(bits){0} : first_lanes(n - k);
        put(m->bend + k, choose(here, bend, before));
        put(l->b + k, choose(here, offset, b));
        class += SVI_QUAD;
    }
}

/* The curve learns from the probabilities with the curve, scale and offsets from those without it. */
static void learn(const struct svi_classes_law *law, struct svi_classes_lesson *lesson, int n) {
    const struct svi_classes_law l = *law;
    const struct svi_classes_lesson m = *lesson;
    learn_curve(&l, &m, n);
    softmax_of(l.z, n, l.most, l.plain, true);
    learn_scores(&l, lesson, n);
    learn_offsets(&l, &m, n);
}

/* ---- two classes */

/* p = 1 / (1 + exp(-|z|)), of the likelier class, and 1 - p, computed as exp(-|z|) p: without cancellation.
 */
INLINE quad likelier(quad z, quad *other) {
    const quad lesser = exp_quad((quad)((bits)z | (bits)splat(-0.0))), p = 1 / (1 + lesser);
    *other = lesser * p;
    return p;
}

INLINE quad at_each(const double *of, const int64_t *at) {
    return (quad){of[at[0]], of[at[1]], of[at[2]], of[at[3]]};
}

INLINE quad held_within(quad v, double most) {
    return smaller(larger(v, splat(-most)), splat(most));
}

INLINE void add_two(double *to, svi_two more) {
    *(two_at *)to += more;
}

/* Adds `bend` and `off` of the first n of four samples to the knots around each logit, by its shares. */
INLINE void pairs_curve(const struct svi_pair_lesson *m, const int64_t *at, quad share, quad bend, quad off,
                        int n) {
    quad low_bend = bend * (1 - share), high_bend = bend * share, low = off * (1 - share), high = off * share;
    transpose(&low_bend, &high_bend, &low, &high);
    const quad each[SVI_QUAD] = {low_bend, high_bend, low, high};
    for (int i = 0; i < n; i++) {
        add_two(m->more_bend + at[i], (svi_two){each[i][0], each[i][1]});
        add_two(m->slope + at[i], (svi_two){each[i][2], each[i][3]});
    }
}

/* The seven sums of enum SVI_PAIR_..., transposed so that each sample is added as a whole, in order: lanes
 * over samples would make the bits depend on the grouping. */
INLINE void pairs_sum(double *sums, quad s, quad off, quad bend, int n) {
    const quad zero = {0};
    quad a = off * s, b = off, c = bend * s * s, d = bend * s, e = bend, f = s, g = s * s, h = zero;
    transpose(&a, &b, &c, &d);
    transpose(&e, &f, &g, &h);
    const quad first[SVI_QUAD] = {a, b, c, d}, last[SVI_QUAD] = {e, f, g, h};
    quad sum = get(sums), sum2 = get(sums + SVI_QUAD);
    for (int i = 0; i < n; i++) {
        sum += first[i];
        sum2 += last[i];
    }
    put(sums, sum);
    put(sums + SVI_QUAD, sum2);
}

/* Gives each sample the bits of svi_logit_pair: both go by the likelier class. */
static void pairs(const struct svi_pair_law *law, struct svi_pair_lesson *m, int n) {
    const bits newest = (bits){0, 1, 2, 3} == n - 1 - (bits){0};
    const quad s = choose(newest, splat(m->newest), get(m->score));
    const quad y = choose(newest, splat(m->newest_second), get(m->second));
    const quad line = law->a * s + law->b, z = held_within(line, law->most);
    const quad inside = held_within(z, SVI_KNOTS_REACH);
    const ints place = __builtin_convertvector((inside + SVI_KNOTS_REACH) * 20, ints);
    const unsigned char *of = law->interval_at;
    const int64_t at[SVI_QUAD] = {of[place[0]], of[place[1]], of[place[2]], of[place[3]]};
    const quad share =
        larger(smaller((inside - at_each(law->knot, at)) * at_each(law->scale, at), splat(1)), splat(0));
    const quad low = at_each(law->value, at), high = at_each(law->value + 1, at);
    const quad v = held_within(low + (high - low) * share + (z - inside), law->most);
    const quad z_plain = held_within(z, law->counts);
    quad other, other_plain;
    const quad p = likelier(v, &other), p_plain = likelier(z_plain, &other_plain);
    const quad second = choose(v > 0, p, other), plain = choose(z_plain > 0, p_plain, other_plain);
    put(m->p[0], choose(v > 0, other, p));
    put(m->p[1], second);
    pairs_curve(m, at, share, second * (1 - second), second - y, n);
    const bits far = (quad)((bits)line & 0x7fffffffffffffff) > law->counts;
    const quad counted = choose(far, (held_within(line, law->counts) - law->b) / law->a, s);
    pairs_sum(m->sums, counted, plain - y, plain * (1 - plain), n);
}

typedef unsigned unsigneds __attribute__((vector_size(4 * SVI_QUAD)));
typedef unsigned unsigneds_at __attribute__((vector_size(4 * SVI_QUAD), aligned(4), may_alias));

/* The whole number below or at v, 0 <= v < 2^32, with another one added. */
INLINE void put_whole(uint32_t *to, quad v, quad more) {
    const quad near = (v + 0x1p52) - 0x1p52, whole = near - only(near > v, splat(1)) + more;
    *(unsigneds_at *)to = (unsigneds) __builtin_convertvector(whole - 0x1p31, ints) ^ SVI_PAIR_TRUE;
}

static void judge(const struct svi_pair_units *u, const double *first, const double *second, const double *y,
                  struct svi_pair_judgement *out) {
    const quad p = get(second), of = get(y), off = p - of;
    const bits came = of > 0;
    const quad loss = smaller(-log_quad(choose(came, p, get(first))), splat(u->loss_most));
    put_whole(out->loss, loss * u->loss + 0.5, (quad){0});
    put_whole(out->brier, off * off * u->brier + 0.5, (quad){0});
    put_whole(out->p, p * u->p + 0.5, only(came, splat(0x1p31)));
}

/* ---- a curve */

INLINE void curve_step(const struct svi_curve_step *s, int j, int left) {
    const quad value = get_some(s->value + j, left), knot = get_some(s->knot + j, left);
    const quad pull = s->pull * (value - knot);
    const quad bend = s->fade * get_some(s->bend + j, left) + get_some(s->more_bend + j, left);
    const quad step = (get_some(s->slope + j, left) + pull) / (bend + s->damp);
    put_some(s->bend + j, bend, left);
    put_some(s->value + j, value - within(step, s->most), left);
    put_some(s->slope + j, (quad){0}, left);
    put_some(s->more_bend + j, (quad){0}, left);
}

static bool curve(const struct svi_curve_step *step) {
    const struct svi_curve_step s = *step; /* which no store may change */
    const int rest = SVI_KNOTS % SVI_QUAD, whole = SVI_KNOTS - rest;
    bits falls = {0};
    for (int j = 0; j < whole; j += SVI_QUAD)
        curve_step(&s, j, SVI_QUAD);
    curve_step(&s, whole, rest); /* by itself its loads and stores have no branch */
    for (int j = 0; j + 1 < SVI_KNOTS; j += SVI_QUAD)
        falls |= get(s.value + j) + s.rise > get(s.value + j + 1);
    return falls[0] | falls[1] | falls[2] | falls[3];
}

static void lines(const double *value, struct svi_line *lines) {
    for (int j = 0; j + 1 < SVI_KNOTS; j++) {
        lines[j].gain = (value[j + 1] - value[j]) * lines[j].scale;
        lines[j].base = value[j] - lines[j].gain * lines[j].begin;
    }
}

/* ---- cuts */

/* The exact statistic, for the cuts that pass the cheap bound, log(1 + x) <= x. Few get here. */
static __attribute__((noinline)) bool cut_beyond(quad apart, quad level, quad n1, quad n2, double scale,
                                                 bits left) {
    const quad c = apart * apart / scale;
    const quad most = n1 * log_quad(1 + c / (n1 * n1)) + n2 * log_quad(1 + c / (n2 * n2));
    const bits beyond = (most >= level) & left;
    return beyond[0] | beyond[1] | beyond[2] | beyond[3];
}

static bool cut(const struct svi_cuts *c, const double *n, const double *wrong, const double *level,
                int count) {
    for (int k = 0; k < count; k += SVI_QUAD) {
        const quad n2 = get(n + k) + c->more_n, n1 = c->n - n2;
        const quad w2 = get(wrong + k) + c->more_wrong;
        const quad apart = larger(w2 * c->n - c->wrong * n2, splat(c->least));
        const quad levels = get(level + k);
        const bits counts = (n1 >= c->fewest) & ((apart > 0) | (n2 >= c->fewest)) & first_lanes(count - k);
        const bits beyond = (apart * apart >= levels * c->bound * n2 * n1) & counts;
        if ((beyond[0] | beyond[1] | beyond[2] | beyond[3]) &&
            cut_beyond(apart, levels, n1, n2, c->n * c->bound, beyond))
            return true;
    }
    return false;
}

/* ---- moments */

/* Sums run over differences from the first row, or a large common level would cancel in squares - sum^2 / n.
 * 8 columns at a time, which stay in registers. */
static void moments(const double *ring, int places, int64_t first, int rows, int64_t stride, int columns,
                    double *mean, double *squares) {
    const int64_t begin = first & (places - 1);
    for (int j = 0; j < columns; j += 2 * SVI_QUAD) {
        const double *x = ring + begin * stride + j;
        const quad base = get(x), base2 = get(x + SVI_QUAD);
        quad sum = {0}, sum2 = {0}, square = {0}, square2 = {0};
        int64_t at = begin;
        for (int i = 1; i < rows; i++) {
            at = (at + 1) & (places - 1);
            x = ring + at * stride + j;
            const quad gap = get(x) - base, gap2 = get(x + SVI_QUAD) - base2;
            sum += gap;
            sum2 += gap2;
            square += gap * gap;
            square2 += gap2 * gap2;
        }
        put(mean + j, base + sum / rows);
        put(mean + j + SVI_QUAD, base2 + sum2 / rows);
        put(squares + j, larger(square - sum * sum / rows, (quad){0}));
        put(squares + j + SVI_QUAD, larger(square2 - sum2 * sum2 / rows, (quad){0}));
    }
}

INLINE quad excess(quad x, quad center, quad bound) {
    return (quad)((bits)(x - center) & INT64_MAX) - bound; /* |x - center|: the sign bit is masked out */
}

/* The last quad of four or more overlaps the one before it. */
static bool beyond(const double *x, const double *center, const double *bound, int n) {
    if (n < SVI_QUAD)
        return n > 0 && some(excess(get_some(x, n), get_some(center, n), get_some(bound, n)) > (quad){0});
    const int last = n - SVI_QUAD;
    quad most = larger(excess(get(x + last), get(center + last), get(bound + last)), (quad){0});
    for (int j = 0; j < last; j += SVI_QUAD)
        most = larger(excess(get(x + j), get(center + j), get(bound + j)), most);
    return some(most > (quad){0});
}

const struct svi_quads QUADS = {softmax, law, learn, pairs, judge, curve, lines, cut, moments, beyond};
