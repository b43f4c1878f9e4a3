/* pipe_to.h: a shell command that gets some bytes on its standard input. */
#ifndef SVI_PIPE_TO_H
#define SVI_PIPE_TO_H

#include "cli/command.h"

/* Runs `command` with /bin/sh, writes the bytes to it and waits until it ends, `seconds` at most: then it is
 * ended, with all that it started. Returns 0, or -1 after saying on standard error what went wrong: its exit
 * code too. A command that does not read all is fine. */
int cli_pipe_to(const struct cli_args *a, const char *command, const void *bytes, size_t size,
                double seconds);

#endif
