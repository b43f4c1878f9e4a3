/* outbox_state.h: what is inside an outbox (svmstream/outbox.h).
 *
 * Samples are counted from 0 as the producer puts them; on the wire sample i has the number i - shift. Kept
 * are first .. first + store.count - 1; of these the first `taken` are answered for (and wait for the disk),
 * the first `sent` are that or under way, and under the present numbering those below `reached` were sent at
 * least once, so that the process may have them. */
#ifndef SVI_OUTBOX_STATE_H
#define SVI_OUTBOX_STATE_H

#include "svmstream/outbox.h"
#include "wire/event.h"
#include "wire/outbox_reply.h"
#include "wire/outbox_store.h"

/* Fruitless turns until messages go out singly, and again until the sample is given up. */
#define SVI_OUTBOX_PROBES 3

enum svi_outbox_phase {
    SVI_GREETING, /* hello is to be said (`ask`), or was and is not answered */
    SVI_LIVE,     /* samples go out */
    SVI_PAUSED    /* nothing goes out before `again`, then hello */
};

struct svs_outbox {
    svs_outbox_options o;
    char src[SVS_NAME_MAX + 1];
    struct svi_store store;
    struct svi_bytes frame, scratch;
    int64_t framed;                    /* samples in `frame`; 0: hello */
    bool starved;                      /* the last frame could not be built: no memory */
    int64_t first, shift, taken, sent; /* taken <= sent */
    int64_t reached;                   /* see above; first <= reached */
    int64_t touched;                   /* samples below were sent at least once, under whatever number */
    int64_t told; /* refusals of samples below were told: those that come again are not */
    bool keeps;   /* the process keeps its state */
    enum svi_outbox_phase phase;
    bool ask, met;
    double asked, patience; /* when hello was said last, and how long it may go unanswered */
    double again, pause;    /* SVI_PAUSED */
    double heard;           /* SVI_LIVE: the last reply, or the first message after a rest */
    double ask_again;       /* seconds after `heard` in which nothing came on disk: hello */
    int64_t greeted;        /* `next` of the last answer that is not believed yet, -1: none */
    uint64_t greeted_epoch; /* and its epoch */
    int64_t doubts;         /* further answers must say the same */
    int64_t hellos;         /* said and not answered: under way, or lost */
    bool answered;          /* replies to samples came in this turn (since the last hello) */
    bool tried;             /* samples were sent in this turn */
    int fruitless; /* turns in a row in which samples were sent, none was answered or taken, and hello was */
    svs_outbox_figures f; /* those that are only counted */
};

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
