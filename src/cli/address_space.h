/* address_space.h: under a limit of the address space (ulimit -v) OpenBLAS retries the allocation of its
 * buffers for ever, and the process hangs. So a process whose limit is too low for them does not start, and
 * any other allocates them first.
 *
 * The first check runs before main, in this header's source, because OpenBLAS starts threads that need
 * buffers while it is loaded. */
#ifndef SVI_ADDRESS_SPACE_H
#define SVI_ADDRESS_SPACE_H

#include <stdint.h>

#include "svmstream/error.h"

/* Allocates the buffers of all threads that will compute: the main one, the refit's, novelty's unless *second
 * is 1, and `threads` of OpenBLAS. *second 0 (automatic) becomes 1 when the limit leaves no space for
 * novelty's thread alone. Does nothing without a limit. SVS_NO_MEMORY: with the limit and what to do. */
svs_code svi_take_buffers(int threads, int64_t *second, svs_error *err);

#endif
