/* discovery.h: online control of the share of false discoveries (LORD or SAFFRON).
 *
 * FACTS and choice of the procedure: to be written by its author. */
#ifndef SVI_DISCOVERY_H
#define SVI_DISCOVERY_H

#include <stdbool.h>
#include <stdint.h>

struct svi_discovery;

#endif
