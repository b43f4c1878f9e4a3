/* outbox_internal.h: what is inside an outbox (svmstream/outbox.h).
 *
 * Samples are counted from 0 as the producer puts them; on the wire sample i has the number i - shift. Kept
 * are first .. first + store.count - 1; of these the first `taken` are answered for (and wait for the disk),
 * the first `sent` are that or under way, and under the present numbering those below `reached` were sent at
 * least once, so that the process may have them. */
#ifndef SVI_OUTBOX_INTERNAL_H
#define SVI_OUTBOX_INTERNAL_H

#include "svmstream/outbox.h"
#include "wire/event.h"

/* ---- the samples that are kept (outbox_store.c): a queue of byte strings in one block that is used in a
 * circle and doubled up to a bound. Nothing moves except when the block is rebuilt. */

struct svi_kept {
    size_t at, size; /* the pairs of its map, in the block */
    uint32_t pairs;
    bool stub;    /* given up: only its number is sent, so that it is used up */
    bool refused; /* answered for so: counted when it is released */
};

/* Zero-initialised but for the bounds is empty. */
struct svi_store {
    struct svi_kept *ring;
    int64_t capacity, first, count, samples; /* entries: allocated, oldest, in use, at most */
    uint8_t *block;
    size_t size, tail, bytes; /* of the block: allocated, where the next goes if it fits, at most */
};

void svi_store_clear(struct svi_store *s);

/* Adds one at the end. SVS_LIMIT, SVS_NO_MEMORY: as it was. */
svs_code svi_store_push(struct svi_store *s, const void *body, size_t size, uint32_t pairs);

/* Takes away the oldest `count` (at most all). */
void svi_store_pop(struct svi_store *s, int64_t count);

/* Takes away the i-th oldest, i < count: in time proportional to i. */
void svi_store_remove(struct svi_store *s, int64_t i);

/* The i-th oldest, i < count. Valid until the next push, pop or removal. */
struct svi_kept *svi_store_at(const struct svi_store *s, int64_t i);

/* Does every entry lie inside the block, after the one before it, and over none? */
bool svi_store_check(const struct svi_store *s);

/* ---- what a process answers (outbox_reply.c) */

struct svi_answer {
    bool ok;
    int final;                                 /* -1: absent */
    int64_t n, next, credit, durable, applied; /* -1: absent */
    int64_t max_message;                       /* bytes that the process takes; -1: absent */
    int64_t refused;                           /* samples of a message that was taken; 0: absent */
    uint64_t epoch, run;                       /* 0: absent */
    char delivery[24];                         /* the level that the process promises; "": absent */
    char code[40], reason[SVS_ERROR_TEXT];     /* printable; reason "": no error */
};

/* Codes of svi_msgpack_check; SVS_WRONG_TYPE: neither `ok` nor `error` is there. */
svs_code svi_answer_read(struct svi_answer *a, const void *bytes, size_t length, svs_error *err);

/* ---- the outbox */

enum svi_outbox_phase {
    SVI_GREETING, /* hello is to be said (`ask`), or was and is not answered */
    SVI_LIVE,     /* samples go out */
    SVI_PAUSED    /* nothing goes out before `again`, then hello */
};

/* What is said at the end, by svs_outbox_leave. */
enum svi_outbox_leaving { SVI_STAYS = 0, SVI_LEAVES, SVI_SAID_BYE, SVI_LEFT };

struct svs_outbox {
    svs_outbox_options o;
    char src[SVS_NAME_MAX + 1];
    struct svi_store store;
    struct svi_bytes frame, scratch;
    struct svi_bytes columns;          /* the pair `columns` of each message; empty: none */
    int64_t framed;                    /* samples in `frame`; 0: hello, or bye */
    bool out_of_memory;                /* the last frame could not be built: no memory */
    int64_t first, shift, taken, sent; /* taken <= sent */
    int64_t reached;                   /* see above; first <= reached */
    int64_t touched;                   /* samples below were sent at least once, under whatever number */
    int64_t reported; /* refusals of samples below were reported: those that come again are not */
    bool keeps;       /* the process keeps its state */
    enum svi_outbox_phase phase;
    bool ask, met;
    double asked, patience; /* when hello was said last, and how long it may go unanswered */
    double again, pause;    /* SVI_PAUSED */
    double heard;           /* SVI_LIVE: the last reply, or the first message after a rest */
    double ask_again;       /* seconds after `heard` in which nothing came on disk: hello */
    uint64_t run;           /* of the process, in its present life; 0: not told */
    bool returns;           /* hello says where it was: the process has forgotten it */
    enum svi_outbox_leaving leaving;
    int64_t greeted;        /* `next` of the last answer that is not believed yet, -1: none */
    uint64_t greeted_epoch; /* and its epoch */
    int64_t doubts;         /* further answers must say the same */
    int64_t hellos;         /* said and not answered: under way, or lost */
    bool singly;            /* a batch could not be read: samples go alone until one is answered for */
    int64_t message_max;    /* bytes of a message that the process takes, as it said; 0: it did not say */
    svs_outbox_figures f;   /* those that are only counted */
};

/* A kept sample that cannot be got through, by its place: it is reported, and its number used up by a sample
 * without features, which the process refuses for good. */
void svi_outbox_give_up(svs_outbox *box, int64_t place, const char *code, const char *reason);

/* The key of a kept sample, by its place, in `out` (SVS_KEY_MAX + 1 bytes), which is returned; "": none. */
const char *svi_outbox_key(const svs_outbox *box, int64_t place, char *out);

/* Hello is said next. */
void svi_outbox_greet(svs_outbox *box);

/* Nothing is sent for a while, then hello. Returns the seconds; each pause is twice as long until something
 * comes through. */
double svi_outbox_pause(svs_outbox *box, double now);

/* Samples below this are on disk, as far as it is known; at most those that are answered for. */
int64_t svi_outbox_on_disk(const svs_outbox *box);

/* Does everything fit together? For tests. */
bool svi_outbox_check(const svs_outbox *box);

#endif
