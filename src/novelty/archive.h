/* archive.h: the state of the novelty modules as archives (base/archive.h), bit for bit: what is loaded goes
 * on as what was saved would have.
 *
 * Options are not archived: an object is loaded into one that was made with the same options and has seen
 * nothing. What can be made again with the same bits is (coordinates of the points, the sorted scores, sums
 * of whole numbers); kernel matrices and factors are kept as they are: their last bits tell in which order
 * points came. Loading may leave the object inconsistent when it fails: fit to be freed, nothing else. */
#ifndef SVI_NOVELTY_ARCHIVE_H
#define SVI_NOVELTY_ARCHIVE_H

#include "base/archive.h"
#include "novelty/alert.h"
#include "novelty/calibration.h"
#include "novelty/detector.h"
#include "novelty/hull.h"
#include "novelty/lags.h"

/* `name`: a prefix of the fields' names ("member 1"). count: the points of the hull, which who owns them
 * knows; at most its room. */
void svi_hull_archive(struct svi_archive *a, struct svi_hull *h, const char *name, int count);

void svi_tail_archive(struct svi_archive *a, struct svi_tail *t);
void svi_calibration_archive(struct svi_archive *a, struct svi_calibration *c);
void svi_discovery_archive(struct svi_archive *a, struct svi_discovery *d);
void svi_alert_archive(struct svi_archive *a, struct svi_alert *alert);
void svi_lags_archive(struct svi_archive *a, struct svi_lags *l);

/* Between two samples: after svi_detector_learn, or before the first. Bytes about, for n points of which s
 * are in the support of each of m members, and c calibration rows of d values:
 * 8 (c (d + 1) + n d + m (n^2 + s^2) / 2). Loading costs m s^3 / 6 products. */
void svi_detector_archive(struct svi_archive *a, svi_detector *d);

#endif
