#include "engine/allow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"

#define FILE_SIZE  (1024 * 1024)
#define LINE_SIZE  1024
#define LOCK_TURNS 100
#define SOURCE     "source:" /* a name or pattern follows */

static const char *const role_names[SVI_ROLE_COUNT] = {"ingest", "subscribe", "control"};

void svi_clients_clear(struct svi_clients *c) {
    svi_free(c->client);
    *c = (struct svi_clients){0};
}

/* ---- one client */

static bool is_name(const char *text, size_t length) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return length >= 1 && length <= 64 && strspn(text, allowed) >= length;
}

/* Is the word the role, and for which stream? *stream: NULL = for all. */
static bool is_role(const char *word, size_t length, enum svi_role role, const char **stream) {
    size_t n = strlen(role_names[role]);
    *stream = NULL;
    if (length < n || memcmp(word, role_names[role], n) != 0)
        return false;
    if (length == n)
        return true;
    *stream = word + n + 1;
    return role == SVI_ROLE_INGEST && word[n] == ':' && is_name(*stream, length - n - 1);
}

/* Is the word the name of a source, or how such names begin? */
static bool is_source(const char *word, size_t length, const char **name, size_t *name_length, bool *begins) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const size_t n = sizeof SOURCE - 1;
    if (length <= n || memcmp(word, SOURCE, n) != 0)
        return false;
    *begins = word[length - 1] == '*';
    *name = word + n;
    *name_length = length - n - *begins;
    return length - n <= SVS_NAME_MAX && strspn(*name, allowed) >= *name_length;
}

static bool is_known(const char *word, size_t length, bool *feeds, bool *bound) {
    const char *name;
    size_t name_length;
    bool begins, known = is_source(word, length, &name, &name_length, &begins);
    *bound = *bound || known;
    for (int r = 0; r < SVI_ROLE_COUNT && !known; r++) {
        known = is_role(word, length, (enum svi_role)r, &name);
        *feeds = *feeds || (known && r == SVI_ROLE_INGEST);
    }
    return known;
}

svs_code svi_client_check(const char *name, const char *roles, svs_error *err) {
    bool feeds = false, bound = false;
    char shown[80];
    if (!is_name(name, strlen(name)))
        return svi_fail(err, SVS_INVALID, "'%s' is no name: 1 to 64 letters, digits, _ and -",
                        svi_escape(shown, sizeof shown, name, strlen(name)));
    if (strlen(roles) >= SVI_ROLES_MAX)
        return svi_fail(err, SVS_INVALID, "the roles take more than %d bytes", SVI_ROLES_MAX - 1);
    for (size_t length;; roles += length + 1) {
        length = strcspn(roles, ",");
        if (!is_known(roles, length, &feeds, &bound))
            return svi_fail(err, SVS_INVALID,
                            "'%s' is no role: ingest, ingest:STREAM, source:NAME, subscribe or control",
                            svi_escape(shown, sizeof shown, roles, length));
        if (roles[length] == '\0')
            break;
    }
    if (bound && !feeds)
        return svi_fail(err, SVS_INVALID, SOURCE "NAME says as whom it feeds: it needs the role ingest too");
    return SVS_OK;
}

bool svi_client_may(const struct svi_client *client, enum svi_role role, const char *stream) {
    for (const char *at = client->roles; *at;) {
        const char *wanted;
        size_t length = strcspn(at, ",");
        if (is_role(at, length, role, &wanted)) {
            size_t n = wanted ? (size_t)(at + length - wanted) : 0;
            if (!wanted || (strlen(stream) == n && memcmp(stream, wanted, n) == 0))
                return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}

bool svi_allow_source(const struct svi_client *client, const char *src, size_t length) {
    bool bound = false;
    for (const char *at = client->roles; *at;) {
        const char *name;
        size_t n, word = strcspn(at, ",");
        bool begins;
        if (is_source(at, word, &name, &n, &begins)) {
            bound = true;
            if (length > 0 && (begins ? length >= n : length == n) && memcmp(src, name, n) == 0)
                return true;
        }
        at += word + (at[word] == ',');
    }
    return !bound;
}

/* ---- the file's text */

static bool is_comment(const char *line, size_t length) {
    return length == 0 || (line[0] == '#' && (length == 1 || line[1] == ' '));
}

/* Takes the next word of a line into `word` (room bytes). False: there is none, or it is longer. */
static bool take_word(const char **at, char *word, size_t room) {
    *at += strspn(*at, " \t");
    size_t length = strcspn(*at, " \t");
    if (length == 0 || length >= room)
        return false;
    memcpy(word, *at, length);
    word[length] = '\0';
    *at += length;
    return true;
}

static svs_code parse_line(const char *bytes, size_t length, struct svi_client *out, svs_error *err) {
    char line[LINE_SIZE];
    const char *at = line;
    if (length >= sizeof line || memchr(bytes, '\0', length))
        return svi_fail(err, SVS_INVALID, "the line is too long, or binary");
    memcpy(line, bytes, length);
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    bool words = take_word(&at, out->key, sizeof out->key) && take_word(&at, out->name, sizeof out->name) &&
                 take_word(&at, out->roles, sizeof out->roles);
    if (!words || at[strspn(at, " \t")] != '\0')
        return svi_fail(err, SVS_INVALID, "a line is KEY NAME ROLES");
    svs_code code = svi_key_check(out->key, err);
    return code == SVS_OK ? svi_client_check(out->name, out->roles, err) : code;
}

/* The next line of [at, end): its length in *length; returns where the one after it begins. */
static const char *next_line(const char *at, const char *end, size_t *length) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    *length = (size_t)((stop ? stop : end) - at);
    return stop ? stop + 1 : end;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct svi_client *)a)->key, ((const struct svi_client *)b)->key);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct svi_client *)a)->name, ((const struct svi_client *)b)->name);
}

static svs_code check_unique(struct svi_clients *c, svs_error *err) {
    qsort(c->client, (size_t)c->count, sizeof *c->client, by_name);
    for (int i = 1; i < c->count; i++)
        if (by_name(&c->client[i - 1], &c->client[i]) == 0)
            return svi_fail(err, SVS_INVALID, "the name %s occurs twice", c->client[i].name);
    qsort(c->client, (size_t)c->count, sizeof *c->client, by_key);
    for (int i = 1; i < c->count; i++)
        if (by_key(&c->client[i - 1], &c->client[i]) == 0)
            return svi_fail(err, SVS_INVALID, "%s and %s have the same key", c->client[i - 1].name,
                            c->client[i].name);
    return SVS_OK;
}

static int count_clients(const char *bytes, size_t size) {
    int count = 0;
    size_t length;
    for (const char *at = bytes, *next; at < bytes + size; at = next) {
        next = next_line(at, bytes + size, &length);
        count += !is_comment(at, length);
    }
    return count;
}

static svs_code parse_lines(struct svi_clients *c, const char *bytes, size_t size, int *line,
                            svs_error *err) {
    size_t length;
    svs_code code = SVS_OK;
    *line = 0;
    for (const char *at = bytes, *next; code == SVS_OK && at < bytes + size; at = next) {
        next = next_line(at, bytes + size, &length);
        ++*line;
        if (!is_comment(at, length))
            code = parse_line(at, length, &c->client[c->count++], err);
    }
    return code;
}

svs_code svi_clients_parse(struct svi_clients *c, const char *name, const char *bytes, size_t length,
                           svs_error *err) {
    struct svi_clients read = {0};
    char shown[80];
    svs_error why;
    int line, count = count_clients(bytes, length);
    svi_escape(shown, sizeof shown, name, strlen(name));
    if (count > SVI_CLIENTS_MAX)
        return svi_fail(err, SVS_INVALID, "%s: more than %d clients", shown, SVI_CLIENTS_MAX);
    if (count > 0 && !(read.client = svi_alloc_array((size_t)count, sizeof *read.client)))
        return svi_fail_memory(err, "the allow file");
    svs_code code = parse_lines(&read, bytes, length, &line, &why);
    if (code != SVS_OK)
        svi_fail(err, code, "%s, line %d: %s", shown, line, why.text);
    else if (count > 0 && (code = check_unique(&read, &why)) != SVS_OK)
        svi_fail(err, code, "%s: %s", shown, why.text);
    if (code != SVS_OK) {
        svi_clients_clear(&read);
        return code;
    }
    svi_clients_clear(c);
    *c = read;
    return SVS_OK;
}

static svs_code read_text(const char *path, char **text, size_t *length, svs_error *err) {
    *text = svi_alloc(FILE_SIZE + 1);
    if (!*text)
        return svi_fail_memory(err, "the allow file");
    return svi_read_guarded(path, false, *text, FILE_SIZE + 1, length, err);
}

svs_code svi_clients_load(struct svi_clients *c, const char *path, svs_error *err) {
    char *text;
    size_t length;
    svs_code code = read_text(path, &text, &length, err);
    if (code == SVS_OK)
        code = svi_clients_parse(c, path, text, length, err);
    svi_free(text);
    return code;
}

const struct svi_client *svi_clients_find(const struct svi_clients *c, const char *key) {
    struct svi_client wanted;
    if (c->count == 0 || strlen(key) != SVI_KEY_LENGTH)
        return NULL;
    memcpy(wanted.key, key, sizeof wanted.key);
    return bsearch(&wanted, c->client, (size_t)c->count, sizeof *c->client, by_key);
}

/* ---- changing the file */

/* Two that change it at once wait for each other: the lock is on the file that has the name, which the other
 * one may have replaced meanwhile. Returns its descriptor, -1 = cannot. */
static int lock(const char *path, bool make) {
    for (int i = 0; i < LOCK_TURNS; i++) {
        struct stat held, named;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (make ? O_CREAT : 0), 0644);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX) == 0 && fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev)
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* Copies the text without the client of this key, and with `line` at its end. Returns the new length. */
static size_t edit(const char *text, size_t size, const char *without, const char *line, char *out) {
    size_t n = 0, length;
    struct svi_client client;
    for (const char *at = text, *next; at < text + size; at = next) {
        next = next_line(at, text + size, &length);
        bool leaves = !is_comment(at, length) && parse_line(at, length, &client, NULL) == SVS_OK &&
                      strcmp(client.key, without) == 0;
        if (leaves)
            continue;
        memcpy(out + n, at, length);
        n += length;
        out[n++] = '\n';
    }
    memcpy(out + n, line, strlen(line));
    return n + strlen(line);
}

static svs_code rewrite(const char *path, int fd, const char *text, size_t size, const char *without,
                        const char *line, svs_error *err) {
    struct stat s;
    char *out = svi_alloc(size + LINE_SIZE + 2);
    if (!out)
        return svi_fail_memory(err, "the allow file");
    size_t length = edit(text, size, without, line, out);
    svs_code code = SVS_OK;
    if (fstat(fd, &s) != 0)
        code = svi_fail(err, SVS_IO, "%.100s: %s", path, strerror(errno));
    else if (length > FILE_SIZE)
        code = svi_fail(err, SVS_LIMIT, "%.100s: it would be larger than 1 MiB", path);
    else
        code = svi_write_whole(path, out, length, s.st_mode & 0755, false, err);
    if (code == SVS_OK && chown(path, s.st_uid, s.st_gid) != 0 && geteuid() == 0)
        code = svi_fail(err, SVS_IO, "%.100s: its owner is lost: %s", path, strerror(errno));
    svi_free(out);
    return code;
}

/* Whose line goes: the one of the same key, or without `add` the one of that name too. */
static svs_code find_line(const char *path, const struct svi_clients *all, const struct svi_client *add,
                          const char *who, const struct svi_client **found, svs_error *err) {
    *found = NULL;
    for (int i = 0; i < all->count; i++) {
        const struct svi_client *c = &all->client[i];
        if (strcmp(c->key, who) == 0 || (!add && strcmp(c->name, who) == 0))
            *found = c;
        else if (add && strcmp(c->name, add->name) == 0)
            return svi_fail(err, SVS_INVALID, "%.100s: another key has the name %s already", path, add->name);
    }
    if (!add && !*found)
        return svi_fail(err, SVS_UNKNOWN_ID, "%.100s lists no such client", path);
    if (add && !*found && all->count == SVI_CLIENTS_MAX)
        return svi_fail(err, SVS_LIMIT, "%.100s: it lists %d clients already", path, SVI_CLIENTS_MAX);
    return SVS_OK;
}

static svs_code change_locked(const char *path, int fd, const struct svi_client *add, const char *who,
                              struct svi_client *taken, svs_error *err) {
    char line[LINE_SIZE] = "", *text = NULL;
    struct svi_clients all = {0};
    size_t size;
    const struct svi_client *found = NULL;
    svs_code code = read_text(path, &text, &size, err);
    if (code == SVS_OK)
        code = svi_clients_parse(&all, path, text, size, err);
    if (code == SVS_OK)
        code = find_line(path, &all, add, who, &found, err);
    if (add)
        snprintf(line, sizeof line, "%s %s %s\n", add->key, add->name, add->roles);
    if (code == SVS_OK)
        code = rewrite(path, fd, text, size, found ? found->key : "", line, err);
    if (code == SVS_OK && taken && found)
        *taken = *found;
    svi_clients_clear(&all);
    svi_free(text);
    return code;
}

static svs_code change(const char *path, const struct svi_client *add, const char *who,
                       struct svi_client *taken, svs_error *err) {
    int fd = lock(path, add != NULL);
    if (fd < 0)
        return svi_fail(err, SVS_IO, "%.100s: %s", path, strerror(errno));
    svs_code code = change_locked(path, fd, add, who, taken, err);
    close(fd);
    return code;
}

svs_code svi_allow_add(const char *path, const struct svi_client *client, svs_error *err) {
    svs_code code = svi_key_check(client->key, err);
    if (code == SVS_OK)
        code = svi_client_check(client->name, client->roles, err);
    return code == SVS_OK ? change(path, client, client->key, NULL, err) : code;
}

svs_code svi_allow_remove(const char *path, const char *who, struct svi_client *taken, svs_error *err) {
    return change(path, NULL, who, taken, err);
}
