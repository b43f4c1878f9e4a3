/* reader.h: the journal's reader, and its reading of bytes in memory. Part of the store. */
#ifndef SVI_READER_H
#define SVI_READER_H

#include "store/segment.h"
#include "store/window.h"

enum svi_reader_state { SVI_READER_READING, SVI_READER_ENDED, SVI_READER_FAILED };

struct svi_journal_reader {
    const struct svi_folder *folder; /* NULL: one segment, in memory */
    const uint8_t *memory;
    size_t memory_size;
    struct svi_journal_reader_options options;
    uint64_t *numbers; /* of the segments */
    int count, at;     /* the segment being read, or left; -1 = before the first */
    bool open;
    bool chained;                   /* `here.chain` is what the next segment continues */
    bool passed;                    /* something was passed over since the last record that was returned */
    uint64_t searched;              /* bytes of this segment that searches have looked through and hashed */
    uint64_t proved;                /* so many records were durable, as later ones of this segment say */
    struct svi_position from, here; /* where the next record is expected */
    struct svi_window window;
    enum svi_reader_state state;
    svs_error error;
    struct svi_journal_found found;
};

/* What stands behind a bad record of the segment that is open. */
struct svi_search {
    uint64_t begin;       /* in: where to begin */
    uint64_t number;      /* in: no record there has a lower one */
    uint64_t durable;     /* in: go on until a record says that so many were durable; 0 = the first will do */
    uint64_t after;       /* in: where the bad one ends if its length is right; 0 = not known */
    uint64_t seed;        /* in: what its check must be then: it alone may be wrong */
    bool sound, evidence; /* out: there is a sound record; there is one that says so */
    bool exhausted;       /* out: given up, for there are too many that look like records */
    uint64_t offset, found; /* out: of the first sound one; its number */
    uint64_t chain;         /* out: the check before it */
};
svs_code svi_journal_search(svi_journal_reader *r, struct svi_search *s, svs_error *err);

/* Reads one segment from memory, as the last one of a journal; `first`: its number. */
svi_journal_reader *svi_journal_reader_memory(const uint8_t *bytes, size_t size, uint64_t first,
                                              const struct svi_journal_reader_options *o, svs_error *err);

#endif
