/* pipe_to.h: a shell command that gets some bytes on its standard input. */
#ifndef SVI_PIPE_TO_H
#define SVI_PIPE_TO_H

#include <stddef.h>

#include "svmstream/error.h"

/* Runs `command` with /bin/sh, writes the bytes to it and waits until it ends, `seconds` at most: then it is
 * ended, with all that it started. SVS_UNAVAILABLE: it could not be started, took too long, or failed, with
 * its exit code or signal. A command that does not read all is fine. */
svs_code svi_pipe_to(const char *command, const void *bytes, size_t size, double seconds, svs_error *err);

#endif
