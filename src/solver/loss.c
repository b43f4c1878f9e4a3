#include "solver/loss.h"

#include <math.h>

#define STEPS 60

/* The root of g(s) = p gamma s^(p-1) + s - tau for 1 < p < 2 (ALGORITHMS 2, Eqs. 10-13). On (0,
 * tau) g is increasing and concave, with an infinite slope at 0. The root is kept between low and
 * high. Bisection replaces a Newton step that leaves these bounds. */
double svi_prox_between(double p, double tau, double gamma) {
    double low = 0, high = tau, s = tau / (1 + p * gamma);
    if (s <= 0 || s >= tau)
        s = 0.5 * tau;
    for (int i = 0; i < STEPS; i++) {
        double power = p * gamma * pow(s, p - 1), g = power + s - tau;
        if (g > 0)
            high = s;
        else
            low = s;
        double next = s - g / (1 + (p - 1) * power / s);
        if (!(next > low && next < high))
            next = 0.5 * (low + high);
        if (fabs(next - s) <= 4e-16 * tau)
            return next;
        s = next;
    }
    return s;
}
