/* envelope.h: one incoming message, parsed once on receipt; access control, write-ahead, router and engine
 * all work on the same parse, so that they cannot disagree about whose message it is.
 *
 * A message is one map (a sample, a command, hello) or one array of maps (a batch), and exactly that.
 * svi_envelope_read checks the form of all of it (complete, nothing after it, nesting at most SVI_DEPTH_MAX,
 * no header that claims more elements than bytes remain) and finds the keys of the first element in the same
 * pass: a malformed message is refused whole, before any of it is applied. svi_envelope_next (decode.h) then
 * decodes the elements one at a time from the positions found here.
 *
 * Nothing is copied: the bytes must outlive the envelope. */
#ifndef SVI_ENVELOPE_H
#define SVI_ENVELOPE_H

#include "svmstream/value.h"
#include "wire/cursor.h"

#define SVI_BATCH_MAX 65536 /* elements: each one that is refused costs an event */

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
    SVI_KEY_COUNT,
    SVI_KEY_UNKNOWN = SVI_KEY_COUNT
};

/* Where the known keys of one element have their values. */
struct svi_element {
    const uint8_t *at, *end;               /* its bytes */
    unsigned seen;                         /* bit of each key that is there */
    const uint8_t *value[SVI_KEY_COUNT];   /* of each of these, the last one if it is there twice */
    const uint8_t *ordered[SVI_KEY_COUNT]; /* values in the order of the message, up to the first fault */
    uint8_t keys[SVI_KEY_COUNT];           /* enum svi_key of each of them */
    uint8_t count;
    bool is_map;
    const uint8_t *bad_key; /* the first key that is no string, or is there twice; NULL = none */
    uint8_t repeated;       /* bad_key is there twice: which one; else SVI_KEY_UNKNOWN */
};

struct svi_envelope {
    const uint8_t *bytes;
    size_t size;
    svs_error form; /* SVS_OK, or why the message as a whole is refused; then nothing below is set, but
                       src for a batch that is too large */

    /* The producer and its sequence number, as the first element gives them. */
    bool has_src, has_n; /* the key is there and not nil */
    bool src_good;       /* a name of 1 to SVS_NAME_MAX bytes of UTF-8 without NUL */
    const char *src;     /* not NUL-terminated; "" where src is no string */
    uint32_t src_length;
    int64_t n;  /* -1: none, or no whole number from 0 */
    bool hello; /* a map whose op is hello */
    bool bye;   /* ... is bye */
    bool batch; /* an array of elements */

    /* The names of what arrays hold: `columns` of the element decoded last, or of one before it; at first
     * that of the first element. NULL: none. */
    const uint8_t *columns;
    struct svi_columns *order; /* the caller's, for arrays with words, whose values go by name; NULL = none */
    bool array;                /* x of the element decoded last is an array or packed numbers */

    int64_t left;           /* elements that svi_envelope_next has not decoded yet */
    const uint8_t *element; /* the element decoded last, for error events */
    size_t element_size;
    const uint8_t *next; /* NULL: the first element is next */
    struct svi_element first;

    const void *shown; /* text that the message was made from, for error events; NULL: its own bytes */
    size_t shown_size;
};

/* Parses a message. Returns e->form.code: SVS_OK, SVS_EMPTY, SVS_NOT_MSGPACK, SVS_TRUNCATED, SVS_TRAILING,
 * SVS_TOO_DEEP, SVS_WRONG_TYPE (neither map nor array), SVS_TOO_LARGE (a batch of more than SVI_BATCH_MAX).
 */
svs_code svi_envelope_read(struct svi_envelope *e, const void *bytes, size_t size);

/* Is it numbered, i.e. are src and n both there? */
static inline bool svi_envelope_numbered(const struct svi_envelope *e) {
    return e->has_src && e->has_n;
}

/* Are src and n usable? SVS_MISSING_SOURCE with the reason; nothing when neither is there (SVS_OK). */
svs_code svi_envelope_check_source(const struct svi_envelope *e, svs_error *err);

/* The keys of the element at `at`: what follows it, or NULL where its form is bad. `depth`: containers that
 * may be nested in it, itself included. */
const uint8_t *svi_element_read(const uint8_t *at, const uint8_t *end, int depth, struct svi_element *el);

/* The value of the element's `columns`; `before` when it has none. */
const uint8_t *svi_element_columns(const struct svi_element *el, const uint8_t *before);

/* The key that the element is of (SVI_KEY_KEY): an integer is its digits; nil, or none, is empty. `out`:
 * SVS_KEY_MAX + 1 bytes. SVS_BAD_KEY. */
svs_code svi_element_key(const struct svi_element *el, char *out, svs_error *err);
svs_code svi_item_key(const struct svi_item *item, char *out, svs_error *err);

/* Is the key there; and is its value this string? */
static inline bool svi_element_has(const struct svi_element *el, enum svi_key key) {
    return el->seen >> key & 1;
}
bool svi_element_is(const struct svi_element *el, enum svi_key key, const char *text);

/* The element as if it had not that key, where that is said in another place. */
void svi_element_leave_out(struct svi_element *el, enum svi_key key);

/* Is the key there, with a value that is not nil? */
bool svi_element_states(const struct svi_element *el, enum svi_key key);

/* Reads the keys of the next element into e->first (e->left > 0), which svi_envelope_next decodes. */
void svi_envelope_peek(struct svi_envelope *e);

/* Passes over the next element instead of decoding it. */
void svi_envelope_pass(struct svi_envelope *e);

/* The name of a key. */
const char *svi_key_name(enum svi_key key);

#endif
