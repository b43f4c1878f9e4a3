/* Keys, the allow file and who may do what: files that are damaged in every way, and no secret that gets out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <zmq.h>

#include "net/authenticator.h"

#define PRINTED_PUBLIC "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define PRINTED_SECRET "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"

static char folder[256];

static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%s/keys-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int remove_folder(void **state) {
    char command[300];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

static size_t read_file(const char *path, char *out, size_t size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(out, 1, size - 1, f);
    out[n] = '\0';
    fclose(f);
    return n;
}

static void write_file(const char *path, const char *bytes, size_t size, int mode) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

static void write_text(const char *path, const char *text, int mode) {
    write_file(path, text, strlen(text), mode);
}

static void new_key(char key[SVI_KEY_LENGTH + 1]) {
    char secret[SVI_KEY_LENGTH + 1];
    do
        assert_int_equal(zmq_curve_keypair(key, secret), 0);
    while (key[0] == '#');
}

#define refused(call, err, wanted, part)                                                                     \
    do {                                                                                                     \
        assert_int_equal((call), (wanted));                                                                  \
        if (!strstr((err).text, (part)))                                                                     \
            fail_msg("'%s' does not say '%s'", (err).text, (part));                                          \
    } while (0)

/* ---- key files */

static void test_new(void **state) {
    char key[41], resolved[41], text[4096];
    struct svi_identity id;
    struct stat s;
    svs_error err = {SVS_OK, ""};
    (void)state;
    assert_int_equal(svi_keys_new("a.key", key, &err), SVS_OK);
    assert_int_equal(stat("a.key", &s), 0);
    assert_int_equal(s.st_mode & 07777, 0600);
    assert_int_equal(stat("a.key.pub", &s), 0);
    assert_int_equal(s.st_mode & 07777, 0644);
    assert_int_equal(svi_keys_read("a.key", &id, &err), SVS_OK);
    assert_true(id.on);
    assert_string_equal(id.public_key, key);
    read_file("a.key.pub", text, sizeof text);
    assert_null(strstr(text, id.secret_key));
    assert_non_null(strstr(text, key));
    assert_int_equal(svi_key_resolve("a.key.pub", resolved, &err), SVS_OK);
    assert_string_equal(resolved, key);
    assert_int_equal(svi_key_resolve(key, resolved, &err), SVS_OK);
    svi_identity_wipe(&id);
    for (size_t i = 0; i < sizeof id; i++)
        assert_int_equal(((char *)&id)[i], 0);
}

static void test_never_replaced(void **state) {
    char key[41], before[4096], after[4096];
    svs_error err;
    (void)state;
    assert_int_equal(svi_keys_new("b.key", key, NULL), SVS_OK);
    read_file("b.key", before, sizeof before);
    refused(svi_keys_new("b.key", key, &err), err, SVS_IO, "already exists");
    read_file("b.key", after, sizeof after);
    assert_string_equal(before, after);
    write_text("c.key.pub", "mine", 0644);
    refused(svi_keys_new("c.key", key, &err), err, SVS_IO, "already exists");
    assert_int_equal(access("c.key", F_OK), -1);
    assert_int_equal(symlink("/nowhere/at/all", "dangling.key"), 0);
    refused(svi_keys_new("dangling.key", key, &err), err, SVS_IO, "already exists");
    refused(svi_keys_new("no/such/folder/d.key", key, &err), err, SVS_IO, "No such file");
    assert_int_equal(access("no", F_OK), -1);
}

static void test_permissions(void **state) {
    static const int open_to_others[] = {0640, 0604, 0660, 0622, 0601, 0777};
    char key[41], text[4096];
    struct svi_identity id;
    svs_error err;
    (void)state;
    assert_int_equal(svi_keys_new("p.key", key, NULL), SVS_OK);
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        chmod("p.key", (mode_t)open_to_others[i]);
        refused(svi_keys_read("p.key", &id, &err), err, SVS_IO, "chmod 600");
        assert_false(id.on);
    }
    chmod("p.key", 0400);
    assert_int_equal(svi_keys_read("p.key", &id, &err), SVS_OK);
    size_t n = read_file("p.key.pub", text, sizeof text);
    write_file("p.key.pub", text, n, 0666);
    refused(svi_key_resolve("p.key.pub", key, &err), err, SVS_IO, "chmod go-w");
    refused(svi_keys_read(".", &id, &err), err, SVS_IO, "not a regular file");
    refused(svi_keys_read("/dev/zero", &id, &err), err, SVS_IO, "not a regular file");
    refused(svi_keys_read("none.key", &id, &err), err, SVS_IO, "No such file");
    refused(svi_keys_read("p.key.pub", &id, &err), err, SVS_IO, "chmod 600");
}

/* Every byte changed, every length cut: refused, or the change lies outside the keys. No text shows the
 * secret. */
static void test_damaged(void **state) {
    char key[41], text[4096], damaged[4096];
    struct svi_identity good, id;
    svs_error err;
    (void)state;
    assert_int_equal(svi_keys_new("whole.key", key, NULL), SVS_OK);
    assert_int_equal(svi_keys_read("whole.key", &good, NULL), SVS_OK);
    size_t n = read_file("whole.key", text, sizeof text);
    int refusals = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(damaged, text, n);
        damaged[i] = damaged[i] == 'x' ? 'y' : 'x';
        write_file("damaged.key", damaged, n, 0600);
        err.text[0] = '\0';
        if (svi_keys_read("damaged.key", &id, &err) == SVS_OK) {
            assert_string_equal(id.public_key, good.public_key);
            assert_string_equal(id.secret_key, good.secret_key);
        } else {
            refusals++;
            assert_null(strstr(err.text, good.secret_key));
            assert_false(id.on);
            assert_int_equal(id.secret_key[0], 0);
        }
    }
    assert_true(refusals >= 80);
    for (size_t length = 0; length + 2 < n; length++) {
        write_file("damaged.key", text, length, 0600);
        assert_int_not_equal(svi_keys_read("damaged.key", &id, NULL), SVS_OK);
    }
    memset(damaged, ' ', sizeof damaged);
    write_file("damaged.key", damaged, sizeof damaged, 0600);
    refused(svi_keys_read("damaged.key", &id, &err), err, SVS_TOO_LARGE, "too large");
    memcpy(damaged, text, n);
    damaged[n] = '\0';
    write_file("damaged.key", damaged, n + 1, 0600);
    refused(svi_keys_read("damaged.key", &id, &err), err, SVS_INVALID, "damaged");
}

static void test_printed_keys(void **state) {
    static const char file[] =
        "curve\n    public-key = \"" PRINTED_PUBLIC "\"\n    secret-key = \"" PRINTED_SECRET "\"\n";
    char key[41];
    struct svi_identity id;
    svs_error err;
    (void)state;
    write_text("printed.key", file, 0600);
    refused(svi_keys_read("printed.key", &id, &err), err, SVS_INVALID, "manual");
    refused(svi_key_check(PRINTED_PUBLIC, &err), err, SVS_INVALID, "manual");
    refused(svi_key_check(PRINTED_SECRET, &err), err, SVS_INVALID, "manual");
    refused(svi_key_check("Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", &err), err, SVS_INVALID, "manual");
    refused(svi_key_resolve(PRINTED_PUBLIC, key, &err), err, SVS_INVALID, "manual");
    refused(svi_key_resolve("printed.key", key, &err), err, SVS_INVALID, "manual");
    refused(svi_key_check("short", &err), err, SVS_INVALID, "40 characters");
    refused(svi_key_check("~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~", &err), err, SVS_INVALID,
            "40 characters");
    refused(svi_key_check("########################################", &err), err, SVS_INVALID,
            "40 characters");
}

static void test_settings(void **state) {
    struct svi_settings s;
    struct svi_identity id;
    char key[41];
    svs_error err;
    (void)state;
    svi_settings_default(&s);
    assert_null(svi_keys_path(&s));
    assert_int_equal(svi_identity_load(&s, true, &id, &err), SVS_OK);
    assert_false(id.on);
    assert_int_equal(svi_keys_new(SVI_KEY_FILE, key, &err), SVS_OK);
    svi_settings_set(&s, "curve", "on", NULL);
    assert_string_equal(svi_keys_path(&s), "svmstream.key");
    assert_int_equal(svi_identity_load(&s, false, &id, &err), SVS_OK);
    assert_true(id.on);
    refused(svi_identity_load(&s, true, &id, &err), err, SVS_SETTING, "--curve.server");
    svi_settings_set(&s, "curve.server", "gone.pub", NULL);
    refused(svi_identity_load(&s, true, &id, &err), err, SVS_SETTING, "gone.pub");
    svi_settings_set(&s, "curve.server", "svmstream.key.pub", NULL);
    assert_int_equal(svi_identity_load(&s, true, &id, &err), SVS_OK);
    assert_string_equal(id.server_key, key);
    svi_settings_set(&s, "curve", "off", NULL);
    refused(svi_identity_load(&s, true, &id, &err), err, SVS_SETTING, "curve is off");
}

static void test_exposed_addresses(void **state) {
    static const char *const local[] = {"tcp://127.0.0.1:5", "tcp://127.9.9.9:*", "tcp://[::1]:5",
                                        "tcp://lo:5",        "tcp://localhost:5", "tcp://LocalHost:*",
                                        "ipc:///tmp/x",      "inproc://x"},
                             *const exposed[] = {
                                 "tcp://*:5",           "tcp://0.0.0.0:5",     "tcp://10.0.0.1:5",
                                 "tcp://eth0:5",        "tcp://127.evil:5",    "tcp://[::]:5",
                                 "tcp://128.0.0.1:5",   "tcp://localhost.x:5", "udp://127.0.0.1:5",
                                 "tcp://127.0.0.1@x:5", "tcp://[::1:5",        "tcp://x:5"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        const char *key = (const char *[]){"in", "out", "ctl"}[k];
        struct svi_settings s;
        svs_error err;
        for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
            svi_settings_default(&s);
            assert_int_equal(svi_settings_set(&s, key, local[i], NULL), SVS_OK);
            assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
        }
        for (size_t i = 0; i < sizeof exposed / sizeof *exposed; i++) {
            svi_settings_default(&s);
            assert_int_equal(svi_settings_set(&s, key, exposed[i], NULL), SVS_OK);
            refused(svi_settings_check_security(&s, &err), err, SVS_SETTING, "--insecure");
            assert_non_null(strstr(err.text, exposed[i]));
            svi_settings_set(&s, "insecure", "yes", NULL);
            assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
            svi_settings_set(&s, "insecure", "no", NULL);
            svi_settings_set(&s, "curve", "on", NULL);
            assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
        }
    }
}

static void test_what_is_not_bound(void **state) {
    struct svi_settings s;
    svs_error err;
    (void)state;
    svi_settings_default(&s);
    svi_settings_set(&s, "in", "tcp://10.0.0.1:5", NULL);
    svi_settings_set(&s, "in.mode", "sub", NULL);
    assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
    svi_settings_set(&s, "curve", "on", NULL);
    refused(svi_settings_check_security(&s, &err), err, SVS_SETTING, "--curve.server");
    svi_settings_set(&s, "insecure", "yes", NULL);
    assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
    svi_settings_default(&s);
    svi_settings_set(&s, "in", "-", NULL);
    assert_int_equal(svi_settings_check_security(&s, NULL), SVS_OK);
    svi_settings_set(&s, "out", "tcp://*:5", NULL);
    assert_int_equal(svi_settings_check_security(&s, NULL), SVS_SETTING);
    svi_settings_default(&s);
    svi_settings_set(&s, "curve", "", NULL);
    assert_int_equal(svi_settings_check_security(&s, NULL), SVS_SETTING);
}

/* ---- the allow file */

static svs_code parse(struct svi_acl *c, const char *text, svs_error *err) {
    return svi_acl_parse(c, "the file", text, strlen(text), err);
}

static void test_allow_file(void **state) {
    struct svi_acl c = {0};
    char a[41], b[41], text[512];
    svs_error err = {SVS_OK, ""};
    (void)state;
    new_key(a);
    new_key(b);
    snprintf(text, sizeof text, "# comment\n\n#\n%s\tpump-1  ingest:pump1,subscribe \r\n  %s panel_2 control",
             a, b);
    assert_int_equal(parse(&c, text, &err), SVS_OK);
    assert_int_equal(c.count, 2);
    const struct svi_client *pump = svi_acl_find(&c, a), *panel = svi_acl_find(&c, b);
    assert_string_equal(pump->name, "pump-1");
    assert_true(svi_acl_client_may(pump, SVI_ROLE_INGEST, "pump1"));
    assert_false(svi_acl_client_may(pump, SVI_ROLE_INGEST, "pump10"));
    assert_false(svi_acl_client_may(pump, SVI_ROLE_INGEST, "pump"));
    assert_true(svi_acl_client_may(pump, SVI_ROLE_SUBSCRIBE, "any"));
    assert_false(svi_acl_client_may(pump, SVI_ROLE_CONTROL, "any"));
    assert_true(svi_acl_client_may(panel, SVI_ROLE_CONTROL, "any"));
    assert_false(svi_acl_client_may(panel, SVI_ROLE_INGEST, "any"));
    assert_null(svi_acl_find(&c, PRINTED_PUBLIC));
    assert_null(svi_acl_find(&c, ""));
    assert_int_equal(parse(&c, "", &err), SVS_OK);
    assert_int_equal(c.count, 0);
    assert_null(svi_acl_find(&c, a));
    svi_acl_clear(&c);
}

static void test_allow_lines_refused(void **state) {
    static const struct {
        const char *rest, *part;
    } cases[] = {{"", "KEY NAME ROLES"},
                 {" name", "KEY NAME ROLES"},
                 {" name ingest more", "KEY NAME ROLES"},
                 {" na/me ingest", "not a valid name"},
                 {" name root", "not a role"},
                 {" name ingest,", "not a role"},
                 {" name ,ingest", "not a role"},
                 {" name ingest:", "not a role"},
                 {" name ingest:a/b", "not a role"},
                 {" name subscribe:x", "not a role"},
                 {" name ingestx", "not a role"},
                 {" name Ingest", "not a role"},
                 {" name ingest,source:", "not a role"},
                 {" name ingest,source:a*b", "not a role"},
                 {" name ingest,source:a/b", "not a role"},
                 {" name ingest,source", "not a role"},
                 {" name ingest,source:0123456789012345678901234567890123456789012345678901234567890123x",
                  "not a role"},
                 {" name subscribe,source:a", "needs the role ingest"},
                 {"x name ingest", "KEY NAME ROLES"}};
    struct svi_acl c = {0};
    char key[41], text[2048];
    svs_error err;
    (void)state;
    new_key(key);
    snprintf(text, sizeof text, "%s good control\n", key);
    assert_int_equal(parse(&c, text, &err), SVS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "# first\n%s%s\n", key, cases[i].rest);
        refused(parse(&c, text, &err), err, SVS_INVALID, cases[i].part);
        assert_non_null(strstr(err.text, "line 2"));
        assert_int_equal(c.count, 1); /* what was there stays */
    }
    snprintf(text, sizeof text, "%s a ingest\n%s b ingest\n", key, key);
    refused(parse(&c, text, &err), err, SVS_INVALID, "same key");
    char other[41];
    new_key(other);
    snprintf(text, sizeof text, "%s a ingest\n%s a ingest\n", key, other);
    refused(parse(&c, text, &err), err, SVS_INVALID, "two clients have the name");
    refused(parse(&c, PRINTED_PUBLIC " a ingest\n", &err), err, SVS_INVALID, "manual");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refused(parse(&c, text, &err), err, SVS_INVALID, "too long");
    assert_int_equal(svi_acl_parse(&c, "f", "a\0b c d\n", 8, &err), SVS_INVALID);
    svi_acl_clear(&c);
}

/* A key that is bound to names may use these and no other, and must use one. */
static void test_sources(void **state) {
    static const struct {
        const char *roles, *src;
        bool may;
    } cases[] = {{"ingest", "", true},
                 {"ingest", "any", true},
                 {"ingest:pump1,subscribe", "any", true},
                 {"ingest,source:pump1", "pump1", true},
                 {"ingest,source:pump1", "pump", false},
                 {"ingest,source:pump1", "pump10", false},
                 {"ingest,source:pump1", "", false},
                 {"source:a.csv-7,ingest:x,source:b", "a.csv-7", true},
                 {"source:a.csv-7,ingest:x,source:b", "b", true},
                 {"source:a.csv-7,ingest:x,source:b", "a.csv-7,b", false},
                 {"ingest,source:pump1-*", "pump1-left", true},
                 {"ingest,source:pump1-*", "pump1-", true},
                 {"ingest,source:pump1-*", "pump1", false},
                 {"ingest,source:pump1-*", "pump1x", false},
                 {"ingest,source:*", "what ever", true},
                 {"ingest,source:*", "", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct svi_client one = {.roles = ""};
        svs_error err = {SVS_OK, ""};
        snprintf(one.roles, sizeof one.roles, "%s", cases[i].roles);
        if (svi_acl_client_check("name", one.roles, &err) != SVS_OK)
            fail_msg("%s: %s", one.roles, err.text);
        if (svi_acl_client_may_send_as(&one, cases[i].src, strlen(cases[i].src)) != cases[i].may)
            fail_msg("%s as '%s'", one.roles, cases[i].src);
    }
}

/* Any bytes: a list of known roles, or a refusal. */
static void test_allow_bytes(void **state) {
    struct svi_acl c = {0};
    char key[41], text[256], good[256];
    uint32_t seed = 1;
    (void)state;
    new_key(key);
    int n = snprintf(good, sizeof good, "%s pump ingest:pump1,control\n", key);
    for (int i = 0; i < 20000; i++) {
        memcpy(text, good, (size_t)n);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * 1664525 + 1013904223;
            text[(seed >> 8) % (uint32_t)n] = (char)(seed >> 24);
        }
        if (svi_acl_parse(&c, "f", text, (size_t)(i % 7 ? n : n * (i % 100) / 100), NULL) == SVS_OK)
            for (int k = 0; k < c.count; k++)
                assert_int_equal(svi_acl_client_check(c.client[k].name, c.client[k].roles, NULL), SVS_OK);
    }
    svi_acl_clear(&c);
}

static void test_allow_limits(void **state) {
    char *text = malloc(2 << 20), *at = text;
    struct svi_acl c = {0};
    svs_error err;
    (void)state;
    for (int i = 0; i <= SVI_CLIENTS_MAX; i++)
        at += sprintf(at, "x\n");
    refused(parse(&c, text, &err), err, SVS_INVALID, "more than 4096");
    memset(text, '\n', (1 << 20) + 1);
    write_file("large.allow", text, (1 << 20) + 1, 0644);
    refused(svi_acl_load(&c, "large.allow", &err), err, SVS_TOO_LARGE, "too large");
    write_file("large.allow", text, 1 << 20, 0644);
    assert_int_equal(svi_acl_load(&c, "large.allow", &err), SVS_OK);
    free(text);
    write_text("open.allow", "", 0666);
    refused(svi_acl_load(&c, "open.allow", &err), err, SVS_IO, "chmod go-w");
    refused(svi_acl_load(&c, "no.allow", &err), err, SVS_IO, "No such file");
}

static struct svi_client client(const char *key, const char *name, const char *roles) {
    struct svi_client c;
    memset(&c, 0, sizeof c);
    snprintf(c.key, sizeof c.key, "%s", key);
    snprintf(c.name, sizeof c.name, "%s", name);
    snprintf(c.roles, sizeof c.roles, "%s", roles);
    return c;
}

static void test_allow_and_revoke(void **state) {
    char a[41], b[41], text[4096];
    struct svi_acl all = {0};
    struct svi_client one, taken;
    struct stat s;
    svs_error err;
    (void)state;
    new_key(a);
    new_key(b);
    one = client(a, "pump1", "ingest");
    assert_int_equal(svi_acl_add("x.allow", &one, &err), SVS_OK);
    FILE *f = fopen("x.allow", "a");
    fputs("# by hand, without a line end", f);
    fclose(f);
    assert_int_equal(chmod("x.allow", 0640), 0);
    one = client(b, "panel", "control");
    assert_int_equal(svi_acl_add("x.allow", &one, &err), SVS_OK);
    one = client(b, "pump1", "control");
    refused(svi_acl_add("x.allow", &one, &err), err, SVS_INVALID, "two clients have the name");
    one = client(a, "pump2", "ingest:x,subscribe");
    assert_int_equal(svi_acl_add("x.allow", &one, &err), SVS_OK); /* the same key: changed */
    one = client(PRINTED_PUBLIC, "known", "control");
    refused(svi_acl_add("x.allow", &one, &err), err, SVS_INVALID, "manual");
    assert_int_equal(svi_acl_load(&all, "x.allow", &err), SVS_OK);
    assert_int_equal(all.count, 2);
    assert_string_equal(svi_acl_find(&all, a)->name, "pump2");
    assert_int_equal(stat("x.allow", &s), 0);
    assert_int_equal(s.st_mode & 07777, 0640);
    read_file("x.allow", text, sizeof text);
    assert_non_null(strstr(text, "# by hand"));
    refused(svi_acl_remove("x.allow", "pump1", &taken, &err), err, SVS_UNKNOWN_ID, "no such");
    assert_int_equal(svi_acl_remove("x.allow", "pump2", &taken, &err), SVS_OK);
    assert_string_equal(taken.key, a);
    assert_int_equal(svi_acl_remove("x.allow", b, &taken, &err), SVS_OK);
    assert_int_equal(svi_acl_load(&all, "x.allow", &err), SVS_OK);
    assert_int_equal(all.count, 0);
    refused(svi_acl_remove("y.allow", "pump1", &taken, &err), err, SVS_IO, "No such file");
    write_text("z.allow", "damaged\n", 0644);
    one = client(a, "pump1", "ingest");
    refused(svi_acl_add("z.allow", &one, &err), err, SVS_INVALID, "line 1");
    read_file("z.allow", text, sizeof text);
    assert_string_equal(text, "damaged\n");
    svi_acl_clear(&all);
}

/* ---- who may come in, and stay */

static bool admits(svi_authenticator *a, const char *domain, const char *key) {
    uint8_t bytes[32];
    char user[41];
    svs_error why;
    assert_non_null(zmq_z85_decode(bytes, key));
    bool yes = svi_authenticator_admits(a, domain, "CURVE", bytes, 32, user, &why);
    if (yes)
        assert_string_equal(user, key);
    else
        assert_int_equal(why.code, SVS_NOT_ALLOWED);
    return yes;
}

/* Two looks at a changed file. */
static bool refresh(svi_authenticator *a, svs_error *trouble) {
    assert_false(svi_authenticator_refresh(a, trouble));
    assert_int_equal(trouble->code, SVS_OK);
    return svi_authenticator_refresh(a, trouble);
}

static void test_authenticator(void **state) {
    char a[41], b[41];
    struct svi_settings s;
    struct svi_client one;
    uint8_t bytes[32] = {0};
    char user[41];
    svs_error err, trouble;
    (void)state;
    new_key(a);
    new_key(b);
    svi_settings_default(&s);
    svi_settings_set(&s, "curve.allow", "live.allow", NULL);
    svi_settings_set(&s, "stream", "pump1", NULL);
    assert_null(svi_authenticator_new(&s, &err));
    one = client(a, "a", "ingest:pump1,subscribe");
    assert_int_equal(svi_acl_add("live.allow", &one, NULL), SVS_OK);
    svi_authenticator *auth = svi_authenticator_new(&s, &err);
    assert_non_null(auth);
    assert_true(admits(auth, "in", a) && admits(auth, "out", a));
    assert_false(admits(auth, "ctl", a) || admits(auth, "", a) || admits(auth, "inn", a) ||
                 admits(auth, "in", b));
    zmq_z85_decode(bytes, a);
    assert_false(svi_authenticator_admits(auth, "in", "NULL", bytes, 32, user, &err));
    assert_false(svi_authenticator_admits(auth, "in", "PLAIN", bytes, 32, user, &err));
    assert_false(svi_authenticator_admits(auth, "in", "CURVE", bytes, 31, user, &err));
    assert_false(svi_authenticator_admits(auth, "in", "CURVE", bytes, 0, user, &err));
    assert_false(svi_authenticator_refresh(auth, &trouble));

    one = client(b, "b", "control"); /* more for others takes nothing from anybody */
    assert_int_equal(svi_acl_add("live.allow", &one, NULL), SVS_OK);
    assert_false(refresh(auth, &trouble));
    assert_true(admits(auth, "ctl", b) && svi_authenticator_allows(auth, SVI_ROLE_INGEST, a));

    one = client(a, "a", "ingest:pump2,subscribe"); /* less of one role */
    assert_int_equal(svi_acl_add("live.allow", &one, NULL), SVS_OK);
    assert_true(refresh(auth, &trouble));
    assert_false(svi_authenticator_allows(auth, SVI_ROLE_INGEST, a));
    assert_true(svi_authenticator_allows(auth, SVI_ROLE_SUBSCRIBE, a));
    assert_true(svi_authenticator_allows(auth, SVI_ROLE_CONTROL, b));
    assert_false(svi_authenticator_allows(auth, SVI_ROLE_CONTROL, ""));

    write_text("live.allow", "half of an ed", 0644); /* told once, and the last good one stays */
    assert_false(refresh(auth, &trouble));
    assert_int_equal(trouble.code, SVS_NOT_ALLOWED);
    assert_non_null(strstr(trouble.text, "line 1"));
    assert_false(svi_authenticator_refresh(auth, &trouble));
    assert_int_equal(trouble.code, SVS_OK);
    assert_true(admits(auth, "ctl", b));

    unlink("live.allow"); /* nobody */
    assert_true(refresh(auth, &trouble));
    assert_non_null(strstr(trouble.text, "does not exist"));
    assert_false(admits(auth, "ctl", b) || svi_authenticator_allows(auth, SVI_ROLE_CONTROL, b));
    svi_authenticator_free(&auth);
    assert_null(auth);
}

static bool sends_as(svi_authenticator *a, const char *user, const char *src) {
    return svi_authenticator_allows_source(a, user, src, strlen(src));
}

/* Bound from one look to the next, and free again. */
static void test_bound_key(void **state) {
    char a[41], b[41];
    struct svi_settings s;
    svs_error err, trouble;
    (void)state;
    new_key(a);
    new_key(b);
    svi_settings_default(&s);
    svi_settings_set(&s, "curve.allow", "bound.allow", NULL);
    struct svi_client one = client(a, "a", "ingest"), other = client(b, "b", "ingest");
    assert_int_equal(svi_acl_add("bound.allow", &one, NULL), SVS_OK);
    assert_int_equal(svi_acl_add("bound.allow", &other, NULL), SVS_OK);
    svi_authenticator *auth = svi_authenticator_new(&s, &err);
    assert_non_null(auth);
    assert_true(!svi_authenticator_binds(auth) && sends_as(auth, a, "pump2") && sends_as(auth, a, ""));
    one = client(a, "a", "ingest,source:pump1");
    assert_int_equal(svi_acl_add("bound.allow", &one, NULL), SVS_OK);
    assert_false(refresh(auth, &trouble)); /* no role is taken away: connections stay */
    assert_true(svi_authenticator_binds(auth) && sends_as(auth, a, "pump1"));
    assert_false(sends_as(auth, a, "pump2") || sends_as(auth, a, "") || sends_as(auth, "", "pump1"));
    assert_true(sends_as(auth, b, "pump2") && sends_as(auth, b, ""));
    svi_authenticator_free(&auth);
    auth = svi_authenticator_new(&s, &err);
    assert_non_null(auth);
    assert_true(svi_authenticator_binds(auth) && !sends_as(auth, a, "pump2"));
    one = client(a, "a", "ingest,subscribe");
    assert_int_equal(svi_acl_add("bound.allow", &one, NULL), SVS_OK);
    refresh(auth, &trouble);
    assert_true(!svi_authenticator_binds(auth) && sends_as(auth, a, "pump2"));
    svi_authenticator_free(&auth);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_never_replaced),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_printed_keys),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_exposed_addresses),
        cmocka_unit_test(test_what_is_not_bound),
        cmocka_unit_test(test_allow_file),
        cmocka_unit_test(test_allow_lines_refused),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_allow_bytes),
        cmocka_unit_test(test_allow_limits),
        cmocka_unit_test(test_allow_and_revoke),
        cmocka_unit_test(test_authenticator),
        cmocka_unit_test(test_bound_key),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
