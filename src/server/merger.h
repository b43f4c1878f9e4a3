/* merger.h: the run loop of `svmstream merge`: sums records in, from the publishers of other processes or
 * from standard input; the model of all of them out, on `out`, and answers on `ctl`. One thread. */
#ifndef SVI_MERGER_H
#define SVI_MERGER_H

#include <stdio.h>

#include "config/settings.h"
#include "svmstream/model.h"

struct svi_merger_hooks {
    const char *const *addresses; /* of publishers, [count]; a single "-": records on standard input */
    int count;
    bool has_C, has_scale; /* given; else those of the parts */
    const char *dropped;   /* names of parts that are left out from the beginning, with commas; NULL: none */
    FILE *log;             /* addresses, and parts that join or are refused; NULL: quiet */
    FILE *errors;          /* refused records, and parts that are left out; NULL: nowhere */
    FILE *end;             /* how many parts and rows the last model is of, after `done`; NULL: nowhere */
    /* Called once, at a clean end, with the last model; NULL: nothing is done with it. */
    svs_code (*done)(void *user, const svs_model *model, svs_error *err);
    void *user;
};

/* Runs until the input ends, a signal arrives (SIGINT, SIGTERM) or `stop` is requested. SVS_IO with the
 * failing address; with standard input SVS_NOT_MSGPACK or SVS_TRUNCATED and the place of what is no record,
 * and the reason when no model can be made of what arrived; codes of `done`. */
svs_code svi_merger_run(const struct svi_settings *s, const struct svi_merger_hooks *hooks, svs_error *err);

#endif
