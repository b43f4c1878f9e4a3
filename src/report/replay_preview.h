/* replay_preview.h: a preview of alerts (preview.h) over the rows of a kept state. It replays the
 * journal of the state from the first record if that still exists. Otherwise it starts at the
 * oldest checkpoint from which the journal continues. The settings are those of the recorded run,
 * or others. */
#ifndef SVI_REPLAY_PREVIEW_H
#define SVI_REPLAY_PREVIEW_H

#include "report/preview.h"
#include "state/recovery.h"

/* The first part is the caller's to fill. */
struct svi_replay_preview {
    const struct svi_settings *given; /* settings given on the command line */
    bool what_if;                     /* some of these affect the engine */
    bool from_start;                  /* always start with an empty engine at the first available record */
    uint64_t until;                   /* skip records from this number on */
    bool quiet;
    /* Fills *s with the kept settings, overridden by the given ones and, unless NULL, by this budget. */
    svs_code (*with)(void *look, const char *budget, struct svi_settings *s, svs_error *err);
    const void *user;

    struct svi_state_dir dir;
    bool whole; /* the replay starts at the first record */
    struct svi_progress progress;
    struct svi_alert_log *log;
    const char *budget; /* budget of this pass */
};

/* Opens the state directory. SVS_SETTING: a given setting cannot be tried from a checkpoint; codes of
 * svi_layout_open. */
svs_code svi_replay_preview_open(struct svi_replay_preview *l, const char *path, svs_error *err);
void svi_replay_preview_close(struct svi_replay_preview *l);

/* A svi_preview_pass; user: a struct svi_replay_preview. */
svs_code svi_replay_preview_pass(void *user, const char *budget, struct svi_alert_log *log, svs_error *err);

#endif
