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

#define SVI_SECTION_PIECE  ((size_t)1 << 31)     /* bytes of a section in one object: lengths have 32 bits */
#define SVI_OBJECTS_MAX    1024                  /* pieces of sections */
#define SVI_CHECKPOINT_MAX ((uint64_t)256 << 30) /* bytes; more is not written, and not believed */

#endif
