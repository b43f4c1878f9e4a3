/* A history of svmstream-http whose file was changed anywhere: opened, asked, written and pruned. The first
 * four bytes of the input decide where its other bytes go, or where the file is cut. Whatever they are: a
 * refusal, an error of SQLite or an answer, in bounded memory. */
#include <fcntl.h>

#include "../../adapters/http/history_answer.h"
#include "target.h"

#define T 1000000 /* seconds since 1970 */

static uint8_t history_whole[1 << 18];
static size_t history_size;
static char history_file[256];

static void history_path(void) {
    snprintf(history_file, sizeof history_file, "%s/history", fuzz_folder());
}

static void history_remove(void) {
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    char name[300];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s", history_file, parts[i]);
        unlink(name);
    }
}

static void history_pack(struct svi_bytes *out, int64_t number, const char *state) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    const struct svi_open_map m = svi_pack_open(&p);
    svi_put_uint(&p, "epoch", 1);
    svi_put_real(&p, "ts", T + (double)number);
    svi_put_int(&p, "number", number);
    svi_put_int(&p, "alert", 1 + number / 3);
    svi_put_text(&p, "state", state);
    svi_put_text(&p, "text", "a text");
    svi_pack_close(&p, m);
    must(svi_pack_end(&p) == SVS_OK);
}

/* A small history that is whole. */
static void history_make(void) {
    struct history_store h;
    struct svi_bytes event = {0};
    svs_error err;
    history_path();
    atexit(history_remove);
    must(http_history_store_open(&h, history_file, 1, &err) == HISTORY_OPENED);
    for (int i = 0; i < 100; i++) {
        struct history_point p = {.t = T + i};
        for (int f = 0; f < HISTORY_FIGURE_COUNT; f++)
            http_history_point_add(&p, (enum history_figure)f, i * 0.1 + f);
        must(http_history_store_add(&h, "s", &p, "accuracy") == SQLITE_OK);
    }
    for (int i = 1; i < 10; i++) {
        history_pack(&event, i, i % 3 == 0 ? "open" : i % 3 == 1 ? "update" : "close");
        must(http_history_alerts_add(&h, "s", event.data, event.size) == SQLITE_OK);
    }
    must(http_history_store_commit(&h, true) == SQLITE_OK);
    svi_bytes_clear(&event);
    http_history_store_close(&h);
    FILE *f = fopen(history_file, "rb");
    must(f != NULL);
    history_size = fread(history_whole, 1, sizeof history_whole, f);
    fclose(f);
    must(history_size > 4096 && history_size < sizeof history_whole);
}

static void history_use(struct history_store *h) {
    struct history_question q = {.from = T - 10, .to = T + 200, .now = T + 200, .stream = "s"};
    struct history_point p = {.t = T + 150};
    struct history_answer a;
    bool more;
    for (int i = 0; i < 3; i++) {
        q.alerts = i == 1;
        q.from = i == 2 ? 0 : T - 10;
        if (http_history_answer(h, &q, &a) == SQLITE_OK)
            must(a.status == 200 ? a.body.size > 2 && a.body.data[0] == '{' : a.detail[0] != '\0');
        svi_bytes_clear(&a.body);
    }
    http_history_point_add(&p, HISTORY_RATE, 1);
    http_history_store_add(h, "s", &p, NULL);
    http_history_store_commit(h, true);
    http_history_store_prune(h, T + 1e5, &more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t bytes[sizeof history_whole];
    struct history_store h;
    svs_error err;
    if (history_size == 0)
        history_make();
    memcpy(bytes, history_whole, history_size);
    const uint32_t where = size > 4 ? (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2] : 0;
    size_t length = history_size;
    if (size > 4 && data[3] < 128) {
        const size_t at = where % history_size,
                     n = size - 4 < history_size - at ? size - 4 : history_size - at;
        memcpy(bytes + at, data + 4, n);
    } else if (size > 4)
        length = where % history_size;
    history_remove();
    FILE *f = fopen(history_file, "wb");
    must(f != NULL && fwrite(bytes, 1, length, f) == length);
    fclose(f);
    err.text[0] = '\0';
    if (http_history_store_open(&h, history_file, 1, &err) == HISTORY_OPENED)
        history_use(&h);
    else
        must(err.text[0] != '\0');
    http_history_store_close(&h);
    return 0;
}
