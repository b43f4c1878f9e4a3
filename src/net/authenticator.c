#include "engine/authenticator.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include <zmq.h>

#include "base/alloc.h"
#include "base/fail.h"

/* What tells one state of a file from another. All zero: it is not there. */
struct look {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed, renamed;
};

struct svi_authenticator {
    char path[SVI_TEXT_MAX], stream[65];
    pthread_mutex_t lock; /* guards the clients */
    struct svi_clients clients;
    atomic_bool binds;        /* some client may send under certain names only */
    atomic_bool revoked;      /* rights were taken from somebody, so each user must be looked up */
    struct look read, before; /* of the file in force, and at the last look; the refreshing thread's */
};

static struct look look_at(const char *path) {
    struct stat s;
    struct look l;
    memset(&l, 0, sizeof l); /* compared as bytes */
    if (stat(path, &s) != 0)
        return l;
    l.device = s.st_dev;
    l.inode = s.st_ino;
    l.size = s.st_size;
    l.changed = s.st_mtim;
    l.renamed = s.st_ctim;
    return l;
}

static bool any_bound(const struct svi_clients *c) {
    for (int i = 0; i < c->count; i++)
        if (!svi_allow_source(&c->client[i], "", 0))
            return true;
    return false;
}

svi_authenticator *svi_authenticator_new(const struct svi_settings *s, svs_error *err) {
    svi_authenticator *a = svi_alloc(sizeof *a);
    if (!a) {
        svi_fail_memory(err, "the authenticator");
        return NULL;
    }
    memcpy(a->path, s->curve_allow, sizeof a->path);
    memcpy(a->stream, s->stream, sizeof a->stream);
    pthread_mutex_init(&a->lock, NULL);
    a->read = a->before = look_at(a->path);
    if (svi_clients_load(&a->clients, a->path, err) != SVS_OK)
        svi_authenticator_free(&a);
    else
        atomic_init(&a->binds, any_bound(&a->clients));
    return a;
}

void svi_authenticator_free(svi_authenticator **a) {
    if (!*a)
        return;
    svi_clients_clear(&(*a)->clients);
    pthread_mutex_destroy(&(*a)->lock);
    svi_free(*a);
    *a = NULL;
}

enum svi_role svi_role_of(const char *setting) {
    static const char *const sockets[SVI_ROLE_COUNT] = {"in", "out", "ctl"};
    int r = 0;
    while (r < SVI_ROLE_COUNT && strcmp(sockets[r], setting) != 0)
        r++;
    return (enum svi_role)r;
}

static bool may(const svi_authenticator *a, const struct svi_clients *clients, enum svi_role role,
                const char *user) {
    const struct svi_client *c = role < SVI_ROLE_COUNT ? svi_clients_find(clients, user) : NULL;
    return c && svi_client_may(c, role, a->stream);
}

bool svi_authenticator_admits(svi_authenticator *a, const char *domain, const char *mechanism,
                              const uint8_t *key, size_t key_size, char user[SVI_KEY_LENGTH + 1],
                              svs_error *why) {
    user[0] = '\0';
    if (strcmp(mechanism, "CURVE") != 0 || key_size != 32 || !zmq_z85_encode(user, key, 32)) {
        svi_fail(why, SVS_NOT_ALLOWED, "it came without CURVE");
        return false;
    }
    pthread_mutex_lock(&a->lock);
    const struct svi_client *c = svi_clients_find(&a->clients, user);
    bool good = c && may(a, &a->clients, svi_role_of(domain), user);
    if (c && !good)
        svi_fail(why, SVS_NOT_ALLOWED, "%s has not the role that `%.8s` needs", c->name, domain);
    else if (!c)
        svi_fail(why, SVS_NOT_ALLOWED, "its key %s is not in the allow file", user);
    pthread_mutex_unlock(&a->lock);
    return good;
}

bool svi_authenticator_allows(svi_authenticator *a, enum svi_role role, const char *user) {
    if (!atomic_load_explicit(&a->revoked, memory_order_acquire))
        return true;
    pthread_mutex_lock(&a->lock);
    bool good = may(a, &a->clients, role, user);
    pthread_mutex_unlock(&a->lock);
    return good;
}

bool svi_authenticator_binds(const svi_authenticator *a) {
    return atomic_load_explicit(&a->binds, memory_order_acquire);
}

bool svi_authenticator_allows_source(svi_authenticator *a, const char *user, const char *src, size_t length) {
    if (!svi_authenticator_binds(a))
        return true;
    pthread_mutex_lock(&a->lock);
    const struct svi_client *c = svi_clients_find(&a->clients, user);
    bool good = c && svi_allow_source(c, src, length);
    pthread_mutex_unlock(&a->lock);
    return good;
}

/* Does `now` lack anything that `before` gave? */
static bool takes_away(const svi_authenticator *a, const struct svi_clients *before,
                       const struct svi_clients *now) {
    for (int i = 0; i < before->count; i++)
        for (int r = 0; r < SVI_ROLE_COUNT; r++)
            if (svi_client_may(&before->client[i], (enum svi_role)r, a->stream) &&
                !may(a, now, (enum svi_role)r, before->client[i].key))
                return true;
    return false;
}

static bool put_in_force(svi_authenticator *a, struct svi_clients *fresh) {
    bool less = takes_away(a, &a->clients, fresh), binds = any_bound(fresh);
    pthread_mutex_lock(&a->lock);
    struct svi_clients old = a->clients;
    a->clients = *fresh;
    *fresh = old;
    atomic_store_explicit(&a->binds, binds, memory_order_release);
    pthread_mutex_unlock(&a->lock);
    if (less)
        atomic_store_explicit(&a->revoked, true, memory_order_release);
    return less;
}

static bool is_gone(const struct look *l) {
    const struct look nothing = {0};
    return l->inode == nothing.inode && l->device == nothing.device;
}

bool svi_authenticator_refresh(svi_authenticator *a, svs_error *trouble) {
    struct look now = look_at(a->path);
    struct svi_clients fresh = {0};
    svs_error why = {SVS_OK, ""};
    bool steady = memcmp(&now, &a->before, sizeof now) == 0, same = memcmp(&now, &a->read, sizeof now) == 0;
    trouble->code = SVS_OK;
    a->before = now;
    if (same || !steady)
        return false;
    a->read = now; /* right or wrong, it is read once */
    if (is_gone(&now))
        svi_fail(trouble, SVS_NOT_ALLOWED, "the allow file %.100s is gone: nobody is let in", a->path);
    else if (svi_clients_load(&fresh, a->path, &why) != SVS_OK) {
        svi_fail(trouble, SVS_NOT_ALLOWED, "the changed allow file is not taken, the one before stays: %s",
                 why.text);
        return false;
    }
    bool less = put_in_force(a, &fresh);
    svi_clients_clear(&fresh);
    return less;
}
