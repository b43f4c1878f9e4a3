/* history_answer.h: questions to a history, answered as JSON. */
#ifndef HTTP_HISTORY_ANSWER_H
#define HTTP_HISTORY_ANSWER_H

#include "history_alerts.h"

#define HISTORY_TYPE         "application/json" /* of an answer */
#define HISTORY_POINTS       1500  /* of an answer whose step the question leaves open, at most */
#define HISTORY_POINTS_MAX   11000 /* of any answer: a week of minutes, and more */
#define HISTORY_ALERTS_MAX   500   /* alerts of an answer */
#define HISTORY_NAME         1088  /* bytes of the name of a stream, with the NUL */
#define HISTORY_ANSWER_BYTES ((size_t)16 << 20)

struct history_question {
    char stream[HISTORY_NAME];
    bool alerts;     /* of alerts, not of figures */
    bool gzip;       /* the client takes it: used by history_worker.c */
    double from, to; /* seconds since 1970, from <= to; from 0: the oldest that is kept */
    double now;
    int64_t step;                       /* seconds; 0: the finest that gives at most HISTORY_POINTS points */
    bool hidden[HISTORY_FIGURE_COUNT];  /* figures that the answer leaves out */
    struct history_selection selection; /* of alerts */
};

struct history_answer {
    int status;            /* of HTTP: 200 with `body`, else a problem */
    const char *code;      /* of the problem */
    char detail[200];      /* its text */
    struct svi_bytes body; /* JSON; the caller clears it */
    void *packed;          /* the body as gzip, of history_worker.c; NULL: not made */
    size_t packed_size;
};

/* Writes the answer. Returns SQLITE_OK; with an error nothing is written. */
int http_history_answer(struct history_store *h, const struct history_question *q, struct history_answer *a);

#endif
