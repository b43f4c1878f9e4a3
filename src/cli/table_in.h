/* table_in.h: how commands read a whole file of rows. */
#ifndef SVI_TABLE_IN_H
#define SVI_TABLE_IN_H

#include "cli/command.h"
#include "report/progress.h"
#include "features/table.h"

/* What the settings say about columns, format and limits, and a progress line; the task and all else is the
 * command's to add. The options of the schema must live while the table is read. */
struct svi_table_options cli_table_options(const struct cli_args *a, struct svi_schema_options *schema,
                                           struct svi_progress *progress);

/* How much memory the rows may take: the option `memory`, else three quarters of what there is. */
struct svi_row_memory cli_table_memory(const struct cli_args *a);

/* Looks at the first rows of a file before it is read, unless it is standard input, which has them only once:
 * what its columns are goes to standard error, and where the task is not given and the label has many
 * different numbers it becomes a regression. What is wrong with the file is said when it is read. */
void cli_preview_table(struct cli_args *a, const char *path);

/* Says how many rows the policy `missing drop` left out of the table, where it did. */
void cli_report_dropped(const struct cli_args *a, const struct svi_table *t);

#endif
