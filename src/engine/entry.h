/* entry.h: what comes into a stream before an engine sees it: which messages of which source were taken, and
 * what became of one. There is one entry to a stream, however many engines it has.
 *
 * A stream takes a message in three steps: svi_entry_begin holds its number against the table of sources, its
 * elements go to their engines, svi_entry_end uses the number up. */
#ifndef SVI_ENTRY_H
#define SVI_ENTRY_H

#include "engine/sources.h"
#include "svmstream/error.h"
#include "wire/envelope.h"

/* What became of one message (for the router's reply). */
struct svi_receipt {
    int64_t seq;                /* engine number (from 0) of the last sample accepted so far, -1 = none */
    int accepted, refused;      /* elements of it; commands count too */
    int duplicates;             /* elements below `next` of their source: not applied again */
    svs_error error;            /* of the last refused element */
    char src[SVS_NAME_MAX + 1]; /* "" = it names no source */
    int64_t first;              /* its own number, -1 = none */
    int64_t jumped_from;        /* after a loss: the number that was due and is skipped; -1 = none is */
    int64_t n;                  /* last number taken of that source, -1 = none */
};

struct svi_entry {
    svi_sources *sources;
    bool gaps_allowed; /* a source may skip numbers once after each loss: they are lost */
    uint64_t losses;
    uint64_t fsync_generation, fsync_generation_durable; /* the present one, the last one that is on disk */
};

/* A message on its way in. */
struct svi_arrival {
    double now;   /* arrival clock */
    double idle;  /* the setting sources.idle */
    bool sourced; /* `src` and `n` count */
    /* Filled in by svi_entry_begin: */
    struct svi_source *source; /* NULL: none whose number counts */
    int64_t count;             /* elements; 0 of a hello, or of a bye */
    int64_t skip;              /* the first ones, which were taken before */
    bool last_left;            /* a bye, after which there is no source any more */
};

/* SVS_NO_MEMORY, SVS_INVALID. */
svs_code svi_entry_init(struct svi_entry *n, int64_t max_sources, svs_error *err);
void svi_entry_clear(struct svi_entry *n);

/* Fills in *a, and *r as far as it is known. With `sourced`, SVS_GAP and SVS_SOURCE_FORGOTTEN leave all as it
 * was; bye takes its source out of the table, and hello with `n` puts one that is not known back into it. */
svs_code svi_entry_begin(struct svi_entry *n, const struct svi_envelope *env, struct svi_arrival *a,
                         struct svi_receipt *r, svs_error *err);

/* After its elements; code: of the message as a whole. */
void svi_entry_end(struct svi_entry *n, const struct svi_arrival *a, svs_code code, struct svi_receipt *r);

/* The first number of a source that was not taken yet; 0 for one that is not known (any more). The last one
 * that is on disk; -1 = none. */
int64_t svi_entry_next(const struct svi_entry *n, const char *src);
int64_t svi_entry_durable(const struct svi_entry *n, const char *src);

/* Whose place a source takes (sources.h). It is no part of what is computed: only what keeps quotas asks for
 * it. NULL: the source is not known. Valid until the next message is applied. */
uint64_t *svi_entry_owner(struct svi_entry *n, const char *src, size_t length);

/* Part of what was sent before is lost: from here on each source goes on, once, at whatever number it gives.
 * Each call with true means one loss more. */
void svi_entry_allow_gaps(struct svi_entry *n, bool allowed);

/* What is taken from now on is of this fsync_generation; all up to the fsync_generation `durable` is on disk.
 */
void svi_entry_set_fsync_generation(struct svi_entry *n, uint64_t fsync_generation, uint64_t durable);

#endif
