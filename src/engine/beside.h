/* beside.h: the last refit as the engine sees it: when the next one is due, how it scores beside the online
 * model, and which of the two serves.
 *
 * Everything here happens at fixed sample numbers but one thing: the sample after which a finished refit
 * takes effect, which is recorded. */
#ifndef SVI_BESIDE_H
#define SVI_BESIDE_H

#include "base/archive.h"
#include "data/message.h"
#include "engine/refit.h"
#include "svmstream/learner.h"

#define SVI_BESIDE_WINDOW 1000 /* labelled samples by which the better one is found, at most */
#define SVI_BESIDE_LEAST  200  /* before that the online model serves */

enum svi_refit_state {
    SVI_REFIT_OFF = 0,
    SVI_REFIT_IDLE,
    SVI_REFIT_COPYING, /* the snapshot is being taken */
    SVI_REFIT_READY,   /* it waits for a worker */
    SVI_REFIT_AWAY,    /* a worker has it */
    SVI_REFIT_LOST     /* it ran when the state was kept: nobody has it now */
};

struct svi_beside {
    enum svi_refit_state state;
    struct svi_refit *job;
    int serve;                 /* enum svi_serve */
    int64_t every, next;       /* samples */
    double seconds, next_time; /* engine time */
    bool stale;                /* the stream was reset while a refit ran: its result is of no use */
    int max_features, max_classes;

    bool have, serves;
    svs_model model; /* of the last refit; W, b are owned */
    double *W, *b, *scores;
    int64_t weights, room; /* doubles of W; of b and scores */
    int predicted;         /* of the sample at hand */

    uint8_t *hits; /* ring: bit 0 the online model was right, bit 1 the refit was */
    int64_t hit_count, hit_room, hit_at, online, refit;

    int64_t done, failed, skipped, overtaken;
    char reason[SVS_ERROR_TEXT]; /* of the last failure */
};

struct svi_engine;

svs_code svi_beside_new(struct svi_beside *b, const struct svi_settings *s, svs_error *err);
void svi_beside_free(struct svi_beside *b);

/* Scores a sample with the refit; `step` is the online model's. Where the refit serves, *step becomes its:
 * scores, predicted, version. */
void svi_beside_score(struct svi_beside *b, const struct svi_message *m, svs_step *step);

/* After a sample was learned: which model serves from now on, is a refit due, is its snapshot whole. True:
 * another model serves now. */
bool svi_beside_step(struct svi_engine *e);

/* Starts one now; the reason why not in *err. SVS_UNAVAILABLE. */
svs_code svi_beside_start(struct svi_engine *e, svs_error *err);

/* Other settings for when and whom to serve; the next refit is due as if they had always been. */
void svi_beside_configure(struct svi_beside *b, const struct svi_settings *s, int64_t seen, double time);

/* What runs goes on, for nothing: whether a worker has taken it yet must not be seen in the state. */
void svi_beside_reset(struct svi_beside *b);

/* Takes up a refit that ran when the state was kept, from the window of now. Where there is nothing to refit
 * any more it fails when it is run, so that its end is recorded like any other. */
void svi_beside_restart(struct svi_engine *e);

/* Room for a model of `rows` x d weights. SVS_NO_MEMORY. */
svs_code svi_beside_reserve(struct svi_beside *b, int rows, int d, svs_error *err);

/* What later events depend on. A refit that runs is kept as running (loaded: SVI_REFIT_LOST), the solver's
 * own state is not. Loading goes into one from svi_beside_new. Whoever loads checks that the model's d is at
 * most the stream's. The tallies are what differs from one run to the next over the same input: when a
 * running refit was begun, how long the last one took. */
void svi_beside_archive(struct svi_archive *a, struct svi_beside *b);
void svi_beside_tallies_archive(struct svi_archive *a, struct svi_beside *b);

/* Windowed accuracy of the online model and of the refit over samples that both scored; NAN = none yet. */
void svi_beside_quality(const struct svi_beside *b, double *online, double *refit);

#endif
