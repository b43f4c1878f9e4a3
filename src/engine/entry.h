/* entry.h: the entry of a stream, which messages pass before any engine: which messages of which source were
 * taken, and the receipt of each. A stream has one entry, however many engines it has.
 *
 * A stream takes a message in three steps: svi_entry_begin checks its number against the table of sources,
 * its elements go to their engines, svi_entry_end uses the number up. */
#ifndef SVI_ENTRY_H
#define SVI_ENTRY_H

#include "engine/sources.h"
#include "svmstream/error.h"
#include "wire/envelope.h"
#include "wire/reply_scores.h"

/* Result of one message, for the router's reply. */
struct svi_receipt {
    int64_t seq;                /* engine number (from 0) of the last sample accepted so far, -1 = none */
    int accepted, refused;      /* elements of the message; commands count too */
    int duplicates;             /* elements below `next` of their source: not applied again */
    svs_error error;            /* of the last refused element */
    char src[SVS_NAME_MAX + 1]; /* "" = the message names no source */
    int64_t first;              /* number of its first element, -1 = none */
    int64_t jumped_from;        /* after a loss: the number that was due and is skipped; -1 = no jump */
    int64_t n;                  /* last number taken of this source, -1 = none */
    struct svi_reply_scores *scores; /* of its elements; NULL: the message did not ask for them */
};

struct svi_entry {
    svi_sources *sources;
    bool gaps_allowed; /* a source may skip numbers once after each loss; those samples are lost */
    uint64_t losses;   /* of the journal so far */
    uint64_t fsync_generation, fsync_generation_durable; /* the present one, the last one on disk */
};

/* A message that is being taken. */
struct svi_arrival {
    double now;   /* arrival clock */
    double idle;  /* the setting sources.idle, seconds */
    bool sourced; /* `src` and `n` are checked */
    /* Filled in by svi_entry_begin: */
    struct svi_source *source; /* NULL: the message has no checked number */
    int64_t count;             /* elements; 0 for hello and bye */
    int64_t skip;              /* leading elements that were taken before */
    const uint8_t *at;         /* cursor of the message: at_size bytes (0: none) in its bytes */
    size_t at_size;
    bool at_text;
    bool last_left; /* a bye that removed the last source */
};

/* SVS_NO_MEMORY, SVS_INVALID. */
svs_code svi_entry_init(struct svi_entry *n, int64_t max_sources, svs_error *err);
void svi_entry_clear(struct svi_entry *n);

/* Fills in *a, and *r as far as it is known yet. With a->sourced: SVS_GAP, SVS_SOURCE_FORGOTTEN, SVS_LIMIT,
 * SVS_BAD_CURSOR and SVS_NO_MEMORY leave the table as it was; bye removes its source, and hello with `n`
 * restores an unknown one. Also SVS_MISSING_SOURCE, and the code of a malformed envelope. */
svs_code svi_entry_begin(struct svi_entry *n, const struct svi_envelope *env, struct svi_arrival *a,
                         struct svi_receipt *r, svs_error *err);

/* Called after the elements. `code`: of the message as a whole; its number is used up only if it is SVS_OK.
 */
void svi_entry_end(struct svi_entry *n, const struct svi_arrival *a, svs_code code, struct svi_receipt *r);

/* next: the first number of a source that was not taken yet; 0 for an unknown source. durable: the last
 * number that is on disk; -1 = none. */
int64_t svi_entry_next(const struct svi_entry *n, const char *src);
/* Its record, for the cursor; NULL: the source is unknown. */
const struct svi_source *svi_entry_source(const struct svi_entry *n, const char *src);
int64_t svi_entry_durable(const struct svi_entry *n, const char *src);

/* The owner of a source (sources.h), for the quota of connections and keys; results do not depend on it.
 * NULL: the source is unknown. Valid until the next message is applied. */
uint64_t *svi_entry_owner(struct svi_entry *n, const char *src, size_t length);

/* With true: a part of the journal is lost, so each source may once continue at any number. Each such call is
 * one more loss. */
void svi_entry_allow_gaps(struct svi_entry *n, bool allowed);

/* Numbers taken from now on belong to this fsync_generation; all generations up to `durable` are on disk. */
void svi_entry_set_fsync_generation(struct svi_entry *n, uint64_t fsync_generation, uint64_t durable);

#endif
