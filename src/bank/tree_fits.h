/* tree_fits.h: the fits of boosted trees in the background: one at a time, on a worker.
 *
 * A fit reads a snapshot: the rows in the ring, where only later ones are written meanwhile, and a copy of
 * the flags of those that were taken back. Its result waits here until it is taken, however early it was
 * ready; so results depend on the calls alone. Without a thread (none wanted, or none can start) the fit runs
 * in svi_tree_fits_begin. */
#ifndef SVI_TREE_FITS_H
#define SVI_TREE_FITS_H

#include "bank/tree_rows.h"
#include "trees/boost.h"

/* Times that the stream stood still for a fit. Not part of the state. */
struct svi_tree_waits {
    int64_t fits;            /* taken up */
    int64_t count;           /* of these, not ready in time */
    double seconds, longest; /* waited in total, and at most at once */
};

struct svi_tree_fits {
    struct svi_worker *worker; /* NULL: none yet */
    struct svi_boost_options o;
    struct svi_boost_rows r;
    int64_t from;  /* place of its first row */
    uint8_t *live; /* of the rows as the fit began */
    int64_t live_capacity;
    struct svi_boost_scratch scratch;
    int delay;    /* for tests: microseconds that the fit sleeps first */
    bool running; /* the worker has it */
    bool ready;   /* `out` is a result that was not taken yet, if `error` has no code */
    svs_error error;
    struct svi_forest out;
    struct svi_tree_waits waits;
};

void svi_tree_fits_clear(struct svi_tree_fits *f); /* waits for the running fit; frees everything */

/* Begins a fit to the newest `rows` rows of the ring; none runs and none is ready. SVS_NO_MEMORY: it has not
 * begun. */
svs_code svi_tree_fits_begin(struct svi_tree_fits *f, const struct svi_boost_options *o,
                             const struct svi_tree_rows *ring, int64_t rows, bool threads, svs_error *err);

/* Waits for the running fit, if there is one, and counts the wait. */
void svi_tree_fits_settle(struct svi_tree_fits *f);

/* Does the running fit read the place of the ring's next row? */
bool svi_tree_fits_reads_next(const struct svi_tree_fits *f, const struct svi_tree_rows *ring);

/* Takes the result that is awaited into *to, after waiting for it. A failed fit leaves *to alone and returns
 * its code. */
svs_code svi_tree_fits_take(struct svi_tree_fits *f, struct svi_forest *to, svs_error *err);

/* Waits and drops the result. */
void svi_tree_fits_abandon(struct svi_tree_fits *f);

#endif
