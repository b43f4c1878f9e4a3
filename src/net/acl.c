/* Three parts. First, roles: words separated by commas; grant_read parses one, and each question about roles
 * (check, may, may_send_as) is a loop over it. Second, the file's text, parsed line by line into an array
 * sorted by key, so that a handshake costs a binary search; a file is accepted as a whole or not at all.
 * Third, changing the file (curve allow, curve revoke): read it, check it, and write a copy with one line
 * less and perhaps one more; comments and the order of lines stay. The copy replaces the file in one step, so
 * a process that reads it meanwhile sees either the old or the new one.
 *
 * Nothing in a running process changes here: authenticator.c notices the new file. */
#include "net/acl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/guarded_file.h"

#define FILE_SIZE  (1024 * 1024)
#define LINE_SIZE  1024
#define LOCK_TURNS 100

static const struct {
    const char *word, *socket;
    bool per_stream;
} role_table[SVI_ROLE_COUNT] = {
#define X(constant, word, socket, per_stream, text) {word, socket, per_stream},
    SVI_ROLES(X)
#undef X
};

enum svi_role svi_role_of(const char *socket) {
    int r = 0;
    while (r < SVI_ROLE_COUNT && strcmp(role_table[r].socket, socket) != 0)
        r++;
    return (enum svi_role)r;
}

/* ---- one client */

/* One word of a client's roles. */
struct grant {
    int kind; /* enum svi_role, or one of the two below */
#define GRANT_SOURCE  (-1)
#define GRANT_INVALID (-2)
    const char *name; /* name of the stream or source; NULL = every stream */
    size_t length;
    bool prefix; /* every source whose name begins with this */
};

static bool name_is_valid(const char *text, size_t length, bool dots) {
    static const char allowed[] = ".ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return length <= SVS_NAME_MAX && strspn(text, dots ? allowed : allowed + 1) >= length;
}

static bool word_is(const char *word, size_t length, const char *wanted) {
    return length == strlen(wanted) && memcmp(word, wanted, length) == 0;
}

/* Parses one word of the roles at `at`. Returns the start of the next word, NULL after the last. */
static const char *grant_read(const char *at, struct grant *g) {
    const size_t length = strcspn(at, ",");
    const char *colon = memchr(at, ':', length);
    const size_t head = colon ? (size_t)(colon - at) : length, rest = colon ? length - head - 1 : 0;
    *g = (struct grant){.kind = GRANT_INVALID, .name = colon ? colon + 1 : NULL, .length = rest};
    for (int r = 0; r < SVI_ROLE_COUNT; r++)
        if (word_is(at, head, role_table[r].word) &&
            (!colon || (role_table[r].per_stream && rest > 0 && name_is_valid(g->name, rest, false))))
            g->kind = r;
    /* "source:" is not in the table of roles: it opens no socket, it restricts ingest. */
    if (word_is(at, head, "source") && rest > 0) {
        g->prefix = g->name[rest - 1] == '*';
        g->length -= g->prefix;
        g->kind =
            rest <= SVS_NAME_MAX && name_is_valid(g->name, g->length, true) ? GRANT_SOURCE : GRANT_INVALID;
    }
    return at[length] ? at + length + 1 : NULL;
}

svs_code svi_acl_client_check(const char *name, const char *roles, svs_error *err) {
    bool ingests = false, bound = false;
    char shown[80];
    struct grant g;
    if (!*name || !name_is_valid(name, strlen(name), false))
        return svi_fail(err, SVS_INVALID, "'%s' is not a valid name (1 to 64 letters, digits, _ and -)",
                        svi_escape(shown, sizeof shown, name, strlen(name)));
    if (strlen(roles) >= SVI_ROLES_MAX)
        return svi_fail(err, SVS_INVALID, "the roles are longer than %d bytes: leave some out",
                        SVI_ROLES_MAX - 1);
    for (const char *word = roles, *next; word; word = next) {
        next = grant_read(word, &g);
        if (g.kind == GRANT_INVALID)
            return svi_fail(err, SVS_INVALID, "'%s' is not a role (" SVI_ROLES_TEXT ")",
                            svi_escape(shown, sizeof shown, word, strcspn(word, ",")));
        ingests = ingests || g.kind == SVI_ROLE_INGEST;
        bound = bound || g.kind == GRANT_SOURCE;
    }
    /* A binding without the right to send is surely a mistake. */
    if (bound && !ingests)
        return svi_fail(err, SVS_INVALID, "source:NAME needs the role ingest too: add it");
    return SVS_OK;
}

bool svi_acl_client_may(const struct svi_client *client, enum svi_role role, const char *stream) {
    bool may = false;
    struct grant g;
    for (const char *at = client->roles; at && !may;) {
        at = grant_read(at, &g);
        may = g.kind == (int)role && (!g.name || word_is(g.name, g.length, stream));
    }
    return may;
}

bool svi_acl_client_may_send_as(const struct svi_client *client, const char *src, size_t length) {
    bool bound = false;
    struct grant g;
    for (const char *at = client->roles; at;) {
        at = grant_read(at, &g);
        if (g.kind != GRANT_SOURCE)
            continue;
        bound = true;
        if (length > 0 && (g.prefix ? length >= g.length : length == g.length) &&
            memcmp(src, g.name, g.length) == 0)
            return true;
    }
    /* No source: grant at all means every name. */
    return !bound;
}

/* ---- the file's text */

static bool is_comment(const char *line, size_t length) {
    return length == 0 || (line[0] == '#' && (length == 1 || line[1] == ' '));
}

/* Copies the next word of a line into `word` (`capacity` bytes). False: the line has no further word, or a longer one. */
static bool acl_take_word(const char **at, char *word, size_t capacity) {
    *at += strspn(*at, " \t");
    size_t length = strcspn(*at, " \t");
    if (length == 0 || length >= capacity)
        return false;
    memcpy(word, *at, length);
    word[length] = '\0';
    *at += length;
    return true;
}

/* One line into a client. Everything is validated here, so a struct svi_client is valid wherever it appears.
 */
static svs_code parse_line(const char *bytes, size_t length, struct svi_client *out, svs_error *err) {
    char line[LINE_SIZE];
    const char *at = line;
    if (length >= sizeof line || memchr(bytes, '\0', length))
        return svi_fail(err, SVS_INVALID, "the line is too long, or binary");
    memcpy(line, bytes, length);
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    bool words = acl_take_word(&at, out->key, sizeof out->key) &&
                 acl_take_word(&at, out->name, sizeof out->name) &&
                 acl_take_word(&at, out->roles, sizeof out->roles);
    if (!words || at[strspn(at, " \t")] != '\0')
        return svi_fail(err, SVS_INVALID, "the line is not of the form KEY NAME ROLES");
    svs_code code = svi_key_check(out->key, err);
    return code == SVS_OK ? svi_acl_client_check(out->name, out->roles, err) : code;
}

/* The line at the start of [at, end): *length without its newline; returns the start of the next. */
static const char *acl_next_line(const char *at, const char *end, size_t *length) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *length = (size_t)((stop ? stop : end) - at);
    return stop ? stop + 1 : end;
}

/* Compares by key, which is the first member: bsearch may pass a bare key for a client. */
static int client_by_key(const void *a, const void *b) {
    return strcmp(a, b);
}

static int client_by_name(const void *a, const void *b) {
    return strcmp(((const struct svi_client *)a)->name, ((const struct svi_client *)b)->name);
}

/* Sorts the clients. Returns the second of two equal ones, NULL if all differ. */
static const struct svi_client *sort_clients(struct svi_acl *acl, int (*order)(const void *, const void *)) {
    qsort(acl->client, (size_t)acl->count, sizeof *acl->client, order);
    for (int i = 1; i < acl->count; i++)
        if (order(&acl->client[i - 1], &acl->client[i]) == 0)
            return &acl->client[i];
    return NULL;
}

/* Sorted by name first, by key last: the array must end up in the order that svi_acl_find needs. */
static svs_code check_unique(struct svi_acl *acl, svs_error *err) {
    const struct svi_client *c;
    if ((c = sort_clients(acl, client_by_name)))
        return svi_fail(err, SVS_INVALID, "two clients have the name %s: rename one", c->name);
    if ((c = sort_clients(acl, client_by_key)))
        return svi_fail(err, SVS_INVALID, "%s and %s have the same key: remove one", c[-1].name, c->name);
    return SVS_OK;
}

/* An upper bound that is exact for a valid file: each line but comments is a client. */
static int count_clients(const char *bytes, size_t size) {
    int count = 0;
    size_t length;
    for (const char *at = bytes, *next; at < bytes + size; at = next) {
        next = acl_next_line(at, bytes + size, &length);
        count += !is_comment(at, length);
    }
    return count;
}

/* The number of the line is part of the message: the whole file is refused for one of them. */
static svs_code parse_lines(struct svi_acl *acl, const char *bytes, size_t size, svs_error *err) {
    size_t length;
    svs_error why;
    int line = 0;
    for (const char *at = bytes, *next; at < bytes + size; at = next) {
        next = acl_next_line(at, bytes + size, &length);
        line++;
        if (!is_comment(at, length) && parse_line(at, length, &acl->client[acl->count++], &why) != SVS_OK)
            return svi_fail(err, why.code, ", line %d: %s", line, why.text);
    }
    return acl->count > 0 && check_unique(acl, &why) != SVS_OK ? svi_fail(err, why.code, ": %s", why.text)
                                                               : SVS_OK;
}

svs_code svi_acl_parse(struct svi_acl *acl, const char *path, const char *bytes, size_t length,
                       svs_error *err) {
    struct svi_acl fresh = {0};
    char shown[80];
    svs_error why;
    /* Counted first: the array has exactly one entry for each line that could be a client. */
    const int count = count_clients(bytes, length);
    svi_escape(shown, sizeof shown, path, strlen(path));
    if (count > SVI_CLIENTS_MAX)
        return svi_fail(err, SVS_INVALID, "%s: more than %d clients", shown, SVI_CLIENTS_MAX);
    if (count > 0 && !(fresh.client = svi_alloc_array((size_t)count, sizeof *fresh.client)))
        return svi_fail_memory(err, "the allow file");
    /* *acl is replaced only by a complete and valid list. */
    if (parse_lines(&fresh, bytes, length, &why) != SVS_OK) {
        svi_acl_clear(&fresh);
        return svi_fail(err, why.code, "%s%s", shown, why.text);
    }
    svi_acl_clear(acl);
    *acl = fresh;
    return SVS_OK;
}

void svi_acl_clear(struct svi_acl *acl) {
    svi_free(acl->client);
    *acl = (struct svi_acl){0};
}

/* Reads and parses the file. The caller frees *text in any case. */
static svs_code acl_read(struct svi_acl *acl, const char *path, char **text, size_t *length, svs_error *err) {
    *text = svi_alloc(FILE_SIZE + 1);
    if (!*text)
        return svi_fail_memory(err, "the allow file");
    svs_code code = svi_guarded_read(path, false, *text, FILE_SIZE + 1, length, err);
    return code == SVS_OK ? svi_acl_parse(acl, path, *text, *length, err) : code;
}

svs_code svi_acl_load(struct svi_acl *acl, const char *path, svs_error *err) {
    char *text;
    size_t length;
    svs_code code = acl_read(acl, path, &text, &length, err);
    svi_free(text);
    return code;
}

const struct svi_client *svi_acl_find(const struct svi_acl *acl, const char *key) {
    return acl->count ? bsearch(key, acl->client, (size_t)acl->count, sizeof *acl->client, client_by_key)
                      : NULL;
}

/* ---- changing the file */

/* Locks the file against concurrent changes. The lock is on an inode, and another change may have replaced
 * the file meanwhile: the path is compared after locking, and the lock tried again on the new file. Returns
 * the descriptor, -1 with errno. */
static int acl_lock(const char *path, bool make) {
    for (int i = 0; i < LOCK_TURNS; i++) {
        struct stat held, named;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (make ? O_CREAT : 0), 0644);
        if (fd < 0)
            return -1;
        /* Taken, and the path still leads to the locked file. */
        if (flock(fd, LOCK_EX) == 0 && fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev)
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* Copies the text without the line of the client that has this key or (unless one is added) this name, and
 * appends `line`. Returns the new length. `out` must hold size + the line + 1 byte for a missing newline. */
static size_t acl_edit(const char *text, size_t size, const char *name_or_key, const char *line, char *out,
                       struct svi_client *removed) {
    size_t n = 0, length;
    struct svi_client c;
    for (const char *at = text, *next; at < text + size; at = next) {
        next = acl_next_line(at, text + size, &length);
        bool client = !is_comment(at, length) && parse_line(at, length, &c, NULL) == SVS_OK;
        if (client && (strcmp(c.key, name_or_key) == 0 || (!*line && strcmp(c.name, name_or_key) == 0))) {
            *removed = c;
            continue;
        }
        memcpy(out + n, at, length);
        n += length;
        out[n++] = '\n';
    }
    memcpy(out + n, line, strlen(line));
    return n + strlen(line);
}

/* Writes the new text in place of the file, with its mode and owner: the file of a service stays readable to
 * it if root changes it. */
static svs_code acl_replace(const char *path, int fd, const char *text, size_t length, svs_error *err) {
    struct stat s;
    if (fstat(fd, &s) != 0)
        return svi_fail_path(err, SVS_IO, path, "%s", strerror(errno));
    if (length > FILE_SIZE)
        return svi_fail_path(err, SVS_LIMIT, path, "the file would be larger than 1 MiB");
    SVI_TRY(svi_guarded_write(path, text, length, s.st_mode & 0755, false, err));
    if (chown(path, s.st_uid, s.st_gid) != 0 && geteuid() == 0)
        SVI_TRY(svi_fail_path(err, SVS_IO, path, "cannot preserve ownership: %s", strerror(errno)));
    return SVS_OK;
}

/* Parses both the file and its new version, so that a change never makes it invalid. */
static svs_code acl_change_locked(const char *path, int fd, const char *name_or_key, const char *line,
                                  struct svi_client *removed, svs_error *err) {
    struct svi_acl acl = {0};
    size_t size;
    char *text, *changed = NULL;
    svs_code code = acl_read(&acl, path, &text, &size, err);
    if (code == SVS_OK && !(changed = svi_alloc(size + LINE_SIZE + 2)))
        code = svi_fail_memory(err, "the allow file");
    if (code == SVS_OK)
        size = acl_edit(text, size, name_or_key, line, changed, removed);
    /* Only a removal fails if the client is missing; adding replaces or appends. */
    if (code == SVS_OK && !*line && !removed->key[0])
        code = svi_fail_path(err, SVS_UNKNOWN_ID, path, "no such client: `svmstream curve list` prints them");
    if (code == SVS_OK)
        code = svi_acl_parse(&acl, path, changed, size, err);
    if (code == SVS_OK)
        code = acl_replace(path, fd, changed, size, err);
    svi_acl_clear(&acl);
    svi_free(changed);
    svi_free(text);
    return code;
}

static svs_code acl_change(const char *path, const char *name_or_key, const char *line,
                           struct svi_client *removed, svs_error *err) {
    int fd = acl_lock(path, *line != '\0');
    if (fd < 0)
        return svi_fail_path(err, SVS_IO, path, "%s", strerror(errno));
    svs_code code = acl_change_locked(path, fd, name_or_key, line, removed, err);
    close(fd);
    return code;
}

svs_code svi_acl_add(const char *path, const struct svi_client *client, svs_error *err) {
    char line[LINE_SIZE];
    struct svi_client replaced;
    svs_code code = svi_key_check(client->key, err);
    if (code == SVS_OK)
        code = svi_acl_client_check(client->name, client->roles, err);
    snprintf(line, sizeof line, "%s %s %s\n", client->key, client->name, client->roles);
    return code == SVS_OK ? acl_change(path, client->key, line, &replaced, err) : code;
}

svs_code svi_acl_remove(const char *path, const char *name_or_key, struct svi_client *removed,
                        svs_error *err) {
    removed->key[0] = '\0';
    return acl_change(path, name_or_key, "", removed, err);
}
