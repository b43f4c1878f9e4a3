/* Which members there are, what they cost, and which of them run.
 *
 * The costs are nanoseconds a labelled sample, fitted once to what the parts took on one core of a server of
 * 2024
 * (`make bench ONLY=bank`): they say what `auto.budget` means, and are the same on every machine, so that the
 * same input gives the same bytes. */
#include "bank/members.h"

const struct svi_member_kind svi_member_table[SVI_MEMBERS] = {
    [SVI_MEMBER_HOST] = {"alsvm-5000", {"alsvm", "alsvm"}, 5000, true},
    [SVI_MEMBER_WINDOW_50] = {"alsvm-50", {"alsvm", "alsvm"}, 50, true},
    [SVI_MEMBER_WINDOW_200] = {"alsvm-200", {"alsvm", "alsvm"}, 200, true},
    [SVI_MEMBER_WINDOW_1000] = {"alsvm-1000", {"alsvm", "alsvm"}, 1000, true},
    [SVI_MEMBER_WINDOW_ALL] = {"alsvm-all", {"alsvm", "alsvm"}, 0, true},
    [SVI_MEMBER_FADING] = {"alsvm-fading", {"alsvm", "alsvm"}, 0, true},
    [SVI_MEMBER_FALSVM] = {"falsvm-all", {"falsvm", "falsvm"}, 0, true},
    [SVI_MEMBER_PA] = {"pa-1", {"pa", "nlms"}, -1, true},
    [SVI_MEMBER_PA_SLOW] = {"pa-0.01", {"pa", "nlms"}, -1, true},
    [SVI_MEMBER_ADAGRAD] = {"adagrad", {"adagrad", "adagrad"}, -1, true},
    [SVI_MEMBER_PRODUCTS] = {"products-0.3", {"products", "products"}, -1, false},
    [SVI_MEMBER_PRODUCTS_SLOW] = {"products-0.03", {"alsvm", "alsvm"}, -1, false},
    [SVI_MEMBER_NEAREST] = {"nearest-200", {"nearest", "nearest"}, 200, false},
    [SVI_MEMBER_NEAREST_5] = {"nearest-5000", {"nearest", "nearest"}, 5000, false},
    [SVI_MEMBER_FOURIER_ADAGRAD] = {"fourier-adagrad", {"fourier", "fourier"}, -1, false},
    [SVI_MEMBER_FOURIER_PA] = {"fourier-pa-0.01", {"fourier", "fourier"}, -1, false},
    [SVI_MEMBER_FOURIER_PA_SLOW] = {"fourier-pa-0.001", {"fourier", "fourier"}, -1, false},
    [SVI_MEMBER_FOURIER_EXACT] = {"fourier-least-squares", {"fourier", "fourier"}, 0, false},
    [SVI_MEMBER_LAST] = {"last", {"last", "last"}, -1, false},
};

double svi_members_budget(int d, int classes) {
    const double two = d <= 10 ? 10 : 10 + (d - 10) * 15.0 / 44;
    return classes > 2 ? two * classes / 2 : two;
}

/* What one group of members takes: base + feature f + square (d + 1)^2 + rows (row + row_feature f), f
 * features of its own. A group runs or does not as a whole. */
static const struct members_group {
    uint32_t members;
    double base, feature, square, row, row_feature;
    enum { OF_ROW, OF_PRODUCTS } of;
    int window;       /* it runs up to d + 1 = window / 2; 0 = any d */
    int features_max; /* 0 = any */
} members_groups[] = {
#define BIT SVI_MEMBER_BIT
    /* in this order they are taken as long as they fit; the first always is */
    {BIT(SVI_MEMBER_HOST) | BIT(SVI_MEMBER_LAST), 250, 1, 0.09, 10, 0.5, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_WINDOW_1000), 250, 1, 0.09, 10, 0.5, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_PA) | BIT(SVI_MEMBER_PA_SLOW) | BIT(SVI_MEMBER_ADAGRAD), 60, 1, 0, 10, 1.2, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_WINDOW_200), 250, 1, 0.09, 10, 0.5, OF_ROW, 200, 0},
    {BIT(SVI_MEMBER_WINDOW_ALL), 200, 1, 0.06, 10, 0.5, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_FADING), 200, 1, 0.06, 10, 0.5, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_PRODUCTS) | BIT(SVI_MEMBER_PRODUCTS_SLOW), 60, 0.4, 0, 5, 0.35, OF_PRODUCTS, 0, 60},
    {BIT(SVI_MEMBER_NEAREST) | BIT(SVI_MEMBER_NEAREST_5), 1800, 95, 0, 5, 0, OF_ROW, 0, 32768},
    {BIT(SVI_MEMBER_FOURIER_ADAGRAD) | BIT(SVI_MEMBER_FOURIER_PA) | BIT(SVI_MEMBER_FOURIER_PA_SLOW), 300, 20,
     0, 350, 0, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_FALSVM), 150, 1, 0.04, 10, 0.5, OF_ROW, 0, 0},
    {BIT(SVI_MEMBER_WINDOW_50), 250, 1, 0.09, 10, 0.5, OF_ROW, 50, 0},
    {BIT(SVI_MEMBER_FOURIER_EXACT), 1900, 15, 0.035, 40, 0.3, OF_ROW, 0, 0},
#undef BIT
};

#define COMBINING     700.0 /* nanoseconds: the stacks and shares */
#define COMBINING_ROW 350.0

static double members_cost(const struct members_group *g, double d, double rows) {
    const double f = g->of == OF_PRODUCTS ? d * (d + 3) / 2 : d;
    return g->base + g->feature * f + g->square * (d + 1) * (d + 1) + rows * (g->row + g->row_feature * f);
}

uint32_t svi_members_choose(svs_task task, int d, int classes, double budget) {
    const uint32_t regress = SVI_MEMBER_BIT(SVI_MEMBER_FADING) | SVI_MEMBER_BIT(SVI_MEMBER_LAST),
                   classify = SVI_MEMBER_BIT(SVI_MEMBER_FALSVM) | SVI_MEMBER_BIT(SVI_MEMBER_ADAGRAD) |
                              SVI_MEMBER_BIT(SVI_MEMBER_PRODUCTS_SLOW) |
                              SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA) |
                              SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA_SLOW);
    const uint32_t others = task == SVS_REGRESS ? classify : regress;
    const double rows = classes > 2 ? classes : 1;
    double left =
        1000 * (budget > 0 ? budget : svi_members_budget(d, classes)) - COMBINING - rows * COMBINING_ROW;
    uint32_t on = 0;
    for (size_t i = 0; i < sizeof members_groups / sizeof members_groups[0]; i++) {
        const struct members_group *g = &members_groups[i];
        const double cost = members_cost(g, d, rows);
        const bool fits = i == 0 || cost <= left;
        if (!fits || !(g->members & ~others) || (g->window && 2 * (d + 1) > g->window) ||
            (g->features_max && d > g->features_max))
            continue;
        on |= g->members & ~others;
        left -= cost;
    }
    if (!(on & SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_ADAGRAD))) /* whose features it is made of */
        on &= ~SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_EXACT);
    return on;
}

double svi_members_estimate(uint32_t members, int d, int classes) {
    const double rows = classes > 2 ? classes : 1;
    double sum = COMBINING + rows * COMBINING_ROW;
    for (size_t i = 0; i < sizeof members_groups / sizeof members_groups[0]; i++)
        sum += members & members_groups[i].members ? members_cost(&members_groups[i], d, rows) : 0;
    return sum / 1000;
}
