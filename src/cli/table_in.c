#include "cli/table_in.h"

#include "server/ingest_stdin.h"

static void table_in_progress(void *user, int64_t rows, int64_t position, int64_t size) {
    cli_progress_show(user, rows, (double)position, (double)size, "reading");
}

struct svi_table_options cli_table_options(const struct cli_args *a, struct cli_progress *progress) {
    return (struct svi_table_options){
        .reader = svi_ingest_stdin_options(&a->settings),
        .max_features = cli_given(a, "max.features") ? (int)a->settings.max_features : 1000000,
        .progress = table_in_progress,
        .user = progress};
}
