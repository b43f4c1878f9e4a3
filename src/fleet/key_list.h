/* key_list.h: which keys are to be shown, and in which order: one pass over the table, with room for those
 * that are shown alone. */
#ifndef SVI_KEY_LIST_H
#define SVI_KEY_LIST_H

#include "fleet/key_table.h"

#define SVI_KEY_LIST_MAX 10000 /* at once */

/* Each with the word for it and what comes first; of equals, the one that began first. X(CONSTANT, word) */
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
    bool larger_is_better; /* of the quality */
    const char *like;      /* a part of the name, of that length; length 0: all */
    size_t like_length;
    const char *prefix; /* which it begins with, likewise */
    size_t prefix_length;
    int64_t rows; /* at least */
    bool open;    /* only those with an open alert */
    double now;
    double silent; /* seconds without a sample at least; 0: all */
    int limit;     /* 0 to SVI_KEY_LIST_MAX */
};

/* The order of that name; SVI_KEY_ORDER_COUNT: there is none. */
enum svi_key_order svi_key_order_of(const char *word, size_t length);

/* Fills `out` (q->limit places), in order. Returns how many; *matching: those that the query lets through. */
int svi_key_list(const struct svi_fleet *f, const struct svi_key_query *q, const struct svi_key_entry **out,
                 int64_t *matching);

#endif
