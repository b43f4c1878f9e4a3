#include "engine/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "base/fail.h"

#define FILE_SIZE 4096 /* bytes of a key file at most */
#define PATH_SIZE 4096
#define ATTEMPTS  1000 /* pairs that are made until the public key begins with a letter or a digit */

#define KNOWN "this key is printed in a manual, so that everybody has it: make one with `svmstream keys new`"

/* zmq_curve(7), "test vectors". */
static const char *const printed[] = {
    "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"};

void svi_identity_wipe(struct svi_identity *id) {
    explicit_bzero(id, sizeof *id);
}

/* ---- one key */

static bool is_printed(const char *key) {
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++)
        if (strcmp(printed[i], key) == 0)
            return true;
    return false;
}

static bool is_z85(const char *text) {
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    uint8_t key[32];
    bool good =
        strlen(text) == SVI_KEY_LENGTH && text[strspn(text, digits)] == '\0' && zmq_z85_decode(key, text);
    explicit_bzero(key, sizeof key);
    return good;
}

svs_code svi_key_check(const char *text, svs_error *err) {
    if (!is_z85(text))
        return svi_fail(err, SVS_INVALID,
                        "a key is 40 characters of Z85, as `svmstream keys show` prints it");
    if (is_printed(text))
        return svi_fail(err, SVS_INVALID, KNOWN);
    return SVS_OK;
}

/* ---- files */

static svs_code refuse_file(const char *path, svs_code code, const char *why, svs_error *err) {
    char shown[120];
    return svi_fail(err, code, "%s: %s", svi_escape(shown, sizeof shown, path, strlen(path)), why);
}

/* The program makes both kinds of files. */
static svs_code refuse_missing(const char *path, bool secret, int error, svs_error *err) {
    char why[160];
    const char *maker = secret ? "`svmstream keys new` makes a key file"
                               : "`svmstream keys allow` lists the first client, and makes it";
    snprintf(why, sizeof why, "%s%s%s", strerror(error), error == ENOENT ? "; " : "",
             error == ENOENT ? maker : "");
    return refuse_file(path, SVS_IO, why, err);
}

static const char *judge_file(int fd, bool secret, size_t size, svs_code *code) {
    struct stat s;
    *code = SVS_IO;
    if (fstat(fd, &s) != 0)
        return strerror(errno);
    if (!S_ISREG(s.st_mode))
        return "it is no regular file";
    if (s.st_uid != geteuid() && s.st_uid != 0 && geteuid() != 0)
        return "it belongs to another user";
    if (secret && (s.st_mode & 077) != 0)
        return "others than its owner may read or write this secret key: chmod 600 it, and make a new key if "
               "somebody may have read it";
    if (!secret && (s.st_mode & 022) != 0)
        return "others than its owner may write it: chmod go-w it";
    *code = SVS_TOO_LARGE;
    return (uint64_t)s.st_size >= size ? "it is too large to be such a file" : NULL;
}

/* The size is looked at before, and the room is all that is read into, whatever the file does meanwhile. */
svs_code svi_read_guarded(const char *path, bool secret, char *out, size_t size, size_t *length,
                          svs_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    svs_code code;
    ssize_t n = 1;
    *length = 0;
    if (fd < 0)
        return refuse_missing(path, secret, errno, err);
    const char *why = judge_file(fd, secret, size, &code);
    while (!why && n > 0 && *length + 1 < size) {
        n = read(fd, out + *length, size - 1 - *length);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            why = strerror(errno), code = SVS_IO;
        else
            *length += (size_t)n;
    }
    out[*length] = '\0';
    close(fd);
    return why ? refuse_file(path, code, why, err) : SVS_OK;
}

static bool write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0;
}

static void sync_folder(const char *path) {
    char folder[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* A link never replaces what is there, a rename does. */
static bool put_in_place(const char *beside, const char *path, bool fresh) {
    bool done = fresh ? link(beside, path) == 0 : rename(beside, path) == 0;
    int why = errno;
    if (fresh || !done)
        unlink(beside);
    if (done)
        sync_folder(path);
    errno = why;
    return done;
}

svs_code svi_write_whole(const char *path, const char *text, size_t length, int mode, bool fresh,
                         svs_error *err) {
    char beside[PATH_SIZE];
    int n = snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid());
    if (n < 0 || n >= (int)sizeof beside)
        return refuse_file(path, SVS_IO, "the name is too long", err);
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return refuse_file(beside, SVS_IO, strerror(errno), err);
    bool written = fchmod(fd, (mode_t)mode) == 0 && write_all(fd, text, length);
    int why = errno;
    if (close(fd) != 0 && written) {
        written = false;
        why = errno;
    }
    if (!written) {
        unlink(beside);
        return refuse_file(beside, SVS_IO, strerror(why), err);
    }
    if (put_in_place(beside, path, fresh))
        return SVS_OK;
    return refuse_file(path, SVS_IO,
                       errno == EEXIST ? "is there already and is not replaced" : strerror(errno), err);
}

/* ---- key files */

/* The value of the line `name = "value"`, once and not longer than a key. False: none, or it is damaged. */
static bool find_key(char *text, const char *name, char key[SVI_KEY_LENGTH + 1]) {
    bool found = false;
    size_t length = strlen(name);
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : NULL;
        line += strspn(line, " \t");
        if (strncmp(line, name, length) != 0)
            continue;
        line += length + strspn(line + length, " \t");
        if (found || *line != '=')
            return false;
        line += 1 + strspn(line + 1, " \t");
        if (line[0] != '"' || strcspn(line + 1, "\"\n") != SVI_KEY_LENGTH || line[1 + SVI_KEY_LENGTH] != '"')
            return false;
        memcpy(key, line + 1, SVI_KEY_LENGTH);
        key[SVI_KEY_LENGTH] = '\0';
        found = is_z85(key);
        if (!found)
            return false;
    }
    return found;
}

static const char *judge_pair(const struct svi_identity *id) {
    char derived[SVI_KEY_LENGTH + 1];
    if (is_printed(id->public_key) || is_printed(id->secret_key))
        return KNOWN;
    if (zmq_curve_public(derived, id->secret_key) != 0)
        return "this build of libzmq has no CURVE";
    return strcmp(derived, id->public_key) == 0
               ? NULL
               : "its public key is not that of its secret key: it is damaged";
}

/* A file of a public key; one with the secret too will do, as long as it is kept well. */
static svs_code read_public(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    char text[FILE_SIZE];
    size_t length;
    svs_code code = svi_read_guarded(path, false, text, sizeof text, &length, err);
    if (code != SVS_OK)
        return code;
    if (strlen(text) != length || !find_key(text, "public-key", key))
        code = refuse_file(path, SVS_INVALID, "it holds no public key, or it is damaged", err);
    else if (is_printed(key))
        code = refuse_file(path, SVS_INVALID, KNOWN, err);
    explicit_bzero(text, sizeof text);
    return code;
}

/* The one that `svmstream keys new` writes beside the secret. */
static bool is_public_file(const char *path) {
    char key[SVI_KEY_LENGTH + 1];
    const size_t n = strlen(path), end = strlen(SVI_KEY_PUBLIC);
    return n > end && strcmp(path + n - end, SVI_KEY_PUBLIC) == 0 && read_public(path, key, NULL) == SVS_OK;
}

svs_code svi_keys_read(const char *path, struct svi_identity *id, svs_error *err) {
    char text[FILE_SIZE];
    size_t length;
    const char *why = NULL;
    svi_identity_wipe(id);
    svs_code code = svi_read_guarded(path, true, text, sizeof text, &length, err);
    if (code != SVS_OK)
        return is_public_file(path)
                   ? refuse_file(path, SVS_INVALID,
                                 "it holds the public key: the secret one is in the file without .pub", err)
                   : code;
    if (strlen(text) != length || !find_key(text, "public-key", id->public_key) ||
        !find_key(text, "secret-key", id->secret_key))
        why = "it is no key file, or it is damaged; `svmstream keys new` makes one";
    else
        why = judge_pair(id);
    explicit_bzero(text, sizeof text);
    id->on = !why;
    if (!why)
        return SVS_OK;
    svi_identity_wipe(id);
    return refuse_file(path, SVS_INVALID, why, err);
}

svs_code svi_key_resolve(const char *text, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    if (access(text, F_OK) == 0)
        return read_public(text, key, err);
    if (!is_z85(text)) {
        char shown[100];
        return svi_fail(err, SVS_INVALID,
                        "'%s' is neither a public key (40 characters of Z85) nor a file that is there",
                        svi_escape(shown, sizeof shown, text, strlen(text)));
    }
    memcpy(key, text, SVI_KEY_LENGTH + 1);
    return svi_key_check(key, err);
}

/* One that begins with a letter or a digit is no option of a command line and no comment of a file. */
static const char *make_pair(struct svi_identity *id) {
    for (int i = 0; i < ATTEMPTS; i++) {
        if (zmq_curve_keypair(id->public_key, id->secret_key) != 0)
            return "this build of libzmq has no CURVE";
        char c = id->public_key[0];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            return NULL;
    }
    return "no random numbers can be had";
}

static svs_code write_pair(const char *path, const struct svi_identity *id, svs_error *err) {
    static const char secret[] =
        "# SECRET key of svmstream: nobody else may read this file. Give away the .pub file.\n"
        "curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
                      public[] =
                          "# Public key of svmstream, to be given away.\ncurve\n    public-key = \"%s\"\n";
    char beside[PATH_SIZE], text[FILE_SIZE];
    int n = snprintf(beside, sizeof beside, "%s" SVI_KEY_PUBLIC, path);
    if (n < 0 || n >= (int)sizeof beside)
        return refuse_file(path, SVS_IO, "the name is too long", err);
    n = snprintf(text, sizeof text, public, id->public_key);
    svs_code code = svi_write_whole(beside, text, (size_t)n, 0644, true, err);
    if (code != SVS_OK)
        return code;
    n = snprintf(text, sizeof text, secret, id->public_key, id->secret_key);
    code = svi_write_whole(path, text, (size_t)n, 0600, true, err);
    if (code != SVS_OK)
        unlink(beside);
    explicit_bzero(text, sizeof text);
    return code;
}

svs_code svi_keys_new(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    struct svi_identity id;
    struct stat s;
    if (lstat(path, &s) == 0)
        return refuse_file(path, SVS_IO, "is there already and is not replaced", err);
    const char *why = make_pair(&id);
    svs_code code = why ? svi_fail(err, SVS_UNAVAILABLE, "%s", why) : write_pair(path, &id, err);
    memcpy(key, id.public_key, sizeof id.public_key);
    svi_identity_wipe(&id);
    return code;
}

bool svi_identity_connect(const struct svi_identity *id, void *socket) {
    return !id->on || (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, id->server_key, SVI_KEY_LENGTH) == 0 &&
                       zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, id->public_key, SVI_KEY_LENGTH) == 0 &&
                       zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, id->secret_key, SVI_KEY_LENGTH) == 0);
}

/* ---- settings */

const char *svi_keys_path(const struct svi_settings *s) {
    if (strcmp(s->curve, "off") == 0)
        return NULL;
    return strcmp(s->curve, "on") == 0 ? SVI_KEY_FILE : s->curve;
}

static svs_code name_server(const struct svi_settings *s, struct svi_identity *id, svs_error *err) {
    svs_error why;
    svs_code code = svi_key_resolve(s->curve_server, id->server_key, &why);
    return code == SVS_OK ? code : svi_fail(err, SVS_SETTING, "curve.server: %s", why.text);
}

svs_code svi_identity_load(const struct svi_settings *s, bool client, struct svi_identity *id,
                           svs_error *err) {
    const char *path = svi_keys_path(s);
    svs_error why;
    svi_identity_wipe(id);
    if (!path && s->curve_server[0] && client)
        return svi_fail(
            err, SVS_SETTING,
            "curve.server is given, but curve is off: give the key file of this end with --curve FILE");
    if (!path)
        return SVS_OK;
    if (client && !s->curve_server[0])
        return svi_fail(
            err, SVS_SETTING,
            "curve needs the public key of the process to talk to: give --curve.server KEY (there "
            "`svmstream keys show` prints it)");
    svs_code code = svi_keys_read(path, id, &why);
    if (code != SVS_OK)
        return svi_fail(err, code, "curve: %s", why.text);
    if (s->curve_server[0])
        code = name_server(s, id, err);
    if (code != SVS_OK)
        svi_identity_wipe(id);
    return code;
}
