/* alert.h: when a novel sample becomes an alert: hysteresis, cool-down, one alert a disturbance.
 *
 * An alert opens at the first sample with p <= open (with `fdr` > 0: that the online false-discovery
 * procedure rejects and whose p is <= clear), unless fewer than `warmup` samples were seen before it or the
 * last alert closed less than `cooldown` seconds ago (then it is counted as suppressed). It stays open, and
 * nothing more is reported but an update when its grade has risen by a tenth above the highest reported,
 * until the first sample with p > clear. A function of the calls alone.
 *
 * The false-discovery procedure is given only the samples at which an alert could open: not those of the
 * warm-up, not those inside an alert, not those of the cool-down. So what it counts as a discovery is an
 * alert, and the share that it keeps is the share of false alerts. Were each sample of a long disturbance
 * counted, a hundred true discoveries of one disturbance would pay for ten false alerts. */
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
    double p;        /* opens at p <= this, in (0, 1) */
    double clear;    /* closes at p > this, p <= clear < 1 */
    double cooldown; /* seconds, >= 0 */
    double fdr;      /* 0 = off; else the share of false alerts that is allowed, in (0, 1) */
    int64_t warmup;  /* samples before the first alert */
};

struct svi_alert {
    struct svi_alert_options o;
    struct svi_discovery discovery;
    bool open;
    double since;   /* time of the sample that opened the last one */
    double closed;  /* time at which the last one closed, -DBL_MAX before */
    int64_t lasted; /* samples since it opened, that one included; 0 = closed */
    double grade;   /* largest reported; stays when it closes */
    double worst;   /* largest of all its samples; stays when it closes */
    int64_t seen, opened,
        suppressed; /* samples; alerts; samples that the cool-down alone kept from opening one */
};

void svi_alert_init(struct svi_alert *a, const struct svi_alert_options *o);

/* One sample: its p-value, `tail`: the p-value that the false-discovery procedure is given
 * (svi_calibration_tail; not looked at without `fdr`), its grade 0 to 1, engine time. */
enum svi_alert_change svi_alert_step(struct svi_alert *a, double p, double tail, double grade, double time);

/* 0 to 1: how much more than `usual` novelty (the level at which an alert opens) this one has: 0 at or below
 * it, 1 for a membership of 0. */
double svi_alert_grade(double novelty, double usual);

/* The clock that the times were read from was moved: those after `from` move by `step`. */
void svi_alert_move_times(struct svi_alert *a, double from, double step);

/* The options are not part of it: loading goes into an alert from svi_alert_init with the same. */
void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert);

#endif
