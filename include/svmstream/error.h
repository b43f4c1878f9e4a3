/* error.h: the list of all error codes, and the report of a failing call.
 *
 * Every call that can fail returns an `svs_code` (SVS_OK is 0) and, where it takes an
 * `svs_error *`, writes a text for a person there: what, where, what to do. The pointer may be
 * NULL. A failing call changes nothing else. The library never prints and never exits.
 *
 * The lower-case names are part of the wire (the `code` of an `error.` event) and never change. */
#ifndef SVMSTREAM_ERROR_H
#define SVMSTREAM_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SVS_API __attribute__((visibility("default")))
#else
#define SVS_API
#endif

/* X(CONSTANT, wire_name, "what it means, in one sentence") */
#define SVS_CODES(X)                                                                                         \
    X(OK, ok, "no error")                                                                                    \
    /* a message or row that is refused */                                                                   \
    X(EMPTY, empty, "the message has no bytes")                                                              \
    X(NOT_MSGPACK, not_msgpack, "the bytes are not msgpack (or the text not CSV, LIBSVM or JSON)")           \
    X(TRUNCATED, truncated, "the message ends before the object it announces")                               \
    X(TRAILING, trailing, "bytes follow the one object that a message may hold")                             \
    X(TOO_DEEP, too_deep, "arrays and maps are nested deeper than a sample can be")                          \
    X(TOO_LARGE, too_large, "a string, a number or a message exceeds what is accepted")                      \
    X(WRONG_TYPE, wrong_type, "a value has a type that its key does not take")                               \
    X(DUPLICATE_KEY, duplicate_key, "a key or a column occurs twice in one sample")                          \
    X(NOT_FINITE, not_finite, "a number is NaN or infinite")                                                 \
    X(WRONG_DIMENSION, wrong_dimension, "the sample has another number of features than the stream")         \
    X(WRONG_KIND, wrong_kind, "the features come in another form than the stream's first sample")            \
    X(BAD_COLUMN, bad_column, "a feature's column or name is not one that the stream has")                   \
    X(BAD_LABEL, bad_label, "the label `y` does not fit the task")                                           \
    X(BAD_WEIGHT, bad_weight, "the weight `w` is not a positive finite number")                              \
    X(BAD_ID, bad_id, "the `id` is missing, too long or neither an integer nor a string")                    \
    X(LIMIT, limit, "a limit of the settings (features, classes, sources) would be exceeded")                \
    X(UNKNOWN_OP, unknown_op, "the `op` is unknown")                                                         \
    X(UNKNOWN_ID, unknown_id, "no sample with this `id` is held or waits for a label")                       \
    X(MISSING_X, missing_x, "a sample to learn or to score has no `x`")                                      \
    X(MISSING_VALUE, missing_value, "a feature value is missing and the setting `missing` refuses that")     \
    X(WRONG_STREAM, wrong_stream, "the sample names another stream than this process serves")                \
    X(TS_AHEAD, ts_ahead, "the time stamp lies too far ahead of the clock")                                  \
    X(PEER_DISCONNECTED, peer_disconnected, "a peer was disconnected for a message over the size limit")     \
    X(NOT_ALLOWED, not_allowed, "a peer's key is not listed, or lacks the role for its request")             \
    X(GAP, gap, "a sequence number was skipped; send again from `next`")                                     \
    X(MISSING_SOURCE, missing_source, "acknowledged input needs both `src` and `n`")                         \
    X(DISK_FULL, disk_full, "the disk is full: the sample was not applied; send it again later")             \
    X(UNAVAILABLE, unavailable, "the operation is known but not available as this process is set up")        \
    /* calls and files */                                                                                    \
    X(INVALID, invalid, "an argument is outside its range")                                                  \
    X(NO_MEMORY, no_memory, "there is not enough memory")                                                    \
    X(IO, io, "a file or socket could not be opened, read or written")                                       \
    X(DAMAGED, damaged, "a file of the saved state is damaged, or not of this program")                      \
    X(SETTING, setting, "a setting is unknown, out of range or contradicts another")                         \
    X(ONE_CLASS, one_class, "all examples have the same label: a classifier needs two classes")              \
    X(NOT_CONVERGED, not_converged, "a solver ended before its certificate met the tolerance")               \
    X(NUMERIC, numeric, "the numbers leave the range in which the model can be computed")                    \
    X(NOT_SUPPORTED, not_supported, "the operation is known, but this version cannot do it")                 \
    X(WRONG_COLUMNS, wrong_columns, "the names of the columns are not those of the stream")                  \
    X(CLOCK_MOVED, clock_moved, "the clock of the machine was moved; the times held were moved along")       \
    X(SOURCE_FORGOTTEN, source_forgotten,                                                                    \
      "the `src` is unknown or was forgotten, and its `n` is not 0: say hello, then continue from its "      \
      "reply")                                                                                               \
    X(NOT_JSON, not_json, "a message on a socket begins like JSON but is not JSON")                          \
    X(STATE_LOADED, state_loaded, "the stream went back to an older state, or another model serves")         \
    X(CONFIG_CHANGED, config_changed,                                                                        \
      "settings were changed while the stream runs; the model was rebuilt from the samples held, or "        \
      "novelty started again")                                                                               \
    X(BAD_KEY, bad_key,                                                                                      \
      "the `key` is neither an integer nor a string of up to 64 bytes, or the stream has no keys")           \
    X(MISSING_KEY, missing_key, "a label or a removal does not carry the `key` of its sample")               \
    X(UNKNOWN_KEY, unknown_key, "the stream has no such key, or it was removed")                             \
    X(UNKNOWN_COLUMN, unknown_column, "a setting names a column that no sample has had so far")              \
    X(AMBIGUOUS_CLASS, ambiguous_class,                                                                      \
      "a label is an integer in some samples and a string of its digits in others")                          \
    X(OUTLIER, outlier,                                                                                      \
      "a number lies far beyond its column's values and the setting `outlier` refuses that")                 \
    X(BAD_CURSOR, bad_cursor, "the cursor `at` is neither a string nor a bin of up to 64 bytes")             \
    X(NEW_CLASS, new_class, "a label names a class that no sample had among many before it")

typedef enum svs_code {
#define X(constant, name, text) SVS_##constant,
    SVS_CODES(X)
#undef X
        SVS_CODE_COUNT
} svs_code;

#define SVS_ERROR_TEXT 256 /* bytes, the closing NUL included */

/* The report of a failing call. `text` is valid UTF-8 and NUL-terminated; untrusted bytes are escaped. */
typedef struct svs_error {
    svs_code code;
    char text[SVS_ERROR_TEXT];
} svs_error;

/* The wire name of a code: "wrong_type" for SVS_WRONG_TYPE; "invalid" for a number that is not a code.
 * Static. */
SVS_API const char *svs_code_name(svs_code code);

/* The sentence of a code. Static. */
SVS_API const char *svs_code_text(svs_code code);

#ifdef __cplusplus
}
#endif
#endif
