/* Which weights moved: the model that was published last, against one that was published some time before.
 *
 * Models arrive by weights_on_event, the writer; http_weights_get is the reader. Read these two first. The
 * newest model is always kept. When the next one arrives, it becomes a snapshot if the snapshot before it is
 * INTERVAL older. Beyond SNAPSHOTS, or BYTES of a stream, every second snapshot is removed and the interval
 * doubles: memory stays bounded, and any age can still be asked for, old ones coarsely.
 *
 * A model of another epoch, or with fewer features (a reset), starts over, as its weights do not continue the
 * earlier ones. Weights are matched by their column, since a stream adds features at the end, and by the
 * label of the row, since classes may change places.
 *
 * Snapshots stay packed as they were published. They are decoded only when somebody asks, which is rare. */
#include "weight_log.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "handlers.h"
#include "relay.h"
#include "wire/fields.h"
#include "wire/pack.h"

#define INTERVAL  10.0 /* seconds */
#define SNAPSHOTS 64
#define BYTES     ((size_t)4 << 20)
#define LISTED    20
#define MAX_LIST  1000
#define SINCE     600.0

struct weight_model {
    double time; /* wall clock of its arrival */
    struct svi_bytes bytes;
};

struct weight_state {
    struct weight_model now, kept[SNAPSHOTS]; /* kept: ascending times */
    int count;
    size_t bytes;
    double interval;
    uint64_t epoch;
};

struct http_weights {
    int count;
    struct weight_state state[];
};

/* One weight that moved. */
struct weight_move {
    int64_t row, column;
    double now, before;
};

/* `bytes` is the sum over `kept`; only this function and weights_keep change it. */
static void weights_drop(struct weight_state *w, int at) {
    w->bytes -= w->kept[at].bytes.size;
    svi_bytes_clear(&w->kept[at].bytes);
    w->count--;
    memmove(&w->kept[at], &w->kept[at + 1], (size_t)(w->count - at) * sizeof *w->kept);
}

static void weights_clear(struct weight_state *w) {
    /* From the end, so that nothing is moved. */
    while (w->count > 0)
        weights_drop(w, w->count - 1);
    w->interval = INTERVAL;
}

/* Every second one leaves, but the newest stays. */
static void weights_thin(struct weight_state *w) {
    /* Downwards: what is removed does not shift the places that follow. */
    for (int i = w->count - 2; i >= 0; i -= 2)
        weights_drop(w, i);
    w->interval *= 2;
}

/* The model that was the newest becomes a snapshot, if it is time. Its bytes move. */
static void weights_keep(struct weight_state *w) {
    const double last = w->count > 0 ? w->kept[w->count - 1].time : -INFINITY;
    /* A model above half of the budget would push out all others, and there would be no past to compare with.
     */
    if (w->now.bytes.size == 0 || w->now.bytes.size > BYTES / 2 || w->now.time < last + w->interval)
        return;
    while (w->count > 0 && (w->count == SNAPSHOTS || w->bytes + w->now.bytes.size > BYTES)) {
        /* A single snapshot cannot be thinned; without this case the loop would not end. */
        if (w->count > 1)
            weights_thin(w);
        else
            weights_drop(w, 0);
    }
    w->bytes += w->now.bytes.size;
    w->kept[w->count++] = w->now;
    /* The snapshot owns the bytes now. */
    w->now = (struct weight_model){0};
}

static void weights_on_event(void *user, struct http_stream *s, const struct subscription_event *e) {
    struct http_weights *all = user;
    struct weight_state *w = &all->state[s->index];
    const struct svi_view model = svi_view_of(e->payload, e->size),
                          before = svi_view_of(w->now.bytes.data, w->now.bytes.size);
    char key[SVS_KEY_MAX + 1];
    /* A model with a key belongs to one device; thousands of them would not fit into the budget. */
    if (e->kind != SVI_TOPIC_MODEL || *svi_view_text(model, "key", key, sizeof key))
        return;
    const uint64_t epoch = svi_view_unsigned(model, "epoch", 0);
    const bool fewer =
        w->now.bytes.size > 0 && svi_view_integer(model, "d", 0) < svi_view_integer(before, "d", 0);
    /* The old model is kept or dropped first, because its bytes are overwritten below. */
    if (epoch != w->epoch || fewer)
        weights_clear(w);
    else
        weights_keep(w);
    w->epoch = epoch;
    w->now.bytes.size = 0;
    /* Without memory there is no newest model: half a one would be compared as if it were whole. */
    if (svi_bytes_append(&w->now.bytes, e->payload, e->size) != SVS_OK)
        w->now.bytes.size = 0;
    w->now.time = svi_wall_clock();
}

struct http_weights *http_weights_open(struct http_streams *all, svs_error *err) {
    const int count = http_streams_count(all);
    struct http_weights *w = svi_new(sizeof *w + (size_t)count * sizeof *w->state, "the models", err);
    if (!w)
        return NULL;
    w->count = count;
    for (int i = 0; i < count; i++)
        w->state[i].interval = INTERVAL;
    http_streams_listen(all, NULL, weights_on_event, w);
    return w;
}

void http_weights_close(struct http_weights **weights) {
    struct http_weights *w = *weights;
    if (!w)
        return;
    for (int i = 0; i < w->count; i++) {
        weights_clear(&w->state[i]);
        svi_bytes_clear(&w->state[i].now.bytes);
    }
    svi_free(w);
    *weights = NULL;
}

/* ---- GET /weights */

/* Element i of an array; no value beyond the end. */
static struct svi_view weights_element(struct svi_view array, int64_t i) {
    /* Elements differ in size, so they are walked over from the first one. */
    struct svi_view element = {NULL, NULL};
    int64_t left = -1;
    for (int64_t k = 0; k <= i; k++)
        if (!svi_view_next(&array, &left, &element))
            return (struct svi_view){NULL, NULL};
    return element;
}

/* Labels are compared as packed bytes: the stream packs the same label in the same way. */
static bool weights_same(struct svi_view a, struct svi_view b) {
    return a.at && b.at && a.end - a.at == b.end - b.at && memcmp(a.at, b.at, (size_t)(a.end - a.at)) == 0;
}

/* The label of a row: two classes have one row, which speaks for the second. */
static struct svi_view weights_class(struct svi_view model, int64_t rows, int64_t row) {
    const struct svi_view classes = svi_view_key(model, "classes");
    const struct svi_item head = svi_view_item(classes);
    return weights_element(classes, rows == 1 && head.type == SVI_ARRAY && head.length == 2 ? 1 : row);
}

/* Puts a move into the list, which is sorted by size and full at `most`. */
static void weights_insert(struct weight_move *list, int64_t *count, int64_t most, struct weight_move m) {
    int64_t at = *count;
    while (at > 0 && fabs(list[at - 1].now - list[at - 1].before) < fabs(m.now - m.before))
        at--;
    /* Smaller than all of a full list. Equal moves keep the order of rows and columns. */
    if (at == most)
        return;
    *count += *count < most;
    /* A full list drops its last move here, since the count has not risen. */
    memmove(&list[at + 1], &list[at], (size_t)(*count - at - 1) * sizeof *list);
    list[at] = m;
}

/* The largest moves of the rows that both models have. */
static int64_t weights_compare(struct svi_view now, struct svi_view before, struct weight_move *list,
                               int64_t most) {
    const int64_t d = svi_view_integer(now, "d", 0), old_d = svi_view_integer(before, "d", 0);
    const struct svi_item item = svi_view_item(svi_view_key(now, "W")),
                          old_item = svi_view_item(svi_view_key(before, "W"));
    struct svi_doubles w, old;
    int64_t count = 0;
    /* Models of a kernel or of trees have no W, and so no weights to compare. */
    if (d < 1 || old_d < 1 || !svi_item_doubles(&item, &w) || !svi_item_doubles(&old_item, &old))
        return 0;
    const int64_t rows = w.count / d, old_rows = old.count / old_d;
    for (int64_t k = 0; k < rows; k++) {
        const struct svi_view class = weights_class(now, rows, k);
        /* The labels are nearly always in the same places. */
        int64_t other = k < old_rows && weights_same(class, weights_class(before, old_rows, k)) ? k : 0;
        while (other < old_rows && class.at && !weights_same(class, weights_class(before, old_rows, other)))
            other++;
        /* A class or a feature that the old model lacks has not moved: it has no weight before. */
        for (int64_t j = 0; j < d && j < old_d && other < old_rows; j++) {
            const struct weight_move m = {k, j, svi_doubles_get(&w, k * d + j),
                                          svi_doubles_get(&old, other * old_d + j)};
            if (m.now != m.before)
                weights_insert(list, &count, most, m);
        }
    }
    return count;
}

static void weights_put(struct svi_pack *p, struct svi_view model, const struct weight_move *m) {
    const int64_t d = svi_view_integer(model, "d", 1);
    const struct svi_item item = svi_view_item(svi_view_key(model, "W"));
    struct svi_doubles w = {0};
    svi_item_doubles(&item, &w);
    const struct svi_view name = weights_element(svi_view_key(model, "features"), m->column),
                          class = weights_class(model, w.count / d, m->row);
    const struct svi_open_map map = svi_pack_open(p);
    svi_pack_key(p, "feature");
    /* A stream without names has its columns by number. */
    if (name.at)
        svi_pack_raw(p, name.at, (size_t)(name.end - name.at));
    else
        svi_pack_int(p, m->column);
    svi_pack_key(p, "class");
    if (class.at)
        svi_pack_raw(p, class.at, (size_t)(class.end - class.at));
    else
        svi_pack_nil(p);
    svi_put_real(p, "now", m->now);
    svi_put_real(p, "before", m->before);
    svi_pack_close(p, map);
}

/* The newest snapshot that is at least `since` seconds old, else the oldest; the model itself if none is. */
static const struct weight_model *weights_before(const struct weight_state *w, double since) {
    /* A young program has no snapshot of that age. The oldest is the best answer, and `from` states its time.
     */
    const struct weight_model *found = w->count > 0 ? &w->kept[0] : &w->now;
    for (int i = 1; i < w->count && w->kept[i].time <= svi_wall_clock() - since; i++)
        found = &w->kept[i];
    return found;
}

void http_weights_get(struct exchange *x, struct http_app *app) {
    const struct http_stream *s = http_relay_stream(x, app->streams, false);
    struct weight_move *list;
    struct svi_bytes out = {0};
    struct svi_pack p;
    double since = SINCE;
    int64_t limit = LISTED;
    if (!s || !http_relay_number(x, "since", 0, 1e9, &since) ||
        !http_relay_integer(x, "limit", 1, MAX_LIST, &limit))
        return;
    /* The stream need not be live: its last models are here. */
    const struct weight_state *w = &app->weights->state[s->index];
    const struct weight_model *old = weights_before(w, since);
    const struct svi_view now = svi_view_of(w->now.bytes.data, w->now.bytes.size),
                          before = svi_view_of(old->bytes.data, old->bytes.size);
    if (!(list = svi_alloc_array((size_t)limit + 1, sizeof *list))) {
        http_exchange_problem(x, 503, "no_memory", "no memory for the answer");
        return;
    }
    /* Before the first model the answer is an empty list without times, which a client can poll. */
    const bool known = w->now.bytes.size > 0;
    const int64_t count = known ? weights_compare(now, before, list, limit) : 0;
    svi_pack_begin(&p, &out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_put_text(&p, "stream", s->name);
    svi_put_real(&p, "from", known ? old->time : NAN);
    svi_put_real(&p, "to", known ? w->now.time : NAN);
    svi_put_array(&p, "weights", (size_t)count);
    for (int64_t i = 0; i < count; i++)
        weights_put(&p, now, &list[i]);
    svi_pack_close(&p, map);
    svi_free(list);
    http_relay_packed(x, &p, &out);
}
