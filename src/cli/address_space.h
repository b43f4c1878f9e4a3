/* address_space.h: under a limit of the address space (ulimit -v) OpenBLAS asks for its buffers for ever, and
 * nothing answers: so a process that has no room for them does not start, and one that has takes them first.
 *
 * The first half happens before main, in this file's source, for OpenBLAS starts threads that need buffers
 * while it is loaded. */
#ifndef SVI_ADDRESS_SPACE_H
#define SVI_ADDRESS_SPACE_H

#include <stdint.h>

#include "svmstream/error.h"

/* Takes the buffers of the threads that will compute: the main one, the refit's, novelty's unless *second is
 * 1 (which it becomes where there is no room for that one alone), and `threads` of OpenBLAS. Nothing to do
 * where there is no limit. SVS_NO_MEMORY: with the limit and what to do. */
svs_code svi_take_buffers(int threads, int64_t *second, svs_error *err);

#endif
