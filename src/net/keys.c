/* Three layers, from the bottom up. One key: 40 characters of Z85, and not one of the four printed in the
 * manual of CURVE. One file: find_key reads a value, read_public and svi_keys_read a whole file; both accept
 * only what guarded_file admits, and a pair only if its public key follows from its secret one. The settings:
 * svi_identity_load makes one identity from curve and curve.server for the sockets.
 *
 * Secrets exist only in an identity or in a buffer of one function, which is wiped (explicit_bzero) on every
 * way out; they never appear in a message. A key file is never replaced: the .pub file is written first, as a
 * new file, and removed again if the secret one cannot be written. */
#include "net/keys.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

#include "base/fail.h"
#include "net/guarded_file.h"

#define FILE_SIZE 4096 /* largest key file, bytes */
#define ATTEMPTS  1000 /* pairs generated until the public key begins with a letter or a digit */

#define PUBLISHED                                                                                            \
    "this key is printed in the manual of CURVE and protects nothing: create one with `svmstream curve new`"
#define NO_CURVE "this libzmq has no CURVE: install one that is built with libsodium"

/* The test vectors of zmq_curve(7). */
static const char *const published[] = {
    "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"};

void svi_identity_wipe(struct svi_identity *id) {
    explicit_bzero(id, sizeof *id);
}

/* ---- one key */

static bool is_published(const char *key) {
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        if (strcmp(published[i], key) == 0)
            return true;
    return false;
}

static bool is_z85(const char *text) {
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    uint8_t key[32];
    /* The alphabet is checked here, since not every version of zmq_z85_decode does. */
    bool good =
        strlen(text) == SVI_KEY_LENGTH && text[strspn(text, digits)] == '\0' && zmq_z85_decode(key, text);
    explicit_bzero(key, sizeof key);
    return good;
}

svs_code svi_key_check(const char *text, svs_error *err) {
    if (!is_z85(text))
        return svi_fail(
            err, SVS_INVALID,
            "not a public key: 40 characters of Z85 are expected, as `svmstream curve show` prints them");
    if (is_published(text))
        return svi_fail(err, SVS_INVALID, PUBLISHED);
    return SVS_OK;
}

/* ---- key files */

/* The value of the line `name = "value"`, which must occur once and be a key. False: missing or damaged. */
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
        /* A second line of this name makes the file ambiguous. */
        if (found || *line != '=')
            return false;
        line += 1 + strspn(line + 1, " \t");
        if (line[0] != '"' || strcspn(line + 1, "\"\n") != SVI_KEY_LENGTH || line[1 + SVI_KEY_LENGTH] != '"')
            return false;
        memcpy(key, line + 1, SVI_KEY_LENGTH);
        key[SVI_KEY_LENGTH] = '\0';
        /* The quotes and the length were checked; the characters are checked here. */
        found = is_z85(key);
        if (!found)
            return false;
    }
    return found;
}

/* Why a pair is not acceptable; NULL: it is. The public key is derived again: a mixed-up file would fail only
 * at the first handshake otherwise. */
static const char *assess_pair(const struct svi_identity *id) {
    char derived[SVI_KEY_LENGTH + 1];
    if (is_published(id->public_key) || is_published(id->secret_key))
        return PUBLISHED;
    if (zmq_curve_public(derived, id->secret_key) != 0)
        return NO_CURVE;
    return strcmp(derived, id->public_key) == 0
               ? NULL
               : "the public key does not match the secret key, so the file is damaged: restore it from a "
                 "copy, or create a key with `svmstream curve new`";
}

/* Reads the public key of a file. A file with the secret key is accepted too, as long as nobody else may
 * write it. */
static svs_code read_public(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    char text[FILE_SIZE];
    size_t length;
    svs_code code = svi_guarded_read(path, false, text, sizeof text, &length, err);
    if (code != SVS_OK)
        return code;
    if (strlen(text) != length || !find_key(text, "public-key", key))
        code = svi_fail_path(err, SVS_INVALID, path, "it contains no public key or is damaged");
    else if (is_published(key))
        code = svi_fail_path(err, SVS_INVALID, path, PUBLISHED);
    explicit_bzero(text, sizeof text);
    return code;
}

/* Is this the .pub file that `svmstream curve new` writes next to the secret? */
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
    svs_code code = svi_guarded_read(path, true, text, sizeof text, &length, err);
    /* A common mistake is to name the .pub file, which fails as readable by others; the message then says so.
     */
    if (code != SVS_OK)
        return is_public_file(path)
                   ? svi_fail_path(
                         err, SVS_INVALID, path,
                         "this is the public key: give the file without .pub, which has the secret key")
                   : code;
    /* A NUL inside would hide the rest of the file. */
    if (strlen(text) != length || !find_key(text, "public-key", id->public_key) ||
        !find_key(text, "secret-key", id->secret_key))
        why = "not a key file, or damaged; `svmstream curve new` creates one";
    else
        why = assess_pair(id);
    explicit_bzero(text, sizeof text);
    id->on = !why;
    if (!why)
        return SVS_OK;
    svi_identity_wipe(id);
    return svi_fail_path(err, SVS_INVALID, path, "%s", why);
}

svs_code svi_key_resolve(const char *text, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    /* A text of 40 characters could be both; the file wins, as keys.h states. */
    if (access(text, F_OK) == 0)
        return read_public(text, key, err);
    if (!is_z85(text)) {
        char shown[100];
        return svi_fail(err, SVS_INVALID,
                        "'%s' is neither a public key (40 characters of Z85) nor an existing file",
                        svi_escape(shown, sizeof shown, text, strlen(text)));
    }
    memcpy(key, text, SVI_KEY_LENGTH + 1);
    return svi_key_check(key, err);
}

/* A key that begins with a letter or a digit cannot be mistaken for an option on a command line or a comment
 * in a file. */
static const char *make_pair(struct svi_identity *id) {
    for (int i = 0; i < ATTEMPTS; i++) {
        if (zmq_curve_keypair(id->public_key, id->secret_key) != 0)
            return NO_CURVE;
        char c = id->public_key[0];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            return NULL;
    }
    return "no random numbers are available";
}

/* The public file first: if the secret one cannot be written, nothing secret is left, and the public one is
 * removed. */
static svs_code write_pair(const char *path, const struct svi_identity *id, svs_error *err) {
    static const char secret[] =
        "# SECRET key of svmstream: nobody else may read this file. Give away the .pub file.\n"
        "curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n",
                      public[] =
                          "# Public key of svmstream, to be given away.\ncurve\n    public-key = \"%s\"\n";
    char public_path[PATH_MAX], text[FILE_SIZE];
    int n = snprintf(public_path, sizeof public_path, "%s" SVI_KEY_PUBLIC, path);
    if (n < 0 || n >= (int)sizeof public_path)
        return svi_fail_path(err, SVS_IO, path, "the name is too long");
    n = snprintf(text, sizeof text, public, id->public_key);
    svs_code code = svi_guarded_write(public_path, text, (size_t)n, 0644, true, err);
    if (code != SVS_OK)
        return code;
    n = snprintf(text, sizeof text, secret, id->public_key, id->secret_key);
    code = svi_guarded_write(path, text, (size_t)n, 0600, true, err);
    if (code != SVS_OK)
        unlink(public_path);
    explicit_bzero(text, sizeof text);
    return code;
}

svs_code svi_keys_new(const char *path, char key[SVI_KEY_LENGTH + 1], svs_error *err) {
    struct svi_identity id;
    struct stat s;
    /* Checked before the pair is generated; svi_guarded_write would refuse as well, but the .pub file comes
     * first there. lstat, so that a dangling link counts as existing. */
    if (lstat(path, &s) == 0)
        return svi_fail_path(err, SVS_IO, path, "already exists and is not replaced: name another file");
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

svs_code svi_identity_load(const struct svi_settings *s, bool client, struct svi_identity *id,
                           svs_error *err) {
    const char *path = svi_keys_path(s);
    svs_error why;
    svi_identity_wipe(id);
    /* Both half-configurations are refused: silently talking without CURVE would be worse. */
    if (!path && s->curve_server[0] && client)
        return svi_fail(
            err, SVS_SETTING,
            "curve.server is set, but curve is off: give the key file of this process with --curve FILE");
    if (!path)
        return SVS_OK;
    if (client && !s->curve_server[0])
        return svi_fail(err, SVS_SETTING,
                        "curve needs the public key of the server: give --curve.server KEY (`svmstream curve "
                        "show` on the server prints it)");
    svs_code code = svi_keys_read(path, id, &why);
    if (code != SVS_OK)
        return svi_fail(err, code, "curve: %s", why.text);
    if (s->curve_server[0] && svi_key_resolve(s->curve_server, id->server_key, &why) != SVS_OK) {
        svi_identity_wipe(id);
        return svi_fail(err, SVS_SETTING, "curve.server: %s", why.text);
    }
    return SVS_OK;
}
