/* The loops of probabilities in plain C. */
#define QUADS svi_quads_generic

#include "linalg/quads_template.h"
