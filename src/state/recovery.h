/* recovery.h: makes a stream from a kept state: loads the newest good checkpoint and applies the journal
 * after it, through the functions that applied it the first time. Used by the write-ahead, which continues
 * the state, and by commands that only read it (svmstream replay, state). */
#ifndef SVI_RECOVERY_H
#define SVI_RECOVERY_H

#include <stdio.h>

#include "state/record.h"
#include "store/checkpoint_file.h"

#define SVI_RECORD_LARGEST (((size_t)1 << 30) + 65536) /* bytes: the highest max.message, and its frame */
#define SVI_READ_TRIES     20                          /* for a directory that another process writes to */

/* Where the recovery begins. */
enum svi_recovery_from {
    SVI_FROM_NEWEST = 0, /* the newest sound checkpoint */
    SVI_FROM_OLDEST,     /* the older of the two newest checkpoints; the journal after it is always kept */
    SVI_FROM_START       /* an empty stream and the first record of the journal */
};

struct svi_recovery_options {
    bool accept_loss; /* continue where a part of the journal is damaged or missing */
    enum svi_recovery_from from;
    uint64_t until; /* records with this number or a higher one are left out */
    const struct svi_settings
        *with; /* use these instead of the kept settings (NULL: the kept ones). A loaded checkpoint takes only
                  those that may change while a model lives; with SVI_FROM_START all of them hold */
    const struct svi_settings *otherwise; /* settings where the kept ones are lost (NULL: the defaults) */
    bool one_thread;                      /* the stream gets no second thread */
    bool silent;                          /* the stream sends no events during the recovery */
    bool score_all;                       /* every sample gets a score event (svi_stream_score_all) */
    void (*again)(void *user);            /* before each attempt: events so far are void (may be NULL) */
    void (*turn)(void *user);             /* after each record (may be NULL) */
    FILE *log;                            /* NULL = quiet */
};

struct svi_recovery {
    svi_stream *stream; /* the caller frees it; NULL: the directory holds no state */
    struct svi_settings settings;
    uint64_t epoch;
    bool checkpointed;   /* a checkpoint was loaded: the next four are of it */
    uint64_t checkpoint; /* its number: records before it */
    uint8_t hash[16];
    bool rebuilt;    /* its model was rebuilt: another program or instruction set wrote it */
    double residual; /* svi_engine_residual of its model as loaded; NAN = not known */
    int damaged;     /* checkpoints that were skipped because they could not be loaded */
    struct svi_journal_found found;
    int jumps;            /* times that a source skipped sequence numbers, after a loss */
    int64_t lost_samples; /* numbers skipped */
    uint64_t first;       /* number of the first record that was applied */
    double seconds;       /* duration */
};

/* Recovers into *r, whose content before does not matter; events go to `sink`. SVS_DAMAGED: the text names
 * the file and what to do; SVS_IO, SVS_NO_MEMORY, SVS_UNAVAILABLE (written by a later version). After a
 * failure r->stream is NULL. */
svs_code svi_recover(const struct svi_state_dir *f, const struct svi_recovery_options *o, svi_sink *sink,
                     void *user, struct svi_recovery *r, svs_error *err);

/* The same for a command that only reads: no events are sent, and the result is allocated. NULL on failure,
 * and where there is no state (SVS_EMPTY). */
struct svi_recovery *svi_recovery_new(const struct svi_state_dir *f, const struct svi_recovery_options *o,
                                      svs_error *err);
void svi_recovery_free(struct svi_recovery **r);

/* Could a start load this checkpoint? Codes of svi_recover. */
svs_code svi_recovery_loads(const struct svi_checkpoint *c, svs_error *err);

/* *whole: is the journal kept from its first record on? Codes of svi_state_dir_list. */
svs_code svi_recovery_whole(const struct svi_state_dir *f, bool *whole, svs_error *err);

/* The settings of the oldest state that is kept, as svi_settings_unpack gives them. Codes of
 * svi_recovery_new. */
svs_code svi_recovery_settings(const struct svi_state_dir *f, struct svi_settings *s, svs_error *err);

#endif
