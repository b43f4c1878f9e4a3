/* refit_policy.h: refits in the background: when the next one is due, how the last one scores next to the
 * online model, and which of the two serves.
 *
 * Everything here happens at fixed sample numbers but one thing: the sample after which a finished refit
 * takes effect, which is recorded. */
#ifndef SVI_REFIT_POLICY_H
#define SVI_REFIT_POLICY_H

#include "base/archive.h"
#include "data/message.h"
#include "refit/refit.h"
#include "svmstream/learner.h"

#define SVI_REFIT_POLICY_WINDOW      1000 /* labelled samples by which the better one is found, at most */
#define SVI_REFIT_POLICY_MIN_SAMPLES 200  /* before that the online model serves */

enum svi_refit_state {
    SVI_REFIT_OFF = 0,
    SVI_REFIT_IDLE,
    SVI_REFIT_COPYING, /* the snapshot is being taken */
    SVI_REFIT_READY,   /* it waits for a worker */
    SVI_REFIT_AWAY,    /* a worker has it */
    SVI_REFIT_LOST     /* it ran when the state was kept: nobody has it now */
};

struct svi_refit_policy {
    enum svi_refit_state state;
    struct svi_refit *job;
    int serve;                 /* enum svi_serve */
    int64_t every, next;       /* samples */
    double seconds, next_time; /* engine time */
    bool stale;                /* the stream was reset while a refit ran: its result is of no use */
    int max_features, max_classes;
    double C;                 /* of the problem */
    int64_t window;           /* samples */
    struct svi_refit_how how; /* of the next refit */
    struct svi_refit *left;   /* a job that was away when another policy took its place; NULL = none */

    bool have, serves;
    bool loaded;               /* the model is no refit, but one that was given (svi_refit_policy_load) */
    svs_model model;           /* of the last refit; W, b are owned */
    double *W, *b, *scores;    /* one block */
    int64_t weights, capacity; /* doubles of W; of b and scores */
    int predicted;             /* of the sample at hand */

    uint8_t *hits; /* ring: bit 0 the online model was right, bit 1 the refit was */
    int64_t hit_count, hit_capacity, hit_at, online, refit;

    int64_t done, failed, skipped, overtaken;
    char reason[SVS_ERROR_TEXT]; /* of the last failure */
};

/* What giving a refit back has changed. */
enum svi_refit_outcome {
    SVI_REFIT_UNCHANGED = 0, /* overtaken or failed: counted, the reason kept */
    SVI_REFIT_ADOPTED,       /* p->model is new; p->serves says who serves from now on */
    SVI_REFIT_OUT_OF_MEMORY  /* it was solved and could not be kept */
};

/* Owner: the caller. SVS_NO_MEMORY. */
svs_code svi_refit_policy_new(struct svi_refit_policy *p, const struct svi_settings *s, svs_error *err);
void svi_refit_policy_free(struct svi_refit_policy *p);

/* Scores a sample with the refit; `step` is the online model's. Where the refit serves, *step becomes its:
 * scores, predicted, version. */
void svi_refit_policy_score(struct svi_refit_policy *p, const struct svi_message *m, svs_step *step);

/* What it says of a row of the stream that was labelled late; valid until the next call. NULL: there is no
 * refit that knows its classes. */
const double *svi_refit_policy_peek(struct svi_refit_policy *p, const double *x, const svs_step *step);

/* After sample number `seen` was learned, at engine time `time`: which model serves from now on, is a refit
 * due, is its snapshot whole. True: another model serves now. */
bool svi_refit_policy_step(struct svi_refit_policy *p, svs_learner *learner, int64_t seen, double time);

/* Starts one now and copies the whole snapshot at once. SVS_UNAVAILABLE with the reason, SVS_NO_MEMORY. */
svs_code svi_refit_policy_start_now(struct svi_refit_policy *p, svs_learner *learner, int64_t seen,
                                    svs_error *err);

/* The job, once its snapshot is whole; NULL: none is. It comes back by svi_refit_policy_give. */
struct svi_refit *svi_refit_policy_take(struct svi_refit_policy *p);

/* A model takes the place of the refit's, after sample `seen`: scored beside the online model, and serving
 * where the setting serve says refit. For as long as it does so no refit is begun but by hand. m: the classes
 * of the stream in its order, at most its columns; W and b are copied. A refit that runs goes on, for
 * nothing. SVS_UNAVAILABLE: refits are off; SVS_NO_MEMORY. */
svs_code svi_refit_policy_load(struct svi_refit_policy *p, svs_learner *learner, const svs_model *m,
                               int64_t seen, svs_error *err);

/* The job is back, after sample `seen`; d: columns of the stream. */
enum svi_refit_outcome svi_refit_policy_give(struct svi_refit_policy *p, svs_learner *learner, int d,
                                             int64_t seen);

/* Makes the job look as one that was recorded (svi_refit_pack); it is then to be given back. SVS_DAMAGED,
 * SVS_NO_MEMORY. */
svs_code svi_refit_policy_repeat(struct svi_refit_policy *p, svs_learner *learner, const void *record,
                                 size_t size, svs_error *err);

/* Other settings for when to refit and which model serves; the next refit is due as if they had always been.
 */
void svi_refit_policy_configure(struct svi_refit_policy *p, const struct svi_settings *s, int64_t seen,
                                double time);

/* Another problem (C, window, scale, weights), or refits that begin or end: *fresh, from svi_refit_policy_new
 * with the settings of now, takes the place of *p and is empty after it. The last refit no longer serves; one
 * that runs is of no use any more and never comes back (svi_refit_policy_left); where there was a refit, or
 * one was under way, the next begins at once. The counters go on, but where refits ended meanwhile. */
void svi_refit_policy_replace(struct svi_refit_policy *p, struct svi_refit_policy *fresh,
                              svs_learner *learner, int64_t seen, double time);

/* Is this the job that was away when the policy was replaced? Then it is freed, and nothing else is to be
 * done with it. */
bool svi_refit_policy_left(struct svi_refit_policy *p, const struct svi_refit *job);

/* The clock that engine time was read from was moved: a time after `from` moves by `step`. */
void svi_refit_policy_move_times(struct svi_refit_policy *p, double from, double step);

/* What runs goes on, for nothing: whether a worker has taken it yet must not be seen in the state. */
void svi_refit_policy_reset(struct svi_refit_policy *p);

/* The stream goes back to `then`, a policy with the same settings, and `learner_then`: makes both ready to
 * change places as they are. A refit that runs now goes on, for nothing; one that ran then does not. The next
 * one is due as after a change of settings; what is counted goes on. */
void svi_refit_policy_go_back(struct svi_refit_policy *p, svs_learner *learner, struct svi_refit_policy *then,
                              svs_learner *learner_then, int64_t seen, double time);

/* Feature j has become another (svi_learner_renew): weight 0 in the refit that serves, which has a new
 * version then, and in the one that runs, for its snapshot may hold rows of before. True: the model changed.
 */
bool svi_refit_policy_renew(struct svi_refit_policy *p, svs_learner *learner, int feature);

/* Takes up a refit that ran when the state was kept, from the window of now. Where there is nothing to refit
 * any more it fails when it is run, so that its end is recorded like any other. */
void svi_refit_policy_restart(struct svi_refit_policy *p, svs_learner *learner, int64_t seen);

/* Room for a model of `rows` x d weights. SVS_NO_MEMORY. */
svs_code svi_refit_policy_reserve(struct svi_refit_policy *p, int rows, int d, svs_error *err);

/* What later events depend on. A refit that runs is kept as running (loaded: SVI_REFIT_LOST), the solver's
 * own state is not. Loading goes into one from svi_refit_policy_new. The caller checks that the model's d
 * is at most the stream's. The tallies are what differs from one run to the next over the same input: when a
 * running refit was begun, how long the last one took. */
void svi_refit_policy_archive(struct svi_archive *a, struct svi_refit_policy *p);
void svi_refit_policy_tallies_archive(struct svi_archive *a, struct svi_refit_policy *p);

/* Windowed accuracy of the online model and of the refit over samples that both scored; NAN = none yet. */
void svi_refit_policy_quality(const struct svi_refit_policy *p, double *online, double *refit);

#endif
