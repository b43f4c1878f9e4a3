/* A worker: one thread and one loop over Redis and the processes of its partitions (redis_leases,
 * redis_part).
 *
 * A signal ends it orderly: each partition makes a last checkpoint and its lease is given up, within
 * CLOSE_SECONDS; a second signal ends it at once, which loses nothing either: the leases run out. Each worker
 * has a folder of its own, with a lock; the next one removes those whose lock nobody holds. */
#include "redis_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "redis_leases.h"
#include "redis_log.h"
#include "redis_loop.h"

#define FOLDER        "svmstream-redis-"
#define FOLDER_BYTES  81 /* with its NUL: sockets lie in it, whose names are short */
#define MKDTEMP       6  /* characters that mkdtemp(3) replaces, each an X */
#define CLOSE_SECONDS 20.0
#define ID_BYTES      64

struct worker {
    struct redis_client client;
    struct redis_loop loop;
    struct redis_shared shared;
    struct redis_leases leases;
    char id[ID_BYTES], folder[FOLDER_BYTES];
    int lock; /* of the folder */
};

/* Another process is another worker, also on the same machine with a process number that was used before. */
static void worker_id(char id[ID_BYTES]) {
    char host[24] = "";
    uint32_t number = 0;
    gethostname(host, sizeof host - 1);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint32_t)svi_monotonic_ms();
    snprintf(id, ID_BYTES, "%s-%ld-%08" PRIx32, host, (long)getpid(), number);
}

static int worker_remove(const char *path, const struct stat *s, int type, struct FTW *f) {
    (void)s;
    (void)type;
    (void)f;
    return remove(path);
}

/* A lock in the folder, held as long as this process lives. -1: another process holds it, or it cannot be
 * taken. */
static int worker_lock(const char *folder, int flags) {
    char path[300];
    snprintf(path, sizeof path, "%s/lock", folder);
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Removes the folders of workers that were killed: nothing in them is needed. */
static void worker_sweep(const char *parent) {
    char pattern[300];
    glob_t found;
    struct stat s;
    snprintf(pattern, sizeof pattern, "%s/" FOLDER "??????", parent);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        const bool ours = lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid();
        const int fd = ours ? worker_lock(path, 0) : -1;
        if (fd >= 0) {
            nftw(path, worker_remove, 16, FTW_DEPTH | FTW_PHYS);
            close(fd);
        }
    }
    globfree(&found);
}

/* A folder of its own: an earlier worker may not have ended yet. */
static int worker_folder(struct worker *w, const struct redis_options *o) {
    const size_t capacity = FOLDER_BYTES - MKDTEMP;
    const char *parent = o->folder ? o->folder : "/tmp";
    const int n = snprintf(w->folder, capacity, "%s/" FOLDER, parent);
    worker_sweep(parent);
    if (n < (int)capacity)
        memset(w->folder + n, 'X', MKDTEMP);
    if (n < (int)capacity && mkdtemp(w->folder) && (w->lock = worker_lock(w->folder, O_CREAT)) >= 0)
        return 0;
    redis_log("--folder %s: %s", parent,
              n < (int)capacity ? strerror(errno) : "its name is too long for the names of sockets in it");
    w->folder[0] = 0;
    return 1;
}

static void worker_report(const struct worker *w) {
    const struct redis_shared *s = &w->shared;
    redis_log("partitions %d, entries %" PRId64 ", refused %" PRId64 ", events %" PRId64 ", lost %" PRId64
              ", rewound %" PRId64 ", fenced %" PRId64 ", takeovers %" PRId64 ", checkpoints %" PRId64
              ", reconnects %" PRId64 ", redirects %" PRId64,
              redis_leases_held(&w->leases), s->entries, s->refused, s->events, s->lost, s->rewound,
              s->fenced, s->takeovers, s->checkpoints, w->client.reconnects, w->client.redirects);
}

static int worker_items(void *user, zmq_pollitem_t *items) {
    const struct worker *w = user;
    int n = 0;
    for (int i = 0; i < w->leases.count; i++)
        if (w->leases.part[i])
            n += redis_part_items(w->leases.part[i], items + n);
    return n;
}

static void worker_turn(struct worker *w, double wait) {
    redis_loop_turn(&w->loop, &w->client, fmin(wait, redis_leases_wait(&w->leases)), worker_items,
                    w->leases.count * PARTITION_CHILD_ITEMS, w);
    redis_leases_turn(&w->leases);
}

static int worker_loop(struct worker *w, const struct redis_options *o) {
    double stats = svi_monotonic() + (o->stats > 0 ? o->stats : HUGE_VAL);
    while (!w->loop.stop && !w->client.hopeless) {
        worker_turn(w, fmax(0, stats - svi_monotonic()));
        if (svi_monotonic() >= stats) {
            worker_report(w);
            stats += o->stats;
        }
    }
    if (w->client.hopeless)
        return 1;
    const double end = svi_monotonic() + CLOSE_SECONDS;
    w->loop.stop = false;
    redis_leases_close(&w->leases);
    while (redis_leases_held(&w->leases) > 0 && !w->loop.stop && svi_monotonic() < end)
        worker_turn(w, end - svi_monotonic());
    if (redis_leases_held(&w->leases) > 0)
        redis_log("%d partitions could not be given up in order: another worker continues from their stored "
                  "checkpoints when the leases are over",
                  redis_leases_held(&w->leases));
    worker_report(w);
    return 0;
}

static int worker_start(struct worker *w, const struct redis_options *o) {
    const int count = redis_loop_partitions(&w->loop, &w->client, o->stream, (int)o->count, true);
    if (count == 0)
        return w->loop.stop ? 0 : 1;
    bool *wanted = o->partitions ? redis_need((size_t)count, sizeof *wanted) : NULL;
    int code = wanted ? redis_options_partitions(o, count, wanted) : 0;
    if (code == 0)
        code = worker_folder(w, o);
    if (code == 0) {
        redis_log("worker %s of stream %s, %d partitions, Redis at %s:%d", w->id, o->stream, count,
                  o->url.host, o->url.port);
        redis_leases_open(&w->leases, &w->shared, count, wanted);
        code = worker_loop(w, o);
        redis_leases_free(&w->leases);
        nftw(w->folder, worker_remove, 16, FTW_DEPTH | FTW_PHYS);
        close(w->lock);
    }
    svi_free(wanted);
    return code;
}

int redis_worker_run(const struct redis_options *o) {
    struct worker *w = redis_need(1, sizeof *w);
    void *context = zmq_ctx_new();
    int code = 1;
    worker_id(w->id);
    w->shared = (struct redis_shared){.client = &w->client,
                                      .stream = o->stream,
                                      .id = w->id,
                                      .folder = w->folder,
                                      .program = o->program,
                                      .arguments = o->arguments,
                                      .argument_count = o->argument_count,
                                      .topics = o->topics,
                                      .keep = o->keep,
                                      .save = o->save,
                                      .lease = o->lease,
                                      .wait = o->wait,
                                      .trim = !o->keep_log,
                                      .context = context};
    redis_client_open(&w->client, &o->url, o->timeout);
    w->client.ordered = REDIS_LANE_WRITE;
    w->client.patient = true; /* a service: Redis may be started later */
    if (context && redis_loop_open(&w->loop) == 0)
        code = worker_start(w, o);
    else if (!context)
        redis_log("ZeroMQ cannot start");
    redis_loop_close(&w->loop);
    redis_client_close(&w->client);
    while (context && zmq_ctx_term(context) != 0 && errno == EINTR)
        ;
    svi_free(w);
    return code;
}
