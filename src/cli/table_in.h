/* table_in.h: how commands read a whole file of rows. */
#ifndef SVI_TABLE_IN_H
#define SVI_TABLE_IN_H

#include "cli/command.h"
#include "cli/progress.h"
#include "data/table.h"

/* What the settings say about columns, format and limits, and a progress line; the task and all else is the
 * command's to add. */
struct svi_table_options cli_table_options(const struct cli_args *a, struct cli_progress *progress);

#endif
