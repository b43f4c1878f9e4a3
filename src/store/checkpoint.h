/* checkpoint.h: words and numbers of the checkpoint's format, shared by writing and reading. Part of the
 * store. */
#ifndef SVI_CHECKPOINT_H
#define SVI_CHECKPOINT_H

#define SVI_CHECKPOINT        "checkpoint"
#define SVI_CHECKPOINT_FORMAT "svmstream-checkpoint"
#define SVI_CHECKPOINT_PAIRS  14
#define SVI_SECTION_ITEMS     4
#define SVI_END               "end"
#define SVI_END_ITEMS         3

#endif
