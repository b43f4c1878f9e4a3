/* The functions of the C library through which libzmq moves bytes, and the counters maintained in them.
 *
 * libzmq resolves recv, send, accept4 and connect to the ones below, since a program's own
 * functions take precedence. Each makes the system call itself. An entry of the table starts with
 * accept4 or connect, so it never describes a former connection of the descriptor. The framing is
 * parsed by recv, in the thread that owns the descriptor. A connection that exceeds a limit is shut
 * down there, and recv reports the end of the stream instead of the bytes. So libzmq closes it as
 * if the peer had left, and drops the unfinished message.
 *
 * All fields of an entry belong to the receiving thread except the atomic ones. Of these, accept or
 * connect starts `phase`, and the peer watch assigns `socket`. The owner of the sockets reduces
 * `waiting` on delivery. Others read `moved` and `spoken`. */
#include "net/flood_guard.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"

#define ENTRIES       32768 /* descriptors that are followed; connections beyond them are refused */
#define SOCKETS       5
#define UNASSIGNED    (SOCKETS - 1) /* socket number during the handshake, before it is assigned */
#define GREETING      64            /* bytes before the first frame, each direction */
#define HANDSHAKE_MAX 4096          /* largest frame of a handshake, bytes */
#define HEADER        9             /* largest header of a frame: flags, 8 bytes of length */

/* Flags of a frame. */
#define MORE    1
#define LONG    2
#define COMMAND 4

#define BOX        33                       /* bytes that CURVE adds to a frame */
#define FRAME_COST 128                      /* bytes that libzmq may allocate besides a frame's content */
#define PING       (BOX + 7 + FRAME_COST)   /* cost of a heartbeat without context */
#define PONG       (BOX + 5)                /* bytes of its reply */
#define PARTS      (8 * (BOX + FRAME_COST)) /* allowance for the frames of a waiting message */

struct frame {
    uint8_t flags;
    int64_t size;
};

/* One direction of a connection. */
struct framing {
    int64_t left; /* bytes of the greeting or of a frame's body still to skip */
    uint8_t header[HEADER];
    int got; /* bytes of the next header so far */
};

enum phase { UNKNOWN, BEGUN, FOLLOWED, ENDED };

struct entry {
    atomic_int phase, socket;
    atomic_int_least64_t waiting; /* CURVE: cost of the frames received and not delivered */
    atomic_int_least64_t moved;   /* ms, when bytes last moved */
    atomic_bool spoken;           /* at least one frame was received */
    struct framing in, out;
    int handshake;   /* frames of the handshake received */
    int64_t message; /* bytes of the unfinished message, */
    int frames;      /* and its frames */
};

/* The only writable global of the program: recv belongs to the process and has no argument for our data. */
static struct {
    atomic_int armed; /* 0: unarmed; incremented by each limit too, so that a thread that sees the new value
                         also sees the limit */
    struct svi_flood_limits limits[SOCKETS];
    struct entry entries[ENTRIES]; /* by descriptor; pages are touched only where connections are */
    pthread_mutex_t lock;          /* guards the next two */
    svi_flood_cut *cut;
    void *with;
} guard = {.limits = {[UNASSIGNED] = {.curve = true, .message = HANDSHAKE_MAX, .queue = 1}},
           .lock = PTHREAD_MUTEX_INITIALIZER};

void svi_flood_guard_arm(svi_flood_cut *cut, void *with) {
    pthread_mutex_lock(&guard.lock);
    guard.cut = cut;
    guard.with = with;
    pthread_mutex_unlock(&guard.lock);
    atomic_store(&guard.armed, 1);
}

void svi_flood_guard_disarm(void) {
    atomic_store(&guard.armed, 0);
    pthread_mutex_lock(&guard.lock);
    guard.cut = NULL;
    pthread_mutex_unlock(&guard.lock);
}

void svi_flood_guard_limit(int socket, const struct svi_flood_limits *l) {
    assert(socket >= 0 && socket < SOCKETS);
    guard.limits[socket] = *l;
    atomic_fetch_add(&guard.armed, 1);
}

static struct entry *entry_of(int fd) {
    return atomic_load(&guard.armed) && fd >= 0 && fd < ENTRIES ? &guard.entries[fd] : NULL;
}

/* ---- framing */

/* libzmq passes the bytes to other threads in a way that ThreadSanitizer cannot see. */
#define READS_FOR_LIBZMQ __attribute__((noinline, no_sanitize("thread")))

/* Finds the next frame header in bytes[*at, n), skipping bodies; *at moves after it. False: the bytes end
 * first; the parser continues with the next ones. */
READS_FOR_LIBZMQ static bool framing_next(struct framing *f, const uint8_t *bytes, size_t n, size_t *at,
                                          struct frame *out) {
    while (*at < n) {
        if (f->left > 0) {
            const size_t skipped = (uint64_t)f->left < n - *at ? (size_t)f->left : n - *at;
            f->left -= (int64_t)skipped;
            *at += skipped;
            continue;
        }
        f->header[f->got++] = bytes[(*at)++];
        /* Flag LONG selects an 8-byte length in network order, else it is 1 byte. */
        const int length = f->header[0] & LONG ? 8 : 1;
        if (f->got < 1 + length)
            continue;
        uint64_t size = 0;
        for (int i = 1; i <= length; i++)
            size = size << 8 | f->header[i];
        *out = (struct frame){f->header[0], size > INT64_MAX ? INT64_MAX : (int64_t)size};
        f->left = out->size;
        f->got = 0;
        return true;
    }
    return false;
}

/* ---- one connection */

/* The entry of a followed connection; NULL: not followed. The first call after accept or connect resets the
 * fields of the receiving thread, in that thread. */
static struct entry *entry_followed(int fd) {
    struct entry *e = entry_of(fd);
    const int phase = e ? atomic_load(&e->phase) : UNKNOWN;
    if (phase == UNKNOWN)
        return NULL;
    if (phase == BEGUN) {
        e->in = e->out = (struct framing){.left = GREETING};
        e->handshake = e->frames = 0;
        e->message = 0;
        atomic_store(&e->phase, FOLLOWED);
    }
    return e;
}

/* `phase` comes last: a thread that sees BEGUN sees the other fields reset. */
static void entry_begin(int fd) {
    struct entry *e = entry_of(fd);
    if (!e)
        return;
    atomic_store(&e->socket, UNASSIGNED);
    atomic_store(&e->waiting, 0);
    atomic_store(&e->spoken, false);
    atomic_store(&e->moved, svi_monotonic_ms());
    atomic_store(&e->phase, BEGUN);
}

/* Subtracts `cost` from what is waiting, down to 0. False: less was waiting. */
static bool deduct_waiting(struct entry *e, int64_t cost) {
    int_least64_t now = atomic_load(&e->waiting);
    while (!atomic_compare_exchange_weak(&e->waiting, &now, now > cost ? now - cost : 0))
        ;
    return now >= cost;
}

static int64_t waiting_limit(const struct svi_flood_limits *l) {
    return (l->queue + (int64_t)2) * (l->message + PARTS);
}

/* Counts a frame that begins. False: the peer must be disconnected, for the reason in *why. */
static bool frame_is_allowed(struct entry *e, const struct frame *f, enum svi_flood *why) {
    const struct svi_flood_limits *l = &guard.limits[atomic_load(&e->socket)];
    /* peer's frames: with CURVE HELLO and INITIATE (or WELCOME and READY), else READY */
    const int handshake = l->curve ? 2 : 1;
    *why = SVI_FLOOD_SIZE;
    if (e->handshake < handshake) { /* counted before any limit of a socket: it may not be assigned yet */
        e->handshake++;
        return f->size <= HANDSHAKE_MAX;
    }
    if (f->size > l->message)
        return false;
    if (l->curve) {
        /* The content is secret, so only the sum of frames not yet delivered is limited. */
        const int64_t cost = f->size + FRAME_COST;
        *why = SVI_FLOOD_WAITING;
        return atomic_fetch_add(&e->waiting, cost) + cost <= waiting_limit(l);
    }
    /* a command: libzmq consumes it at once, and it ends no message */
    if ((f->flags & COMMAND) && !(f->flags & MORE))
        return true;
    /* Without CURVE the end of a message is visible, so its size and frames are counted exactly. */
    e->message += f->size;
    e->frames++;
    if (e->message > l->message)
        return false;
    *why = SVI_FLOOD_FRAMES;
    if (e->frames > SVI_FRAMES_MAX)
        return false;
    if (!(f->flags & MORE)) {
        e->message = 0;
        e->frames = 0;
    }
    return true;
}

static void report_flood(struct entry *e, int fd, enum svi_flood why) {
    const int socket = atomic_load(&e->socket);
    pthread_mutex_lock(&guard.lock);
    if (guard.cut)
        guard.cut(guard.with, socket, fd, why);
    pthread_mutex_unlock(&guard.lock);
}

/* Parses `n` received bytes. Returns how many of them libzmq may see: all, or those before the frame that
 * exceeds a limit. */
static size_t entry_received(struct entry *e, int fd, const uint8_t *bytes, size_t n) {
    struct frame f;
    enum svi_flood why;
    size_t at = 0;
    atomic_store(&e->moved, svi_monotonic_ms());
    while (framing_next(&e->in, bytes, n, &at, &f)) {
        const size_t header = f.flags & LONG ? HEADER : 2;
        const int before = e->handshake;
        atomic_store(&e->spoken, true);
        if (!frame_is_allowed(e, &f, &why)) {
            atomic_store(&e->phase, ENDED);
            /* during the handshake it may just be a client that does not speak ZeroMQ */
            if (e->handshake == before)
                report_flood(e, fd, why);
            /* The bytes before this frame are passed on: complete messages in them were allowed. */
            shutdown(fd, SHUT_RDWR);
            return at > header ? at - header : 0;
        }
    }
    return n;
}

void svi_flood_guard_assign(int fd, int socket) {
    struct entry *e = entry_of(fd);
    assert(socket >= 0 && socket < SOCKETS);
    if (e)
        atomic_store(&e->socket, socket);
}

bool svi_flood_guard_delivered(int fd, int frames, size_t bytes) {
    struct entry *e = entry_of(fd);
    if (!e)
        return false;
    const bool all = deduct_waiting(e, (int64_t)bytes + (int64_t)frames * (BOX + FRAME_COST));
    /* A delivered subscription was preceded by all earlier ones, delivered or not. */
    if (guard.limits[atomic_load(&e->socket)].settles)
        atomic_store(&e->waiting, 0);
    return all;
}

int64_t svi_flood_guard_moved(int fd, bool *spoken) {
    struct entry *e = entry_of(fd);
    const bool followed = e && atomic_load(&e->phase) != UNKNOWN;
    *spoken = followed && atomic_load(&e->spoken);
    return followed ? atomic_load(&e->moved) : 0;
}

/* ---- in front of the C library */

/* The system calls are made directly: the names may also be wrapped by a sanitizer, which would attribute
 * libzmq's accesses to us. */

/* Declared under names of our own, since the compiler knows the library functions too well; the linker sees
 * the library's names, visible to shared libraries. */
#define IN_FRONT(name) __asm__(name) __attribute__((visibility("default")))

ssize_t svi_front_recv(int fd, void *buffer, size_t size, int flags) IN_FRONT("recv");
ssize_t svi_front_send(int fd, const void *buffer, size_t size, int flags) IN_FRONT("send");
int svi_front_accept4(int listener, struct sockaddr *address, socklen_t *size, int flags) IN_FRONT("accept4");
int svi_front_connect(int fd, const struct sockaddr *address, socklen_t size) IN_FRONT("connect");

ssize_t svi_front_recv(int fd, void *buffer, size_t size, int flags) {
    struct entry *e = entry_followed(fd);
    if (e && atomic_load(&e->phase) == ENDED)
        return 0;
    ssize_t n = syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
    return e && n > 0 && !(flags & MSG_PEEK) ? (ssize_t)entry_received(e, fd, buffer, (size_t)n) : n;
}

ssize_t svi_front_send(int fd, const void *buffer, size_t size, int flags) {
    struct frame f;
    size_t at = 0;
    struct entry *e = entry_followed(fd);
    ssize_t n = syscall(SYS_sendto, fd, buffer, size, flags, NULL, 0);
    if (e && n > 0)
        atomic_store(&e->moved, svi_monotonic_ms());
    /* A PONG confirms that libzmq has consumed a PING, so its cost no longer counts. */
    while (e && n > 0 && framing_next(&e->out, buffer, (size_t)n, &at, &f))
        if (f.size == PONG && guard.limits[atomic_load(&e->socket)].curve)
            deduct_waiting(e, PING);
    return n;
}

int svi_front_accept4(int listener, struct sockaddr *address, socklen_t *size, int flags) {
    int fd = (int)syscall(SYS_accept4, listener, address, size, flags);
    if (fd >= ENTRIES && atomic_load(&guard.armed)) {
        close(fd);
        errno = EMFILE; /* as if the process had run out of descriptors */
        return -1;
    }
    entry_begin(fd);
    return fd;
}

int svi_front_connect(int fd, const struct sockaddr *address, socklen_t size) {
    entry_begin(fd);
    return (int)syscall(SYS_connect, fd, address, size);
}
