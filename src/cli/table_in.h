/* table_in.h: how commands read a whole file of rows. */
#ifndef SVI_TABLE_IN_H
#define SVI_TABLE_IN_H

#include "cli/command.h"
#include "report/progress.h"
#include "features/table.h"

/* Table options from the settings (columns, format, limits), with a progress line. The command adds the task
 * and everything else. `schema` must live until the table is read. */
struct svi_table_options cli_table_options(const struct cli_args *a, struct svi_schema_options *schema,
                                           struct svi_progress *progress);

/* The memory that rows may take: the option `memory`, or three quarters of what the process may use. */
struct svi_row_memory cli_table_memory(const struct cli_args *a);

/* Reads the first rows of a file in advance, prints on standard error how its columns were interpreted, and
 * makes the task a regression if none is given and the label has many different numbers. Skips standard input
 * and pipes, whose rows can be read only once. Errors are reported later, when the file is read. */
void cli_preview_table(struct cli_args *a, const char *path);

/* Reports how many rows the policy `missing drop` left out of the table, if any. */
void cli_report_dropped(const struct cli_args *a, const struct svi_table *t);

#endif
