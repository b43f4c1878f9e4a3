/* Tokens and their rights: a file of lines HASH NAME ROLES. The parts in order: one line, the whole file, the
 * lookup, and the changes of `svmstream-http token`. Read http_tokens_parse first.
 *
 * http_token_line alone makes a struct http_token, and checks everything that it may contain; so one is valid
 * wherever it appears. A file is accepted as a whole or not at all. A list without its invalid line would
 * grant other rights than its author meant, and a running server keeps the list that it has.
 *
 * A token is looked up by its hash alone. Every entry is compared, each in full: the time says nothing about
 * the entries. The text of a token exists in two places only, with its owner and, for a moment, here. The
 * file has hashes, so reading it gives nobody a token. A plain SHA-256 is enough for that, as a token is 256
 * random bits and no word that could be guessed.
 *
 * A change edits the text and not the list, which keeps comments and order. It is parsed before it is
 * written. */
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/guarded_file.h"
#include "principal.h"
#include "svmstream/value.h"

#define TOKEN_HEAD "svm_"

static const char name_characters[] = ".ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

/* Names of tokens have no dots, names of sources may. */
static bool http_token_name(const char *text, size_t length, bool dots) {
    return length > 0 && length <= 64 && strspn(text, name_characters + !dots) >= length;
}

/* Words are compared in place: a list of roles is not NUL-terminated between its commas. */
static bool http_token_is(const char *word, size_t length, const char *wanted) {
    return length == strlen(wanted) && memcmp(word, wanted, length) == 0;
}

static svs_code http_token_source(struct http_token *t, const char *name, size_t length, svs_error *err) {
    /* Checked without its *: a * in the middle is no pattern, and NAME alone may be empty only before a *. */
    const size_t used = strlen(t->sources), stem = length - (length > 0 && name[length - 1] == '*');
    if (length == 0 || (stem > 0 && !http_token_name(name, stem, true)) || stem > 64)
        return svi_fail(err, SVS_INVALID,
                        "source:NAME takes 1 to 64 letters, digits, _ - and ., and a * last");
    if (used + length + 2 > sizeof t->sources)
        return svi_fail(err, SVS_INVALID, "the sources are longer than %d bytes", HTTP_SOURCES_SIZE - 1);
    snprintf(t->sources + used, sizeof t->sources - used, "%s%.*s", used ? "," : "", (int)length, name);
    return SVS_OK;
}

static svs_code http_token_roles(struct http_token *t, const char *text, svs_error *err) {
    static const struct {
        const char *word;
        unsigned role;
    } roles[] = {{"watch", ROLE_WATCH}, {"send", ROLE_SEND}, {"control", ROLE_CONTROL}};
    char shown[80];
    /* An empty word, as after a comma too many, is no role and is refused too. */
    for (const char *at = text; at;) {
        const size_t length = strcspn(at, ",");
        unsigned found = 0;
        for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
            found |= http_token_is(at, length, roles[i].word) ? roles[i].role : 0;
        if (!found && strncmp(at, "source:", 7) == 0 && length >= 7)
            SVI_TRY(http_token_source(t, at + 7, length - 7, err));
        else if (!found)
            return svi_fail(err, SVS_INVALID, "'%s' is not a role (" HTTP_ROLES_TEXT ")",
                            svi_escape(shown, sizeof shown, at, length));
        t->roles |= found;
        at = at[length] ? at + length + 1 : NULL;
    }
    /* A binding without the right to send is surely a mistake. */
    return t->sources[0] && !(t->roles & ROLE_SEND)
               ? svi_fail(err, SVS_INVALID, "source:NAME needs the role send too")
               : SVS_OK;
}

static bool http_token_hash_read(unsigned char hash[HTTP_HASH_BYTES], const char *text) {
    static const char digits[] = "0123456789abcdef";
    /* Lower case only: one hash has one spelling, so that a search of the file finds it. */
    if (strspn(text, digits) != 2 * HTTP_HASH_BYTES || strlen(text) != 2 * HTTP_HASH_BYTES)
        return false;
    for (int i = 0; i < HTTP_HASH_BYTES; i++)
        hash[i] = (unsigned char)(16 * (strchr(digits, text[2 * i]) - digits) +
                                  (strchr(digits, text[2 * i + 1]) - digits));
    return true;
}

static svs_code http_token_words(struct http_token *t, const char *hash, const char *name, const char *roles,
                                 svs_error *err) {
    char shown[80];
    /* No right remains from what the entry held before. */
    *t = (struct http_token){0};
    if (!http_token_hash_read(t->hash, hash))
        return svi_fail(err, SVS_INVALID, "the hash is not 64 hexadecimal digits in lower case");
    if (!http_token_name(name, strlen(name), false))
        return svi_fail(err, SVS_INVALID, "'%s' is not a valid name (1 to 64 letters, digits, _ and -)",
                        svi_escape(shown, sizeof shown, name, strlen(name)));
    strcpy(t->name, name);
    return http_token_roles(t, roles, err);
}

static svs_code http_token_line(struct http_token *t, const char *bytes, size_t length, svs_error *err) {
    char line[HTTP_TOKEN_LINE], *word[4], *rest = line, *part;
    int n = 0;
    if (length >= sizeof line || memchr(bytes, '\0', length))
        return svi_fail(err, SVS_INVALID, "the line is too long, or binary");
    /* strsep writes into its text, and the caller still needs the file as it is. */
    memcpy(line, bytes, length);
    line[length] = '\0';
    /* A fourth word is read only to notice that there is one. */
    while (n < 4 && (part = strsep(&rest, " \t\r")))
        if (*part)
            word[n++] = part;
    if (n != 3)
        return svi_fail(err, SVS_INVALID, "a line is HASH NAME ROLES");
    return http_token_words(t, word[0], word[1], word[2], err);
}

static bool http_token_is_comment(const char *line, size_t length) {
    /* A hash mark needs a blank after it: "#deadbeef" is a damaged entry, and not silently a comment. */
    const bool blank = strspn(line, " \t\r\n") >= length;
    return blank || (line[0] == '#' && (length == 1 || line[1] == ' '));
}

/* Each new entry is compared with those before it. 4096 entries make this quadratic search cheap enough. */
static svs_code http_token_unique(const struct http_tokens *all, svs_error *err) {
    const struct http_token *last = &all->token[all->count - 1];
    for (int i = 0; i < all->count - 1; i++) {
        if (strcmp(all->token[i].name, last->name) == 0)
            return svi_fail(err, SVS_INVALID, "two tokens have the name %s", last->name);
        if (memcmp(all->token[i].hash, last->hash, HTTP_HASH_BYTES) == 0)
            return svi_fail(err, SVS_INVALID, "%s and %s have the same hash", all->token[i].name, last->name);
    }
    return SVS_OK;
}

static svs_code http_token_lines(struct http_tokens *all, const char *bytes, size_t size, int most,
                                 svs_error *err) {
    svs_error why;
    int line = 0;
    for (const char *at = bytes; at < bytes + size;) {
        const char *stop = memchr(at, '\n', (size_t)(bytes + size - at));
        const size_t length = (size_t)((stop ? stop : bytes + size) - at);
        line++;
        if (!http_token_is_comment(at, length)) {
            if (all->count == most)
                return svi_fail(err, SVS_INVALID, ": more than %d tokens", HTTP_TOKENS_MAX);
            /* The count rises first, so that the check of uniqueness sees the new entry as the last. */
            svs_code code = http_token_line(&all->token[all->count++], at, length, &why);
            if (code == SVS_OK)
                code = http_token_unique(all, &why);
            if (code != SVS_OK)
                return svi_fail(err, code, ", line %d: %s", line, why.text);
        }
        at += length + 1;
    }
    return SVS_OK;
}

svs_code http_tokens_parse(struct http_tokens *all, const char *path, const char *bytes, size_t length,
                           svs_error *err) {
    struct http_tokens fresh = {0};
    char shown[80];
    svs_error why;
    int lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    /* Lines bound the entries: a small file does not need memory for 4096 of them. */
    const int most = lines < HTTP_TOKENS_MAX ? lines : HTTP_TOKENS_MAX;
    if (!(fresh.token = svi_alloc_array((size_t)most, sizeof *fresh.token)))
        return svi_fail_memory(err, "the tokens file");
    const svs_code code = http_token_lines(&fresh, bytes, length, most, &why);
    if (code != SVS_OK) {
        http_tokens_clear(&fresh);
        return svi_fail(err, code, "%s%s", svi_escape(shown, sizeof shown, path, strlen(path)), why.text);
    }
    /* *all is replaced only by a complete and valid list. */
    http_tokens_clear(all);
    *all = fresh;
    return SVS_OK;
}

void http_tokens_clear(struct http_tokens *all) {
    svi_free(all->token);
    *all = (struct http_tokens){0};
}

/* Reads and parses the file. The caller frees *text in any case; it has capacity for one more line. */
static svs_code http_token_read(struct http_tokens *all, const char *path, char **text, size_t *length,
                                svs_error *err) {
    *text = svi_alloc(HTTP_TOKENS_FILE + HTTP_TOKEN_LINE + 2);
    if (!*text)
        return svi_fail_memory(err, "the tokens file");
    /* A missing file is usually the first start, so this error says how to create it. */
    if (access(path, F_OK) != 0)
        return svi_fail_path(err, SVS_IO, path,
                             "%s; `svmstream-http token --tokens FILE` creates it with its first token",
                             strerror(errno));
    /* The file may be readable, as it holds hashes. Writing it grants rights, so other users must not be able
     * to. */
    SVI_TRY(svi_guarded_read(path, false, *text, HTTP_TOKENS_FILE + 1, length, err));
    return http_tokens_parse(all, path, *text, *length, err);
}

svs_code http_tokens_load(struct http_tokens *all, const char *path, svs_error *err) {
    char *text;
    size_t length;
    const svs_code code = http_token_read(all, path, &text, &length, err);
    svi_free(text);
    return code;
}

/* Not memcmp, which stops at the first difference. */
static bool http_token_same(const unsigned char *a, const unsigned char *b) {
    volatile unsigned char different = 0;
    for (int i = 0; i < HTTP_HASH_BYTES; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

const struct http_token *http_tokens_by_hash(const struct http_tokens *all,
                                             const unsigned char hash[HTTP_HASH_BYTES]) {
    /* The loop has no early end, which would show by its time whether and where a hash is listed. */
    const struct http_token *found = NULL;
    for (int i = 0; i < all->count; i++)
        found = http_token_same(all->token[i].hash, hash) ? &all->token[i] : found;
    return found;
}

const struct http_token *http_tokens_find(const struct http_tokens *all, const char *text, size_t length) {
    unsigned char hash[HTTP_HASH_BYTES];
    return gnutls_hash_fast(GNUTLS_DIG_SHA256, text, length, hash) == 0 ? http_tokens_by_hash(all, hash)
                                                                        : NULL;
}

static void http_token_digits(const unsigned char *bytes, char *out) {
    for (int i = 0; i < HTTP_HASH_BYTES; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

svs_code http_tokens_make(const char *name, const char *roles, char text[HTTP_TOKEN_BYTES], char *line,
                          svs_error *err) {
    unsigned char secret[HTTP_HASH_BYTES], hash[HTTP_HASH_BYTES];
    char digits[2 * HTTP_HASH_BYTES + 1];
    struct http_token checked;
    /* 32 bytes are below the size that getrandom gives whole, so a short result is a failure. */
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return svi_fail(err, SVS_IO, "the system has no random bytes: %s", strerror(errno));
    strcpy(text, TOKEN_HEAD);
    http_token_digits(secret, text + strlen(TOKEN_HEAD));
    /* The text of the token is for its owner. The bytes that it was made of are not needed any more. */
    explicit_bzero(secret, sizeof secret);
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), hash) != 0)
        return svi_fail(err, SVS_IO, "SHA-256 is not available");
    http_token_digits(hash, digits);
    if (strlen(roles) > HTTP_TOKEN_LINE - 200)
        return svi_fail(err, SVS_INVALID, "the roles are longer than %d bytes", HTTP_TOKEN_LINE - 200);
    /* The result is not used: a name or role that the server would refuse must not reach the file. */
    SVI_TRY(http_token_words(&checked, digits, name, roles, err));
    snprintf(line, HTTP_TOKEN_LINE, "%s %s %s\n", digits, name, roles);
    return SVS_OK;
}

/* The new text is held against the same rules before it replaces the old one. */
static svs_code http_token_write(const char *path, const char *text, size_t length, bool fresh,
                                 svs_error *err) {
    struct http_tokens all = {0};
    if (length > HTTP_TOKENS_FILE)
        return svi_fail_path(err, SVS_TOO_LARGE, path, "it would be above 1 MiB");
    SVI_TRY(http_tokens_parse(&all, path, text, length, err));
    http_tokens_clear(&all);
    return svi_guarded_write(path, text, length, 0600, fresh, err);
}

svs_code http_tokens_append(const char *path, const char *line, svs_error *err) {
    struct http_tokens all = {0};
    char *text = NULL;
    size_t length = 0;
    /* Only a file that does not exist may be created. One that cannot be read must not be replaced. */
    const bool fresh = access(path, F_OK) != 0 && errno == ENOENT;
    svs_code code = SVS_OK;
    if (!fresh)
        code = http_token_read(&all, path, &text, &length, err);
    else if (!(text = svi_alloc(HTTP_TOKEN_LINE)))
        code = svi_fail_memory(err, "the tokens file");
    if (code == SVS_OK) {
        /* An editor may have left the last line without its end; the new entry would become a part of it. */
        if (length > 0 && text[length - 1] != '\n')
            text[length++] = '\n';
        strcpy(text + length, line);
        code = http_token_write(path, text, length + strlen(line), fresh, err);
    }
    http_tokens_clear(&all);
    svi_free(text);
    return code;
}

/* The line of a name: [*begin, *end) of a text that is valid. */
static bool http_token_find_line(const char *text, size_t length, const char *name, size_t *begin,
                                 size_t *end) {
    struct http_token t;
    svs_error err;
    for (*begin = 0; *begin < length; *begin = *end) {
        const char *stop = memchr(text + *begin, '\n', length - *begin);
        const size_t size = stop ? (size_t)(stop - text) - *begin : length - *begin;
        *end = *begin + size + (stop != NULL);
        if (!http_token_is_comment(text + *begin, size) &&
            http_token_line(&t, text + *begin, size, &err) == SVS_OK && strcmp(t.name, name) == 0)
            return true;
    }
    return false;
}

svs_code http_tokens_remove(const char *path, const char *name, svs_error *err) {
    struct http_tokens all = {0};
    char *text = NULL, shown[80];
    size_t length = 0, begin = 0, end = 0;
    svs_code code = http_token_read(&all, path, &text, &length, err);
    if (code == SVS_OK && !http_token_find_line(text, length, name, &begin, &end))
        code = svi_fail_path(err, SVS_UNKNOWN_ID, path, "it has no token with the name %s",
                             svi_escape(shown, sizeof shown, name, strlen(name)));
    if (code == SVS_OK) {
        /* The bytes of one line go; all others stay as their author wrote them. */
        memmove(text + begin, text + end, length - end);
        code = http_token_write(path, text, length - (end - begin), false, err);
    }
    http_tokens_clear(&all);
    svi_free(text);
    return code;
}
