/* The list of keys that a command asks for: filtered, ordered, and cut at a limit. */
#include "fleet/key_list.h"

#include <math.h>
#include <string.h>

#include "fleet/fleet_internal.h"

enum svi_key_order svi_key_order_of(const char *word, size_t length) {
    static const char *const words[] = {
#define X(constant, word) #word,
        SVI_KEY_ORDERS(X)
#undef X
    };
    int i = 0;
    while (i < SVI_KEY_ORDER_COUNT && (strlen(words[i]) != length || memcmp(words[i], word, length) != 0))
        i++;
    return (enum svi_key_order)i;
}

static int compare_doubles(double a, double b) {
    return (a > b) - (a < b);
}

/* By the lower bound of how much worse than before the quality is; keys without a bound come last. */
static int compare_worse(double a, double b) {
    return isnan(a) || isnan(b) ? (int)isnan(a) - (int)isnan(b) : compare_doubles(b, a);
}

static int compare_alerts(const struct svi_key_entry *a, const struct svi_key_entry *b) {
    return b->last.open != a->last.open ? b->last.open - a->last.open : b->last.alerts - a->last.alerts;
}

struct list {
    const struct svi_fleet *f;
    const struct svi_key_query *q;
};

/* Negative: a is listed before b. Ties go by when the key began, then by the name, so that the order is
 * total: the same keys are cut at the limit, whatever the order of the walk. */
static int compare_keys(const struct list *l, const struct svi_key_entry *a, const struct svi_key_entry *b) {
    int c = 0;
    /* By quality: keys that got significantly worse first, then the worst ones; keys without any quality
     * last, by their alerts. */
    switch (l->q->order) {
    case SVI_KEYS_BY_QUALITY:
        c = (int)isnan(a->last.quality) - (int)isnan(b->last.quality);
        if (c == 0 && isnan(a->last.quality))
            c = compare_alerts(a, b);
        else if (c == 0 && (c = compare_worse(a->last.worse, b->last.worse)) != 0)
            break;
        else if (c == 0)
            c = l->q->larger_is_better ? compare_doubles(a->last.quality, b->last.quality)
                                       : compare_doubles(b->last.quality, a->last.quality);
        break;
    /* The longest silent first; a note that has not reached a key yet counts (svi_fleet_last_arrival). */
    case SVI_KEYS_BY_AGE:
        c = compare_doubles(svi_fleet_last_arrival(l->f, a), svi_fleet_last_arrival(l->f, b));
        break;
    case SVI_KEYS_BY_ROWS:
        c = (b->last.rows > a->last.rows) - (b->last.rows < a->last.rows);
        break;
    case SVI_KEYS_BY_ALERTS:
        c = compare_alerts(a, b);
        break;
    default:
        break;
    }
    if (c == 0 && l->q->order != SVI_KEYS_BY_NAME)
        c = (a->head.begun > b->head.begun) - (a->head.begun < b->head.begun);
    return c != 0 ? c : strcmp(a->name, b->name);
}

static bool key_matches(const struct list *l, const struct svi_key_entry *k) {
    return k->last.rows >= l->q->rows &&
           (l->q->like_length == 0 || memmem(k->name, k->head.length, l->q->like, l->q->like_length)) &&
           l->q->prefix_length <= k->head.length &&
           memcmp(k->name, l->q->prefix ? l->q->prefix : "", l->q->prefix_length) == 0 &&
           (!l->q->open || k->last.open > 0) &&
           (l->q->silent <= 0 || l->q->now - svi_fleet_last_arrival(l->f, k) >= l->q->silent);
}

/* A heap of the `count` keys that are listed so far, the last one in the order at its top: a key that comes
 * before it takes its place. This gives place i to k, and moves the larger child up until k fits. */
static void heap_sink(const struct list *l, const struct svi_key_entry **heap, int count, int i,
                      const struct svi_key_entry *k) {
    for (int child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && compare_keys(l, heap[child], heap[child + 1]) < 0)
            child++;
        if (compare_keys(l, k, heap[child]) >= 0)
            break;
        heap[i] = heap[child];
    }
    heap[i] = k;
}

static void heap_rise(const struct list *l, const struct svi_key_entry **heap, int i,
                      const struct svi_key_entry *k) {
    for (int parent; i > 0 && compare_keys(l, heap[parent = (i - 1) / 2], k) < 0; i = parent)
        heap[i] = heap[parent];
    heap[i] = k;
}

int svi_key_list(const struct svi_fleet *f, const struct svi_key_query *q, const struct svi_key_entry **out,
                 int64_t *matching) {
    const struct list l = {f, q};
    int count = 0;
    *matching = 0;
    /* One walk over all keys; memory for `limit` of them, whatever the number that match. */
    for (const struct svi_key_entry *k = svi_key_table_first(f->table); k; k = k->after) {
        if (!key_matches(&l, k))
            continue;
        ++*matching;
        if (count < q->limit)
            heap_rise(&l, out, count++, k);
        else if (count > 0 && compare_keys(&l, k, out[0]) < 0)
            heap_sink(&l, out, count, 0, k);
    }
    for (int end = count - 1; end > 0; end--) { /* the last one goes to the end, until the heap is empty */
        const struct svi_key_entry *last = out[end], *top = out[0];
        heap_sink(&l, out, end, 0, last);
        out[end] = top;
    }
    return count;
}
