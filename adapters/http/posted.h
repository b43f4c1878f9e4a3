/* posted.h: a request whose rows are under way to a stream in one or more messages, and its answer, which is
 * given when the last of them has its reply. */
#ifndef HTTP_POSTED_H
#define HTTP_POSTED_H

#include "relay.h"

/* What the rows are, which decides how the answer names what became of them. */
enum posted_kind { POSTED_SAMPLES, POSTED_PREDICT, POSTED_CHANGES };

struct posted {
    struct exchange *x; /* NULL: it has ended */
    struct http_stream *stream;
    bool json; /* of the messages, and so of their replies */
    enum posted_kind kind;
    bool with_scores; /* asked for */
    bool scoreless;   /* there was no memory for them */
    bool scored;      /* there are some */
    bool keyed;       /* of a prediction: `src` is the key of the rows that have none */
    char src[SVS_NAME_MAX + 1];
    int64_t n;       /* of the first row; -1: not numbered */
    int64_t *counts; /* [messages] rows of each; owned */
    int64_t rows, messages;
    int64_t replied; /* messages that were sent, and have a reply or none to expect */
    int64_t unsent;  /* messages that could not be sent */
    int64_t accepted, refused, duplicates;
    struct svi_bytes scores; /* elements: JSON with commas, or msgpack */
    int64_t score_count;
    char code[40], reason[400]; /* of the first refusal; "": none */
    const char *why;            /* why a message has no reply, uncertain ones first; NULL: all have one */
    int64_t uncertain;          /* rows of the messages under way that have no reply */
    bool whole;                 /* a message was refused as a whole */
    struct svi_bytes no_scores; /* msgpack or JSON */
};

void http_posted_free(struct posted *p);

/* For http_exchange_later. */
void http_posted_left(void *user);

/* The reply to the next message, in the order in which they were sent, or the failure to send one: an
 * http_reply. The last one answers and frees `user`. */
void http_posted_replied(void *user, const void *reply, size_t size, const char *why);

/* Answers that nothing was sent, with one of the reasons of asks.h; does not free. */
void http_posted_refuse(struct posted *p, const char *why);

/* Answers with the counts as they are; does not free. */
void http_posted_answer(struct posted *p);

#endif
