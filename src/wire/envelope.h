/* envelope.h: one incoming message, parsed once on receipt. Access control, write-ahead log, router and
 * engine work on the same parse, so they cannot disagree about the sender of a message.
 *
 * A message is exactly one map (a sample, a command, hello) or one array of maps (a batch). Its
 * whole form is checked by svi_envelope_read, which finds the keys of the first element in the same
 * pass. The message must be complete, with nothing after it, and nested at most SVI_DEPTH_MAX deep.
 * No header may claim more elements than bytes remain. A malformed message is refused as a whole,
 * before any of it is applied. Then svi_envelope_next (decode.h) decodes the elements one at a time
 * from the positions found here.
 *
 * The first element of a batch may be {op: message}. It holds what concerns the whole message
 * (reply, src, n, at, columns) and is no element of the batch. svi_envelope_read consumes it.
 *
 * Nothing is copied: the bytes must outlive the envelope. */
#ifndef SVI_ENVELOPE_H
#define SVI_ENVELOPE_H

#include "svmstream/value.h"
#include "wire/cursor.h"

#define SVI_BATCH_MAX 65536 /* elements; bounds the error events that one message can cause */

enum svi_key {
    SVI_KEY_X = 0,
    SVI_KEY_Y,
    SVI_KEY_ID,
    SVI_KEY_TS,
    SVI_KEY_W,
    SVI_KEY_STREAM,
    SVI_KEY_OP,
    SVI_KEY_SRC,
    SVI_KEY_N,
    SVI_KEY_COLUMNS,
    SVI_KEY_MISSING,
    SVI_KEY_KEY,
    SVI_KEY_REPLY,
    SVI_KEY_AT,
    SVI_KEY_COUNT,
    SVI_KEY_UNKNOWN = SVI_KEY_COUNT
};

/* The places of the values of one element's known keys. */
struct svi_element {
    const uint8_t *at, *end;               /* its bytes */
    unsigned seen;                         /* bit k: key k is present */
    const uint8_t *value[SVI_KEY_COUNT];   /* of each present key; of a duplicate key the last value */
    const uint8_t *ordered[SVI_KEY_COUNT]; /* [count] values in the order of the message, up to a bad key */
    uint8_t keys[SVI_KEY_COUNT];           /* [count] enum svi_key of each of them */
    uint8_t count;
    bool is_map;
    const uint8_t *bad_key; /* the first key that is not a string or is a duplicate; NULL: none */
    uint8_t repeated;       /* enum svi_key of a duplicate bad_key; else SVI_KEY_UNKNOWN */
};

/* What the producer wants in the reply (key `reply`). */
enum svi_reply_kind {
    SVI_REPLY_PLAIN = 0, /* the acknowledgement */
    SVI_REPLY_SCORE,     /* and the score of each element */
    SVI_REPLY_UNKNOWN,   /* another word or type, at `asked` */
    SVI_REPLY_WITHHELD   /* set by the intake: the scores would wait for a sender that does not read */
};

struct svi_envelope {
    const uint8_t *bytes;
    size_t size;
    svs_error form; /* SVS_OK, or why the whole message is refused; then nothing below is set, except src of a
                       batch that is too large */

    /* The producer and its sequence number, from the element {op: message} or else the first element. */
    bool has_src, has_n; /* the key is present and not nil */
    bool src_good;       /* src is a name of 1 to SVS_NAME_MAX bytes of UTF-8 without NUL */
    const char *src;     /* not NUL-terminated; "" if src is not a string */
    uint32_t src_length;
    int64_t n;  /* -1: absent, or not a whole number from 0 */
    bool hello; /* the message is one map with op hello */
    bool bye;   /* the message is one map with op bye */
    bool batch; /* the message is an array of elements */
    enum svi_reply_kind reply;
    const uint8_t *asked;  /* value of `reply`; NULL: plain */
    const uint8_t *cursor; /* value of `at`; NULL: absent or nil */

    /* The names of the values of arrays: `columns` of the element decoded last or the nearest one before it
     * that has the key; initially that of the first element. NULL: none. */
    const uint8_t *columns;
    struct svi_columns
        *order; /* the caller's, to read arrays as rows of names; NULL: such arrays are refused */
    bool array; /* x of the element decoded last is an array or packed numbers */

    int64_t left;           /* elements that svi_envelope_next has not decoded yet */
    const uint8_t *element; /* the element decoded last, for error events */
    size_t element_size;
    const uint8_t *next;      /* the next element; NULL: it is `first` already */
    struct svi_element first; /* the keys of the first element, later of the one decoded last */

    const void *shown; /* text that the message was converted from, for error events; NULL: its own bytes */
    size_t shown_size;
};

/* Parses a message. Returns e->form.code: SVS_OK, SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING,
 * SVS_TOO_DEEP, SVS_WRONG_TYPE (neither map nor array), SVS_TOO_LARGE (a batch of more than SVI_BATCH_MAX),
 * SVS_DUPLICATE_KEY (in {op: message}). */
svs_code svi_envelope_read(struct svi_envelope *e, const void *bytes, size_t size);

/* Does the message have both src and n? */
static inline bool svi_envelope_numbered(const struct svi_envelope *e) {
    return e->has_src && e->has_n;
}

/* Are src and n usable, or both absent? SVS_MISSING_SOURCE with the reason. */
svs_code svi_envelope_check_source(const struct svi_envelope *e, svs_error *err);

/* The cursor `at`: *size bytes (0: none) at *bytes, in the message. `text`: it is a string, else bin.
 * SVS_BAD_CURSOR. */
svs_code svi_envelope_cursor(const struct svi_envelope *e, const uint8_t **bytes, size_t *size, bool *text,
                             svs_error *err);

/* Can `reply` be given what it asks for? SVS_WRONG_TYPE, SVS_LIMIT (withheld), with the reason. */
svs_code svi_envelope_check_reply(const struct svi_envelope *e, svs_error *err);

/* Finds the keys of the element at `at` and checks its form. Returns its end, or NULL if the form is bad.
 * `depth`: deepest nesting of containers, the element included. */
const uint8_t *svi_element_read(const uint8_t *at, const uint8_t *end, int depth, struct svi_element *el);

/* The value of the element's `columns`; `before` if the key is absent or nil. */
const uint8_t *svi_element_columns(const struct svi_element *el, const uint8_t *before);

/* The stream key of the element (SVI_KEY_KEY), as text in `out` (SVS_KEY_MAX + 1 bytes): an integer as its
 * digits, nil or an absent key as "". SVS_BAD_KEY. */
svs_code svi_element_key(const struct svi_element *el, char *out, svs_error *err);
svs_code svi_item_key(const struct svi_item *item, char *out, svs_error *err);

/* Is the key present? And is its value this string? */
static inline bool svi_element_has(const struct svi_element *el, enum svi_key key) {
    return el->seen >> key & 1;
}
bool svi_element_is(const struct svi_element *el, enum svi_key key, const char *text);

/* Does the element of a message only name columns? Then it is no sample. It was accepted before. */
bool svi_element_only_names(const struct svi_element *el);

/* Removes a key from the parsed element, because its value is given elsewhere. */
void svi_element_leave_out(struct svi_element *el, enum svi_key key);

/* Is the key present with a value other than nil? */
bool svi_element_states(const struct svi_element *el, enum svi_key key);

/* Reads the keys of the next element into e->first (e->left > 0), which svi_envelope_next decodes. */
void svi_envelope_peek(struct svi_envelope *e);

/* Consumes the next element without decoding it. */
void svi_envelope_pass(struct svi_envelope *e);

/* The name of a key on the wire. */
const char *svi_key_name(enum svi_key key);

#endif
