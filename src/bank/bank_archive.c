/* The state of a bank as bytes, and what must hold of it. */
#include <math.h>

#include "bank/bank_internal.h"

/* As many features and classes as the bank, in all that counts them by itself. */
static const char *bank_shape_wrong(const svi_bank *b) {
    bool good = b->standard.d == b->d;
    for (int i = 0; i < BLOCKS; i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            good &= b->block[i].d == b->d && b->block[i].classes == (b->regress ? 0 : b->classes);
    for (int i = 0; i < b->windows.count; i++)
        if (b->windows.of[i])
            good &= svs_learner_dimension(b->windows.of[i]) == b->d &&
                    svs_learner_class_count(b->windows.of[i]) == b->classes;
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        good &= b->near.d == b->d;
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT))
        good &=
            b->exact.dim == 1 + EXACT_FEATURES + b->d && b->exact.classes == (b->regress ? 0 : b->classes);
    return good ? NULL : "the members of a bank differ in features or classes";
}

/* Rows are held under numbers of samples that the host holds. */
static const char *bank_held_wrong(const svi_bank *b, const svs_learner *host) {
    const double *row;
    int64_t number;
    for (int64_t i = 0; svi_learner_held_row(host, i, &row, &number); i++) {
        if (row)
            continue;
        if (svi_stacks_holds(b->stacks, number))
            return "a stack holds a sample that the host has let go";
        if (svi_bank_runs(b, SVI_MEMBER_NEAREST) && svi_neighbours_row(&b->near, number - b->near_from))
            return "a sample that the host has let go is found among the neighbours";
    }
    return NULL;
}

const char *svi_bank_check(svi_bank *b, const svs_learner *host, double error) {
    const char *wrong = bank_shape_wrong(b);
    if (!wrong && !svi_bank_follows(b, host))
        wrong = "the bank has other features or classes than the host";
    if (!wrong)
        wrong = bank_held_wrong(b, host);
    for (int i = 0; i < STACKS && !wrong; i++)
        if (!(svi_stacks_check(b->stacks, i) <= error))
            wrong = "a stack is not what follows from what it holds";
    return wrong ? wrong : svi_windows_check(&b->windows, host, error);
}

/* ---- the archive */

/* Of a regression: what is known of the targets. */
static void bank_archive_targets(struct svi_archive *a, svi_bank *b) {
    double *const figures[] = {&b->mean, &b->spread, &b->largest, &b->center, &b->unit, &b->last, &b->error};
    static const char *const names[] = {"mean", "spread", "largest", "center", "unit", "last", "error"};
    svi_archive_int64(a, "targets", &b->targets, 0, INT64_MAX / 2);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        svi_archive_finite(a, names[i], figures[i], 1);
    svi_archive_check(a, b->spread >= 0 && b->largest >= 0 && b->unit > 0 && b->error >= 0,
                      "what is known of the targets is out of range");
}

/* Which members run: those that have not gone since the bank was made, whatever would be chosen for the
 * features and classes of now. Loading: into a new bank of `begun` features, whose choice may be another. */
static void bank_archive_members(struct svi_archive *a, svi_bank *b, int begun) {
    const uint32_t most = svi_members_choose(b->o.host.task, begun, 0, MEMBERS_ALL);
    int on = (int)b->on;
    svi_archive_int(a, "members", &on, 0, (1 << SVI_MEMBERS) - 1);
    if (!a->loading ||
        !svi_archive_check(a, ((uint32_t)on & ~most) == 0 && (on & 1), "it has members that no bank has") ||
        (uint32_t)on == b->on)
        return;
    if (((uint32_t)on & ~b->on) == 0) {
        b->on = (uint32_t)on;
        svi_bank_clear_others(b);
        return;
    }
    b->on = 0;
    svi_bank_clear_others(b);
    b->on = (uint32_t)on;
    if (!svi_bank_build_members(b, begun, a->err) && svi_archive_ok(a))
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for a bank of learners");
}

void svi_bank_archive(struct svi_archive *a, svi_bank *b) {
    const int begun = b->d;
    svi_archive_int(a, "features", &b->d, 0, b->o.host.max_features);
    svi_archive_int(a, "classes", &b->classes, 0, b->regress ? 0 : b->o.host.max_classes);
    bank_archive_members(a, b, begun);
    if (!svi_archive_ok(a))
        return;
    svi_windows_archive(a, &b->windows);
    svi_standardiser_archive(a, &b->standard, b->o.host.max_features);
    svi_archive_int64(a, "neighbours from", &b->near_from, INT64_MIN / 2, INT64_MAX / 2);
    if (svi_bank_runs(b, SVI_MEMBER_NEAREST))
        svi_neighbours_archive(a, &b->near, b->regress ? 0 : b->o.host.max_classes);
    if (svi_bank_runs(b, SVI_MEMBER_FOURIER_EXACT) && svi_archive_ok(a) &&
        (!a->loading || svi_fourier_ridge_grow(&b->exact, EXACT_FEATURES + b->d, a->err) == SVS_OK))
        svi_fourier_ridge_archive(a, &b->exact);
    for (int i = 0; i < BLOCKS && svi_archive_ok(a); i++)
        if (svi_bank_runs(b, svi_bank_blocks[i].member))
            svi_block_archive(a, &b->block[i], b->o.host.max_features, b->o.host.max_classes);
    svi_stacks_archive(a, b->stacks);
    svi_archive_bytes(a, "took", b->took, svi_bank_held(&b->o.host));
    if (b->regress)
        bank_archive_targets(a, b);
    svi_archive_int64(a, "judged", &b->judged, 0, INT64_MAX / 2);
    svi_archive_finite(a, "recent", b->recent, SVI_MEMBERS);
    svi_share_archive(a, &b->votes);
    svi_share_archive(a, &b->experts);
    for (int i = 0; i < EXPERTS && svi_archive_ok(a); i++) {
        svi_slope_archive(a, &b->slope[i]);
        if (!b->regress)
            svi_calibrator_archive(a, b->calibrator[i]);
    }
    if (a->loading && svi_archive_ok(a)) {
        const char *wrong = bank_shape_wrong(b);
        svi_archive_check(a, !wrong, wrong);
    }
}
