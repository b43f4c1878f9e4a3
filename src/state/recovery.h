/* recovery.h: a kept state becomes a stream again: the newest good checkpoint, and the journal after it
 * applied through the functions that did it first. Used by what goes on with it (write_ahead) and by what
 * only looks (svmstream replay, state). */
#ifndef SVI_RECOVERY_H
#define SVI_RECOVERY_H

#include <stdio.h>

#include "state/record.h"
#include "store/checkpoint_file.h"

/* Where it begins. */
#define SVI_RECORD_LARGEST (((size_t)1 << 30) + 65536) /* bytes: max.message at its highest, and a little */
#define SVI_READ_TRIES     20                          /* to read what another process goes on writing */

enum svi_recovery_from {
    SVI_FROM_NEWEST = 0, /* the newest sound checkpoint */
    SVI_FROM_OLDEST,     /* the older of the two newest checkpoints, from which the journal is always kept */
    SVI_FROM_START       /* an empty stream and the first record there is */
};

struct svi_recovery_options {
    bool accept_loss;
    enum svi_recovery_from from;
    uint64_t until; /* records: those from this number on are left out */
    const struct svi_settings
        *with; /* these settings instead of the kept ones (NULL: those); unless SVI_FROM_START, what a
                  checkpoint was made with goes on with those of them that may change at any time */
    const struct svi_settings *otherwise; /* where the kept ones are lost (NULL: the defaults) */
    bool one_thread;                      /* the stream has no second one */
    bool silent;                          /* the stream sends no events while it repeats */
    bool score_all;                       /* every sample has a score event (svi_stream_score_all) */
    void (*again)(void *user); /* the events so far are void: it begins again (NULL: nobody minds) */
    void (*turn)(void *user);  /* after each record, NULL = nothing */
    FILE *log;                 /* NULL = quiet */
};

struct svi_recovery {
    svi_stream *stream; /* the caller's to free; NULL: there is no state in the folder */
    struct svi_settings settings;
    uint64_t epoch;
    bool checkpointed;   /* it began with a checkpoint: the next four */
    uint64_t checkpoint; /* its number: records in it */
    uint8_t hash[16];
    bool rebuilt;    /* it was made by another program or instruction set */
    double residual; /* of its model in the system of its window; NAN = not known */
    int damaged;     /* newer checkpoints that were passed over */
    struct svi_journal_found found;
    int jumps;            /* of sources over numbers that were lost */
    int64_t lost_samples; /* those numbers */
    uint64_t first;       /* record that was repeated first */
    double seconds;
};

/* SVS_DAMAGED: with the file and what to do; SVS_IO, SVS_NO_MEMORY, SVS_UNAVAILABLE (of a later version). */
svs_code svi_recover(const struct svi_state_dir *f, const struct svi_recovery_options *o, svi_sink *sink,
                     void *user, struct svi_recovery *r, svs_error *err);

/* The same for a command that only looks, into a structure of its own: no events are sent. NULL on failure,
 * and where there is no state (SVS_EMPTY). */
struct svi_recovery *svi_recovery_new(const struct svi_state_dir *f, const struct svi_recovery_options *o,
                                      svs_error *err);
void svi_recovery_free(struct svi_recovery **r);

/* Is the journal there from its first record on? Codes of svi_state_dir_list. */
svs_code svi_recovery_whole(const struct svi_state_dir *f, bool *whole, svs_error *err);

/* The settings of the oldest state that is kept, as svi_settings_unpack gives them. Codes of
 * svi_recovery_new. */
svs_code svi_recovery_settings(const struct svi_state_dir *f, struct svi_settings *s, svs_error *err);

#endif
