/* outbox_internal.h: the internals of an outbox (svmstream/outbox.h).
 *
 * Samples are numbered from 0 as the producer puts them; on the wire sample i has the number i - shift.
 * Stored are first .. first + store.count - 1. Of these the first `taken` are settled (and may wait for the
 * disk); the first `sent` are settled or in flight; those below `reached` were sent at least once under the
 * current numbering, so that the process may have them. */
#ifndef SVI_OUTBOX_INTERNAL_H
#define SVI_OUTBOX_INTERNAL_H

#include "client/outbox_answer.h"
#include "svmstream/outbox.h"
#include "wire/event.h"

#define SVI_OUTBOX_AT 3 /* bytes of the packed key `at` */

/* the stored samples (outbox_store.c): a queue of byte strings in one circular block that is doubled up to a
 * limit. Nothing moves unless the block is rebuilt. */

struct svi_kept {
    size_t at, size; /* the pairs of its map, as bytes of the block, and the pair `at` behind them */
    uint32_t pairs;  /* without that one */
    bool stub;       /* given up: only its number is sent, so that the number is used up */
    bool refused;    /* the process refused it: counted when it is released */
    uint8_t cursor;  /* bytes of the pair `at`; 0: none */
};

/* Zero-initialised except for the limits (`samples`, `bytes`) is empty. */
struct svi_store {
    struct svi_kept *ring;
    int64_t capacity, first, count, samples; /* entries: allocated, index of the oldest, in use, limit */
    uint8_t *block;
    size_t size, tail, bytes; /* bytes of the block: allocated, offset of the next entry if it fits, limit */
};

void svi_outbox_store_clear(struct svi_store *s);

/* Appends an entry. SVS_LIMIT, SVS_NO_MEMORY: the store is unchanged. */
svs_code svi_outbox_store_push(struct svi_store *s, const void *body, size_t size, uint32_t pairs);

/* Removes the oldest `count` entries, at most all. */
void svi_outbox_store_pop(struct svi_store *s, int64_t count);

/* Removes the i-th oldest, i < count, in O(i). */
void svi_outbox_store_remove(struct svi_store *s, int64_t i);

/* The i-th oldest, i < count. Valid until the next push, pop or removal. */
struct svi_kept *svi_outbox_store_at(const struct svi_store *s, int64_t i);

/* Checks that every entry lies inside the block, after the previous one, and overlaps none. */
bool svi_outbox_store_check(const struct svi_store *s);

/* ---- the outbox */

enum svi_outbox_phase {
    SVI_GREETING, /* a hello is due (`ask`), or was sent and not answered */
    SVI_LIVE,     /* samples go out */
    SVI_PAUSED    /* nothing is sent before `again`, then hello */
};

/* Progress of the farewell requested by svs_outbox_leave. */
enum svi_outbox_leaving { SVI_STAYS = 0, SVI_LEAVES, SVI_SENT_BYE, SVI_LEFT };

struct svs_outbox {
    svs_outbox_options o;
    char src[SVS_NAME_MAX + 1];
    struct svi_store store;
    struct svi_bytes frame, scratch;
    struct svi_bytes columns;          /* the pair `columns` sent with each message; empty: none */
    struct svi_bytes cursor;           /* the pair `at` of the sample that is put next; empty: none */
    uint8_t place[SVS_NAME_MAX + 8];   /* value of the cursor at sample first + taken; nil or 0: none */
    int64_t framed;                    /* samples in `frame`; 0: it is a hello or bye */
    bool out_of_memory;                /* no memory for the last frame */
    int64_t first, shift, taken, sent; /* taken <= sent */
    int64_t reached;                   /* see above; first + sent <= reached */
    int64_t touched;                   /* samples below were sent at least once, under any numbering */
    int64_t reported; /* refusals below this sample were reported; repeated ones are not reported again */
    bool keeps;       /* the process keeps its state */
    enum svi_outbox_phase phase;
    bool ask, met;
    /* time of the last hello or bye, and seconds until an unanswered hello is repeated */
    double asked, patience;
    double again, pause; /* SVI_PAUSED */
    double last_reply;   /* SVI_LIVE: last reply, or first message after a pause */
    double ask_again;    /* seconds after the last reply without progress of the disk until a hello asks */
    uint64_t run;        /* id of the process's current run; 0: not reported */
    bool returns;        /* hello carries our position, because the process has forgotten it */
    enum svi_outbox_leaving leaving;
    int64_t greeted;        /* `next` of the last answer that is not trusted yet; -1: none */
    uint64_t greeted_epoch; /* and its epoch */
    int64_t doubts;         /* how many further answers must agree */
    int64_t hellos;         /* hellos not answered: in flight, or lost */
    bool singly;            /* a batch was unreadable: send samples singly until one is settled */
    int64_t message_max;    /* largest message that the process reported to accept, bytes; 0: not reported */
    svs_outbox_figures f;   /* figures that are plain counters */
};

/* Notes the cursor at first + taken: a checked value up to `end`; NULL: none. */
void svi_outbox_set_place(svs_outbox *box, const uint8_t *value, const uint8_t *end);

/* Gives up the stored sample at `place`, which can never be delivered: reports it, and replaces it by a
 * sample without features, which uses up its number and which the process refuses for good. */
void svi_outbox_give_up(svs_outbox *box, int64_t place, const char *code, const char *reason);

/* The key of the stored sample at `place`, in `out` (SVS_KEY_MAX + 1 bytes), which is returned; "": none. */
const char *svi_outbox_key(const svs_outbox *box, int64_t place, char *out);

/* Switches to greeting: hello is sent next. */
void svi_outbox_greet(svs_outbox *box);

/* Pauses sending, then greets. Returns the seconds of the pause, which doubles each time until a sample is
 * settled. */
double svi_outbox_pause(svs_outbox *box, double now);

/* Samples below the result are known to be on the process's disk; at most those that are settled. */
int64_t svi_outbox_on_disk(const svs_outbox *box);

/* Checks all invariants; for tests. */
bool svi_outbox_check(const svs_outbox *box);

#endif
