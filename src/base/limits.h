/* limits.h: the sizes of numbers that are computed with: one place for the readers, the engine and whatever
 * sends to it. */
#ifndef SVI_LIMITS_H
#define SVI_LIMITS_H

#define SVI_EXACT_MAX  0x1p53 /* beyond it a double no longer names one integer */
#define SVI_VALUE_MAX  1e100  /* a feature, a target or a weight, in size */
#define SVI_SQUARE_MAX 1e200  /* |z|^2 of a standardised sample */

#define SVI_FEATURES_DEFAULT 1024 /* most features that a stream has without settings */

/* A feature of this size is taken whatever the scale of its column is (deviations from 1e-18 on) and however
 * many columns there are (up to 1e4): for a sender that knows neither. */
#define SVI_VALUE_ANY_SCALE 1e80

#endif
