/* replay_look.h: the rows of a kept state for a look at its alerts (look.h): its journal, repeated from the
 * first record where that is there, else from the oldest checkpoint from which the journal leads on; with the
 * settings as they were, or with others. */
#ifndef SVI_REPLAY_PREVIEW_H
#define SVI_REPLAY_PREVIEW_H

#include "report/preview.h"
#include "state/recovery.h"

/* The first part is the caller's to fill. */
struct svi_replay_preview {
    const struct svi_settings *given; /* on the command line */
    bool what_if;                     /* some of them shape what the engine does */
    bool from_start;                  /* an empty engine at the first record there is, in any case */
    uint64_t until;                   /* records from this number on are left out */
    bool quiet;
    /* The kept settings with those given in their place, and that budget, unless it is NULL. */
    svs_code (*with)(void *look, const char *budget, struct svi_settings *s, svs_error *err);
    const void *user;

    struct svi_state_dir dir;
    bool whole; /* it begins at the first record there is */
    struct svi_progress progress;
    struct svi_alert_log *log;
    const char *budget; /* of this pass */
};

/* SVS_SETTING: a setting was given that cannot be tried from a checkpoint; codes of svi_layout_open. */
svs_code svi_replay_preview_open(struct svi_replay_preview *l, const char *path, svs_error *err);
void svi_replay_preview_close(struct svi_replay_preview *l);

/* A svi_preview_pass; user: a struct svi_replay_preview. */
svs_code svi_replay_preview_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err);

#endif
