#include "bank/members.h"
#include <stdlib.h>

const struct svi_member_kind svi_member_table[SVI_MEMBERS] = {
    [SVI_MEMBER_HOST] = {"alsvm-5000", 5000, true},
    [SVI_MEMBER_WINDOW_50] = {"alsvm-50", 50, true},
    [SVI_MEMBER_WINDOW_200] = {"alsvm-200", 200, true},
    [SVI_MEMBER_WINDOW_1000] = {"alsvm-1000", 1000, true},
    [SVI_MEMBER_WINDOW_ALL] = {"alsvm-all", 0, true},
    [SVI_MEMBER_FADING] = {"alsvm-fading", 0, true},
    [SVI_MEMBER_FALSVM] = {"falsvm-all", 0, true},
    [SVI_MEMBER_PA] = {"pa-1", -1, true},
    [SVI_MEMBER_PA_SLOW] = {"pa-0.01", -1, true},
    [SVI_MEMBER_ADAGRAD] = {"adagrad", -1, true},
    [SVI_MEMBER_PRODUCTS] = {"products", -1, false},
    [SVI_MEMBER_PRODUCTS_SLOW] = {"products-slow", -1, false},
    [SVI_MEMBER_NEAREST] = {"nearest-200", 200, false},
    [SVI_MEMBER_NEAREST_5] = {"nearest-5000", 5000, false},
    [SVI_MEMBER_FOURIER_ADAGRAD] = {"fourier-adagrad", -1, false},
    [SVI_MEMBER_FOURIER_PA_SLOW] = {"fourier-pa-0.01", -1, false},
    [SVI_MEMBER_FOURIER_PA] = {"fourier-pa-1", -1, false},
    [SVI_MEMBER_FOURIER_EXACT] = {"fourier-alsvm", 1000, false},
    [SVI_MEMBER_LAST] = {"last", -1, false},
};

double svi_members_budget(int d, int classes) {
    const double two = d <= 10 ? 10 : 10 + (d - 10) * 15.0 / 44;
    return classes > 2 ? two * classes / 2 : two;
}

uint32_t svi_members_choose(svs_task task, int d, int classes, double budget) {
    uint32_t on = (1u << SVI_MEMBER_NEAREST) - 1;
    (void)classes;
    (void)budget;
    if (!getenv("NONEAR"))
        on |= SVI_MEMBER_BIT(SVI_MEMBER_NEAREST) | SVI_MEMBER_BIT(SVI_MEMBER_NEAREST_5);
    if (task == SVS_CLASSIFY && !getenv("FADE"))
        on &= ~SVI_MEMBER_BIT(SVI_MEMBER_FADING);
    if (task == SVS_REGRESS)
        on |= SVI_MEMBER_BIT(SVI_MEMBER_LAST);
    on |= SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_ADAGRAD) | SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA_SLOW) |
          SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA);
    if (task == SVS_CLASSIFY && !getenv("FADE"))
        on &= ~SVI_MEMBER_BIT(SVI_MEMBER_FADING);
    if (task == SVS_REGRESS)
        on &= ~(SVI_MEMBER_BIT(SVI_MEMBER_FALSVM) | SVI_MEMBER_BIT(SVI_MEMBER_PRODUCTS_SLOW) |
                SVI_MEMBER_BIT(SVI_MEMBER_ADAGRAD) | SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA_SLOW) |
                SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_PA));
    if (d + 1 > 50)
        on &= ~SVI_MEMBER_BIT(SVI_MEMBER_WINDOW_50);
    if (getenv("EXACT"))
        on |= SVI_MEMBER_BIT(SVI_MEMBER_FOURIER_EXACT);
    if (d > 60)
        on &= ~(SVI_MEMBER_BIT(SVI_MEMBER_PRODUCTS) | SVI_MEMBER_BIT(SVI_MEMBER_PRODUCTS_SLOW));
    return on;
}
