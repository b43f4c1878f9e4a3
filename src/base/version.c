#include "svmstream/svmstream.h"

/* From the Makefile, which takes it from tree_version. */
#ifndef SVI_TREE_VERSION
#define SVI_TREE_VERSION SVS_VERSION
#endif

const char *svs_version(void) {
    return SVI_TREE_VERSION;
}
