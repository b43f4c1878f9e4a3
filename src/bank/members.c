/* The members, their costs, and which of them run.
 *
 * Costs are nanoseconds a labelled sample, fitted once to measurements on one core of a server of 2024
 * (`make bench ONLY=bank`). They define what `auto.budget` means and are the same on every machine, so
 * that the same input gives the same bytes. */
#include "bank/members.h"

#include "bank/member_block.h"
#include "bank/member_nearest.h"
#include "bank/member_trees.h"
#include "bank/windows.h"

/* Declared here, because only this table uses them. */
extern const struct svi_member_ops svi_member_fourier_exact, svi_member_last, svi_member_gaussian;

/* Short names, so that a row fits on a line. */
#define WINDOWS  &svi_member_windows
#define RAW      &svi_member_raw
#define PRODUCTS &svi_member_products
#define NEAREST  &svi_member_nearest
#define FOURIER  &svi_member_fourier
#define EXACT    &svi_member_fourier_exact
#define LAST     &svi_member_last
#define TREES    &svi_member_trees
#define GAUSSIAN &svi_member_gaussian

#define CLASSES (1 << SVS_CLASSIFY)
#define TARGETS (1 << SVS_REGRESS)
#define BOTH    (CLASSES | TARGETS)

/* The order is that of the state and of the published model, so a new row goes at the end. features_max of
 * a window keeps twice as many rows as weights: with fewer, least squares follows the noise. */
const struct svi_member svi_members[] = {
    /* name, kinds, windows, table, requires, tasks, turn, features, cost */
    {"alsvm-5000", {"alsvm"}, {5000, 5000}, NULL, NULL, BOTH, 1, 0, {250, 1, 0.09, 10, 0.5}},
    {"alsvm-50", {"alsvm"}, {50, 50}, WINDOWS, NULL, BOTH, 12, 24, {250, 1, 0.09, 10, 0.5}},
    {"alsvm-200", {"alsvm"}, {200, 200}, WINDOWS, NULL, BOTH, 4, 99, {250, 1, 0.09, 10, 0.5}},
    {"alsvm-1000", {"alsvm"}, {1000, 1000}, WINDOWS, NULL, BOTH, 2, 0, {250, 1, 0.09, 10, 0.5}},
    {"alsvm-all", {"alsvm"}, {0, 0}, WINDOWS, NULL, BOTH, 5, 0, {200, 1, 0.06, 10, 0.5}},
    {"alsvm-fading", {"alsvm"}, {0, 0}, WINDOWS, NULL, TARGETS, 6, 0, {200, 1, 0.06, 10, 0.5}},
    {"falsvm-all", {"falsvm"}, {0, 0}, WINDOWS, NULL, CLASSES, 11, 0, {150, 1, 0.04, 10, 0.5}},
    {"pa-1", {"pa", "nlms"}, {-1, -1}, RAW, NULL, BOTH, 3, 0, {60, 1, 0, 10, 1.2}},
    {"pa-0.01", {"pa", "nlms"}, {-1, -1}, RAW, NULL, BOTH, 3, 0, {0}},
    {"adagrad", {"adagrad"}, {-1, -1}, RAW, NULL, CLASSES, 3, 0, {0}},
    {"products-0.3", {"products"}, {-1, -1}, PRODUCTS, NULL, BOTH, 7, 60, {60, 0.4, 0, 5, 0.35, 1}},
    {"products-0.03", {"products"}, {-1, -1}, PRODUCTS, NULL, CLASSES, 7, 60, {0}},
    /* in a regression the mean of three of the last 5000 */
    {"nearest-200", {"nearest"}, {200, 5000}, NEAREST, NULL, BOTH, 9, 32768, {2600, 120, 0, 5, 0}},
    {"nearest-1000", {"nearest"}, {1000, 1000}, NEAREST, NULL, BOTH, 9, 32768, {0}},
    {"nearest-5000", {"nearest"}, {5000, 5000}, NEAREST, NULL, BOTH, 9, 32768, {0}},
    {"fourier-adagrad", {"fourier"}, {-1, -1}, FOURIER, NULL, BOTH, 10, 0, {300, 20, 0, 350, 0}},
    {"fourier-pa-0.01", {"fourier"}, {-1, -1}, FOURIER, NULL, CLASSES, 10, 0, {0}},
    {"fourier-pa-0.001", {"fourier"}, {-1, -1}, FOURIER, NULL, CLASSES, 10, 0, {0}},
    {"fourier-least-squares", {"fourier"}, {0, 0}, EXACT, FOURIER, BOTH, 13, 0, {1900, 15, 0.035, 40, 0.3}},
    {"last", {"last"}, {-1, -1}, LAST, NULL, TARGETS, 1, 0, {0}},
    {"trees-5000", {"trees"}, {5000, 5000}, TREES, NULL, BOTH, 8, 0, {150, 3, 0, 260, 0}},
    {"trees-all", {"trees"}, {20000, 20000}, TREES, NULL, BOTH, 8, 0, {0}},
    {"gaussian-500", {"gaussian"}, {-1, -1}, GAUSSIAN, NULL, CLASSES, 14, 0, {80, 16, 0, 40, 15}},
    {"gaussian-all", {"gaussian"}, {-1, -1}, GAUSSIAN, NULL, CLASSES, 14, 0, {0}},
};
const int svi_member_count = (int)(sizeof svi_members / sizeof *svi_members);
_Static_assert(sizeof svi_members / sizeof *svi_members <= SVI_MEMBERS_MAX, "each member has a bit");

/* The order of member_ops.h: Fourier least squares reads rows of the neighbours and features of the
 * Fourier block. A row is scored from last to first, so the block stands after the member that reads it. */
const struct svi_member_ops *const svi_member_parts[] = {WINDOWS, NEAREST, EXACT, RAW,     PRODUCTS,
                                                         FOURIER, LAST,    TREES, GAUSSIAN};
const int svi_member_part_count = (int)(sizeof svi_member_parts / sizeof *svi_member_parts);
_Static_assert(sizeof svi_member_parts / sizeof *svi_member_parts <= SVI_PARTS_MAX, "a bank holds all parts");

double svi_members_budget(int d, int classes) {
    const double two = d <= 10 ? 10 : 10 + (d - 10) * 15.0 / 44;
    return classes > 2 ? two * classes / 2 : two;
}

#define COMBINING     700.0 /* nanoseconds: stacks and shares, and the same for each row of scores */
#define COMBINING_ROW 350.0

/* Equation of enum svi_member_cost, with f = d, or the number of products. */
static double members_cost(const struct svi_member *m, double d, double rows) {
    const double *c = m->cost, f = c[SVI_COST_PRODUCTS] > 0 ? d * (d + 3) / 2 : d;
    return c[SVI_COST_BASE] + c[SVI_COST_FEATURE] * f + c[SVI_COST_SQUARE] * (d + 1) * (d + 1) +
           rows * (c[SVI_COST_ROW] + c[SVI_COST_ROW_FEATURE] * f);
}

/* Can the member run with d features, next to the members of earlier turns (`on`)? */
static bool members_possible(const struct svi_member *m, svs_task task, int d, uint32_t on) {
    bool met = !m->requires;
    for (int i = 0; i < svi_member_count; i++)
    met |= on >> i & 1 && svi_members[i].ops == m->requires;
    return met && m->tasks >> task & 1 && (m->features_max == 0 || d <= m->features_max);
}

uint32_t svi_members_choose(svs_task task, int d, int classes, double budget) {
    const double rows = classes > 2 ? classes : 1;
    double left =
        1000 * (budget > 0 ? budget : svi_members_budget(d, classes)) - COMBINING - rows * COMBINING_ROW;
    uint32_t on = 0;
    /* Greedy by turn: a turn that is too dear is skipped, and a later, cheaper one may still fit. Turn 1
     * runs at any budget: the host, and members that cost nothing. */
    for (int turn = 1; turn <= svi_member_count; turn++) {
        uint32_t members = 0;
        double cost = 0;
        for (int i = 0; i < svi_member_count; i++) {
            if (svi_members[i].turn != turn)
                continue;
            cost += members_cost(&svi_members[i], d,
                                 rows); /* the cost of a turn stands in the row of its first member */
            members |= members_possible(&svi_members[i], task, d, on) ? 1u << i : 0;
        }
        if (members && (turn == 1 || cost <= left)) {
            on |= members;
            left -= cost;
        }
    }
    return on;
}

double svi_members_estimate(uint32_t members, int d, int classes) {
    const double rows = classes > 2 ? classes : 1;
    double sum = COMBINING + rows * COMBINING_ROW;
    for (int i = 0; i < svi_member_count; i++)
        sum += members >> i & 1 ? members_cost(&svi_members[i], d, rows) : 0;
    return sum / 1000;
}
