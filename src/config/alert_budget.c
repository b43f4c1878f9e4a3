#include "config/alert_budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define LEAST 1e-4 /* alerts in a unit of time */
#define MOST  1e4

static const struct {
    const char *name;
    double days;
} units[] = {{"/hour", 1.0 / 24}, {"/day", 1}, {"/week", 7}};

svs_code svi_alert_budget_read(const char *text, double *a_day, svs_error *err) {
    char *end;
    const double number = strtod(text, &end);
    *a_day = 0;
    if (strcmp(text, "none") == 0)
        return SVS_OK;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > text && strcmp(end, units[i].name) == 0 && number >= LEAST && number <= MOST)
            *a_day = number / units[i].days;
    if (*a_day > 0)
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "alert.budget: '%.40s' is not an allowed value (none, or a number of alerts from 0.0001 to "
        "10000 and /hour, /day or /week, e.g. 1/day)",
        text);
}
