/* monitor.h: watches the rows of sensors: novelty with p-values, detectors, rules, and alerts within a
 * budget. There are no labels.
 *
 *     svs_setting week[] = {{"alert.budget", "1/week"}, {"limits", "pressure:0..8"}};
 *     svs_monitor *m = svs_monitor_new(week, 2, &err);
 *     const char *names[] = {"pressure", "flow"};
 *     svs_row row = {.x = x, .d = 2, .names = names, .ts = time, .has_ts = true};
 *     svs_outcome out;
 *     svs_stream_step(m, &row, &out, &err);
 *     for (int i = 0; i < out.alert_count; i++)
 *         puts(out.alerts[i].text);
 *     svs_stream_free(&m);
 *
 * Everything else is in stream.h. What detectors, rules and the budget do: `svmstream help novelty` and
 * `svmstream help alerts`. */
#ifndef SVMSTREAM_MONITOR_H
#define SVMSTREAM_MONITOR_H

#include "svmstream/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef svs_stream svs_monitor;

/* As svs_stream_new, with these settings first: method none, novelty fosvm1, missing mean, threads 1; rules
 * and budget as in `run`. `settings` override them. */
SVS_API svs_monitor *svs_monitor_new(const svs_setting *settings, int count, svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
