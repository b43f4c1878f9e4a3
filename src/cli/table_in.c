#include "cli/table_in.h"

#include <sys/stat.h>

#include <stdio.h>
#include <string.h>

#include "base/machine_memory.h"

static void table_in_progress(void *user, int64_t rows, int64_t position, int64_t size) {
    svi_progress_show(user, rows, (double)position, (double)size, "reading");
}

struct svi_table_options cli_table_options(const struct cli_args *a, struct svi_schema_options *schema,
                                           struct svi_progress *progress) {
    struct svi_reader_options reader = svi_settings_reader(&a->settings);
    svi_settings_schema(&a->settings, schema);
    reader.key_spare = true;
    return (struct svi_table_options){
        .reader = reader,
        .schema = schema,
        .max_features = cli_given(a, "max.features") ? (int)a->settings.max_features : 1000000,
        .progress = table_in_progress,
        .user = progress};
}

struct svi_row_memory cli_table_memory(const struct cli_args *a) {
    const double given = cli_number(a, "memory") * (1 << 20);
    const struct svi_machine_memory all = svi_machine_memory();
    return given > 0 ? (struct svi_row_memory){given, NULL}
                     : (struct svi_row_memory){all.bytes * 3 / 4, all.of};
}

void cli_preview_table(struct cli_args *a, const char *path) {
    struct svi_reader_options o = svi_settings_reader(&a->settings);
    svs_error err;
    o.task_follows = o.label_needed = o.key_spare = true;
    struct stat file;
    const bool again = stat(path, &file) == 0 && S_ISREG(file.st_mode); /* can be read twice */
    svi_reader *r = again ? svi_reader_open(path, &o, NULL, &err) : NULL;
    if (r && svi_reader_settle(r, &err) == SVS_OK) {
        const char *note = svi_reader_note(r);
        if (!o.task_given)
            a->settings.task = (int)svi_reader_task(r);
        if (note && !a->quiet)
            fprintf(stderr, "%s\n", note);
    }
    svi_reader_close(&r);
}

void cli_report_dropped(const struct cli_args *a, const struct svi_table *t) {
    if (t->dropped > 0)
        cli_fail(a, "%lld rows with a missing value were skipped (missing drop)", (long long)t->dropped);
}
