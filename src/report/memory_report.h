/* memory_report.h: what `svmstream config` says of the memory that settings need. */
#ifndef SVI_MEMORY_REPORT_H
#define SVI_MEMORY_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "config/settings.h"

/* Comments for the end of a file of settings. */
void svi_memory_write(const struct svi_settings *s, FILE *to);

/* A line, after `lead`, of what the keys of a stream take; a stream without keys has none. */
void svi_memory_write_keys(const struct svi_settings *s, const char *lead, FILE *to);

/* Are there to be more keys in memory than the machine has? Then that, and how many fit. */
bool svi_memory_keys_warning(const struct svi_settings *s, char *text, size_t size);

#endif
