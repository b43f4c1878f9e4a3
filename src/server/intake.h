/* intake.h: the inputs of the server. An intake is a row of SVI_INTAKES (config/settings.h) and a file
 * intake_NAME.c that defines svi_intake_NAME, the functions below; no other file knows its transport. The
 * server opens it, polls it and calls it once a turn.
 *
 * There are two kinds. The first delivers messages (`take`), which all intakes process alike: parse, verdict,
 * write-ahead, stream, reply, a turn at a time. Nothing takes effect before it is written, and one write
 * serves the whole turn. The second reads rows (`turn`): how a row is encoded depends on what the stream made
 * of the rows before it, so each is passed on by itself (svi_intake_apply). */
#ifndef SVI_INTAKE_H
#define SVI_INTAKE_H

#include <stdio.h>

#include <zmq.h>

#include "net/access.h"
#include "net/reply_quota.h"
#include "server/latency.h"
#include "server/control.h"

struct svi_intake;

/* The functions of one intake. Those that may be NULL say so; every intake has the others. */
struct svi_intake_ops {
    /* Opens the transport, stores the address in use in settings->in, and sets in->own. */
    svs_code (*open)(struct svi_intake *in, svs_error *err);
    void (*close)(struct svi_intake *in); /* also after a failed `open` */

    /* Fills the poll item: a socket or a descriptor. */
    void (*poll)(const struct svi_intake *in, zmq_pollitem_t *item);

    /* messages; all NULL in an intake that has `turn` */
    size_t slot; /* bytes of its own data for each message until `release`, aligned like a pointer */

    /* Takes the next message without waiting; its bytes stay valid and in place until `release`. False: none.
     */
    bool (*take)(struct svi_intake *in, void *slot, const void **bytes, size_t *size);
    struct svi_sender (*sender)(void *slot);
    /* false: the reply is lost */
    bool (*reply)(struct svi_intake *in, void *slot, const void *bytes, size_t size);
    bool (*admits)(const struct svi_intake *in, void *slot); /* may the sender be given a large reply? */
    void (*release)(void *slot);
    int (*queue)(const struct svi_settings *s); /* messages of one peer that the transport may queue */

    /* rows; all NULL in an intake that has `take` */
    /* Reads if `ready`, and passes on the rows that are complete. Sets in->ended at the end of the input. */
    svs_code (*turn)(struct svi_intake *in, bool ready, double now, svs_error *err);
    double (*wait)(const struct svi_intake *in); /* seconds until a turn is due without input */
    /* an event of the stream, such as the score of a row */
    void (*event)(struct svi_intake *in, const struct svi_event *e);
};

#define SVI_SCORES_AHEAD 64 /* messages whose scores may be under way at once */

struct svi_batch;
struct svi_held_reply;
struct svi_later_reply;

struct svi_intake {
    /* set by the server before svi_intake_new */
    struct svi_settings *settings;
    struct svi_control *control; /* its write_ahead is NULL if the state is not kept */
    struct svi_access *access;
    struct svi_latency *latency;
    struct svi_latency_buckets *buckets; /* both of the server */
    FILE *log;                           /* NULL = quiet */
    FILE *scores, *refused;              /* of rows: scores and refusals as text; NULL = nowhere */
    int64_t every;                       /* of rows: as for svi_live_figures_begin */
    int stop; /* of rows: when it becomes readable, a paused reader of scores is no longer waited for */

    const struct svi_intake_ops *ops;
    void *own;    /* private data of the intake; NULL = not open */
    bool ended;   /* the input has ended */
    int64_t rows; /* rows read so far; 0 in an intake of messages */

    /* messages */
    bool replies;                     /* each message gets a reply */
    struct svi_reply_quota *quota;    /* of these */
    struct svi_batch *first, *second; /* the second waits for its sync while the first takes effect */
    double cost;                      /* recent seconds a byte */
    double each;                      /* recent seconds a message, settling only */
    bool blocked;                     /* the disk is full, as last reported (check_space) */
    double fits;    /* monotonic: since when all writes have succeeded; 0: the last one failed */
    bool held;      /* the first batch waits for the disk, and nothing more is taken */
    svs_error why;  /* why the last write failed */
    double retry;   /* monotonic: the next attempt */
    size_t largest; /* bytes of the largest message so far */
    int64_t declined;
    int64_t replies_lost;
    bool columns_reported;        /* the label and id of flat rows of JSON were logged */
    struct svi_bytes reply, text; /* the reply in hand, and its JSON form */
    struct svi_bytes scored;      /* a held reply with scores, sent while another is in hand */
    struct svi_held_reply
        *held_reply;             /* replies of the first batch whose samples' events are not published yet */
    struct svi_bytes held_bytes; /* the bytes of these */
    int held_first, held_count;
    struct svi_later_reply *later;
    int later_count;
    struct svi_reply_scores asked[SVI_SCORES_AHEAD]; /* of small messages that asked for them */
    int asked_count;                                 /* of these, in use */
    double score_bytes;                              /* the most that an element took so far */
};

/* Allocates the batches; the server's fields must be set, ops->open comes later. SVS_NO_MEMORY. */
svs_code svi_intake_new(struct svi_intake *in, svs_error *err);

/* Closes the transport: the address is free a moment later, and messages already taken stay. svi_intake_free
 * closes it as well. */
void svi_intake_close(struct svi_intake *in);
void svi_intake_free(struct svi_intake *in);

/* One turn: takes what is queued, within the bounds of a turn; `ready`: the poll item was readable; `now`:
 * arrival time. On a full disk, messages that get replies are declined (code disk_full, to be sent again);
 * others wait in the intake until they fit. *took: at least one message was taken. SVS_IO: the state can no
 * longer be kept, or the input no longer read; the process must end. */
svs_code svi_intake_turn(struct svi_intake *in, bool ready, double now, bool *took, svs_error *err);

/* Seconds until a turn is due without input; INFINITY: none is. */
double svi_intake_wait(const struct svi_intake *in);

/* At the end: number of messages that were taken and could not be written. */
int svi_intake_stranded(const struct svi_intake *in);

/* Passes an event of the stream to an intake that reads rows. */
static inline void svi_intake_event(struct svi_intake *in, const struct svi_event *e) {
    if (in->own && in->ops->event)
        in->ops->event(in, e);
}

/* Applies a message that gets no reply, after writing it if the state is kept. A refusal becomes an event.
 * `shown`: the text it was made from, NULL = none. SVS_DISK_FULL, SVS_IO, SVS_NO_MEMORY: it could not be
 * written and was not applied. */
svs_code svi_intake_apply(struct svi_intake *in, const void *bytes, size_t size, const char *shown,
                          size_t shown_size, double now, svs_error *err);

/* Upper bounds, in bytes: of the messages of one turn, and of all that an intake with these settings holds.
 */
double svi_intake_batch_memory(const struct svi_settings *s);
double svi_intake_memory(const struct svi_settings *s);

/* Bytes that `peers` producers may have queued, judging by the largest message so far, plus the buffers that
 * JSON has needed. */
double svi_intake_waiting(const struct svi_intake *in, int64_t peers);

/* Gauges for stats and status, those of the write-ahead too. */
void svi_intake_figures(const struct svi_intake *in);

#endif
