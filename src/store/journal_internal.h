/* journal_internal.h: the bytes of a journal's segments (format: journal.h), shared by its writer, its reader
 * and their tests. */
#ifndef SVI_JOURNAL_INTERNAL_H
#define SVI_JOURNAL_INTERNAL_H

#include "store/checksum.h"
#include "store/journal.h"

#define SVI_HEADER_MAX 512 /* bytes of a segment's header */

struct svi_segment_header {
    char program[16], stream[65];
    uint64_t epoch, first, chain;
    uint64_t secret; /* of its records' checks; the first copy if the header is bad */
    uint64_t again;  /* out: the second copy; in a bad header one of the two may be right */
    uint64_t check;  /* out: the check that the bytes require, also of a bad header */
    uint64_t layout; /* out */
    size_t size;     /* out: bytes; 0: not known (a bad header) */
};

/* Appends the header and sets its check and size. SVS_NO_MEMORY: nothing is appended. */
svs_code svi_segment_header_write(struct svi_segment_header *h, struct svi_bytes *out);
/* Reads the header at the start of a segment, of which `bytes` should hold SVI_HEADER_MAX. Fields of a bad
 * header are filled as far as they are readable. */
enum svi_header_state svi_segment_header_read(struct svi_segment_header *h, const uint8_t *bytes,
                                              size_t size);

/* ---- records: [number, kind, now, durable, payload, check]; every item but the payload has a fixed size
 *
 *   0 array of 6 | 1 number | 10 kind | 11 now | 20 durable | 29 bin 32 | 34 payload | 34 + size check */

#define SVI_RECORD_LEAD 0x96
#define SVI_RECORD_HEAD 34                                 /* bytes before the payload */
#define SVI_RECORD_BARE (SVI_RECORD_HEAD + SVI_CHECK_SIZE) /* of a record without payload */
#define SVI_PAYLOAD_MAX ((size_t)1 << 31)

/* The seed of a record's check. Nobody outside knows the secret, so no bytes that a producer puts into a
 * sample can pass for a record. */
static inline uint64_t svi_record_seed(uint64_t chain, uint64_t secret) {
    return chain ^ secret;
}

/* Writes SVI_RECORD_BARE + size bytes. *chain: in the previous check, out this record's. */
void svi_record_write(uint8_t *to, const struct svi_record *record, uint64_t secret, uint64_t *chain);

/* Do the SVI_RECORD_HEAD bytes have the form of a record? Fills all but its payload; verifies no check. */
bool svi_record_head(const uint8_t *at, struct svi_record *record);

/* The same for a whole record, with its check. *chain: in the previous check, out this record's (unchanged if
 * it is bad). */
bool svi_record_sound(const uint8_t *at, struct svi_record *record, uint64_t secret, uint64_t *chain);

/* ---- for tests: reads one segment from memory, as the last of a journal; `first`: its number. The bytes
 * must outlive the reader. */

svi_journal_reader *svi_journal_reader_memory(const uint8_t *bytes, size_t size, uint64_t first,
                                              const struct svi_journal_reader_options *o, svs_error *err);

#endif
