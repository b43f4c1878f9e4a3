/* posted.h: a request whose rows are under way to a stream in one or more messages, and its answer, which is
 * given when the last of them has its reply. */
#ifndef HTTP_POSTED_H
#define HTTP_POSTED_H

#include "relay.h"

/* What the rows are, which decides how the answer names what became of them. */
enum posted_kind { POSTED_SAMPLES, POSTED_PREDICT, POSTED_CHANGES };

struct posted {
    struct exchange *x; /* NULL: it has gone */
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
    int64_t messages, sent, replied;
    int64_t accepted, refused, duplicates;
    int64_t answered_rows;   /* of the messages that were answered in order before the first failure */
    struct svi_bytes scores; /* elements: JSON with commas, or msgpack */
    int64_t score_count;
    char code[40], reason[400]; /* of the first refusal; "": none */
    const char *why;            /* the first message that has no reply; NULL: all have one */
    bool whole;                 /* the first refusal concerned a whole message */
    struct svi_bytes no_scores; /* msgpack or JSON */
};

void http_posted_free(struct posted *p);

/* For http_exchange_later. */
void http_posted_left(void *user);

/* The reply to the next message, in the order in which they were sent: an http_reply. The last one answers
 * and frees `user`. */
void http_posted_replied(void *user, const void *reply, size_t size, const char *why);

/* Answers with the counts as they are; does not free. */
void http_posted_answer(struct posted *p);

#endif
