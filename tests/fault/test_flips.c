/* Every byte of a small state folder flipped, one at a time: the state comes back as it was, or an earlier
 * one of the same stream does and that is reported, or it is refused with a text; never another state, and
 * never less without a word. FAULT_FLIPS=3 flips each byte in three ways instead of one; a sanitized build
 * takes a sample of the bytes. */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "state/write_ahead.h"
#include "state/recovery.h"
#include "support/folder.h"
#include "wire/pack.h"
#include "support/apply.h"

#define NOW     1000000.0
#define SAMPLES 84
#define STATES  (SAMPLES + 8)
#define FILES   8
#define LARGEST (42 * 1024)  /* bytes of the folder */
#define ROOM    (256 * 1024) /* of a file at most */

struct file {
    char name[300];
    uint8_t *bytes;
    size_t size;
};

/* A folder, all that is in it, and the hash of the stream's state after each record. */
struct kept {
    char path[200];
    struct svi_settings settings;
    char state[STATES][SVI_HASH_TEXT];
    int states;
    struct file file[FILES];
    int files, checkpoints, segments;
    size_t bytes;
};

static void set(struct svi_settings *s, const char *const *pairs) {
    svs_error err;
    for (; *pairs; pairs += 2)
        if (svi_settings_set(s, pairs[0], pairs[1], &err) != SVS_OK)
            fail_msg("%s", err.text);
}

/* A number is learned: the quality of classes would be most of a checkpoint. */
static void small_settings(struct svi_settings *s, const char *folder) {
    /* clang-format off */
    static const char *const pairs[] = {
        "task", "regress", "window", "12", "refit", "none", "in.mode", "router", "delivery", "durable",
        "journal.segment", "4096", "checkpoint.seconds", "0", "max.features", "4", "max.classes", "3",
        "max.sources", "4", "labels.max", "4", "novelty.max", "3", "novelty.window", "0",
        "novelty.calibration", "8", "novelty.warmup", "2", "novelty.confirm", "2", "alert.p", "0.2",
        "alert.clear", "0.3", "alert.budget", "none", "alert.rules", "none", NULL};
    /* clang-format on */
    svi_settings_default(s);
    set(s, pairs);
    svi_settings_settle_method(s);
    set(s, (const char *[]){"state.dir", folder, NULL});
}

/* ---- a stream */

static void pack_sample(struct svi_bytes *b, int i) {
    struct svi_pack p;
    b->size = 0;
    svi_pack_begin(&p, b);
    svi_pack_map(&p, 5);
    svi_pack_text(&p, "x");
    svi_pack_array(&p, 2);
    svi_pack_real(&p, i * 7 % 11 - 5 + (i % 17 == 16 ? 30 : 0));
    svi_pack_real(&p, i * 3 % 13 * 0.5);
    svi_pack_text(&p, i % 4 ? "y" : "id");
    if (i % 4)
        svi_pack_real(&p, i % 5 * 0.5);
    else
        svi_pack_int(&p, i);
    svi_pack_text(&p, "ts");
    svi_pack_real(&p, NOW + i);
    svi_pack_text(&p, "src");
    svi_pack_text(&p, i % 2 ? "l" : "r");
    svi_pack_text(&p, "n");
    svi_pack_int(&p, i / 2);
    assert_int_equal(svi_pack_end(&p), SVS_OK);
}

static void hash_of(svi_stream *e, char *hash) {
    assert_int_equal(svi_stream_hash(e, hash, NULL), SVS_OK);
}

static void step(svi_write_ahead *k, svi_stream *e, int i) {
    struct svi_bytes b = {0};
    struct svi_receipt r;
    pack_sample(&b, i);
    assert_int_equal(svi_write_ahead_write(k, SVI_RECORD_SOURCED, NOW + i, b.data, b.size, NULL), SVS_OK);
    apply_bytes(e, b.data, b.size, NOW + i, true, &r);
    assert_int_equal(r.refused, 0);
    svi_bytes_clear(&b);
}

static void sink(void *user, const struct svi_event *event) {
    (void)user;
    (void)event;
}

/* Two checkpoints, and samples before, between and behind them. */
static void make_state(struct kept *k) {
    svi_stream *e;
    svs_error err;
    svi_write_ahead *keeper = svi_write_ahead_open(&k->settings, sink, NULL, NULL, &e, &err);
    if (!keeper)
        fail_msg("%s", err.text);
    hash_of(e, k->state[k->states++]);
    for (int i = 0; i < SAMPLES; i++) {
        step(keeper, e, i);
        hash_of(e, k->state[k->states++]);
        if (i == SAMPLES / 2 || i == SAMPLES - SAMPLES / 5)
            assert_int_equal(svi_write_ahead_save(keeper, NULL, NULL, &err), SVS_OK);
    }
    svi_write_ahead_free(&keeper);
    svi_stream_free(&e);
}

/* ---- its files */

static void read_one(struct kept *k, const char *name) {
    struct file *f = &k->file[k->files++];
    char path[512];
    assert_true(k->files <= FILES);
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", k->path, name);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    f->bytes = malloc(ROOM);
    f->size = fread(f->bytes, 1, ROOM, from);
    fclose(from);
    k->bytes += f->size;
    k->checkpoints += strncmp(name, "checkpoint-", 11) == 0;
    k->segments += strncmp(name, "journal-", 8) == 0;
}

static void read_files(struct kept *k) {
    struct dirent *entry;
    DIR *d = opendir(k->path);
    assert_non_null(d);
    while ((entry = readdir(d)))
        if (entry->d_name[0] != '.')
            read_one(k, entry->d_name);
    closedir(d);
}

static void write_files(const struct kept *k, const char *folder, const struct file *but, size_t at,
                        uint8_t byte) {
    char path[512];
    test_folder_empty(folder);
    for (int i = 0; i < k->files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, k->file[i].name);
        FILE *to = fopen(path, "wb");
        assert_non_null(to);
        assert_int_equal(fwrite(k->file[i].bytes, 1, k->file[i].size, to), k->file[i].size);
        if (&k->file[i] == but) {
            assert_int_equal(fseek(to, (long)at, SEEK_SET), 0);
            assert_int_equal(fputc(byte, to), byte);
        }
        fclose(to);
    }
}

static bool quick(void) {
    return getenv("SVMSTREAM_QUICK") != NULL;
}

static int ways(void) {
    const char *text = getenv("FAULT_FLIPS");
    return text ? atoi(text) : 1;
}

static int open_kept(void **state) {
    struct kept *k = calloc(1, sizeof *k);
    if (access("/dev/shm", W_OK) == 0 && !getenv("FAULT_DISK"))
        setenv("TMPDIR", "/dev/shm", 1);
    assert_non_null(test_folder(k->path));
    small_settings(&k->settings, k->path);
    make_state(k);
    read_files(k);
    *state = k;
    return 0;
}

static int close_kept(void **state) {
    struct kept *k = *state;
    for (int i = 0; i < k->files; i++)
        free(k->file[i].bytes);
    test_folder_remove(k->path);
    free(k);
    return 0;
}

/* ---- what becomes of a flip */

enum outcome { SAME, EARLIER, REFUSED, OUTCOMES };

static bool told(const struct svi_recovery *r) {
    return r->found.torn > 0 || r->damaged > 0 || r->found.lost_bytes > 0 || r->found.lost_records > 0;
}

static int state_number(const struct kept *k, const char *hash) {
    for (int i = k->states - 1; i >= 0; i--)
        if (strcmp(k->state[i], hash) == 0)
            return i;
    return -1;
}

/* With accept_loss a state without some samples is no earlier one; it must still be told. */
static enum outcome judge(const struct kept *k, const struct svi_state_dir *f, bool accept_loss,
                          const char *where) {
    struct svi_recovery r;
    char hash[SVI_HASH_TEXT];
    svs_error err = {SVS_OK, ""};
    const struct svi_recovery_options o = {.accept_loss = accept_loss, .until = UINT64_MAX, .silent = true};
    if (svi_recover(f, &o, sink, NULL, &r, &err) != SVS_OK) {
        if (!err.text[0] || r.stream)
            fail_msg("%s: refused without a text", where);
        return REFUSED;
    }
    if (!r.stream)
        fail_msg("%s: all is gone", where);
    hash_of(r.stream, hash);
    svi_stream_free(&r.stream);
    if (strcmp(hash, k->state[k->states - 1]) == 0)
        return SAME;
    if (!told(&r))
        fail_msg("%s: another state, and nothing is reported (state %d of %d)", where, state_number(k, hash),
                 k->states);
    if (!accept_loss && state_number(k, hash) < 0)
        fail_msg("%s: a state that never was", where);
    return EARLIER;
}

static const uint8_t patterns[] = {0x01, 0x80, 0xff};

/* Byte `at` of a file in one way after another. */
static void flip_byte(const struct kept *k, const struct svi_state_dir *f, const struct file *file, int fd,
                      size_t at, bool accept_loss, int count[OUTCOMES]) {
    char where[400];
    for (int w = 0; w < ways(); w++) {
        const uint8_t pattern = patterns[(at + (size_t)w) % 3], flipped = file->bytes[at] ^ pattern;
        snprintf(where, sizeof where, "%s, byte %zu ^ %02x%s", file->name, at, pattern,
                 accept_loss ? ", accept-loss" : "");
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        count[judge(k, f, accept_loss, where)]++;
    }
    assert_int_equal(pwrite(fd, &file->bytes[at], 1, (off_t)at), 1);
}

static void flip_all(const struct kept *k, bool accept_loss, size_t stride, int count[OUTCOMES]) {
    struct svi_state_dir f;
    char path[512];
    assert_int_equal(svi_state_dir_open(&f, k->path, false, NULL), SVS_OK);
    for (int i = 0; i < k->files; i++) {
        const struct file *file = &k->file[i];
        snprintf(path, sizeof path, "%s/%s", k->path, file->name);
        int fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        for (size_t at = (size_t)i % stride; at < file->size; at += stride)
            flip_byte(k, &f, file, fd, at, accept_loss, count);
        close(fd);
    }
    svi_state_dir_close(&f);
}

/* ---- tests */

/* Without a budget nobody judges by sensors: tens of kilobytes that no section may hold. */
static bool holds_section(const struct file *f, const char *name) {
    return memmem(f->bytes, f->size, name, strlen(name)) != NULL;
}

static void test_it_is_small_and_has_everything(void **state) {
    const struct kept *k = *state;
    struct svi_state_dir f;
    assert_true(k->bytes <= LARGEST);
    assert_int_equal(k->checkpoints, 2);
    assert_true(k->segments >= 2);
    for (int i = 1; i < k->states; i++)
        assert_string_not_equal(k->state[i], k->state[i - 1]);
    for (int i = 0; i < k->files; i++) {
        assert_false(holds_section(&k->file[i], "judges"));
        assert_false(holds_section(&k->file[i], "desk"));
        if (strncmp(k->file[i].name, "checkpoint-", 11) == 0)
            assert_true(holds_section(&k->file[i], "novelty"));
    }
    assert_int_equal(svi_state_dir_open(&f, k->path, false, NULL), SVS_OK);
    assert_int_equal(judge(k, &f, false, "untouched"), SAME);
    svi_state_dir_close(&f);
}

static void test_flips(void **state) {
    const struct kept *k = *state;
    int count[OUTCOMES] = {0};
    const clock_t began = clock();
    flip_all(k, false, quick() ? 61 : 1, count);
    print_message("# %zu bytes, %d checkpoints, %d segments: %d flips: %d same, %d earlier and told, %d "
                  "refused, %.1f s\n",
                  k->bytes, k->checkpoints, k->segments, count[SAME] + count[EARLIER] + count[REFUSED],
                  count[SAME], count[EARLIER], count[REFUSED], (double)(clock() - began) / CLOCKS_PER_SEC);
    assert_true(count[SAME] > 0 && count[EARLIER] > 0 && count[REFUSED] > 0); /* each does happen */
}

/* Then nothing of this folder is refused. */
static void test_flips_with_accept_loss(void **state) {
    const struct kept *k = *state;
    int count[OUTCOMES] = {0};
    flip_all(k, true, quick() ? 331 : 7, count);
    assert_true(count[SAME] > 0 && count[EARLIER] > 0);
    assert_int_equal(count[REFUSED], 0);
}

/* Takes up a damaged copy, goes on, and takes that up again. */
static void go_on(const struct kept *k, const char *folder, const char *where) {
    struct svi_settings s;
    svi_stream *e;
    svs_error err = {SVS_OK, ""};
    char before[SVI_HASH_TEXT], after[SVI_HASH_TEXT];
    struct svi_receipt r;
    struct svi_bytes b = {0};
    small_settings(&s, folder);
    s.accept_loss = 1;
    svi_write_ahead *keeper = svi_write_ahead_open(&s, sink, NULL, NULL, &e, &err);
    if (!keeper)
        fail_msg("%s: %s", where, err.text);
    for (int i = SAMPLES; i < SAMPLES + 3; i++) {
        pack_sample(&b, i);
        assert_int_equal(svi_write_ahead_write(keeper, SVI_RECORD_SOURCED, NOW + i, b.data, b.size, &err),
                         SVS_OK);
        apply_bytes(e, b.data, b.size, NOW + i, true, &r);
    }
    svi_bytes_clear(&b);
    hash_of(e, before);
    svi_write_ahead_free(&keeper);
    svi_stream_free(&e);
    small_settings(&s, folder); /* what was lost is reported once: the second start is an ordinary one */
    keeper = svi_write_ahead_open(&s, sink, NULL, NULL, &e, &err);
    if (!keeper)
        fail_msg("%s, second start: %s", where, err.text);
    hash_of(e, after);
    if (strcmp(before, after) != 0)
        fail_msg("%s: the second start has another state", where);
    svi_write_ahead_free(&keeper);
    svi_stream_free(&e);
    (void)k;
}

static void test_a_damaged_folder_goes_on(void **state) {
    const struct kept *k = *state;
    char folder[200], where[400];
    assert_non_null(test_folder(folder));
    for (int i = 0; i < k->files; i++)
        for (size_t at = 3; at < k->file[i].size; at += quick() ? 997 : 53) {
            snprintf(where, sizeof where, "%s, byte %zu", k->file[i].name, at);
            write_files(k, folder, &k->file[i], at, (uint8_t)(k->file[i].bytes[at] ^ 0x10));
            go_on(k, folder, where);
        }
    test_folder_remove(folder);
}

int main(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 25); /* what a state takes is taken tens of thousands of times: it stays */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_small_and_has_everything),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_flips_with_accept_loss),
        cmocka_unit_test(test_a_damaged_folder_goes_on),
    };
    return cmocka_run_group_tests(tests, open_kept, close_kept);
}
