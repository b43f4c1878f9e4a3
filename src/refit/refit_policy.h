/* refit_policy.h: refits in the background: when the next one is due, how the last one compares with the
 * online model, and which of the two serves.
 *
 * Everything here happens at fixed sample numbers, with one exception: the sample after which a finished
 * refit takes effect, which is recorded in the journal. */
#ifndef SVI_REFIT_POLICY_H
#define SVI_REFIT_POLICY_H

#include "base/archive.h"
#include "data/message.h"
#include "refit/refit.h"
#include "svmstream/learner.h"

#define SVI_REFIT_POLICY_WINDOW                                                                              \
    1000 /* the two models are compared over at most this many labelled samples                              \
          */
#define SVI_REFIT_POLICY_MIN_SAMPLES                                                                         \
    200 /* below this number of them the model that serves is not changed                                    \
         */

enum svi_refit_state {
    SVI_REFIT_OFF = 0,
    SVI_REFIT_IDLE,
    SVI_REFIT_COPYING, /* the snapshot is being copied */
    SVI_REFIT_READY,   /* the snapshot is complete; the job waits for a worker */
    SVI_REFIT_AWAY,    /* a worker has it */
    SVI_REFIT_LOST     /* it ran when the state was saved: no thread has it */
};

/* Where a merged model is from. Both rise: (epoch, version) orders the models of one merger. */
struct svi_merged_from {
    uint64_t epoch, version; /* of the merger's start; of its model; 0, 0: none was taken */
};

struct svi_refit_policy {
    enum svi_refit_state state;
    struct svi_refit *job;       /* NULL where `merges` */
    bool merges;                 /* models come from a merger (merge.from): no refit runs */
    bool values;                 /* task regress, of merged models only: the closer of the two is right */
    struct svi_merged_from from; /* the last one taken */
    int64_t merged;              /* number taken */
    int serve;                   /* enum svi_serve */
    int64_t every, next;         /* samples */
    double seconds,
        next_time; /* seconds between refits, 0 = none by time; when the next is due, in engine time */
    bool stale;    /* the result of the refit that runs will not be used: the stream was reset meanwhile */
    int max_features, max_classes;
    double C;                 /* C of the problem */
    int64_t window;           /* samples */
    struct svi_refit_how how; /* of the next refit */
    struct svi_refit *left;   /* a job that a worker had when another policy replaced this one; NULL = none */

    bool have, serves;         /* there is a refit's model; it serves */
    bool loaded;               /* the model was loaded, not solved (svi_refit_policy_load) */
    svs_model model;           /* the last refit's; W and b are owned */
    double *W, *b, *scores;    /* one allocation */
    int64_t weights, capacity; /* capacity in doubles: of W; of b and scores each */
    int predicted;             /* prediction for the current sample */

    uint8_t *hits; /* ring: bit 0: the online model was right; bit 1: the refit was */
    int64_t hit_count, hit_capacity, hit_at, online, refit; /* ring; sums of bit 0 and of bit 1 */

    int64_t done, failed, skipped, overtaken; /* counters; overtaken: solved, but of no use any more */
    char reason[SVS_ERROR_TEXT];              /* text of the last failure */
};

/* What svi_refit_policy_give has changed. */
enum svi_refit_outcome {
    SVI_REFIT_UNCHANGED = 0, /* nothing: it was overtaken or failed, which is counted, with the reason */
    SVI_REFIT_ADOPTED,       /* p->model is new; p->serves is updated */
    SVI_REFIT_OUT_OF_MEMORY  /* solved, but its model could not be stored */
};

/* Initialises *p for checked settings. Owner: the caller. SVS_NO_MEMORY: free it nevertheless. */
svs_code svi_refit_policy_new(struct svi_refit_policy *p, const struct svi_settings *s, svs_error *err);
void svi_refit_policy_free(struct svi_refit_policy *p);

/* Scores a sample with the refit; `step` holds the online model's result. Where the refit serves, its
 * scores, prediction and version replace those in *step. */
void svi_refit_policy_score(struct svi_refit_policy *p, const struct svi_message *m, svs_step *step);

/* The refit's scores of a row whose label arrived late; valid until the next call. NULL: there is no refit
 * that knows its classes. */
const double *svi_refit_policy_peek(struct svi_refit_policy *p, const double *x, const svs_step *step);

/* Called after sample number `seen` was learned, at engine time `time`: starts a refit that is due,
 * notices a complete snapshot, and decides which model serves. True: another model serves from now on. */
bool svi_refit_policy_step(struct svi_refit_policy *p, svs_learner *learner, int64_t seen, double time);

/* Starts a refit now and copies its whole snapshot at once. SVS_UNAVAILABLE with the reason,
 * SVS_NO_MEMORY. */
svs_code svi_refit_policy_start_now(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                    svs_error *err);

/* Takes the job once its snapshot is complete; NULL: none is ready. Return it by svi_refit_policy_give. */
struct svi_refit *svi_refit_policy_take(struct svi_refit_policy *p);

/* Loads a model in place of the refit's, after sample `seen`: it is scored next to the online model, and
 * serves if the setting serve is refit. While it serves, refits start only on request. m: the classes of
 * the stream in its order, at most its columns; W and b are copied. The result of a refit that runs is
 * discarded. SVS_UNAVAILABLE: refits are off; SVS_NO_MEMORY. */
svs_code svi_refit_policy_load(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                               int64_t seen, svs_error *err);

/* Takes a merged model in place of the refit's (the setting merge.from), after sample `seen`. m: the classes
 * of the stream in its order, at most its columns; W and b are copied. The comparison with the online model
 * continues. SVS_NO_MEMORY: unchanged. */
svs_code svi_refit_policy_merge(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                                const struct svi_merged_from *from, int64_t seen, svs_error *err);

/* Gives the job back, after sample `seen`; d: columns of the stream. */
enum svi_refit_outcome svi_refit_policy_give(struct svi_refit_policy *p, svs_learner *learner, int d,
                                             int64_t seen);

/* Restores a recorded outcome into the job (svi_refit_pack); svi_refit_policy_give must follow.
 * SVS_DAMAGED, SVS_NO_MEMORY. */
svs_code svi_refit_policy_repeat(struct svi_refit_policy *p, svs_learner *learner, const void *record,
                                 size_t size, svs_error *err);

/* Changes when to refit and which model serves. The next refit is due as if these settings had always been
 * in force. */
void svi_refit_policy_configure(struct svi_refit_policy *p, const struct svi_settings *s, int64_t seen,
                                double time);

/* Changes the problem (C, window, scale, weights), or switches refits on or off: *fresh, from
 * svi_refit_policy_new with the present settings, replaces *p and is empty afterwards. The last refit no
 * longer serves. One that runs is cancelled and never used (svi_refit_policy_left); if there was a refit,
 * or one was running, the next starts at once. Counters continue, except where refits are or were off. */
void svi_refit_policy_replace(struct svi_refit_policy *p, struct svi_refit_policy *fresh,
                              svs_learner *learner, int64_t seen, double time);

/* If `job` is the one that a worker had when the policy was replaced: frees it and returns true; the
 * caller has nothing else to do with it. */
bool svi_refit_policy_left(struct svi_refit_policy *p, const struct svi_refit *job);

/* The clock behind engine time was moved: times after `from` move by `step` seconds. */
void svi_refit_policy_move_times(struct svi_refit_policy *p, double from, double step);

/* Forgets model and comparison. A refit that runs continues, and its result is discarded: the state must not
 * depend on whether a worker has taken it yet. */
void svi_refit_policy_reset(struct svi_refit_policy *p);

/* The stream returns to `then`, a policy with the same settings, and `learner_then`: prepares both
 * policies to change places. A refit that runs now continues and is discarded; one that ran then is not
 * resumed. The next refit is due as after a change of settings; counters continue. */
void svi_refit_policy_go_back(struct svi_refit_policy *p, svs_learner *learner, struct svi_refit_policy *then,
                              svs_learner *learner_then, int64_t seen, double time);

/* The feature now means something else (svi_learner_renew). Its weight becomes 0 in the refit's model,
 * which then gets a new version, and later in the result of a running refit, whose snapshot may hold older
 * rows. True: the model changed. */
bool svi_refit_policy_renew(struct svi_refit_policy *p, svs_learner *learner, int feature);

/* Restarts, from the present window, a refit that ran when the state was saved. Where there is nothing to
 * refit any more, it fails when it runs, so that its end is recorded like any other. */
void svi_refit_policy_restart(struct svi_refit_policy *p, svs_learner *learner, int64_t seen);

/* Capacity for a model of rows x d weights; the old weights are lost if it grows. SVS_NO_MEMORY:
 * unchanged. */
svs_code svi_refit_policy_reserve(struct svi_refit_policy *p, int rows, int d, svs_error *err);

/* Makes this policy one as it would be after saving, loading and svi_refit_policy_restart: the solver's state
 * is forgotten, and a running refit begins again from the present window. No worker may have the job. */
void svi_refit_policy_as_loaded(struct svi_refit_policy *p, svs_learner *learner, int64_t seen);

/* Saves or loads what later events depend on. A running refit is saved as running (and loaded as
 * SVI_REFIT_LOST), the solver's own state is not. Load into a policy from svi_refit_policy_new. The caller
 * checks that the model's d is at most the stream's. The tallies differ from run to run over the same
 * input, and are apart for that reason: when a running refit was begun, and how long the last one took. */
void svi_refit_policy_archive(struct svi_archive *a, struct svi_refit_policy *p);
void svi_refit_policy_tallies_archive(struct svi_archive *a, struct svi_refit_policy *p);

/* Accuracy of the online model and of the refit over the last samples that both scored, 0 to 1; NAN = no
 * samples. */
void svi_refit_policy_quality(const struct svi_refit_policy *p, double *online, double *refit);

#endif
