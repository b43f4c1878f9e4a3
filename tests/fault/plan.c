/* plan.c: reads the plan from the environment, knows the folder's files, counts and judges calls. */
#include "fault/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS 1024

static const char *const call_name[] = {"write", "fsync",    "rename", "unlink",
                                        "open",  "truncate", "mkdir",  "any"};

static struct {
    char folder[WB_PATH]; /* canonical; "" = off */
    bool error, lie, shorten, cut_at_exit;
    long at, times;
    enum call call;
    int number; /* errno */
    uint64_t seed;
    const char *log, *after;
    long sync_time; /* microseconds at most */
    pid_t process;
} plan;

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uchar ours[DESCRIPTORS]; /* 1 = open under the folder, 2 = and each write is synced */
static int told[DESCRIPTORS];          /* failed syncs that the descriptor knows of */
static long calls, failed;
static bool half_done; /* FAULT_SHORT: the next write fails */
static bool begun;     /* calls are counted */

/* ---- the plan */

static long number_of(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static int errno_of(const char *text) {
    static const struct {
        const char *name;
        int number;
    } known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR},
                 {"EMFILE", EMFILE}, {"EROFS", EROFS},   {"EACCES", EACCES}, {"ENOMEM", ENOMEM}};
    for (size_t i = 0; text && i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0)
            return known[i].number;
    return text ? atoi(text) : EIO;
}

/* The name that the descriptor was opened under, canonical. */
bool plan_name(int fd, char out[WB_PATH]) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, out, (size_t)WB_PATH - 1);
    out[n < 0 ? 0 : n] = 0;
    return n > 0 && out[0] == '/';
}

/* The canonical name of what `path` stands for, or would if it were there: that of its folder, and its last
 * part. */
static bool canonical(int at, const char *path, char out[WB_PATH]) {
    char parent[WB_PATH];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t head = n;
    while (head > 0 && path[head - 1] != '/')
        head--;
    if (n == 0 || n >= WB_PATH)
        return false;
    memcpy(parent, path, head);
    memcpy(parent + head, ".", 2);
    int fd = (int)syscall(SYS_openat, at, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool known = plan_name(fd, out);
    syscall(SYS_close, fd);
    size_t length = strlen(out);
    if (!known || length + 1 + (n - head) >= WB_PATH)
        return false;
    if (length > 1)
        out[length++] = '/';
    memcpy(out + length, path + head, n - head);
    out[length + n - head] = 0;
    return true;
}

static void read_plan(void) {
    const char *folder = getenv("FAULT_DIR"), *mode = getenv("FAULT_MODE"), *call = getenv("FAULT_CALL");
    plan.error = mode && strcmp(mode, "error") == 0;
    plan.at = number_of("FAULT_AT", 0);
    plan.times = number_of("FAULT_STICKY", 0) ? 0 : number_of("FAULT_TIMES", 1);
    plan.seed = (uint64_t)number_of("FAULT_SEED", 1);
    plan.lie = number_of("FAULT_LIE", 0) != 0;
    plan.shorten = number_of("FAULT_SHORT", 0) != 0;
    plan.cut_at_exit = number_of("FAULT_CUT_AT_EXIT", 0) != 0;
    plan.number = errno_of(getenv("FAULT_ERRNO"));
    plan.log = getenv("FAULT_LOG");
    plan.after = getenv("FAULT_AFTER");
    plan.sync_time = number_of("FAULT_SYNC_TIME", 0);
    plan.process = getpid();
    for (plan.call = 0; call && plan.call < ANY && strcmp(call, call_name[plan.call]) != 0;)
        plan.call++;
    if (!call)
        plan.call = ANY;
    if (folder && !canonical(AT_FDCWD, folder, plan.folder))
        plan.folder[0] = 0;
}

static bool active(void) {
    pthread_once(&once, read_plan);
    return plan.folder[0] != 0 && plan.process == getpid();
}

/* ---- what is ours */

static bool inside(const char *path) {
    size_t n = strlen(plan.folder);
    return strncmp(path, plan.folder, n) == 0 && (path[n] == 0 || path[n] == '/');
}

bool plan_path(int at, const char *path, char name[WB_PATH]) {
    int saved = errno;
    bool found = path && active() && canonical(at, path, name) && inside(name);
    errno = saved;
    return found;
}

void plan_note(int fd, bool synced) {
    if (fd >= DESCRIPTORS)
        plan_refuse("a descriptor above 1023", "open");
    ours[fd] = synced ? 2 : 1;
}

void plan_forget(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS)
        ours[fd] = 0;
}

bool plan_writes_synced(int fd) {
    return ours[fd] == 2;
}

/* The C library closes some descriptors without our knowing, so that the number may be another file's by now.
 */
bool plan_descriptor(int fd) {
    if (fd < 0 || fd >= DESCRIPTORS || !ours[fd])
        return false;
    int saved = errno;
    char name[WB_PATH];
    bool found = plan_name(fd, name) && inside(name);
    if (!found)
        ours[fd] = 0;
    errno = saved;
    return found;
}

void plan_refuse(const char *what, const char *path) {
    char text[WB_PATH + 64];
    int n = snprintf(text, sizeof text, "powercut: %s under the folder is not simulated: %s\n", what, path);
    syscall(SYS_write, 2, text, (size_t)n);
    _exit(99);
}

/* ---- the fault */

static void write_log(const char *what, enum call call, const struct wb_cut *cut) {
    char text[200];
    if (!plan.log)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, plan.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int n = snprintf(text, sizeof text,
                     "%s call=%s calls=%ld failed=%ld kept=%d reverted=%d garbled=%d sizes=%d undone=%d\n",
                     what, call_name[call], calls, failed, cut->kept, cut->reverted, cut->garbled, cut->sizes,
                     cut->undone);
    syscall(SYS_write, fd, text, (size_t)n);
    syscall(SYS_close, fd);
}

static void cut_power(enum call call) {
    struct wb_cut cut = wb_cut(plan.seed);
    write_log("cut", call, &cut);
    syscall(SYS_exit_group,
            137); /* at once: _exit would let a sanitizer look around, in the midst of a call */
    __builtin_unreachable();
}

static uint64_t lot(uint64_t number) {
    uint64_t x = (plan.seed + number) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

static uint64_t coin(void) {
    return lot((uint64_t)plan.at);
}

static enum verdict judge_error(enum call call) {
    if (call == WRITE && half_done) {
        half_done = false;
        failed++;
        return FAIL;
    }
    if (plan.call != ANY && plan.call != call)
        return GO;
    calls++;
    if (plan.at == 0 || calls < plan.at || (plan.times > 0 && calls >= plan.at + plan.times))
        return GO;
    if (call == WRITE && plan.shorten && failed == 0) {
        half_done = true;
        return PART;
    }
    failed++;
    return FAIL;
}

static bool counted(void) {
    if (!begun)
        begun = !plan.after || syscall(SYS_faccessat, AT_FDCWD, plan.after, F_OK) == 0;
    return begun;
}

void plan_lock(void) {
    pthread_mutex_lock(&one);
}

/* A call that is let through is followed by `leave`. */
enum verdict plan_judge(enum call call, bool changes) {
    enum verdict v = GO;
    if (!counted())
        return GO;
    if (plan.error)
        v = judge_error(call);
    else if (changes && ++calls == plan.at) {
        v = call == WRITE ? PART : CUT_BEHIND;
        if (coin() % 4 < (call == FSYNC ? 3 : 1)) /* behind an fsync less is at stake */
            cut_power(call);
    }
    if (v == FAIL)
        errno = plan.number;
    return v;
}

enum verdict plan_enter(enum call call, bool changes) {
    plan_lock();
    return plan_judge(call, changes);
}

void plan_leave(enum verdict v, enum call call) {
    if (!plan.error && (v == CUT_BEHIND || v == PART))
        cut_power(call);
    int saved = errno;
    pthread_mutex_unlock(&one);
    errno = saved;
}

int plan_fail(void) {
    plan_leave(FAIL, ANY);
    return -1;
}

bool plan_owes_failure(int fd, bool fresh) {
    int losses = wb_losses(fd);
    bool owes = !fresh && told[fd] < losses;
    told[fd] = losses;
    if (owes)
        errno = plan.number;
    return owes;
}

size_t plan_part(size_t length) {
    if (plan.error)
        return length / 2;
    return coin() % 3 == 0 ? length : (size_t)((coin() >> 8) % (length + 1));
}

void plan_pause(void) {
    static uint64_t pauses;
    if (plan.sync_time == 0)
        return;
    struct timespec t = {.tv_nsec = 1000 * (long)(lot(++pauses) % (uint64_t)plan.sync_time)};
    int saved = errno;
    pthread_mutex_unlock(&one);
    ppoll(NULL, 0, &t, NULL);
    pthread_mutex_lock(&one);
    errno = saved;
}

bool plan_lies(void) {
    return plan.lie;
}

__attribute__((destructor)) static void finish(void) {
    if (!active())
        return;
    struct wb_cut cut = {0};
    pthread_mutex_lock(&one);
    if (plan.cut_at_exit)
        cut = wb_cut(plan.seed);
    write_log("end", ANY, &cut);
    plan.folder[0] = 0;
    pthread_mutex_unlock(&one);
}
