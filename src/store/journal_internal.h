/* journal_internal.h: the bytes of a journal's segments (journal.h describes the format), shared by its
 * writer, its reader and their tests. */
#ifndef SVI_JOURNAL_INTERNAL_H
#define SVI_JOURNAL_INTERNAL_H

#include "store/checksum.h"
#include "store/journal.h"

#define SVI_HEADER_MAX 512 /* bytes of a segment's header */

struct svi_segment_header {
    char program[16], stream[65];
    uint64_t epoch, first, chain;
    uint64_t secret; /* of its records' checks */
    uint64_t again;  /* out, of a bad header: its second copy; one of the two may be right */
    uint64_t check;  /* out; of a bad header: what it must be */
    uint64_t layout; /* out */
    size_t size;     /* out: bytes; of a bad header 0 = not known */
};

/* Appends it. SVS_NO_MEMORY: nothing was. */
svs_code svi_segment_header_write(struct svi_segment_header *h, struct svi_bytes *out);
enum svi_header_state svi_segment_header_read(struct svi_segment_header *h, const uint8_t *bytes,
                                              size_t size);

/* ---- records: [number, kind, now, durable, payload, check], every item of a fixed size but the payload
 *
 *   0 array of 6 | 1 number | 10 kind | 11 now | 20 durable | 29 bin 32 | 34 payload | 34 + size check */

#define SVI_RECORD_LEAD 0x96
#define SVI_RECORD_HEAD 34                                 /* bytes before the payload */
#define SVI_RECORD_BARE (SVI_RECORD_HEAD + SVI_CHECK_SIZE) /* of a record without payload */
#define SVI_PAYLOAD_MAX ((size_t)1 << 31)

/* Of a record's check: without the segment's secret nothing passes for a record that the journal has not
 * written, whatever a producer puts into a sample. */
static inline uint64_t svi_record_seed(uint64_t chain, uint64_t secret) {
    return chain ^ secret;
}

/* Writes SVI_RECORD_BARE + size bytes; *chain goes from the check before to this one's. */
void svi_record_write(uint8_t *to, const struct svi_record *record, uint64_t secret, uint64_t *chain);

/* The SVI_RECORD_HEAD bytes have the form of a record's: fills all but its payload. Nothing is checked yet.
 */
bool svi_record_head(const uint8_t *at, struct svi_record *record);

/* The same with the check: all of its bytes are there. *chain goes from the check before to this one's. */
bool svi_record_sound(const uint8_t *at, struct svi_record *record, uint64_t secret, uint64_t *chain);

/* ---- for tests: reads one segment from memory, as the last one of a journal; `first`: its number */

svi_journal_reader *svi_journal_reader_memory(const uint8_t *bytes, size_t size, uint64_t first,
                                              const struct svi_journal_reader_options *o, svs_error *err);

#endif
