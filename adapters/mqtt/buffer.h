/* buffer.h: samples that wait for svmstream: a bounded queue of encoded messages.
 *
 * The first `under_way` of them are sent and not acknowledged. When it is full the oldest sample that is not
 * under way is dropped. */
#ifndef MQTT_BUFFER_H
#define MQTT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message {
    unsigned char *bytes;
    size_t size;
};

struct buffer {
    struct message *ring;
    int64_t room, first, count, under_way;
};

void buffer_open(struct buffer *b, int64_t room);
void buffer_close(struct buffer *b);

/* Keeps a copy. False: another one was dropped for it. under_way must be below `room`. */
bool buffer_push(struct buffer *b, const void *bytes, size_t size);

/* The i-th from the oldest, 0 <= i < count. */
struct message *buffer_at(const struct buffer *b, int64_t i);

/* Forgets the oldest. */
void buffer_pop(struct buffer *b);

#endif
