/* alert.h: when a novel sample becomes an alert: hysteresis, cool-down, one alert a disturbance.
 *
 * An alert opens at the first sample with p <= open; with `fdr` > 0, at the first one that the online
 * false-discovery procedure rejects and whose p is <= clear. It does not open within the first `warmup`
 * samples, nor within `cooldown` seconds after the last close (the sample then counts as suppressed). It
 * closes at the first sample with p > clear. While it is open, an update is reported each time its grade has
 * risen by a tenth above the highest grade reported. The result depends on the calls alone.
 *
 * The false-discovery procedure tests only samples at which an alert could open: none of the warm-up, of an
 * open alert or of the cool-down. A discovery is therefore an alert, and the share that the procedure bounds
 * is the share of false alerts. If each sample of a long disturbance were tested, a hundred true discoveries
 * of one disturbance would pay for ten false alerts. */
#ifndef SVI_ALERT_H
#define SVI_ALERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/archive.h"
#include "alerts/discovery.h"

enum svi_alert_change { SVI_ALERT_NONE = 0, SVI_ALERT_OPEN, SVI_ALERT_UPDATE, SVI_ALERT_CLOSE };

/* "open", "update", "close"; NULL for none. */
const char *svi_alert_change_name(enum svi_alert_change change);

struct svi_alert_options {
    double p;        /* an alert opens at p <= this, in (0, 1) */
    double clear;    /* and closes at p > this; p <= clear < 1 */
    double cooldown; /* seconds, >= 0 */
    double fdr;      /* 0 = off; else the allowed share of false alerts, in (0, 1) */
    int64_t warmup;  /* samples before the first alert */
};

struct svi_alert {
    struct svi_alert_options o;
    struct svi_discovery discovery;
    bool open;
    double since;       /* engine time of the sample that opened the last alert */
    double begin;       /* and of the first one of the change that it is about, <= since */
    int64_t begin_row;  /* number of that sample in the stream, from 1; 0: unknown */
    double closed;      /* engine time at which the last alert closed, -DBL_MAX before the first close */
    int64_t lasted;     /* samples of the open alert, the opening one included; 0 = closed */
    double grade;       /* largest reported grade; kept after the close */
    double worst;       /* largest grade of all its samples; kept after the close */
    int64_t seen;       /* samples */
    int64_t opened;     /* alerts */
    int64_t suppressed; /* samples that only the cool-down kept from opening an alert */
};

void svi_alert_init(struct svi_alert *a, const struct svi_alert_options *o);

/* Processes one sample. The caller sets `begin` and `begin_row` of an alert that opens. `p`: its p-value.
 * `tail`: the p-value for the false-discovery procedure (svi_calibration_tail; unused without `fdr`).
 * `grade`: 0 to 1. `time`: engine time in seconds. */
enum svi_alert_change svi_alert_step(struct svi_alert *a, double p, double tail, double grade, double time);

/* The grade of a novelty, 0 to 1: 0 at or below `level`, the novelty at which an alert opens; 1 for a
 * membership of 0; linear between them. */
double svi_alert_grade(double novelty, double level);

/* Follows a shift of the clock: times after `from` move by `step`. Seconds. */
void svi_alert_move_times(struct svi_alert *a, double from, double step);

/* Does not include the options: load into an alert from svi_alert_init with the same options. */
void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert);

#endif
