/* baseline.h: what a `run` process takes before it has learned anything, measured on this machine. */
#ifndef SVI_CLI_BASELINE_H
#define SVI_CLI_BASELINE_H

/* Resident bytes of a short `run` on empty input with both sockets open (on ports of 127.0.0.1 that the
 * system chooses) and the smallest engine. Where that cannot be run: the resident bytes of this process. 0
 * when nothing can be told. */
double cli_baseline(void);

#endif
