/* outbox.h: a producer's side of acknowledged input (`svmstream run --in.mode router`), without sockets: what
 * is to be sent, what is to be sent again, and what became of it.
 *
 * Samples go in and are kept until the process has answered for them (or, with `release`, has them on disk).
 * Frames come out, to be sent over one DEALER socket, and each reply that it receives goes in. The outbox
 * numbers the samples, keeps to the process's credit, says hello at first and whenever replies fail to come,
 * and goes on at the number that the process then names.
 *
 *     svs_outbox_put(box, sample, length, &err)        SVS_LIMIT: full, take replies first
 *     while (svs_outbox_frame(box, now, &bytes, &size) && zmq_send(dealer, bytes, size, ZMQ_DONTWAIT) >= 0)
 *         svs_outbox_sent(box, now);
 *     zmq_poll(for replies, up to svs_outbox_wait(box, now))
 *     svs_outbox_reply(box, reply, length, now, &err)  for each reply
 *
 * What it relies on: one DEALER socket for the whole life of the outbox (it connects again by itself, and
 * hands out nothing of a later connection before all of an earlier one), with the ZMQ_IMMEDIATE default (0),
 * and no other producer of the same `src` at the same time.
 *
 * What it gives, as long as the outbox lives: every sample is taken by a process in order, once in the life
 * of that process, and of its kept state; no sample that was not released is lost, whichever side dies; a
 * sample that was taken is never sent again, unless the process itself says that it does not have it.
 *
 * Two things can make a process lack what it had acknowledged: it was restarted without kept state, or a
 * power cut came before it had forced its journal to disk. Samples that are still kept go to it again, under
 * new numbers where the old ones do not fit any more; released ones are gone (SVS_OUTBOX_RESTARTED says
 * which, and why). Against the second `release` helps: samples are kept until they are on disk. A producer
 * that can read its samples again sets `replay`: then numbers are never changed, and svs_outbox_wanted goes
 * back to what the process lacks.
 *
 * A process may forget a producer that is silent for long (its setting sources.idle). As long as that process
 * runs, nothing is lost by it: the outbox says where it was, and goes on there. A producer whose name will
 * not be used again says so by svs_outbox_leave, which frees its place at once.
 *
 * Time is the caller's: seconds of any clock that does not go back. One outbox belongs to one thread. Calls
 * allocate only while the outbox grows to the most that it had to hold. */
#ifndef SVMSTREAM_OUTBOX_H
#define SVMSTREAM_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct svs_outbox svs_outbox;

typedef enum svs_outbox_kind {
    SVS_OUTBOX_ACKED =
        0, /* of first .. last `count` samples are taken, the others refused; they are released */
    SVS_OUTBOX_REFUSED, /* `count` of the samples first .. last are refused for good, for this code and
                           reason. With count < last - first + 1 the process does not say which: its error
                           topic does */
    SVS_OUTBOX_LATER, /* nothing is taken now, for this code (disk_full, limit, not_allowed, ...) and reason;
                         tried again after `wait` seconds, from what the process then wants. Code not_durable:
                         `release` asks for more than the process promises */
    SVS_OUTBOX_RESTARTED /* the process does not have `count` samples, first .. last, that were released: code
                            (no_state, power_cut) and reason say why and what helps. 0: none, but it is
                            another process. With `replay` they are wanted again */
} svs_outbox_kind;

/* When a sample is let go of, and counted as acknowledged. With `replay` it always is when it is taken; but
 * the process is asked from time to time until all is on disk, as svs_outbox_figures says. */
typedef enum svs_outbox_release {
    SVS_OUTBOX_TAKEN = 0, /* as soon as the process has it: what a power cut takes from the process is lost */
    SVS_OUTBOX_SAFEST,    /* on disk, if the process keeps its state; else taken */
    SVS_OUTBOX_DURABLE, /* on disk; a process that keeps nothing gets nothing (SVS_OUTBOX_LATER, not_durable)
                         */
    SVS_OUTBOX_SENT /* as soon as the socket has it: for a PUSH socket to a process with in.mode pull, which
                       acknowledges nothing. No hello, no `src` and `n`; counted as acknowledged */
} svs_outbox_release;

/* Reported while svs_outbox_reply runs, and svs_outbox_frame (a sample that the process says is too large);
 * code and reason are printable and valid until it returns. */
typedef struct svs_outbox_event {
    svs_outbox_kind kind;
    int64_t first, last; /* samples, as svs_outbox_wanted counts them */
    int64_t count;
    const char
        *code; /* wire name: wrong_dimension, gap, ... (also one that this library does not know); "" */
    const char *reason; /* a sentence for a person; "" */
    double wait;        /* seconds */
    const char *key;    /* of the sample, where a refusal is of one alone (first == last); else "" */
} svs_outbox_event;

typedef struct svs_outbox_options {
    const char *src; /* name of this producer: 1 to SVS_NAME_MAX bytes of UTF-8; copied; no default */
    bool replay;     /* the samples can be put again from any number (a file); default false */
    svs_outbox_release release; /* default SVS_OUTBOX_TAKEN */
    int64_t samples;            /* kept at most; 1 to 100,000,000; default 10,000 */
    int64_t bytes;              /* of samples kept at most; 1 KiB to 1 TiB; default 64 MiB */
    int64_t message;  /* bytes of a message at most: the process's max.message; 256 to 1 GiB; default 1 MiB */
    int batch;        /* samples in a message at most; 1 to 1,000,000; default 1 */
    int window;       /* messages without reply at most (or the process's credit); from 1; default 256 */
    double timeout;   /* seconds without a reply until it says hello again; default 1 */
    double pause;     /* seconds of the first pause after a passing refusal, doubled up to */
    double pause_max; /* defaults 0.05, 2; also between questions how much is on disk */
    /* Called with what became of samples; may be NULL. It must not call the outbox, svs_outbox_status
     * excepted. */
    void (*tell)(void *user, const svs_outbox_event *event);
    void *user;
} svs_outbox_options;

/* What there is to know. Samples are counted as svs_outbox_wanted does, except where it says otherwise. */
typedef struct svs_outbox_figures {
    int64_t put;        /* samples handed in; put = acked + refused + dropped + kept */
    int64_t kept;       /* not released yet */
    int64_t unsent;     /* of these, not sent yet (or to be sent again) */
    int64_t taken;      /* of these, answered for, but not on disk yet */
    int64_t acked;      /* taken by a process, and released */
    int64_t refused;    /* refused for good, and released */
    int64_t dropped;    /* by svs_outbox_drop; with `replay`: the process turned out to have them, or to want
                           earlier ones first */
    int64_t sent;       /* samples sent, each time counted */
    int64_t resent;     /* sent more than once, counted each time */
    int64_t under_way;  /* messages without reply */
    int64_t duplicates; /* messages that the process had already */
    int64_t gaps;       /* replies that reported a gap */
    int64_t restarts;   /* other processes met after the first */
    int64_t
        forgotten;    /* released samples that a later process, or the same after a power cut, did not have */
    int64_t lost;     /* of these, gone for good: without `replay` */
    int64_t applied;  /* samples below this are applied in memory */
    int64_t durable;  /* samples below this survive a power cut; -1: the process keeps nothing */
    int64_t credit;   /* as the process gave it last; -1: not known yet */
    uint64_t epoch;   /* of the process; 0: none met yet */
    bool greeted;     /* the process has answered, and samples may go */
    int64_t returned; /* times that the process had forgotten this producer, which went on where it was */
} svs_outbox_figures;

/* One sample to be packed: dense, or named when `names` is not NULL. Zero-initialised fields are absent. */
typedef struct svs_outbox_sample {
    const double *x; /* d values; NAN = missing */
    int d;
    const char *const *names; /* d names, or NULL */
    bool packed;  /* dense: as ext 2 (8 bytes a value and no more) instead of an array of numbers */
    svs_value id; /* SVS_INT or SVS_STR; SVS_NONE: none */
    svs_value y;
    double ts;     /* seconds since 1970; 0 = none */
    double weight; /* > 0; 0 = none */
    bool has_ts;   /* ts counts even though it is 0 */
    /* Which model of the stream it is for, where the stream has a model for each key (setting `key`): UTF-8,
     * up to SVS_KEY_MAX bytes; a whole number is its digits. NULL or "": that of the samples without a key. A
     * stream without keys refuses it (bad_key). */
    const char *key;
} svs_outbox_sample;

/* The defaults; `src` is to be set. */
SVS_API void svs_outbox_defaults(svs_outbox_options *o);

/* NULL on failure: SVS_INVALID, SVS_MISSING_SOURCE, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_outbox *svs_outbox_new(const svs_outbox_options *o, svs_error *err);

/* Frees *box and sets it to NULL; *box may be NULL. */
SVS_API void svs_outbox_free(svs_outbox **box);

/* The number of the sample that the next put takes. Without `replay`: how many were put and not dropped. With
 * it: the number, from 0, of the sample that the process lacks and that is not kept; it can change, forwards
 * and backwards, with each reply; -1 before the process has answered for the first time. */
SVS_API int64_t svs_outbox_wanted(const svs_outbox *box);

/* Takes one sample (or command): a msgpack map without `src` and `n`, copied. SVS_LIMIT: full for now.
 * SVS_UNAVAILABLE: with `replay`, before svs_outbox_wanted is known. Never to be sent: SVS_TOO_LARGE (for
 * `message`), SVS_DUPLICATE_KEY (`src` or `n`), SVS_WRONG_TYPE (no map), SVS_EMPTY, SVS_NOT_MSGPACK,
 * SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP. SVS_NO_MEMORY. */
SVS_API svs_code svs_outbox_put(svs_outbox *box, const void *bytes, size_t length, svs_error *err);

/* Makes room when newer samples matter more: drops the oldest sample that the process cannot have yet; those
 * after it move up by one number. False: there is none (with `replay` there never is). */
SVS_API bool svs_outbox_drop(svs_outbox *box);

/* Packs and takes one sample. Codes as above; SVS_NOT_FINITE (an infinite value), SVS_MISSING_VALUE (NAN in a
 * packed one), SVS_BAD_KEY (too long, or not UTF-8), SVS_INVALID (no x, d < 1). */
SVS_API svs_code svs_outbox_pack(svs_outbox *box, const svs_outbox_sample *sample, svs_error *err);

/* Names what the arrays in `x` hold, in their order: from here on the names go with each message, and the
 * process matches them with the columns of its stream. They must name all that is kept, too. One whose
 * columns are others takes nothing (SVS_OUTBOX_LATER, wrong_columns). d = 0: no names again. SVS_INVALID
 * (d < 0, a name that is NULL), SVS_TOO_LARGE: they leave no room in `message`; SVS_NO_MEMORY. */
SVS_API svs_code svs_outbox_columns(svs_outbox *box, const char *const *names, int d, svs_error *err);

/* Is everything that was put answered for, and on disk if the process keeps its state and `release` (other
 * than SVS_OUTBOX_TAKEN) asks for it? Then svs_outbox_wait has nothing to wait for either. */
SVS_API bool svs_outbox_done(const svs_outbox *box);

/* No more will be put, and nobody will come again under this name: when everything is done as above, bye is
 * said, and svs_outbox_done waits for its reply (`timeout` seconds at most: it is no more than polite).
 * Nothing may be put after it. Not for SVS_OUTBOX_SENT, which has no name. */
SVS_API void svs_outbox_leave(svs_outbox *box);

/* Is there something to send at this time? Then *bytes (valid until the next call) is it; when the socket has
 * taken it: svs_outbox_sent. Up to `batch` samples go into a message, as many as there are. False also when
 * memory lacks. */
SVS_API bool svs_outbox_frame(svs_outbox *box, double now, const void **bytes, size_t *size);
SVS_API void svs_outbox_sent(svs_outbox *box, double now);

/* Takes the last frame of a received message. Bytes that are no reply: SVS_WRONG_TYPE, or a code of malformed
 * msgpack; nothing is changed. */
SVS_API svs_code svs_outbox_reply(svs_outbox *box, const void *bytes, size_t length, double now,
                                  svs_error *err);

/* The connection is known to be broken (ZMQ_EVENT_DISCONNECTED): says hello at once rather than after
 * `timeout`. Never needed. Also a way to learn at once whether the process still has everything.
 */
SVS_API void svs_outbox_broken(svs_outbox *box, double now);

/* Seconds until svs_outbox_frame has something without any further reply or put; 0: now; HUGE_VAL: never. */
SVS_API double svs_outbox_wait(const svs_outbox *box, double now);

/* Everything that can be known. */
SVS_API void svs_outbox_status(const svs_outbox *box, svs_outbox_figures *figures);

#ifdef __cplusplus
}
#endif
#endif
