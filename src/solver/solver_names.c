/* The solvers by name, apart from what they do: a program that only reads model files needs no solver. */
#include "svmstream/solver.h"

#include <string.h>

#define X(constant, name, text) {name, text},
static const struct { const char *name, *text; } solver_names[SVS_SOLVER_COUNT] = {SVS_SOLVERS(X)};
#undef X

const char *svs_solver_name(svs_solver s) {
    return (unsigned)s < SVS_SOLVER_COUNT ? solver_names[s].name : "";
}

const char *svs_solver_text(svs_solver s) {
    return (unsigned)s < SVS_SOLVER_COUNT ? solver_names[s].text : "";
}

svs_solver svs_solver_find(const char *name) {
    int s = 0;
    while (s < SVS_SOLVER_COUNT && strcmp(solver_names[s].name, name) != 0)
        s++;
    return (svs_solver)s;
}
