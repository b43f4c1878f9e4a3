/* monitor.c: watches the sensors of a pump inside a program: the alerts of ten days, within a
 * budget of one a day.
 *
 *     cc examples/monitor.c $(pkg-config --cflags --libs svmstream) -lm -o monitor && ./monitor
 *
 * The readings are made here, one a minute for ten days: flow follows pressure. On the ninth day the flow no
 * longer does, although each sensor alone shows nothing unusual, and on the tenth the pressure exceeds its
 * limit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "svmstream/monitor.h"

#define MINUTES (10 * 1440)
#define DAY     1440

static double noise(void) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += rand() / (double)RAND_MAX;
    return sum - 6;
}

/* The readings of minute i. */
static void read_sensors(int i, double x[3]) {
    x[0] = 4 + sin(i * 2 * 3.14159265 / DAY) + 0.1 * noise();
    x[1] = 10 * x[0] + 0.3 * noise();
    x[2] = 60 + noise();
    if (i > 8 * DAY + 300 && i < 8 * DAY + 420)
        x[1] = 80 - x[1];
    if (i > 9 * DAY + 300 && i < 9 * DAY + 330)
        x[0] += 5;
}

int main(void) {
    static const char *const names[] = {"pressure", "flow", "temperature"};
    const svs_setting settings[] = {
        {"stream", "pump"}, {"alert.budget", "1/day"}, {"limits", "pressure:0..8"}};
    svs_error err;
    svs_monitor *m = svs_monitor_new(settings, 3, &err);
    int alerts = 0;
    for (int i = 0; m && i < MINUTES; i++) {
        double x[3];
        svs_outcome out;
        read_sensors(i, x);
        const svs_row row = {
            .x = x, .d = 3, .names = names, .all = true, .ts = 1.7e9 + 60.0 * i, .has_ts = true};
        if (svs_stream_step(m, &row, &out, &err) != SVS_OK)
            break;
        for (int k = 0; k < out.alert_count; k++) {
            printf("minute %d: %s: %s\n", i, out.alerts[k].state, out.alerts[k].text);
            alerts += out.alerts[k].state[0] == 'o';
        }
    }
    if (!m || svs_stream_seen(m) < MINUTES) {
        fprintf(stderr, "%s\n", err.text);
        svs_stream_free(&m);
        return 1;
    }
    printf("%d alerts in %d readings\n", alerts, MINUTES);
    svs_stream_free(&m);
    return 0;
}
