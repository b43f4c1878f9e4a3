#include "server/sums_publisher.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "merge/sums.h"

void svi_sums_publisher_begin(struct svi_sums_publisher *p, svi_stream *s,
                              const struct svi_settings *settings, const struct svi_run_log *log,
                              double now) {
    const uint64_t start = (uint64_t)(1e6 * now), stream = svi_stream_epoch(s);
    *p = (struct svi_sums_publisher){
        .stream = s, .settings = settings, .log = log, .epoch = start > stream ? start : stream};
}

void svi_sums_publisher_clear(struct svi_sums_publisher *p) {
    svi_bytes_clear(&p->pairs);
}

/* Copies of a record at the moment of its publication: the numbers, their encoded form, the payload in the
 * publisher's buffer, in the queue and retained. Buffers double where they grow. */
#define RECORD_COPIES 8
#define RECORD_NAME   (2 * SVS_NAME_MAX)
#define BLOCK_ROWS    256 /* rows of the pass over the window, with its squares */

double svi_sums_publisher_memory(const struct svi_settings *s, int d, int classes) {
    const double wide = d, numbers = (double)svi_sums_packed(d) + (3 + BLOCK_ROWS / RECORD_COPIES) * wide +
                                     (double)classes * (wide + 1);
    return s->publish_sums > 0 ? RECORD_COPIES * (numbers * sizeof(double) + wide * RECORD_NAME) : 0;
}

double svi_sums_publisher_wait(const struct svi_sums_publisher *p) {
    const double interval = p->settings->publish_sums;
    if (interval == 0)
        return INFINITY;
    /* A window that takes longer than the interval must not stop the stream: it has half of the time. */
    return interval == p->interval ? p->at + fmax(interval, p->took) - svi_monotonic() : 0;
}

/* Makes the record of now, if the last one is not that. */
static svs_code sums_make(struct svi_sums_publisher *p, svs_error *err) {
    const uint64_t mark = svi_stream_sums_mark(p->stream);
    struct svi_sums r = {0};
    if (p->pairs.size > 0 && p->mark == mark)
        return SVS_OK;
    const double from = svi_monotonic();
    svs_code code = svi_stream_sums(p->stream, &r, err);
    if (code == SVS_OK && (code = svi_sums_encode_pairs(&r, &p->pairs, &p->count)) != SVS_OK)
        svi_fail_memory(err, "the sums of the window");
    if (code != SVS_OK)
        p->pairs.size = 0;
    svi_sums_clear(&r);
    p->mark = mark;
    svi_stream_set_gauge(p->stream, "sums_milliseconds", 1e3 * (svi_monotonic() - from));
    return code;
}

void svi_sums_publisher_publish(struct svi_sums_publisher *p, svi_publisher *to, double now) {
    svs_error err = {0};
    if (p->settings->publish_sums == 0)
        return;
    const double from = svi_monotonic();
    const svs_code code = sums_make(p, &err);
    p->at = svi_monotonic();
    p->took = p->at - from;
    p->interval = p->settings->publish_sums;
    if (code != SVS_OK) {
        if (svi_stream_seen(p->stream) > 0 && strcmp(p->trouble, err.text) != 0)
            svi_run_log_line(p->log, "sums: not published: %s\n", err.text);
        snprintf(p->trouble, sizeof p->trouble, "%s", err.text);
        return;
    }
    p->trouble[0] = '\0';
    const struct svi_event event = {.topic = SVI_TOPIC_SUMS,
                                    .stream = p->settings->stream,
                                    .epoch = p->epoch,
                                    .seq = p->seq++,
                                    .ts = now,
                                    .as.sums = {p->pairs.data, p->pairs.size, p->count}};
    /* Out of memory: the event is lost, which subscribers detect by `seq`; the next one makes up for it. */
    (void)svi_publisher_publish(to, &event);
}
