/* partition_entries.h: the entries of a log that a process was sent, or will be, and has not answered for. An
 * entry is stored as the message that is sent: what the log had, with src, n and at in front. Part of
 * partition_child. */
#ifndef PARTITION_ENTRIES_H
#define PARTITION_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "svmstream/value.h"

#define PARTITION_SOURCE "log" /* src of all samples of a log */

struct partition_entry {
    struct partition_entry *following;
    int64_t n;     /* number of its first element */
    int64_t count; /* elements */
    size_t number; /* offset of the number in the message, where it is written before each sending */
    bool json;     /* as text, else as msgpack */
    unsigned char at_size;
    char at[SVS_NAME_MAX]; /* where the log continues after it */
    size_t size;
    uint8_t bytes[]; /* the message */
};

/* Zero-initialised is empty, with the next number 0. */
struct partition_entries {
    struct partition_entry *first, *last;
    struct partition_entry *unsent; /* the first that has to be sent; NULL: all were sent */
    int64_t count;                  /* entries */
    int64_t flying;                 /* of these, before `unsent` */
    size_t bytes;
    int64_t next; /* number of the next entry that is added */
};

/* Makes an entry of `bytes`, a message of the wire; what it states of src, n and at is left out. At most
 * `largest` bytes as a message (0: any). The caller frees it with svi_free, or adds it. NULL: the codes of
 * partition_child_send. */
struct partition_entry *partition_entry_new(const void *bytes, size_t size, const void *at, size_t at_size,
                                            int64_t largest, svs_error *err);

void partition_entries_add(struct partition_entries *q, struct partition_entry *e); /* which is owned now */

/* Writes the number into the message of q->unsent, which can be sent then; partition_entries_sent when it
 * was. */
const struct partition_entry *partition_entries_ready(struct partition_entries *q);
void partition_entries_sent(struct partition_entries *q);

/* Removes and returns the first, for svi_free. */
struct partition_entry *partition_entries_pop(struct partition_entries *q);

/* All have to be sent again, the first with number `n`. */
void partition_entries_rewind(struct partition_entries *q, int64_t n);
void partition_entries_clear(struct partition_entries *q, int64_t n); /* drops all; the next has number `n` */

#endif
