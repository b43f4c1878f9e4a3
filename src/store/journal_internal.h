/* segment.h: the bytes of a journal's segments, shared by its writer and its reader (journal.h tells the
 * format). Part of the store. */
#ifndef SVI_SEGMENT_H
#define SVI_SEGMENT_H

#include "store/journal.h"
#include "store/sealed.h"

#define SVI_JOURNAL_VERSION 2
#define SVI_JOURNAL         "journal"
#define SVI_HEADER_MAX      512 /* bytes of a segment's header */

struct svi_segment_header {
    char program[16], stream[65];
    uint64_t epoch, first, chain;
    uint64_t secret; /* of its records' checks */
    uint64_t again;  /* out, of a bad header: its second copy; one of the two may be right */
    uint64_t check;  /* out; of a bad header: what it must be, */
    size_t size;     /* out: bytes; and its size, 0 = not known */
};

/* Appends it. SVS_NO_MEMORY: nothing was. */
svs_code svi_segment_header_write(struct svi_segment_header *h, struct svi_bytes *out);
enum svi_head_state svi_segment_header_read(struct svi_segment_header *h, const uint8_t *bytes, size_t size);

/* ---- records: [number, kind, now, durable, payload, check], every item of a fixed size but the payload
 *
 *   0 array of 6 | 1 number | 10 kind | 11 now | 20 durable | 29 bin 32 | 34 payload | 34 + size check */

#define SVI_RECORD_LEAD 0x96
#define SVI_RECORD_HEAD 34                                 /* bytes before the payload */
#define SVI_RECORD_BARE (SVI_RECORD_HEAD + SVI_CHECK_SIZE) /* of a record without payload */
#define SVI_PAYLOAD_MAX ((size_t)1 << 31)

/* Of a record's check: who does not know the segment's secret cannot make a record that passes for one, such
 * as a producer in a sample. */
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

#endif
