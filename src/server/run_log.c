#include "server/run_log.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"

#define BETWEEN 1.0 /* seconds between two lines */

void svi_event_log_count(struct svi_event_log *l, const struct svi_event *e) {
    if (!l->to)
        return;
    if (e->topic == SVI_TOPIC_ALERT) {
        l->alerts++;
        snprintf(l->alert, sizeof l->alert, "%s", e->as.alert.text);
    } else if (e->topic == SVI_TOPIC_ERROR) {
        l->refused[e->as.error.code]++;
        if (!l->reason[0])
            snprintf(l->reason, sizeof l->reason, "%s", e->as.error.reason);
    }
    l->due = l->due || e->topic == SVI_TOPIC_ALERT || e->topic == SVI_TOPIC_ERROR;
}

double svi_event_log_wait(const struct svi_event_log *l) {
    return l->due ? fmax(0, l->logged + BETWEEN - svi_monotonic()) : INFINITY;
}

static void event_log_refusals(const struct svi_event_log *l) {
    char reasons[SVS_ERROR_TEXT];
    int64_t total = 0;
    for (int code = 0; code < SVS_CODE_COUNT; code++)
        total += l->refused[code];
    if (total > 0)
        fprintf(l->to, "refused %" PRId64 " (%s): %s%s%s", total,
                svi_code_counts(l->refused, reasons, sizeof reasons, NULL), l->reason,
                total > 1 ? "; ..." : "", l->alerts > 0 ? "; " : "");
}

void svi_event_log_turn(struct svi_event_log *l, bool last) {
    if (!l->due || (!last && svi_event_log_wait(l) > 0))
        return;
    event_log_refusals(l);
    if (l->alerts == 1)
        fprintf(l->to, "alert: %s", l->alert);
    else if (l->alerts > 1)
        fprintf(l->to, "%" PRId64 " alerts, the last one: %s", l->alerts, l->alert);
    fputc('\n', l->to);
    fflush(l->to);
    *l = (struct svi_event_log){.to = l->to, .logged = svi_monotonic()};
}
