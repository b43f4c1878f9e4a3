/* state: what is kept in a folder, and whether it is sound. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/command.h"
#include "engine/engine_archive.h"
#include "engine/recovery.h"

static void ignore(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

static int64_t file_size(const struct svi_folder *f, const char *prefix, uint64_t number) {
    char name[SVI_FILE_NAME];
    struct stat st;
    return fstatat(f->fd, svi_folder_name(name, prefix, number), &st, 0) == 0 ? (int64_t)st.st_size : -1;
}

/* A line for each file; counts the files, and the checkpoints that are not sound. */
static svs_code list_checkpoints(const struct svi_folder *f, int *files, int *unsound, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_folder_list(f, "checkpoint", &numbers, &count, err);
    *files += count;
    for (int i = 0; i < count && code == SVS_OK; i++) {
        struct svi_checkpoint c = {0};
        char hash[SVI_HASH_TEXT], name[SVI_FILE_NAME];
        svs_error why;
        const char *shown = svi_folder_name(name, "checkpoint", numbers[i]);
        if (svi_checkpoint_read(f, numbers[i], &c, &why) == SVS_OK) {
            printf("%s  %10" PRId64 " bytes  after record %-10" PRIu64 " svmstream %s, %s, state %s\n", shown,
                   file_size(f, "checkpoint", numbers[i]), c.position.number, c.program, c.isa,
                   svi_hash_text(c.hash, hash));
        } else if (file_size(f, "checkpoint", numbers[i]) >= 0) { /* else a running process has removed it */
            printf("%s  %10" PRId64 " bytes  NOT SOUND: %s\n", shown, file_size(f, "checkpoint", numbers[i]),
                   why.text);
            ++*unsound;
        }
        svi_checkpoint_clear(&c);
    }
    svi_free(numbers);
    return code;
}

static svs_code list_segments(const struct svi_folder *f, int *files, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    char name[SVI_FILE_NAME];
    svs_code code = svi_folder_list(f, "journal", &numbers, &count, err);
    *files += count;
    for (int i = 0; i < count; i++)
        printf("%s     %10" PRId64 " bytes  from record %" PRIu64 "\n",
               svi_folder_name(name, "journal", numbers[i]), file_size(f, "journal", numbers[i]), numbers[i]);
    svi_free(numbers);
    return code;
}

static int show(const struct cli_args *a, const struct svi_folder *f) {
    svs_error err;
    int unsound = 0, files = 0;
    if (list_checkpoints(f, &files, &unsound, &err) != SVS_OK || list_segments(f, &files, &err) != SVS_OK)
        return cli_error(a, &err);
    if (files == 0)
        return cli_fail(a, "no state is kept in %s", a->positional[1]);
    return unsound ? CLI_FAILED : CLI_OK;
}

/* The older checkpoint and the journal must lead to the newer one. */
static svs_code compare(const struct svi_folder *f, const struct svi_recovery *newest, svs_error *err) {
    char expected[SVI_HASH_TEXT], hash[SVI_HASH_TEXT];
    const struct svi_recovery_options o = {
        .from = SVI_FROM_OLDEST, .until = newest->checkpoint, .silent = true};
    struct svi_recovery *old = svi_alloc(sizeof *old);
    if (!old)
        return svi_fail_memory(err, "another engine");
    svs_code code = svi_recover(f, &o, ignore, NULL, old, err);
    const bool comparable = code == SVS_OK && old->engine && old->checkpoint < newest->checkpoint &&
                            !old->rebuilt && !newest->rebuilt;
    if (comparable)
        code = svi_engine_hash(old->engine, hash, err);
    if (comparable && code == SVS_OK && strcmp(hash, svi_hash_text(newest->hash, expected)) != 0)
        code = svi_fail(err, SVS_DAMAGED,
                        "the journal from record %" PRIu64 " to %" PRIu64
                        " leads to state %s, the checkpoint has %s",
                        old->checkpoint, newest->checkpoint, hash, expected);
    if (comparable && code == SVS_OK)
        printf("%-16s from record %" PRIu64 " to %" PRIu64 ": the same state\n", "repeated", old->checkpoint,
               newest->checkpoint);
    svi_engine_free(&old->engine);
    svi_free(old);
    return code;
}

/* Every record there is, sound or not: also those before the checkpoints, which only a replay reads. */
static svs_code read_through(const struct svi_folder *f, uint64_t first, uint64_t *records, svs_error *err) {
    const struct svi_position from = {.number = first, .segment = first};
    const struct svi_journal_reader_options o = {.largest = SVI_RECORD_LARGEST};
    enum svi_journal_read what = SVI_JOURNAL_RECORD;
    struct svi_journal_found found;
    struct svi_record record;
    svi_journal_reader *r = svi_journal_reader_new(f, &from, &o, err);
    if (!r)
        return err->code;
    while (what == SVI_JOURNAL_RECORD)
        what = svi_journal_read(r, &record, err);
    svi_journal_reader_found(r, &found);
    svi_journal_reader_free(&r);
    *records = found.records;
    return what == SVI_JOURNAL_FAIL ? err->code : SVS_OK;
}

/* A running process may remove the first segment while it is read: then the next one is the first. */
static svs_code read_journal(const struct svi_folder *f, uint64_t *records, svs_error *err) {
    svs_code code = SVS_OK;
    uint64_t first = 0, before;
    *records = 0;
    for (int i = 0; i < SVI_READ_TRIES; i++) {
        uint64_t *numbers = NULL;
        int count = 0;
        const svs_code listed = svi_folder_list(f, "journal", &numbers, &count, err);
        before = first;
        first = count > 0 ? numbers[0] : 0;
        svi_free(numbers);
        if (listed != SVS_OK || count == 0 || (i > 0 && first == before))
            return listed != SVS_OK ? listed : code;
        code = read_through(f, first, records, err);
        if (code == SVS_OK)
            break;
    }
    return code;
}

static int verify(const struct cli_args *a, const struct svi_folder *f) {
    const struct svi_recovery_options o = {
        .until = UINT64_MAX, .silent = true, .log = a->quiet ? NULL : stderr};
    struct svi_recovery *r = svi_alloc(sizeof *r);
    svs_error err, why;
    uint64_t records = 0;
    int unsound = 0, files = 0;
    double difference = -1;
    if (!r)
        return cli_fail(a, "no memory");
    svs_code code = list_checkpoints(f, &files, &unsound, &err);
    if (code == SVS_OK)
        code = svi_recover(f, &o, ignore, NULL, r, &err);
    if (code == SVS_OK && !r->engine)
        code = svi_fail(&err, SVS_DAMAGED, "no state is kept in %.150s", a->positional[1]);
    if (code == SVS_OK && r->checkpointed)
        code = compare(f, r, &err);
    if (code == SVS_OK)
        code = svi_engine_verify(r->engine, &difference, &err);
    if (code == SVS_OK && read_journal(f, &records, &why) != SVS_OK) {
        printf("%-16s NOT SOUND: %s\n%-16s a start does not need that part, replay --from-start does\n",
               "journal", why.text, "");
        unsound++;
    }
    if (code == SVS_OK) {
        printf("%-16s %d, %" PRIu64 " records, %" PRIu64 " behind the checkpoint\n", "segments",
               r->found.segments, records, r->found.records);
        if (difference >= 0)
            printf("%-16s %.1e from a model made afresh\n", "weights", difference);
    }
    svi_engine_free(&r->engine);
    svi_free(r);
    if (code != SVS_OK)
        return cli_error(a, &err);
    printf("%s\n", unsound ? "NOT SOUND" : "sound");
    return unsound ? CLI_FAILED : CLI_OK;
}

static int run(const struct cli_args *a) {
    struct svi_folder f = {.fd = -1, .lock = -1};
    svs_error err;
    const bool checks = strcmp(a->positional[0], "verify") == 0;
    if (!checks && strcmp(a->positional[0], "show") != 0)
        return cli_usage(a, "'%.40s' is neither show nor verify", a->positional[0]);
    if (svi_folder_open(&f, a->positional[1], false, &err) != SVS_OK)
        return cli_error(a, &err);
    const int result = checks ? verify(a, &f) : show(a, &f);
    svi_folder_close(&f);
    return result;
}

const struct cli_command cli_state = {
    .name = "state",
    .text = "look at a kept state, or check it",
    .usage = "show|verify FOLDER",
    .help = "show      the checkpoints and journal segments in a folder\n"
            "verify    reads all of them, makes the model again from the newest checkpoint and from the one "
            "before, and\n"
            "          compares; exit code 1 when something is not sound\n"
            "\n"
            "Both only read, also while a process writes there.\n"
            "\n"
            "  svmstream state verify /var/lib/pump1",
    .keys = "",
    .positional_min = 2,
    .positional_max = 2,
    .words = "show verify",
    .run = run};
