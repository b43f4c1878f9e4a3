/* outbox.h: the producer's side of acknowledged input (`svmstream run --in.mode router`), without sockets: it
 * decides what to send and what to resend, and reports the fate of each sample.
 *
 * The caller puts samples in, and the outbox keeps them until the process has answered for them (or, with
 * `release`, has them on disk). The caller sends the outbox's frames over one DEALER socket and passes each
 * reply back. The outbox numbers the samples, respects the process's credit, says hello at the start and
 * whenever replies are overdue, and continues at the number that the process then names.
 *
 *     svs_outbox_put(box, sample, length, &err)        SVS_LIMIT: full, take replies first
 *     while (svs_outbox_frame(box, now, &bytes, &size) && zmq_send(dealer, bytes, size, ZMQ_DONTWAIT) >= 0)
 *         svs_outbox_sent(box, now);
 *     zmq_poll(for replies, up to svs_outbox_wait(box, now))
 *     svs_outbox_reply(box, reply, length, now, &err)  for each reply
 *
 * Requirements: one DEALER socket for the whole life of the outbox, with the ZMQ_IMMEDIATE default (0), and
 * no other producer with the same `src` at the same time. The socket reconnects by itself, and delivers
 * nothing of a later connection before everything of an earlier one.
 *
 * Guarantees while the outbox lives: a process takes every sample in order, once in the life of that process
 * and of its kept state. No unreleased sample is lost, whichever side fails. A sample that was taken is never
 * sent again unless the process itself reports that it does not have it.
 *
 * A process can lack samples that it had acknowledged for two reasons: it was restarted without kept state,
 * or power failed before its journal was forced to disk. Samples still kept are sent again, with new numbers
 * where the old ones no longer fit; released ones are lost (SVS_OUTBOX_RESTARTED reports which, and why).
 * `release` helps against the second reason: samples are kept until they are on disk. A producer that can
 * read its samples again sets `replay`: numbers then never change, and svs_outbox_wanted returns to the
 * samples that the process lacks.
 *
 * A process may forget a producer that is silent for long (its setting sources.idle). While that process
 * runs, nothing is lost by this: the outbox reports its position and continues there. A producer whose name
 * will not be used again calls svs_outbox_leave, which frees its slot in the process at once.
 *
 * A producer that reads a log sets `replay` and states with each sample where the log continues after it
 * (svs_outbox_cursor). The process keeps that cursor with its number, so that the producer keeps nothing:
 * whenever svs_outbox_wanted becomes known or jumps, the log is read from svs_outbox_place on.
 *
 * The caller provides the time: seconds of any clock that does not go back. Use one outbox from one thread.
 * Calls allocate only while the outbox grows to the largest size it has needed. */
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
        0, /* `count` of the samples first .. last are taken, the others refused; all are released */
    SVS_OUTBOX_REFUSED, /* `count` of the samples first .. last are refused for good, for this code and
                           reason. With count < last - first + 1 the reply does not name them; the process's
                           error topic does */
    SVS_OUTBOX_LATER, /* nothing is taken now, for this code (disk_full, limit, not_allowed, ...) and reason;
                         retried after `wait` seconds, from the sample that the process then wants. Code
                         not_durable: `release` asks for more than the process promises */
    SVS_OUTBOX_RESTARTED /* the process does not have `count` released samples, first .. last; code (no_state,
                            power_cut) and reason explain why and what helps. count 0: another process, but
                            nothing is missing. With `replay` the samples are wanted again */
} svs_outbox_kind;

/* The moment at which a sample is released and counted as acknowledged. With `replay` it is always when the
 * sample is taken, but the process is still asked from time to time until everything is on disk (`durable` in
 * svs_outbox_figures). */
typedef enum svs_outbox_release {
    SVS_OUTBOX_TAKEN = 0, /* when the process has it; a power cut there loses it */
    SVS_OUTBOX_SAFEST,    /* on disk if the process keeps its state, else taken */
    SVS_OUTBOX_DURABLE,   /* on disk; nothing is sent to a process without kept state (SVS_OUTBOX_LATER,
                             not_durable) */
    SVS_OUTBOX_SENT       /* when the socket has it: for a PUSH socket to a process with in.mode pull, which
                             acknowledges nothing. No hello, no `src` and `n`; counted as acknowledged */
} svs_outbox_release;

/* Reported during svs_outbox_reply, and during svs_outbox_frame (a sample over the process's size limit);
 * code and reason are printable and valid until the callback returns. */
typedef struct svs_outbox_event {
    svs_outbox_kind kind;
    int64_t first, last; /* samples, as svs_outbox_wanted counts them */
    int64_t count;
    const char *code;   /* wire name (wrong_dimension, gap, ...), maybe unknown to this library; or "" */
    const char *reason; /* a sentence for a person; or "" */
    double wait;        /* seconds */
    const char *key;    /* of the refused sample, if the refusal is of one alone (first == last); else "" */
} svs_outbox_event;

typedef struct svs_outbox_options {
    const char *src; /* name of this producer: 1 to SVS_NAME_MAX bytes of UTF-8; copied; no default */
    bool replay;     /* the samples can be put again from any number (a file); default false */
    svs_outbox_release release; /* default SVS_OUTBOX_TAKEN */
    int64_t samples;            /* limit of kept samples; 1 to 100,000,000; default 10,000 */
    int64_t bytes;              /* limit of their bytes; 1 KiB to 1 TiB; default 64 MiB */
    int64_t message; /* limit of a message in bytes: the process's max.message; 256 to 1 GiB; default 1 MiB */
    int batch;       /* limit of samples in a message; 1 to 1,000,000; default 1 */
    int window;      /* limit of messages without reply (also the process's credit); from 1; default 256 */
    double timeout;  /* seconds without a reply until the next hello; default 1 */
    double pause;    /* seconds of the first pause after a temporary refusal, default 0.05; doubled up to */
    double pause_max; /* this, default 2; also the pause between questions about the disk */
    /* Called with the fate of samples; may be NULL. It must not call the outbox except svs_outbox_status. */
    void (*notify)(void *user, const svs_outbox_event *event);
    void *user;
    /* NULL (the default): scores are not asked for. Else each message asks for them, and this is called
     * during svs_outbox_reply with the score of each sample that was taken: a msgpack map with the keys of a
     * score event, valid until it returns. A sample has no score if it was refused, if its reply was lost
     * with a connection, or if the scores of its message do not fit a reply. It must not call the outbox. Not
     * for SVS_OUTBOX_SENT. */
    void (*score)(void *user, int64_t sample, const void *map, size_t size);
} svs_outbox_options;

/* The state of an outbox. Sample numbers are those of svs_outbox_wanted. */
typedef struct svs_outbox_figures {
    int64_t put;        /* samples put in; put = acked + refused + dropped + kept */
    int64_t kept;       /* samples not released yet */
    int64_t unsent;     /* of these, not sent yet (or to be sent again) */
    int64_t taken;      /* of these, answered for, but not on disk yet */
    int64_t acked;      /* taken by a process, and released */
    int64_t refused;    /* refused for good, and released */
    int64_t dropped;    /* by svs_outbox_drop; with `replay`: the process already has them, or wants earlier
                           ones first */
    int64_t sent;       /* samples sent, counted each time */
    int64_t resent;     /* samples sent again, counted each time */
    int64_t under_way;  /* messages without reply */
    int64_t duplicates; /* messages that the process already had */
    int64_t gaps;       /* replies that reported a gap */
    int64_t restarts;   /* new processes after the first */
    int64_t forgotten;  /* released samples that a later process, or the same after a power cut, lacked */
    int64_t lost;       /* of these, lost for good: without `replay` */
    int64_t applied;    /* samples below this are applied in memory */
    int64_t durable;    /* samples below this survive a power cut; -1: the process keeps no state */
    int64_t credit;     /* the process's last credit; -1: not known yet */
    uint64_t epoch;     /* of the process; 0: no process has answered yet */
    bool greeted;       /* the process has answered the hello: samples may be sent */
    int64_t returned;   /* times that the process had forgotten this producer, which then continued */
} svs_outbox_figures;

/* A sample to pack: dense, or named when `names` is not NULL. Zero-initialised members are absent. */
typedef struct svs_outbox_sample {
    const double *x; /* d values; NAN = missing */
    int d;
    const char *const *names; /* d names, or NULL */
    bool packed;              /* dense: as ext 2 (8 bytes a value) instead of an array of numbers */
    svs_value id;             /* SVS_INT or SVS_STR; SVS_NONE: none */
    svs_value y;
    double ts;     /* seconds since 1970; 0 = none */
    double weight; /* > 0; 0 = none */
    bool has_ts;   /* ts is set even though it is 0 */
    /* The stream key, which selects the model in a stream with a model for each key (setting `key`): UTF-8,
     * up to SVS_KEY_MAX bytes; an integer is written in digits. NULL or "": the model of samples without a
     * key. A stream without keys refuses a key (bad_key). */
    const char *key;
} svs_outbox_sample;

/* The defaults; the caller must set `src`. */
SVS_API void svs_outbox_defaults(svs_outbox_options *o);

/* NULL on failure: SVS_INVALID, SVS_MISSING_SOURCE, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_outbox *svs_outbox_new(const svs_outbox_options *o, svs_error *err);

/* Frees *box and sets it to NULL; *box may be NULL. */
SVS_API void svs_outbox_free(svs_outbox **box);

/* The number of the sample to put next. Without `replay`: the number of samples put and not dropped. With
 * `replay`: the number, from 0, of the first sample that neither the process nor the outbox has; each reply
 * may move it forwards or backwards; -1 before the first answer of the process. */
SVS_API int64_t svs_outbox_wanted(const svs_outbox *box);

/* Puts in one sample (or command): a msgpack map without `src`, `n` and `at`, copied. SVS_LIMIT: full for
 * now. SVS_UNAVAILABLE: with `replay`, before svs_outbox_wanted is known. Never to be sent: SVS_TOO_LARGE
 * (for `message`), SVS_DUPLICATE_KEY (`src`, `n`, `at`, or `reply` where scores are asked for),
 * SVS_WRONG_TYPE (no map), SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING, SVS_TOO_DEEP.
 * SVS_NO_MEMORY. */
SVS_API svs_code svs_outbox_put(svs_outbox *box, const void *bytes, size_t length, svs_error *err);

/* States where the producer's source continues after the sample that is put or packed next: an offset, an id,
 * any bytes that find the place again; copied, and kept until that sample is in. The process keeps the one of
 * the last sample that it took; a sample without a cursor leaves none. size 0: none. SVS_BAD_CURSOR: more
 * than SVS_NAME_MAX bytes. SVS_NO_MEMORY. It does nothing with SVS_OUTBOX_SENT. */
SVS_API svs_code svs_outbox_cursor(svs_outbox *box, const void *cursor, size_t size, svs_error *err);

/* The cursor at the process's position: the one that it returned at hello, then that of the last sample that
 * it took. *size bytes, valid until the next call; NULL: no cursor. */
SVS_API const void *svs_outbox_place(const svs_outbox *box, size_t *size);

/* Makes space when newer samples matter more: drops the oldest sample that the process cannot have yet; the
 * numbers of later ones fall by one. False: there is no such sample (always with `replay`). */
SVS_API bool svs_outbox_drop(svs_outbox *box);

/* Packs and puts in one sample. Codes as above; SVS_NOT_FINITE (an infinite value), SVS_MISSING_VALUE (NAN in
 * a packed one), SVS_BAD_KEY (too long, or not UTF-8), SVS_INVALID (no x, d < 1). */
SVS_API svs_code svs_outbox_pack(svs_outbox *box, const svs_outbox_sample *sample, svs_error *err);

/* Names the values of dense samples, in their order: from now on each message carries the names, and the
 * process matches them with the columns of its stream. They must fit all kept samples, too. A process with
 * other columns takes nothing (SVS_OUTBOX_LATER, wrong_columns). d = 0: no names any more. SVS_INVALID (d <
 * 0, a NULL name), SVS_TOO_LARGE: they leave no space in `message`; SVS_NO_MEMORY. */
SVS_API svs_code svs_outbox_columns(svs_outbox *box, const char *const *names, int d, svs_error *err);

/* True when every sample is answered for, and on disk if the process keeps its state and `release` (other
 * than SVS_OUTBOX_TAKEN) asks for it. svs_outbox_wait then has nothing to wait for either. */
SVS_API bool svs_outbox_done(const svs_outbox *box);

/* Declares that no more samples will be put and that the name will not be used again. When everything is done
 * as above, the outbox says bye, and svs_outbox_done waits for the reply (for at most `timeout` seconds,
 * since nothing depends on it). Nothing may be put afterwards. Not for SVS_OUTBOX_SENT, which has no name. */
SVS_API void svs_outbox_leave(svs_outbox *box);

/* True when there is a frame to send at this time: *bytes, valid until the next call. Call svs_outbox_sent
 * when the socket has accepted it. A message holds up to `batch` samples, as many as are available. False
 * also when memory is out. */
SVS_API bool svs_outbox_frame(svs_outbox *box, double now, const void **bytes, size_t *size);
SVS_API void svs_outbox_sent(svs_outbox *box, double now);

/* Processes a reply: the last frame of a received message. Bytes that are not a reply: SVS_WRONG_TYPE, or a
 * code of malformed msgpack; nothing changes. */
SVS_API svs_code svs_outbox_reply(svs_outbox *box, const void *bytes, size_t length, double now,
                                  svs_error *err);

/* Reports that the connection is broken (ZMQ_EVENT_DISCONNECTED): the outbox says hello at once instead of
 * after `timeout`. Optional. Also a way to ask at once whether the process still has everything. */
SVS_API void svs_outbox_broken(svs_outbox *box, double now);

/* Seconds until svs_outbox_frame has a frame without a further reply or put; 0: now; HUGE_VAL: never. */
SVS_API double svs_outbox_wait(const svs_outbox *box, double now);

/* Fills *figures with the current state. */
SVS_API void svs_outbox_status(const svs_outbox *box, svs_outbox_figures *figures);

#ifdef __cplusplus
}
#endif
#endif
