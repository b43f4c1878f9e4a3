/* A state of another layout, older or newer, is refused with one sentence, by who writes and by who looks,
 * whichever of its files shows it; and no file in its directory is another than before. */
#include "support/life.h"

#include <fcntl.h>

#include <xxhash.h>

#include "store/layout.h"

/* ---- all of a folder: names in order, and content */

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void add_file(const struct life *l, const char *name, struct svi_bytes *all) {
    char path[500];
    uint8_t piece[4096];
    ssize_t got;
    snprintf(path, sizeof path, "%s/%.63s", l->path, name);
    const int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(svi_bytes_append(all, name, strlen(name) + 1), SVS_OK);
    while ((got = read(fd, piece, sizeof piece)) > 0)
        assert_int_equal(svi_bytes_append(all, piece, (size_t)got), SVS_OK);
    close(fd);
}

static uint64_t folder_hash(const struct life *l) {
    char names[64][64];
    int count = 0;
    struct svi_bytes all = {0};
    DIR *d = opendir(l->path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        if (entry->d_name[0] != '.') {
            assert_true(count < 64);
            snprintf(names[count++], sizeof names[0], "%.63s", entry->d_name);
        }
    closedir(d);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    for (int i = 0; i < count; i++)
        add_file(l, names[i], &all);
    const uint64_t hash = XXH3_64bits(all.data, all.size);
    svi_bytes_clear(&all);
    return hash;
}

/* ---- a file with another layout in its header */

struct header {
    char path[300];
    uint8_t bytes[32768], whole[32768];
    size_t size, v; /* of the header; where its layout stands */
    uint64_t seed;
};

static void read_header(struct header *h, const struct life *l, const char *prefix, uint64_t number) {
    static const char key[] = "\xa1v";
    struct svi_header map;
    struct svi_segment_header segment;
    path_of(l, prefix, number, h->path);
    const int fd = open(h->path, O_RDONLY);
    const ssize_t got = read(fd, h->whole, sizeof h->whole);
    close(fd);
    assert_true(got > 0 && svi_header_open(&map, h->whole, (size_t)got, NULL, 0, NULL));
    h->size = map.size;
    const uint8_t *v = memmem(h->whole, h->size, key, sizeof key - 1);
    assert_non_null(v);
    h->v = (size_t)(v - h->whole) + sizeof key - 1;
    assert_int_equal(h->whole[h->v], SVI_STATE_LAYOUT);
    const bool journal = strcmp(prefix, SVI_JOURNAL) == 0;
    if (journal)
        assert_int_equal(svi_segment_header_read(&segment, h->whole, h->size), SVI_HEADER_SOUND);
    h->seed = journal ? segment.chain : 0;
}

static void write_header(const struct header *h, const uint8_t *bytes) {
    const int fd = open(h->path, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, h->size, 0), (ssize_t)h->size);
    close(fd);
}

static void set_layout(struct header *h, int layout, bool right) {
    memcpy(h->bytes, h->whole, h->size);
    h->bytes[h->v] = (uint8_t)layout;
    const uint64_t check = htobe64(XXH3_64bits_withSeed(h->bytes, h->size - SVI_CHECK_SIZE, h->seed));
    if (right)
        memcpy(h->bytes + h->size - 8, &check, sizeof check);
    write_header(h, h->bytes);
}

/* ---- the tests */

static const char *const all_of_it[] = {"journal.keep", "all", NULL};

static void live(struct life *l) {
    l->more = all_of_it;
    assert_begins(l, false);
    for (int i = 0; i < 3; i++) {
        feed(l, 40);
        save(l);
    }
    feed(l, 10);
    end(l);
}

static void assert_refused(struct life *l, const struct header *h, int layout) {
    char sentence[200];
    struct svi_state_dir dir;
    const uint64_t before = folder_hash(l);
    snprintf(
        sentence, sizeof sentence,
        "%s has layout %d; this program reads layout %d: start with an empty state.dir, or use the program "
        "that wrote it",
        strrchr(h->path, '/') + 1, layout, SVI_STATE_LAYOUT);
    for (int way = 0; way < 3; way++) {
        const svs_code code = way < 2 ? begin(l, way) : svi_layout_open(&dir, l->path, false, &l->error);
        assert_int_equal(code, SVS_UNAVAILABLE);
        if (!strstr(l->error.text, sentence))
            fail_msg("%s", l->error.text);
    }
    assert_int_equal(folder_hash(l), before);
}

static void test_refused_untouched(void **state) {
    struct life *l = *state;
    static struct header h;
    char unfinished[500], lock[300];
    uint64_t *numbers;
    live(l);
    snprintf(lock, sizeof lock, "%s/lock", l->path);
    snprintf(unfinished, sizeof unfinished, "%s/checkpoint-00000000000000ff.tmp", l->path);
    for (int k = 0; k < 4; k++) {
        const char *prefix = k < 2 ? SVI_CHECKPOINT : SVI_JOURNAL;
        const int count = list(l, prefix, &numbers);
        assert_true(count > 2);
        read_header(&h, l, prefix, numbers[k % 2 ? count - 1 : 0]);
        svi_free(numbers);
        for (int layout = 0; layout < SVI_STATE_LAYOUT + 3; layout++) {
            if (layout == SVI_STATE_LAYOUT)
                continue;
            set_layout(&h, layout, true);
            fclose(fopen(unfinished, "w"));
            (void)unlink(lock);
            assert_refused(l, &h, layout);
        }
        write_header(&h, h.whole);
        assert_begins(l, false); /* and as it was it goes on */
        assert_int_equal(seen(l), 130);
        end(l);
        assert_int_not_equal(access(unfinished, F_OK), 0);
    }
}

/* What a damaged header says of its layout counts for nothing. */
static void test_damage_is_no_layout(void **state) {
    struct life *l = *state;
    static struct header h;
    uint64_t *numbers;
    live(l);
    const int count = list(l, SVI_CHECKPOINT, &numbers);
    read_header(&h, l, SVI_CHECKPOINT, numbers[count - 1]);
    svi_free(numbers);
    set_layout(&h, SVI_STATE_LAYOUT + 1, false);
    assert_begins(l, false);
    assert_int_equal(seen(l), 130);
    assert_non_null(strstr(l->log, "skipping a checkpoint"));
    end(l);
}

/* No directory yet: opened to write it is made, opened to read it is an error. */
static void test_no_state(void **state) {
    struct life *l = *state;
    struct svi_state_dir dir;
    rmdir(l->path);
    assert_int_equal(svi_layout_open(&dir, l->path, false, &l->error), SVS_IO);
    assert_int_not_equal(access(l->path, F_OK), 0);
    assert_int_equal(svi_layout_open(&dir, l->path, true, &l->error), SVS_OK);
    svi_state_dir_close(&dir);
    assert_int_equal(svi_layout_open(&dir, l->path, false, &l->error), SVS_OK);
    svi_state_dir_close(&dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_refused_untouched), TEST(test_damage_is_no_layout),
                                       TEST(test_no_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
