/* reload.h: what SIGHUP asks for: the settings of the file, the allow file and the key file are read again
 * while the stream runs. */
#ifndef SVI_RELOAD_H
#define SVI_RELOAD_H

#include <stdio.h>

#include "net/access.h"
#include "server/control.h"

struct svi_reload {
    /* The settings as a start would have them now; NULL: there is nothing to read. */
    svs_code (*read)(const void *from, struct svi_settings *s, svs_error *err);
    const void *from;
    struct svi_settings given; /* what it gave the last time; of those that need a restart: at the start */
    FILE *log;                 /* NULL = quiet */
    FILE *errors;              /* NULL = nowhere */
};

/* Changes the settings that may change while the process runs and that the file has other values for than
 * last time, all or none, as `config` of the control socket does. Reports what was changed, what needs a
 * restart, and what is wrong; then everything stays as it was. Never fails. */
void svi_reload(struct svi_reload *r, struct svi_control *c, const struct svi_access *access, double now);

#endif
