/* key_list.h: selects and sorts the keys to show, in one pass over the table, with memory for those shown
 * only. */
#ifndef SVI_KEY_LIST_H
#define SVI_KEY_LIST_H

#include "fleet/key_table.h"

#define SVI_KEY_LIST_MAX 10000 /* keys at once */

/* X(CONSTANT, word): each order with its word and what comes first; of equals, the key that began first. */
#define SVI_KEY_ORDERS(X)                                                                                    \
    X(QUALITY,                                                                                               \
      quality)        /* the worst (`worse`); last those of which none is known, and of these as `alerts` */ \
    X(AGE, age)       /* the one that has been silent the longest */                                         \
    X(ROWS, rows)     /* the most */                                                                         \
    X(ALERTS, alerts) /* the most open ones, then the most opened */                                         \
    X(NAME, name)     /* by bytes, from the smallest */

enum svi_key_order {
#define X(constant, word) SVI_KEYS_BY_##constant,
    SVI_KEY_ORDERS(X)
#undef X
        SVI_KEY_ORDER_COUNT
};

struct svi_key_query {
    enum svi_key_order order;
    bool larger_is_better; /* of two figures of quality */
    const char *like;      /* a part of the name; length 0: any */
    size_t like_length;
    const char *prefix; /* the beginning of the name, likewise */
    size_t prefix_length;
    int64_t rows; /* smallest number of rows */
    bool open;    /* only keys with an open alert */
    double now;
    double silent; /* smallest time without a sample, seconds; 0: any */
    int limit;     /* 0 to SVI_KEY_LIST_MAX */
};

/* The order with this name; SVI_KEY_ORDER_COUNT: unknown. */
enum svi_key_order svi_key_order_of(const char *word, size_t length);

/* Fills `out` (q->limit places), in order, and returns the number; *matching: the number of all keys that
 * match. */
int svi_key_list(const struct svi_fleet *f, const struct svi_key_query *q, const struct svi_key_entry **out,
                 int64_t *matching);

#endif
