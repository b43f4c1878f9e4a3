/* sums_internal.h: the words of a sums record, by their constants; NULL ends a list. */
#ifndef SVI_SUMS_INTERNAL_H
#define SVI_SUMS_INTERNAL_H

extern const char *const svi_sums_tasks[], *const svi_sums_kinds[], *const svi_sums_scales[];

#endif
