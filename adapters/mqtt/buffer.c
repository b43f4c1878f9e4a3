#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

void buffer_open(struct buffer *b, int64_t room) {
    *b = (struct buffer){.ring = need((size_t)room, sizeof *b->ring), .room = room};
}

void buffer_close(struct buffer *b) {
    while (b->count > 0)
        buffer_pop(b);
    free(b->ring);
    b->ring = NULL;
}

struct message *buffer_at(const struct buffer *b, int64_t i) {
    return &b->ring[(b->first + i) % b->room];
}

void buffer_pop(struct buffer *b) {
    struct message *m = buffer_at(b, 0);
    free(m->bytes);
    *m = (struct message){0};
    b->first = (b->first + 1) % b->room;
    b->count--;
    b->under_way -= b->under_way > 0;
}

/* What is under way moves up by one place, over the one that goes. */
static void drop(struct buffer *b) {
    int64_t under_way = b->under_way;
    free(buffer_at(b, under_way)->bytes);
    for (int64_t i = under_way; i > 0; i--)
        *buffer_at(b, i) = *buffer_at(b, i - 1);
    *buffer_at(b, 0) = (struct message){0};
    b->first = (b->first + 1) % b->room;
    b->count--;
}

bool buffer_push(struct buffer *b, const void *bytes, size_t size) {
    bool full = b->count == b->room;
    if (full)
        drop(b);
    struct message *m = buffer_at(b, b->count++);
    m->bytes = need(size, 1);
    m->size = size;
    memcpy(m->bytes, bytes, size);
    return !full;
}
