/* svmstream.h: the whole public library. Read stream.h for a stream with all that the program has, auto.h and
 * monitor.h for its presets; learner.h for the learner alone, then model.h; alsvm.h for the bare recursion;
 * train.h and solver.h for batch training. */
#ifndef SVMSTREAM_H
#define SVMSTREAM_H

#include "svmstream/alsvm.h"
#include "svmstream/auto.h"
#include "svmstream/error.h"
#include "svmstream/features.h"
#include "svmstream/fourier.h"
#include "svmstream/kernel.h"
#include "svmstream/learner.h"
#include "svmstream/model.h"
#include "svmstream/monitor.h"
#include "svmstream/novelty.h"
#include "svmstream/outbox.h"
#include "svmstream/rows.h"
#include "svmstream/raw_rows.h"
#include "svmstream/solver.h"
#include "svmstream/stream.h"
#include "svmstream/train.h"
#include "svmstream/value.h"

/* The version of the last release, which is also that of the kept states' program. */
#define SVS_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the linked library: SVS_VERSION at the commit of the release, and in a build without git.
 * Later commits add theirs: "0.1.0+1a2b3c4", with ".dirty" where sources differ from the commit. */
SVS_API const char *svs_version(void);

#ifdef __cplusplus
}
#endif
#endif
