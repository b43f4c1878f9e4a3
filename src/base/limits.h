/* limits.h: bounds of numbers, shared by the readers, the engine and the programs that send to it. */
#ifndef SVI_LIMITS_H
#define SVI_LIMITS_H

#define SVI_EXACT_MAX  0x1p53 /* beyond it a double no longer represents every integer */
#define SVI_VALUE_MAX  1e100  /* |v| of a feature, a target or a weight */
#define SVI_SQUARE_MAX 1e200  /* |z|^2 of a standardised sample */

#define SVI_FEATURES_DEFAULT 1024 /* default of max.features */

/* A feature up to this size is accepted for any scale of its column (deviations from 1e-18 on) and any number
 * of columns (up to 1e4): for a sender that knows neither. */
#define SVI_VALUE_ANY_SCALE 1e80

#endif
