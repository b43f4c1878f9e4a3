/* The allow file in memory, and the decisions made from it.
 *
 * One thread refreshes it (the peer watch's), any thread asks. The lock guards the list; two atomic flags
 * keep the common case free of it: nobody was revoked, nobody is bound to source names. A list replaces the
 * previous one as a whole, so that no decision mixes two versions. */
#include "net/authenticator.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include <zmq.h>

#include "base/alloc.h"
#include "base/fail.h"

/* Identifies one version of a file; compared as bytes, hence zeroed before it is filled. */
struct file_version {
    dev_t device;
    ino_t inode;
    off_t size; /* -1 = the file is missing */
    struct timespec changed, renamed;
};

struct svi_authenticator {
    char path[SVI_TEXT_MAX], stream[65];
    pthread_mutex_t lock; /* guards the acl */
    struct svi_acl acl;
    atomic_bool binds;   /* some client is bound to source names */
    atomic_bool revoked; /* some key has lost rights, so each user must be looked up */
    /* the version in force, and that of the last check; refreshing thread only */
    struct file_version read, before;
};

/* Both times are compared: a file moved into place keeps its time of modification, but changes that of its
 * status. */
static struct file_version version_of_file(const char *path) {
    struct stat s;
    struct file_version v;
    memset(&v, 0, sizeof v);
    v.size = -1;
    if (stat(path, &s) != 0)
        return v;
    v.device = s.st_dev;
    v.inode = s.st_ino;
    v.size = s.st_size;
    v.changed = s.st_mtim;
    v.renamed = s.st_ctim;
    return v;
}

static bool any_bound(const struct svi_acl *acl) {
    for (int i = 0; i < acl->count; i++)
        if (!svi_acl_client_may_send_as(&acl->client[i], "", 0))
            return true;
    return false;
}

svi_authenticator *svi_authenticator_new(const struct svi_settings *s, svs_error *err) {
    svi_authenticator *a = svi_new(sizeof *a, "the authenticator", err);
    if (!a)
        return NULL;
    memcpy(a->path, s->curve_allow, sizeof a->path);
    memcpy(a->stream, s->stream, sizeof a->stream);
    pthread_mutex_init(&a->lock, NULL);
    /* Before the file is read, so that a change meanwhile is noticed by the first refresh. */
    a->read = a->before = version_of_file(a->path);
    if (svi_acl_load(&a->acl, a->path, err) != SVS_OK)
        svi_authenticator_free(&a);
    else
        atomic_init(&a->binds, any_bound(&a->acl));
    return a;
}

void svi_authenticator_free(svi_authenticator **a) {
    if (!*a)
        return;
    svi_acl_clear(&(*a)->acl);
    pthread_mutex_destroy(&(*a)->lock);
    svi_free(*a);
    *a = NULL;
}

static bool user_may(const svi_authenticator *a, const struct svi_acl *acl, enum svi_role role,
                     const char *user) {
    const struct svi_client *c = svi_acl_find(acl, user);
    return c && svi_acl_client_may(c, role, a->stream);
}

bool svi_authenticator_admits(svi_authenticator *a, const char *domain, const char *mechanism,
                              const uint8_t *key, size_t key_size, char user[SVI_KEY_LENGTH + 1],
                              svs_error *why) {
    user[0] = '\0';
    if (strcmp(mechanism, "CURVE") != 0 || key_size != 32 || !zmq_z85_encode(user, key, 32)) {
        svi_fail(why, SVS_NOT_ALLOWED, "it connected without CURVE");
        return false;
    }
    /* The name of the client in the message comes from the list, so it is formatted under the lock. */
    pthread_mutex_lock(&a->lock);
    const struct svi_client *c = svi_acl_find(&a->acl, user);
    bool good = c && svi_acl_client_may(c, svi_role_of(domain), a->stream);
    if (c && !good)
        svi_fail(why, SVS_NOT_ALLOWED, "%s does not have the role that `%.8s` needs", c->name, domain);
    else if (!c)
        svi_fail(why, SVS_NOT_ALLOWED, "its key %s is not in the allow file", user);
    pthread_mutex_unlock(&a->lock);
    return good;
}

bool svi_authenticator_allows(svi_authenticator *a, enum svi_role role, const char *user) {
    if (!atomic_load_explicit(&a->revoked, memory_order_acquire))
        return true;
    pthread_mutex_lock(&a->lock);
    bool good = user_may(a, &a->acl, role, user);
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
    const struct svi_client *c = svi_acl_find(&a->acl, user);
    bool good = c && svi_acl_client_may_send_as(c, src, length);
    pthread_mutex_unlock(&a->lock);
    return good;
}

/* Does any key have fewer rights in `now` than in `before`? */
static bool revokes_rights(const svi_authenticator *a, const struct svi_acl *before,
                           const struct svi_acl *now) {
    for (int i = 0; i < before->count; i++)
        for (int r = 0; r < SVI_ROLE_COUNT; r++)
            if (svi_acl_client_may(&before->client[i], (enum svi_role)r, a->stream) &&
                !user_may(a, now, (enum svi_role)r, before->client[i].key))
                return true;
    return false;
}

/* Swaps the new list in. `revoked` is set last, with release order: a thread that sees it also sees the new
 * list. It is never cleared, since admitted users may outlive any number of changes. */
static bool replace_acl(svi_authenticator *a, struct svi_acl *fresh) {
    bool less = revokes_rights(a, &a->acl, fresh), binds = any_bound(fresh);
    pthread_mutex_lock(&a->lock);
    struct svi_acl old = a->acl;
    a->acl = *fresh;
    atomic_store_explicit(&a->binds, binds, memory_order_release);
    pthread_mutex_unlock(&a->lock);
    svi_acl_clear(&old);
    if (less)
        atomic_store_explicit(&a->revoked, true, memory_order_release);
    return less;
}

bool svi_authenticator_refresh(svi_authenticator *a, svs_error *trouble) {
    struct file_version now = version_of_file(a->path);
    struct svi_acl fresh = {0};
    svs_error why;
    bool steady = memcmp(&now, &a->before, sizeof now) == 0, same = memcmp(&now, &a->read, sizeof now) == 0;
    trouble->code = SVS_OK;
    a->before = now;
    if (same || !steady)
        return false;
    a->read = now; /* valid or not, each version is read once */
    /* The version is taken before the file is read: a change in between shows at the next check. A missing
     * file falls through with an empty list, which refuses every peer. */
    if (now.size < 0) {
        svi_fail(trouble, SVS_NOT_ALLOWED,
                 "the allow file %.100s does not exist: every peer is refused; restore it, or admit clients "
                 "with `svmstream curve allow`",
                 a->path);
    } else if (svi_acl_load(&fresh, a->path, &why) != SVS_OK) {
        svi_fail(trouble, SVS_NOT_ALLOWED,
                 "the changed allow file is invalid, and the previous one stays in force: %s", why.text);
        return false;
    }
    return replace_acl(a, &fresh);
}
