/* store_writer.c: writes known records the way the engine does: gathers, commits, acknowledges, makes a
 * checkpoint now and then, and removes what the second newest no longer needs.
 *
 * usage: store_writer FOLDER seed=N cycle=N [records=N] [every=N] [fsync=always|interval|never] [thread=1]
 *                     [early-trim=1]   (thread: checkpoints and the syncs of fsync=interval have threads of
 * their own)
 *
 * Prints `start N` (recovered records) and `ack N` (records that may not get lost any more): with
 * fsync=always what was committed, else what the journal says is durable. Exit code 0: done; 1: recovery
 * accepted something wrong; 2: recovery was refused; 3: the store failed and this process must end; 4: the
 * disk stayed full. early-trim is an error to be found: segments go before the checkpoint that replaces them
 * is there. */
#include "fault/store_common.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define GROUP_MAX 4
#define TRIES     6 /* with a full disk */

struct options {
    const char *folder, *fsync;
    uint64_t seed, cycle, records, every, thread, early_trim;
};

struct writer {
    struct options o;
    struct svi_state_dir folder;
    svi_journal *journal;
    struct state state;
    uint64_t epoch, last_checkpoint, acked;
    double time;
    /* the checkpoint being written */
    struct svi_checkpoint checkpoint;
    pthread_t thread;
    bool running; /* thread is to be joined */
    atomic_bool done;
    svs_code written;
    svs_error error;
    /* a sync that the records do not wait for */
    struct svi_journal_sync sync;
    pthread_t sync_thread;
    bool syncing;
    atomic_bool synced;
};

static void say(const char *what, uint64_t n) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %" PRIu64 "\n", what, n);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(5);
}

static void complain(const char *what, const svs_error *err) {
    fprintf(stderr, "store_writer: %s: %s\n", what, err->text);
}

/* ---- checkpoints */

static svs_code trim(struct writer *w, uint64_t number, svs_error *err) {
    return svi_journal_trim(&w->folder, number, svi_journal_position(w->journal).segment, err);
}

static svs_code remove_old(struct writer *w) {
    uint64_t *numbers;
    int count;
    svs_error err = {0};
    svs_code code = svi_state_dir_list(&w->folder, "checkpoint", &numbers, &count, &err);
    if (code == SVS_OK)
        code = svi_state_dir_clear(&w->folder, "checkpoint", numbers, count - CHECKPOINTS_KEPT, &err);
    if (code == SVS_OK && count >= CHECKPOINTS_KEPT)
        code = trim(w, numbers[count - CHECKPOINTS_KEPT], &err);
    if (code != SVS_OK)
        complain("old files stay", &err);
    svi_free(numbers);
    return code;
}

static void *write_checkpoint(void *context) {
    struct writer *w = context;
    int64_t size;
    w->written = svi_checkpoint_write(&w->folder, &w->checkpoint, &size, &w->error);
    atomic_store(&w->done, true);
    return NULL;
}

/* A full disk can wait for the next checkpoint. After any other failure nothing is known of what is on disk,
 * and later syncs of the folder prove nothing: the process has to end. */
static svs_code end_checkpoint(struct writer *w) {
    if (w->running)
        pthread_join(w->thread, NULL);
    w->running = false;
    if (w->written != SVS_OK)
        complain("no checkpoint", &w->error);
    const svs_code code = w->written == SVS_OK ? remove_old(w) : w->written;
    return code == SVS_DISK_FULL ? SVS_OK : code;
}

/* The journal first, as the program does it: what is in a checkpoint is on disk in the journal too. */
static svs_code begin_checkpoint(struct writer *w) {
    svs_error err;
    if (svi_journal_sync(w->journal, &err) != SVS_OK) {
        complain("not synced", &err);
        return SVS_IO;
    }
    struct svi_position at = svi_journal_position(w->journal);
    w->last_checkpoint = w->state.count;
    w->error = (svs_error){0};
    atomic_store(&w->done, false);
    if (state_save(&w->state, w->o.seed, w->epoch, at, &w->checkpoint, &w->error) != SVS_OK) {
        complain("no checkpoint", &w->error);
        return SVS_NO_MEMORY;
    }
    if (w->o.early_trim)
        trim(w, w->state.count, NULL);
    w->running = w->o.thread && pthread_create(&w->thread, NULL, write_checkpoint, w) == 0;
    if (w->running)
        return SVS_OK;
    write_checkpoint(w);
    return end_checkpoint(w);
}

static svs_code tend_checkpoints(struct writer *w) {
    svs_code code = w->running && atomic_load(&w->done) ? end_checkpoint(w) : SVS_OK;
    if (code == SVS_OK && !w->running && w->state.count - w->last_checkpoint >= w->o.every)
        code = begin_checkpoint(w);
    return code;
}

/* ---- records */

static svs_code gather(struct writer *w, int group, svs_error *err) {
    uint8_t payload[PAYLOAD_MAX];
    svs_code code = SVS_OK;
    for (int i = 0; i < group && code == SVS_OK; i++) {
        uint64_t n = w->state.count + (uint64_t)i;
        size_t size = known_payload(w->o.seed, n, w->o.cycle, payload);
        code = svi_journal_append(w->journal, known_kind(n), known_time(n), payload, size, err);
    }
    return code;
}

static void apply(struct writer *w, int group) {
    uint8_t payload[PAYLOAD_MAX];
    for (int i = 0; i < group; i++) {
        size_t size = known_payload(w->o.seed, w->state.count, w->o.cycle, payload);
        if (!state_take(&w->state, w->o.cycle, payload, size))
            _exit(6);
    }
}

/* What was given up before it was committed must leave no trace. */
static void gather_in_vain(struct writer *w) {
    svs_error err;
    svi_journal_append(w->journal, 99, -1, "never committed, so never read", 30, &err);
    svi_journal_abort(w->journal);
}

/* A full disk takes nothing; the same group is offered again, as a producer would. */
static svs_code commit(struct writer *w, int group) {
    svs_error err = {0};
    svs_code code = SVS_DISK_FULL;
    for (int i = 0; i < TRIES && code == SVS_DISK_FULL; i++) {
        code = gather(w, group, &err);
        if (code == SVS_OK)
            code = svi_journal_commit(w->journal, &err);
        if (code != SVS_OK)
            complain("not taken", &err);
    }
    return code;
}

static void *run_sync(void *context) {
    struct writer *w = context;
    svi_journal_sync_run(&w->sync);
    atomic_store(&w->synced, true);
    return NULL;
}

static svs_code end_sync(struct writer *w, svs_error *err) {
    pthread_join(w->sync_thread, NULL);
    w->syncing = false;
    return svi_journal_sync_end(w->journal, &w->sync, err);
}

/* The sync of the policy interval, if there is to be one in a thread of its own. */
static svs_code sync_at_intervals(struct writer *w, svs_error *err) {
    double due;
    if (w->syncing)
        return atomic_load(&w->synced) ? end_sync(w, err) : SVS_OK;
    if (!svi_journal_due(w->journal, w->time, &due))
        return SVS_OK;
    if (!w->o.thread)
        return svi_journal_sync(w->journal, err);
    svs_code code = svi_journal_sync_begin(w->journal, &w->sync, err);
    atomic_store(&w->synced, false);
    w->syncing = code == SVS_OK && pthread_create(&w->sync_thread, NULL, run_sync, w) == 0;
    if (code != SVS_OK || w->syncing)
        return code;
    svi_journal_sync_run(&w->sync);
    return svi_journal_sync_end(w->journal, &w->sync, err);
}

static svs_code acknowledge(struct writer *w) {
    svs_error err = {0};
    w->time += 0.05;
    svs_code code = sync_at_intervals(w, &err);
    if (code != SVS_OK)
        complain("not synced", &err);
    bool always = strcmp(w->o.fsync, "always") == 0;
    uint64_t safe = always ? w->state.count : svi_journal_durable(w->journal);
    if (code == SVS_OK && safe > w->acked)
        say("ack", w->acked = safe);
    return code;
}

static svs_code write_records(struct writer *w) {
    uint64_t end = w->state.count + w->o.records;
    svs_code code = SVS_OK;
    for (uint64_t turn = 0; code == SVS_OK && w->state.count < end; turn++) {
        int group = 1 + (int)((w->o.seed + turn * turn) % GROUP_MAX);
        if (turn % 16 == 7)
            gather_in_vain(w);
        code = commit(w, group);
        if (code != SVS_OK)
            break;
        apply(w, group);
        code = acknowledge(w);
        if (code == SVS_OK)
            code = tend_checkpoints(w);
    }
    svs_error err = {0};
    svs_code last = w->running ? end_checkpoint(w) : SVS_OK, sync = w->syncing ? end_sync(w, &err) : SVS_OK;
    if (sync != SVS_OK)
        complain("not synced", &err);
    return code != SVS_OK ? code : last != SVS_OK ? last : sync;
}

/* ---- the process */

static int refused(const char *what, const svs_error *err) {
    complain(what, err);
    return err->code == SVS_DISK_FULL ? 4 : err->code == SVS_DAMAGED ? 2 : 3;
}

static int run(struct writer *w) {
    struct recovered r;
    svs_error err = {0};
    if (recover(&w->folder, w->o.seed, &r, &err) != SVS_OK)
        return refused("no recovery", &err);
    if (r.wrong[0]) {
        fprintf(stderr, "store_writer: wrong: %s\n", r.wrong);
        return 1;
    }
    w->state = r.state;
    w->last_checkpoint = r.state.count;
    w->epoch = r.epoch ? r.epoch : w->o.seed * 1000 + 1;
    enum svi_fsync fsync = w->o.fsync[0] == 'a'   ? SVI_FSYNC_ALWAYS
                           : w->o.fsync[0] == 'i' ? SVI_FSYNC_INTERVAL
                                                  : SVI_FSYNC_NEVER;
    struct svi_journal_options o = {
        .stream = "fault", .epoch = w->epoch, .segment = 4096, .fsync = fsync, .interval = 0.2};
    w->journal = svi_journal_new(&w->folder, &o, &r.journal.end, &err);
    if (!w->journal)
        return refused("no journal", &err);
    say("start", r.state.count);
    svs_code code = write_records(w);
    svi_journal_free(&w->journal);
    return code == SVS_OK ? 0 : code == SVS_DISK_FULL ? 4 : 3;
}

static bool read_options(int count, char **words, struct options *o) {
    struct {
        const char *name;
        uint64_t *to;
    } numbers[] = {{"seed", &o->seed},   {"cycle", &o->cycle},   {"records", &o->records},
                   {"every", &o->every}, {"thread", &o->thread}, {"early-trim", &o->early_trim}};
    *o = (struct options){
        .folder = words[1], .fsync = "always", .seed = 1, .cycle = 1, .records = 200, .every = 50};
    for (int i = 2; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (!value)
            return false;
        *value++ = 0;
        if (strcmp(words[i], "fsync") == 0)
            o->fsync = value;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            if (strcmp(words[i], numbers[k].name) == 0)
                *numbers[k].to = strtoull(value, NULL, 10);
    }
    return count >= 2;
}

int main(int count, char **words) {
    static struct writer w;
    svs_error err = {0};
    if (count < 2 || !read_options(count, words, &w.o)) {
        fprintf(stderr, "usage: store_writer FOLDER name=value...\n");
        return 64;
    }
    if (svi_state_dir_open(&w.folder, w.o.folder, true, &err) != SVS_OK)
        return refused("no folder", &err);
    int code = run(&w);
    svi_checkpoint_clear(&w.checkpoint);
    svi_state_dir_close(&w.folder);
    return code;
}
