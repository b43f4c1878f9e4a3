/* confusion.h: how often which class was taken for which. */
#ifndef SVI_CONFUSION_H
#define SVI_CONFUSION_H

#include "base/archive.h"

#define SVI_CONFUSION_MAX 256 /* classes; a stream with more has no matrix */

typedef struct svi_confusion svi_confusion;

/* For up to max_classes classes, 8 min(max_classes, 256)^2 bytes; one that grows begins with capacity for two
 * and gets more by svi_confusion_reserve, before they come. NULL: SVS_NO_MEMORY. Owner: the caller. */
svi_confusion *svi_confusion_new(int max_classes, bool grows, svs_error *err);
svs_code svi_confusion_reserve(svi_confusion *c, int classes, svs_error *err); /* SVS_NO_MEMORY */
void svi_confusion_free(svi_confusion **c);
void svi_confusion_fetch(const svi_confusion *c); /* it is going to count soon (base/fetch.h) */
void svi_confusion_reset(svi_confusion *c);

/* truth, predicted: class indices; predicted -1 (no class was known) is in no column. */
void svi_confusion_add(svi_confusion *c, int truth, int predicted);

/* classes x classes counts into `out`, rows the truth, columns the decision. False: there are too many, or
 * there were. */
bool svi_confusion_matrix(const svi_confusion *c, int classes, int64_t *out);

void svi_confusion_archive(struct svi_archive *a, svi_confusion *c);

double svi_confusion_memory(int classes); /* bytes, with capacity for that many */

#endif
