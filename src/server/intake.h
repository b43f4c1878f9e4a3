/* intake.h: how samples come in. An intake is a row of SVI_INTAKES (config/settings.h) and a file
 * intake_NAME.c that defines svi_intake_NAME, the functions below: it alone knows its transport. The server
 * opens it, waits for it and gives it its turns.
 *
 * There are two kinds. One hands over messages (`take`), and what becomes of them is the same for all: parse,
 * verdict, write-ahead, stream, reply, a turn at a time; nothing takes effect before it is written down, and
 * one write serves for the turn. The other reads rows (`turn`), each of which depends on what the stream made
 * of those before, and hands them over one by one (svi_intake_apply). */
#ifndef SVI_INTAKE_H
#define SVI_INTAKE_H

#include <stdio.h>

#include <zmq.h>

#include "net/access.h"
#include "server/latency.h"
#include "server/control.h"

struct svi_intake;

/* NULL where nothing is said: every intake has it. */
struct svi_intake_ops {
    /* `in` of the settings becomes the real address. Sets in->own. */
    svs_code (*open)(struct svi_intake *in, svs_error *err);
    void (*close)(struct svi_intake *in); /* after a failed `open`, too */

    /* What to wait for: its socket, or its descriptor. */
    void (*poll)(const struct svi_intake *in, zmq_pollitem_t *item);

    /* ---- messages; NULL: it has `turn` */
    size_t slot; /* bytes that it keeps of a message until it is released, aligned as a pointer is */

    /* The next message, without waiting; its bytes stay where they are until `release`. False: none. */
    bool (*take)(struct svi_intake *in, void *slot, const void **bytes, size_t *size);
    struct svi_sender (*sender)(void *slot);
    bool (*reply)(struct svi_intake *in, void *slot, const void *bytes, size_t size); /* false: it is lost */
    void (*release)(void *slot);
    int (*queue)(const struct svi_settings *s); /* messages of one peer that may wait in the transport */

    /* ---- rows; NULL: it has `take` */
    /* Reads when it is `ready`, and hands over what there is. Sets in->ended at the end of the input. */
    svs_code (*turn)(struct svi_intake *in, bool ready, double now, svs_error *err);
    double (*wait)(const struct svi_intake *in);                     /* seconds until a turn is due anyway */
    void (*event)(struct svi_intake *in, const struct svi_event *e); /* what came of a row */
};

struct svi_batch;
struct svi_held_reply;
struct svi_later_reply;

struct svi_intake {
    /* the server's, set before svi_intake_new */
    struct svi_settings *settings;
    struct svi_control *control; /* its write_ahead may be NULL: the state is not kept */
    struct svi_access *access;
    struct svi_latency *latency;
    FILE *log;              /* NULL = quiet */
    FILE *scores, *refused; /* of rows: where these go as text; NULL = nowhere */
    int64_t every;          /* of rows: as svi_live_figures_begin */
    int stop;               /* of rows: readable when a reader of scores that pauses is not waited for */

    const struct svi_intake_ops *ops;
    void *own;    /* the intake's; NULL = it is not open */
    bool ended;   /* nothing more will come */
    int64_t rows; /* of the input so far; 0 where there are none */

    /* messages */
    bool replies;                     /* each is answered */
    struct svi_batch *first, *second; /* the second waits for the disk while the first is settled */
    double cost;                      /* seconds that a byte took recently */
    double each;                      /* seconds that settling a message took recently */
    bool blocked;                     /* something could not be written down: see svi_intake_turn; */
    double fits;                      /* monotonic: and since then all could; 0: it could not */
    bool held;                        /* what is in the first batch waits for that */
    svs_error why;                    /* it could not */
    double retry;                     /* monotonic: when to try again */
    size_t largest;                   /* bytes of a message so far */
    int64_t declined;
    int64_t replies_lost;
    bool label_reported;          /* of flat rows of JSON */
    struct svi_bytes reply, text; /* the reply, and as JSON */
    struct svi_held_reply
        *held_reply;             /* of the messages that are being settled: to samples whose events wait */
    struct svi_bytes held_bytes; /* their bytes */
    int held_first, held_count;
    struct svi_later_reply *later;
    int later_count;
};

/* The fields of the server are set; ops->open comes later. SVS_NO_MEMORY. */
svs_code svi_intake_new(struct svi_intake *in, svs_error *err);

/* The address is free a moment later; what was taken stays. svi_intake_free closes it, too. */
void svi_intake_close(struct svi_intake *in);
void svi_intake_free(struct svi_intake *in);

/* Takes what is there, within the bounds of a turn; `ready`: there is something to read. With a full disk,
 * messages that are answered are declined (code disk_full, to be sent again), others wait where they are
 * until there is room. SVS_IO: the state cannot be kept any more or the input cannot be read on, the process
 * must end. *took: was there anything? */
svs_code svi_intake_turn(struct svi_intake *in, bool ready, double now, bool *took, svs_error *err);

/* Seconds until a turn is due though nothing has come; INFINITY: none is. */
double svi_intake_wait(const struct svi_intake *in);

/* At the end: messages that were taken and cannot be written down. */
int svi_intake_stranded(const struct svi_intake *in);

/* An event of the stream, for those that read rows. */
static inline void svi_intake_event(struct svi_intake *in, const struct svi_event *e) {
    if (in->own && in->ops->event)
        in->ops->event(in, e);
}

/* Takes a message that nobody is answered for: writes it down where the state is kept, then applies it. A
 * refusal becomes an event. `shown`: the text that it was made from, NULL = none. SVS_DISK_FULL, SVS_IO,
 * SVS_NO_MEMORY: it could not be written down, and was not taken. */
svs_code svi_intake_apply(struct svi_intake *in, const void *bytes, size_t size, const char *shown,
                          size_t shown_size, double now, svs_error *err);

/* Bytes of the messages of a turn at most, and of all that an intake of these settings holds. */
double svi_intake_batch_memory(const struct svi_settings *s);
double svi_intake_memory(const struct svi_settings *s);

/* Bytes that so many peers may have waiting, as large as messages have been, and that JSON has needed. */
double svi_intake_waiting(const struct svi_intake *in, int64_t peers);

/* Gauges for stats and status, those of the write-ahead too. */
void svi_intake_figures(const struct svi_intake *in);

#endif
