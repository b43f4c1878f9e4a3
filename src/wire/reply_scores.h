/* reply_scores.h: the key `scores` of a reply to samples: a map for each element of the message, in order.
 *
 * A message that asks for them (`reply: score`) is given one of these, and whatever takes its elements
 * appends to it. Zero-initialised is empty; the buffer is reused by the next message. */
#ifndef SVI_REPLY_SCORES_H
#define SVI_REPLY_SCORES_H

#include "base/bytes.h"
#include "wire/event.h"

#define SVI_REPLY_SCORES_MAX (64 * 1024 * 1024) /* bytes of all maps of a reply */

struct svi_pack;

struct svi_reply_scores {
    struct svi_bytes maps; /* msgpack, one after the other */
    int64_t count;         /* maps */
    int64_t scored;        /* samples that were accepted and whose score is here or will follow */
    svs_code failed;       /* SVS_LIMIT, SVS_NO_MEMORY: none, and nothing is appended any more */
};

/* begin: for the next message. clear: frees. */
void svi_reply_scores_begin(struct svi_reply_scores *r);
void svi_reply_scores_clear(struct svi_reply_scores *r);

/* Append the map of one element: the keys of a score event without those of every event; {}; {duplicate:
 * true}; {error, code}. */
void svi_reply_scores_event(struct svi_reply_scores *r, const struct svi_event *score);
void svi_reply_scores_nothing(struct svi_reply_scores *r);
void svi_reply_scores_duplicate(struct svi_reply_scores *r);
void svi_reply_scores_refusal(struct svi_reply_scores *r, const svs_error *err);

/* Appends all that another one holds. */
void svi_reply_scores_join(struct svi_reply_scores *r, const struct svi_reply_scores *other);

/* Puts the pair `scores` into an open map or, if none exists, `no_scores` with the reason. */
void svi_reply_scores_put(struct svi_pack *p, const struct svi_reply_scores *r);

/* Puts the pair `no_scores`. */
void svi_put_no_scores(struct svi_pack *p, const svs_error *why);

#endif
