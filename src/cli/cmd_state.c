/* state: lists the state kept in a directory, verifies it, and moves it to another one.
 *
 * show lists the files, with the facts by which a person chooses a checkpoint to go back to. verify
 * does what a start would do, and more. It replays the journal from the oldest checkpoint to the
 * newest and compares the states. It also checks the weights against a fresh solve, and reads every
 * record.
 *
 * Nothing is locked: a running process may write and remove files meanwhile. A file that vanishes
 * between listing and reading is not damage. A journal whose first segment vanished is read again.
 *
 * In order of reading: lists, the comparison, the journal, the weights, cmd_state_verify, export
 * and import (state/state_copy.h). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/object.h"
#include "state/recovery.h"
#include "state/state_copy.h"
#include "store/layout.h"

/* Relative distances of the weights from a fresh solve: the one that guarantees.md promises, and one that no
 * badly conditioned window excuses. */
#define WEIGHTS_OFF  1e-10
#define WEIGHTS_LOST 1e-6

static int64_t file_size(const struct svi_state_dir *f, const char *prefix, uint64_t number) {
    char name[SVI_FILE_NAME];
    struct stat st;
    return fstatat(f->fd, svi_state_dir_name(name, prefix, number), &st, 0) == 0 ? (int64_t)st.st_size : -1;
}

/* The time of a checkpoint and its number of samples, to choose one to go back to. */
static void print_choice(const struct svi_state_dir *f, const struct svi_checkpoint *c) {
    char name[SVI_FILE_NAME], when[40] = "";
    int64_t seen = 0; /* sum of samples without and with a key, which two sections count */
    struct stat st;
    struct tm day;
    for (int part = 0; part < 2; part++) {
        const struct svi_section *s = svi_checkpoint_find(c, part ? "keys" : "engine");
        const uint8_t *at = s ? c->bodies.data + s->offset : NULL;
        seen += s ? svi_view_item(svi_view_key(svi_view_of(at, s->size), "seen")).i : 0;
    }
    if (fstatat(f->fd, svi_state_dir_name(name, SVI_CHECKPOINT, c->position.number), &st, 0) == 0 &&
        gmtime_r(&st.st_mtime, &day))
        strftime(when, sizeof when, ", %Y-%m-%dT%H:%M:%SZ", &day);
    printf("%" PRId64 " samples%s, ", seen, when);
}

/* Prints a line for each checkpoint; counts files and damaged checkpoints. */
static svs_code list_checkpoints(const struct svi_state_dir *f, bool choose, int *files, int *damaged,
                                 svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    svs_code code = svi_state_dir_list(f, "checkpoint", &numbers, &count, err);
    *files += count;
    for (int i = 0; i < count && code == SVS_OK; i++) {
        struct svi_checkpoint c = {0};
        char hash[SVI_HASH_TEXT], name[SVI_FILE_NAME];
        svs_error why;
        const char *shown = svi_state_dir_name(name, "checkpoint", numbers[i]);
        if (svi_checkpoint_read(f, numbers[i], &c, &why) == SVS_OK) {
            printf("%s  %10" PRId64 " bytes  after record %-10" PRIu64 " ", shown,
                   file_size(f, "checkpoint", numbers[i]), c.position.number);
            if (choose)
                print_choice(f, &c);
            printf("svmstream %s, %s, state %s\n", c.program, c.isa, svi_hash_text(c.hash, hash));
        } else if (file_size(f, "checkpoint", numbers[i]) >= 0) { /* else a running process has removed it */
            printf("%s  %10" PRId64 " bytes  DAMAGED: %s\n", shown, file_size(f, "checkpoint", numbers[i]),
                   why.text);
            ++*damaged;
        }
        svi_checkpoint_clear(&c);
    }
    svi_free(numbers);
    return code;
}

static svs_code list_segments(const struct svi_state_dir *f, int *files, svs_error *err) {
    uint64_t *numbers = NULL;
    int count = 0;
    char name[SVI_FILE_NAME];
    svs_code code = svi_state_dir_list(f, "journal", &numbers, &count, err);
    *files += count;
    for (int i = 0; i < count; i++)
        printf("%s     %10" PRId64 " bytes  from record %" PRIu64 "\n",
               svi_state_dir_name(name, "journal", numbers[i]), file_size(f, "journal", numbers[i]),
               numbers[i]);
    svi_free(numbers);
    return code;
}

/* The oldest checkpoint plus the journal must give the newest checkpoint's state, compared by their hashes.
 * Rebuilt states are not compared: their bits may differ rightly. */
static svs_code cmd_state_compare(const struct svi_state_dir *f, const struct svi_recovery *newest,
                                  svs_error *err) {
    char expected[SVI_HASH_TEXT], hash[SVI_HASH_TEXT];
    const struct svi_recovery_options o = {.from = SVI_FROM_OLDEST, .until = newest->checkpoint};
    struct svi_recovery *old = svi_recovery_new(f, &o, err);
    if (!old)
        return err->code == SVS_EMPTY ? SVS_OK : err->code;
    svs_code code = SVS_OK;
    if (old->checkpoint < newest->checkpoint && !old->rebuilt && !newest->rebuilt) {
        code = svi_stream_hash(old->stream, hash, err);
        if (code == SVS_OK && strcmp(hash, svi_hash_text(newest->hash, expected)) != 0)
            code = svi_fail(err, SVS_DAMAGED,
                            "the journal from record %" PRIu64 " to %" PRIu64
                            " leads to state %s, the checkpoint has %s",
                            old->checkpoint, newest->checkpoint, hash, expected);
        if (code == SVS_OK)
            printf("%-16s from record %" PRIu64 " to %" PRIu64 ": the same state\n", "repeated",
                   old->checkpoint, newest->checkpoint);
    }
    svi_recovery_free(&old);
    return code;
}

/* Reads every record, also those before the checkpoints, which only a replay needs. */
static svs_code read_through(const struct svi_state_dir *f, uint64_t first, uint64_t *records,
                             svs_error *err) {
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

/* A running process may remove the first segment while it is read; reading is then repeated from the new
 * first one. A failure counts only if the first segment is still the same. */
static svs_code cmd_state_read_journal(const struct svi_state_dir *f, uint64_t *records, svs_error *err) {
    svs_code code = SVS_OK;
    uint64_t first = 0, before;
    *records = 0;
    for (int i = 0; i < SVI_READ_TRIES; i++) {
        uint64_t *numbers = NULL;
        int count = 0;
        const svs_code listed = svi_state_dir_list(f, "journal", &numbers, &count, err);
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

/* Checks the weights against a fresh solve: within WEIGHTS_OFF, or within ten times the error that a rebuild
 * in doubles has in this window, but never beyond WEIGHTS_LOST. */
static svs_code assess_weights(svi_stream *s, int *damaged, svs_error *err) {
    double difference = -1, fresh = -1;
    svs_code code = svi_stream_verify(s, &difference, err);
    if (code != SVS_OK || difference < 0)
        return code;
    printf("%-16s %.1e from a rebuilt model\n", "weights", difference);
    if (difference <= WEIGHTS_OFF)
        return SVS_OK;
    svi_stream_rebuild(s); /* on a copy of the state, which is dropped afterwards */
    code = svi_stream_verify(s, &fresh, err);
    if (code == SVS_OK && !(difference <= fmin(10 * fresh, WEIGHTS_LOST))) {
        printf("%-16s DAMAGED: they may be %.1e off; `svmstream replay --from-start` computes them again\n",
               "", fmax(WEIGHTS_OFF, fmin(10 * fresh, WEIGHTS_LOST)));
        ++*damaged;
    }
    return code;
}

static svs_code cmd_state_verify(const struct cli_args *a, const struct svi_state_dir *f, int *damaged,
                                 svs_error *err) {
    const struct svi_recovery_options o = {.until = UINT64_MAX, .log = a->quiet ? NULL : stderr};
    svs_error why;
    uint64_t records = 0;
    int files = 0;
    if (list_checkpoints(f, false, &files, damaged, err) != SVS_OK)
        return err->code;
    struct svi_recovery *r = svi_recovery_new(f, &o, err);
    if (!r)
        return err->code;
    if (r->damaged > *damaged) { /* checksums are right, but the content is no valid state */
        printf("%-16s DAMAGED: %d newer ones cannot be loaded, a start uses an older one\n", "checkpoints",
               r->damaged);
        *damaged = r->damaged;
    }
    svs_code code = r->checkpointed ? cmd_state_compare(f, r, err) : SVS_OK;
    if (code == SVS_OK && cmd_state_read_journal(f, &records, &why) != SVS_OK) {
        printf("%-16s DAMAGED: %s\n%-16s only replay --from-start needs that part, a start does not\n",
               "journal", why.text, "");
        ++*damaged;
    }
    if (code == SVS_OK)
        printf("%-16s %d, %" PRIu64 " records, %" PRIu64 " after the checkpoint\n", "segments",
               r->found.segments, records, r->found.records);
    if (code == SVS_OK)
        code = assess_weights(r->stream, damaged, err);
    svi_recovery_free(&r);
    return code;
}

static svs_code cmd_state_show(const struct cli_args *a, const struct svi_state_dir *f, int *damaged,
                               svs_error *err) {
    int files = 0;
    if (list_checkpoints(f, true, &files, damaged, err) != SVS_OK || list_segments(f, &files, err) != SVS_OK)
        return err->code;
    return files > 0 ? SVS_OK : svi_fail(err, SVS_EMPTY, "no state is kept in %s", a->positional[1]);
}

static int cmd_state_run(const struct cli_args *a) {
    const bool verify = strcmp(a->verb->name, "verify") == 0;
    struct svi_state_dir f;
    svs_error err;
    int damaged = 0;
    if (svi_layout_open(&f, a->positional[1], false, &err) != SVS_OK)
        return cli_error(a, &err);
    svs_code code = verify ? cmd_state_verify(a, &f, &damaged, &err) : cmd_state_show(a, &f, &damaged, &err);
    svi_state_dir_close(&f);
    if (code == SVS_OK && verify)
        puts(damaged ? "DAMAGED" : "sound");
    return code == SVS_OK && damaged ? CLI_FAILED : cli_end(a, code, &err);
}

/* ---- moving a state */

/* The number of a checkpoint, as `state show` and `ctl save` print it. */
static svs_code cmd_state_number(const char *text, uint64_t *number, svs_error *err) {
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return svi_fail(
            err, SVS_INVALID,
            "%.60s is not the number of a checkpoint: `svmstream state show` lists them, after record N",
            text);
    return SVS_OK;
}

static void report_copied(const struct cli_args *a, const char *what, const struct svi_state_copied *c) {
    if (!a->quiet)
        fprintf(stderr, "%s: the checkpoint after record %" PRIu64 ", state %s, %" PRId64 " bytes\n", what,
                c->checkpoint, c->hash, c->bytes);
}

static int cmd_state_export(const struct cli_args *a) {
    const char *const named = a->positional_count > 2 ? a->positional[2] : NULL;
    struct svi_state_copied copied;
    struct svi_state_dir f;
    uint64_t number = 0;
    svs_error err;
    if (isatty(STDOUT_FILENO)) {
        svi_fail(
            &err, SVS_INVALID,
            "a state is binary data and is not written to a terminal: svmstream state export %.60s > FILE",
            a->positional[1]);
        return cli_error(a, &err);
    }
    if ((named && cmd_state_number(named, &number, &err) != SVS_OK) ||
        svi_layout_open(&f, a->positional[1], false, &err) != SVS_OK)
        return cli_error(a, &err);
    const svs_code code =
        svi_state_export(&f, named ? &number : NULL, STDOUT_FILENO, a->quiet ? NULL : stderr, &copied, &err);
    svi_state_dir_close(&f);
    if (code == SVS_OK)
        report_copied(a, "exported", &copied);
    return cli_end(a, code, &err);
}

static int cmd_state_import(const struct cli_args *a) {
    struct svi_state_copied copied;
    svs_error err;
    if (isatty(STDIN_FILENO)) {
        svi_fail(&err, SVS_INVALID,
                 "import reads an exported state from standard input: svmstream state import %.60s < FILE",
                 a->positional[1]);
        return cli_error(a, &err);
    }
    const svs_code code = svi_state_import(a->positional[1], STDIN_FILENO, &copied, &err);
    if (code == SVS_OK)
        report_copied(a, "imported", &copied);
    return cli_end(a, code, &err);
}

static const struct cli_verb verbs[] = {{"show", cmd_state_run, "DIRECTORY", NULL},
                                        {"verify", cmd_state_run, "DIRECTORY", NULL},
                                        {"export", cmd_state_export, "DIRECTORY [CHECKPOINT]", NULL},
                                        {"import", cmd_state_import, "DIRECTORY", NULL},
                                        {NULL, NULL, NULL, NULL}};

const struct cli_command cli_state = {
    .name = "state",
    .text = "show, verify or move a kept state",
    .usage = "show|verify|export|import DIRECTORY [CHECKPOINT]",
    .help =
        "show      lists the checkpoints and journal segments in a directory; `ctl load checkpoint=N`\n"
        "          restores the state after record N\n"
        "verify    reads all of them, rebuilds the model from the two newest checkpoints and compares; the\n"
        "          exit code is 1 if something is damaged, or weights differ by more than promised\n"
        "export    writes the newest checkpoint, or the one after record CHECKPOINT, to standard output:\n"
        "          one file, with the states of keys\n"
        "import    creates a directory from such a file, which `svmstream run --state.dir` continues\n"
        "\n"
        "show, verify and export only read. You may run them while a process writes to the directory.\n"
        "\n"
        "Examples:\n"
        "  svmstream state verify /var/lib/pump1\n"
        "  svmstream state export /var/lib/pump1 > pump1.state\n"
        "  svmstream state import /var/lib/moved < pump1.state",
    .keys = "",
    .verbs = verbs};
