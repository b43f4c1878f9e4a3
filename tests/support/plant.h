/* plant.h: a plant of three sensors, a row a minute: a daily cycle, two shifts on five days of seven, noise
 * of the last 20 minutes; at each change of shifts all three sensors swing for some minutes. */
#ifndef TEST_SUPPORT_PLANT_H
#define TEST_SUPPORT_PLANT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/problem.h"

#define SENSORS 3
#define DAY     1440

struct plant {
    uint64_t seed;
    int t;
    double load, noise[SENSORS], swing[SENSORS];
};

static inline struct plant plant_of(int seed) {
    struct plant p = {.seed = (uint64_t)seed * 2654435761u + 88172645463325252ull};
    for (int i = 0; i < 9; i++)
        test_random(&p.seed);
    return p;
}

static inline bool plant_at_work(int t) {
    const int hour = t % DAY / 60;
    return t / DAY % 7 < 5 && hour >= 6 && hour < 22;
}

static inline bool plant_changes(int t) {
    const int hour = t % DAY / 60;
    return t / DAY % 7 < 5 && t % 60 == 0 && (hour == 6 || hour == 14 || hour == 22);
}

/* True in a swing. */
static inline bool plant_step(struct plant *p, double *x) {
    static const double sign[SENSORS] = {1, -1, 1}, way[SENSORS] = {1, 1, -1};
    const double turn = 6.283185307179586 * (p->t % DAY) / DAY;
    p->load += (plant_at_work(p->t) - p->load) / 15;
    for (int j = 0; j < SENSORS; j++) {
        p->noise[j] = 0.95 * p->noise[j] + sqrt(1 - 0.95 * 0.95) * test_normal(&p->seed);
        if (plant_changes(p->t))
            p->swing[j] = 0.1 + 0.1 * test_uniform(&p->seed);
        else if (p->t % 60 >= 4)
            p->swing[j] /= 2;
        x[j] = 0.04 * sin(turn + j) + 0.1 * sign[j] * p->load + 0.015 * p->noise[j] + way[j] * p->swing[j];
    }
    p->t++;
    return p->swing[0] > 0.02;
}

#endif
