/* reload.h: SIGHUP: reads the settings file, the allow file and the key file again while the stream runs. */
#ifndef SVI_RELOAD_H
#define SVI_RELOAD_H

#include <stdio.h>

#include "net/access.h"
#include "server/control.h"

struct svi_reload {
    /* Reads the settings as a fresh start would; NULL: there is nothing to read. */
    svs_code (*read)(const void *from, struct svi_settings *s, svs_error *err);
    const void *from;
    struct svi_settings given; /* the settings as last read; those that need a restart: as at the start */
    FILE *log;                 /* NULL = quiet */
    FILE *errors;              /* NULL = nowhere */
};

/* Applies the settings that may change at run time and whose values in the file differ from the last reading,
 * all or none, like `config` of the control socket. Reports what changed, what needs a restart, and what is
 * wrong; in that case nothing changes. Never fails. */
void svi_reload(struct svi_reload *r, struct svi_control *c, const struct svi_access *access, double now);

#endif
