/* partition_process.h: one process that this program starts, watches without waiting, and ends by its id. It
 * ends with the thread that started it. Part of partition_child. */
#ifndef PARTITION_PROCESS_H
#define PARTITION_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "svmstream/error.h"

/* Zero-initialised: none. */
struct partition_process {
    pid_t id;    /* 0: none runs */
    int watched; /* readable once it has ended; valid while id is not 0 */
    int status;  /* of the last one that ended, as waitpid has it */
    int failed;  /* errno with which it could not be run; 0 */
};

/* Starts `program` (a path, or a name in PATH) with these arguments, argv[0] first and NULL last. `in`,
 * `out`: descriptors for its standard input and output, or -1: /dev/null, and standard error. It inherits
 * nothing else but standard error, and has a process group of its own, so that Ctrl-C at a terminal reaches
 * this program alone. SVS_IO. */
svs_code partition_process_start(struct partition_process *p, const char *program, char *const *argv, int in,
                                 int out, svs_error *err);

/* Has it ended? Then p->status and p->failed are set, and p->id is 0. */
bool partition_process_ended(struct partition_process *p);

void partition_process_signal(const struct partition_process *p, int number);

/* Kills it and waits until it has ended. */
void partition_process_kill(struct partition_process *p);

/* "was killed by signal 9", "ended with code 1", "cannot be run: ...". Returns `out`. */
char *partition_process_text(const struct partition_process *p, char *out, size_t size);

#endif
