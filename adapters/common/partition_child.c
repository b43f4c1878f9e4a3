/* A process that holds a partition of a log. It is a machine of a few phases
 * (partition_child_internal.h), and turns move it on.
 *
 * A new state replaces the one in the folder in two steps, and each may be interrupted. The old
 * state is moved away under its own lock, then `svmstream state import` makes the new one. A
 * process that an earlier run of the adapter left behind has been sent SIGTERM by the kernel. It
 * may still be writing its last checkpoint, and the state is in use until it has ended. The start
 * is then tried again after a pause.
 *
 * Each process has sockets of its own (partition_child_link.c), so no reply of an earlier one can arrive.
 * Entries without a reply stay queued when it dies, and the next one says which of them it has. */
#include "partition_child_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"

#define UNANSWERED  64         /* entries without a reply, by default */
#define BYTES       (8u << 20) /* of these */
#define LOOK        0.01       /* seconds between two looks at something that no item reports */
#define PAUSE_MAX   10.0
#define END_SECONDS 10.0 /* for its last checkpoint */
#define USAGE       2    /* exit code of a process whose arguments are wrong */
#define OWN         13   /* arguments besides the user's */

void partition_child_log(const struct partition_child *c, const char *format, ...) {
    char text[SVS_ERROR_TEXT + 120];
    va_list list;
    const int n = snprintf(text, sizeof text, "partition %d: ", c->o.partition);
    va_start(list, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, list);
    va_end(list);
    if (c->o.calls->log)
        c->o.calls->log(c->o.user, text);
}

/* ---- making one */

static char *child_copy(const char *before, const char *text) {
    char *copy = svi_alloc(strlen(before) + strlen(text) + 1);
    return copy ? strcat(strcpy(copy, before), text) : NULL;
}

/* The svmstream next to this program, else the one in PATH. */
static char *child_program(void) {
    static const char name[] = "svmstream";
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (!slash)
        return child_copy("", name);
    strcpy(slash + 1, name);
    return child_copy("", access(path, X_OK) == 0 ? path : name);
}

/* `svmstream run`, the user's arguments, and ours after them: the last one wins. */
static bool child_arguments(struct partition_child *c) {
    const struct {
        const char *setting, *before, *value;
    } own[] = {{"--in.mode", "", "router"},
               {"--in", "ipc://", c->folder.path[PARTITION_IN]},
               {"--out", "ipc://", c->folder.path[PARTITION_OUT]},
               {"--ctl", "ipc://", c->folder.path[PARTITION_CTL]},
               {"--state.dir", "", c->folder.path[PARTITION_STATE]}};
    size_t users = 0, n = 0;
    while (c->o.arguments && c->o.arguments[users])
        users++;
    if (!(c->arguments = svi_alloc((users + OWN) * sizeof *c->arguments)))
        return false;
    bool good =
        (c->arguments[n++] = child_copy("", "svmstream")) && (c->arguments[n++] = child_copy("", "run"));
    for (size_t i = 0; good && i < users; i++)
        good = (c->arguments[n++] = child_copy("", c->o.arguments[i]));
    for (size_t i = 0; good && i < sizeof own / sizeof own[0]; i++)
        good = (c->arguments[n++] = child_copy("", own[i].setting)) &&
               (c->arguments[n++] = child_copy(own[i].before, own[i].value));
    return good;
}

struct partition_child *partition_child_new(const struct partition_options *o, svs_error *err) {
    struct partition_child *c = svi_new(sizeof *c, "a partition", err);
    if (!c)
        return NULL;
    c->o = *o;
    c->o.unanswered = o->unanswered > 0 ? o->unanswered : UNANSWERED;
    c->o.bytes = o->bytes > 0 ? o->bytes : BYTES;
    c->fresh = o->fresh || o->checkpoint;
    c->next = -1;
    c->pause = PARTITION_PAUSE;
    c->phase = PHASE_PAUSE; /* the first turn starts it */
    svs_code code = partition_folder_open(&c->folder, o->folder, o->partition, err);
    if (code == SVS_OK) {
        c->program = o->program ? child_copy("", o->program) : child_program();
        c->checkpoint = o->checkpoint ? child_copy("", o->checkpoint) : NULL;
        if (!c->program || (o->checkpoint && !c->checkpoint) || !child_arguments(c))
            code = svi_fail_memory(err, "a partition");
    }
    if (code != SVS_OK)
        partition_child_free(&c);
    return c;
}

void partition_child_free(struct partition_child **child) {
    struct partition_child *c = *child;
    if (!c)
        return;
    partition_child_link_close(c);
    partition_process_kill(&c->tool);
    partition_process_kill(&c->run);
    partition_entries_clear(&c->entries, 0);
    for (char **a = c->arguments; a && *a; a++)
        svi_free(*a);
    svi_free(c->arguments);
    svi_free(c->program);
    svi_free(c->checkpoint);
    svi_free(c);
    *child = NULL;
}

/* ---- the life of the process */

static void child_die(struct partition_child *c, const char *why) {
    partition_child_save_end(c, why[0] ? why : "the stream is ending");
    partition_child_link_close(c);
    snprintf(c->why, sizeof c->why, "%s", why);
    c->phase = PHASE_DEAD;
    partition_entries_clear(&c->entries, c->next);
}

/* The next process follows after a pause, or the partition is given up. `final`: a further one would end the
 * same way. */
static void child_retry(struct partition_child *c, const char *why, bool final) {
    if (c->phase == PHASE_END) {
        child_die(c, "");
        return;
    }
    if (final || !c->o.restart) {
        partition_child_log(c, "%s", why);
        child_die(c, why);
        return;
    }
    partition_child_log(c, "%s; it is started again in %.1f s", why, c->pause);
    partition_child_save_end(c, why);
    c->restarts++;
    c->phase = PHASE_PAUSE;
    c->due = svi_monotonic() + c->pause;
    c->pause = fmin(2 * c->pause, PAUSE_MAX);
}

static void child_ended(struct partition_child *c) {
    char text[200], why[300];
    const int status = c->run.status;
    snprintf(why, sizeof why, "the process of its stream %s",
             partition_process_text(&c->run, text, sizeof text));
    const bool usage = !c->answered && WIFEXITED(status) && WEXITSTATUS(status) == USAGE;
    partition_child_link_close(c);
    child_retry(c, why, c->run.failed != 0 || usage);
}

static svs_code child_import(struct partition_child *c, svs_error *err) {
    char *const argv[] = {"svmstream", "state", "import", "-q", c->folder.path[PARTITION_STATE], NULL};
    const int in = open(c->checkpoint, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return svi_fail(err, SVS_IO, "the checkpoint %.150s cannot be read: %s", c->checkpoint,
                        strerror(errno));
    const svs_code code = partition_process_start(&c->tool, c->program, argv, in, -1, err);
    close(in);
    c->phase = PHASE_IMPORT;
    return code;
}

static svs_code child_run(struct partition_child *c, svs_error *err) {
    partition_folder_tidy(&c->folder);
    c->answered = false;
    c->phase = PHASE_START;
    return partition_process_start(&c->run, c->program, c->arguments, -1, -1, err);
}

/* What comes next for a partition without a process. */
static void child_start(struct partition_child *c) {
    svs_error err = {.code = SVS_OK};
    svs_code code = c->fresh ? partition_folder_forget(&c->folder, &err) : SVS_OK;
    if (code == SVS_OK) {
        c->fresh = false;
        code = c->checkpoint ? child_import(c, &err) : child_run(c, &err);
    }
    if (code == SVS_OK)
        return;
    /* A state in use, a full table of processes: these pass, whether a dead process would be replaced or not.
     */
    partition_child_log(c, "%s; tried again in %.1f s", err.text, c->pause);
    c->phase = PHASE_PAUSE;
    c->due = svi_monotonic() + c->pause;
    c->pause = fmin(2 * c->pause, PAUSE_MAX);
}

static void child_imported(struct partition_child *c) {
    char text[200], why[300];
    const bool good = !c->tool.failed && WIFEXITED(c->tool.status) && WEXITSTATUS(c->tool.status) == 0;
    if (!good) {
        snprintf(why, sizeof why, "the import of its checkpoint %s",
                 partition_process_text(&c->tool, text, sizeof text));
        c->fresh = true;
        child_retry(c, why, c->tool.failed || !WIFSIGNALED(c->tool.status));
        return;
    }
    /* It continues its own state from now on. */
    svi_free(c->checkpoint);
    c->checkpoint = NULL;
    child_start(c);
}

void partition_child_turn(struct partition_child *c) {
    const double now = svi_monotonic();
    if (c->phase == PHASE_DEAD)
        return;
    if (c->run.id)
        partition_child_link_turn(c);
    if (c->run.id && partition_process_ended(&c->run))
        child_ended(c);
    else if (c->phase == PHASE_IMPORT && partition_process_ended(&c->tool))
        child_imported(c);
    else if (c->phase == PHASE_PAUSE && now >= c->due)
        child_start(c);
    else if (c->phase == PHASE_END && !c->run.id)
        child_die(c, "");
    else if (c->phase == PHASE_END && now >= c->due)
        partition_process_signal(&c->run, SIGKILL);
    if (c->step != SAVE_NONE)
        partition_child_save_turn(c);
}

void partition_child_end(struct partition_child *c) {
    if (c->phase == PHASE_END || c->phase == PHASE_DEAD)
        return;
    /* What an import leaves unfinished is no state. */
    partition_child_save_end(c, "the stream is ending");
    partition_process_kill(&c->tool);
    partition_process_signal(&c->run, SIGTERM);
    c->phase = PHASE_END;
    c->due = svi_monotonic() + END_SECONDS;
}

/* ---- what the adapter sees */

int partition_child_items(const struct partition_child *c, zmq_pollitem_t *items) {
    int n = 0;
    if (c->run.id)
        items[n++] = (zmq_pollitem_t){NULL, c->run.watched, ZMQ_POLLIN, 0};
    if (c->tool.id)
        items[n++] = (zmq_pollitem_t){NULL, c->tool.watched, ZMQ_POLLIN, 0};
    if (!c->in)
        return n;
    const bool sends = c->blocked && c->phase == PHASE_LIVE;
    items[n++] = (zmq_pollitem_t){c->in, 0, (short)(ZMQ_POLLIN | (sends ? ZMQ_POLLOUT : 0)), 0};
    items[n++] = (zmq_pollitem_t){c->ctl, 0, ZMQ_POLLIN, 0};
    items[n++] = (zmq_pollitem_t){c->events.socket, 0, ZMQ_POLLIN, 0};
    return n;
}

double partition_child_wait(const struct partition_child *c) {
    const double left = fmax(0, c->due - svi_monotonic());
    if (c->phase == PHASE_DEAD)
        return HUGE_VAL;
    /* More events, or a save that nothing is in the way of, which no item reports. */
    if (c->waiting || (c->step == SAVE_WAITS && c->phase == PHASE_LIVE && c->entries.count == 0))
        return 0;
    if (c->phase == PHASE_PAUSE || (c->phase == PHASE_DRAIN && c->entries.flying == 0 && !c->greeted))
        return left;
    if (c->phase == PHASE_END)
        return c->run.id ? left : 0;
    /* A process that has ended is seen by its item; its sockets and a lost marker are looked for. */
    if (c->phase == PHASE_START && !c->in)
        return LOOK;
    return c->phase == PHASE_START || c->marker ? 1 : c->entries.count > 0 ? 10 : HUGE_VAL;
}

enum partition_state partition_child_state(const struct partition_child *c) {
    if (c->phase == PHASE_DEAD)
        return PARTITION_DEAD;
    if (c->phase == PHASE_END)
        return PARTITION_ENDING;
    if (c->step != SAVE_NONE)
        return PARTITION_SAVING;
    return c->phase == PHASE_LIVE || c->phase == PHASE_DRAIN ? PARTITION_READY : PARTITION_STARTING;
}

const char *partition_child_why(const struct partition_child *c) {
    return c->why;
}

/* An import that succeeds forgets the checkpoint. */
bool partition_child_refused(const struct partition_child *c) {
    return c->phase == PHASE_DEAD && c->checkpoint && !c->tool.failed && WIFEXITED(c->tool.status) &&
           WEXITSTATUS(c->tool.status) != 0;
}

int64_t partition_child_pid(const struct partition_child *c) {
    return c->run.id;
}

int64_t partition_child_restarts(const struct partition_child *c) {
    return c->restarts;
}

int64_t partition_child_place(const struct partition_child *c, const void **at, size_t *size) {
    *at = c->at;
    *size = c->at_size;
    return c->generation;
}

int64_t partition_child_next(const struct partition_child *c) {
    return c->next;
}

int64_t partition_child_unanswered(const struct partition_child *c) {
    return c->entries.count;
}

uint64_t partition_child_epoch(const struct partition_child *c) {
    return c->epoch;
}
