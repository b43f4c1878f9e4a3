/* metrics.h: metrics with all figures. */
#ifndef SUPPORT_METRICS_H
#define SUPPORT_METRICS_H

#include "quality/metrics.h"

static inline struct svi_metrics_options metrics_whole(svs_task task, int64_t window, int max_classes) {
    return (struct svi_metrics_options){task, window, max_classes, .ranks = true};
}

static inline svi_metrics *metrics_open(svs_task task, int64_t window, int max_classes, svs_error *err) {
    const struct svi_metrics_options o = metrics_whole(task, window, max_classes);
    return svi_metrics_new(&o, err);
}

#endif
