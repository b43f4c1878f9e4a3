/* merge_link.h: follows the merger that the setting merge.from names, and takes its merged models.
 *
 * One SUB socket with the keys of in.mode sub. A model waits here until it may take effect: at most one in
 * SVI_MERGE_SECONDS, the newest (a large one in proportion less often), since each is a record of the
 * journal. A merger that is absent or silent changes nothing. */
#ifndef SVI_MERGE_LINK_H
#define SVI_MERGE_LINK_H

#include <zmq.h>

#include "base/bytes.h"
#include "net/access.h"
#include "refit/refit_policy.h"
#include "state/write_ahead.h"

#define SVI_MERGE_REASONS       64  /* reasons of refusals that are remembered */
#define SVI_MERGE_SECONDS       1.0 /* least time between two models that take effect */
#define SVI_MERGE_PRIOR_SECONDS 5.0 /* the same of priors */

struct svi_merge_link {
    bool keyed; /* the stream has keys: it takes merged priors instead of models */
    struct svi_access *access;
    void *socket;
    char address[SVI_TEXT_MAX];  /* that it is connected to; "": to none */
    struct svi_bytes waiting;    /* payload of the newest model that has not taken effect; size 0: none */
    struct svi_merged_from from; /* where that one is from; a prior: its seq is the version */
    bool received;               /* a prior of that epoch was */
    double due;                  /* monotonic: when the next one may take effect */
    double taken_at;             /* monotonic: the last one that did; 0: none in this process */
    int64_t refused;             /* models that did not fit, in this process */
    uint64_t reported[SVI_MERGE_REASONS]; /* ring: hashes of the reasons that were reported last */
    int64_t reports;                      /* number reported */
};

/* Connects to the address in the settings, disconnects, or changes the address, where they differ from those
 * of the last call. Needs the access of the process (svi_access_open). SVS_IO. */
svs_code svi_merge_link_follow(struct svi_merge_link *l, struct svi_access *access,
                               const struct svi_settings *s, svs_error *err);

/* Receives what has arrived, within bounds, and puts a model that fits into effect: its record is written
 * first (w may be NULL). Refusals are published once for each reason. SVS_IO, SVS_NO_MEMORY: the process must
 * end; a full disk postpones. */
svs_code svi_merge_link_turn(struct svi_merge_link *l, svi_stream *stream, svi_write_ahead *w, double now,
                             svs_error *err);

/* Monotonic time at which svi_merge_link_turn has something to do; INFINITY: only when a message arrives. */
double svi_merge_link_due(const struct svi_merge_link *l);

/* Sets the gauges of the stats that describe the link (svi_stream_set_gauge). */
void svi_merge_link_figures(const struct svi_merge_link *l, svi_stream *stream);

void svi_merge_link_close(struct svi_merge_link *l);

#endif
