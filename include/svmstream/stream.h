/* stream.h: a whole stream of the program inside another program: rows in; predictions, evidence of novelty
 * and alerts out.
 *
 * It is what `svmstream run` and `svmstream eval` keep for a stream, without sockets and files. It holds the
 * columns of raw rows and their features, the learner (setting `method`), probabilities, decisions by price,
 * intervals, quality figures and alarm. It also holds novelty with p-values, detectors, rules and the budget
 * of alerts. For the same rows, settings and times each result equals that of the program, bit for bit.
 *
 *     svs_stream *s = svs_auto_new(NULL, 0, &err);
 *     svs_row row = {.x = x, .d = 8, .y = svs_str("rain")};
 *     svs_outcome out;
 *     if (svs_stream_step(s, &row, &out, &err) == SVS_OK)
 *         use(out.prediction.y);
 *     svs_stream_free(&s);
 *
 * auto.h and monitor.h make streams with settings that suit a purpose. Use one stream from one thread at a
 * time, and different streams from any threads. Three properties belong to the process:
 *
 *  - The number of threads of OpenBLAS. svs_stream_new sets it to 1, unless the setting `threads` is higher.
 *
 *  - The kernels that OpenBLAS selects for the processor, on which its sums depend. The program asks for its
 *    AVX-512 kernels.
 *
 *  - TZ. The setting `zone` sets it if it is a name such as Europe/Berlin. Use streams with such zones from
 * one thread.
 *
 * A stream with method auto, or with `threads` other than 1, has threads. After fork() the child must not use
 * or free a stream of its parent: save it before and load it there.
 *
 * With the setting keys.memory, keys beyond it lie in a file without a name in TMPDIR or /tmp.
 *
 * Structures here are made by the caller or come in arrays: their size belongs to the name of the shared
 * library (soname), and a program is compiled with the headers of its library.
 *
 * Sources: src/library; the stream itself: src/fleet/stream.h, src/engine/engine.h. */
#ifndef SVMSTREAM_STREAM_H
#define SVMSTREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/model.h"
#include "svmstream/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct svs_stream svs_stream;

/* One setting, with its name and value as `svmstream help settings` lists them: {"window", "2000"}. Taken are
 * those of `svmstream eval` except the ones about files. Both are NUL-terminated and copied. */
typedef struct svs_setting {
    const char *key, *value;
} svs_setting;

/* A raw row. Members that are 0 are absent. Views: nothing needs to outlive the call. Strings are
 * NUL-terminated UTF-8. */
typedef struct svs_row {
    const double *x; /* d values; NAN is a missing value, infinite ones are refused */
    int d;           /* columns of this row, at most the setting max.features */
    const char *const
        *names; /* d names of columns, 1 to SVS_NAME_MAX bytes; NULL: the columns have no names */
    const char *const *words; /* d: a word instead of the number, NULL where x counts; or NULL: no words.
                                 Words need names */
    svs_value id;             /* SVS_NONE, SVS_INT or SVS_STR; with an id a row can get its label later */
    svs_value y;              /* SVS_NONE: no label. Integral numbers count as SVS_INT */
    double weight;            /* > 0; 0 = 1 */
    double ts;                /* seconds since 1970, if has_ts */
    bool has_ts;
    bool all; /* with names: they are all columns, and one that the stream has and the row does not name is
                 missing. Otherwise such a column is 0 */
    const char
        *key; /* with the setting `key`: the stream key, at most SVS_KEY_MAX bytes; NULL or "": the root */
} svs_row;

/* The prediction for a row before it was learned. Pointers are valid until the next call on the stream. */
typedef struct svs_prediction {
    svs_value y;   /* predicted class (the cheapest by decision.cost) or value; SVS_NONE: not known yet */
    int predicted; /* index of the class among those of its model (svs_stream_class; with keys
                      svs_stream_model of the row's key); -1: none */
    int rows;      /* of scores: 1 for two classes and for regression, else the number of classes */
    const double *scores; /* `rows` values; NULL: none */
    int class_count;      /* classes of `proba`, or of the scores where proba is NULL */
    const double *proba;  /* class_count probabilities; NULL: not known yet */
    bool ranged;          /* the interval of a regression (setting interval) is known */
    double low, high;
    uint64_t version; /* of the model */
} svs_prediction;

/* Novelty of a row. */
typedef struct svs_evidence {
    bool known;      /* novelty and p are known */
    double novelty;  /* 0 to 1, higher = more novel */
    double p;        /* conformal p-value: probability of a row at least as novel; NAN: not known */
    double surprise; /* -log10 of the smallest p of all detectors; NAN: not known */
    double anomaly;  /* of the row and its sensors together, 0 to 1; NAN: not known */
    double alarm;    /* closeness to an alert; at 1 one may open; NAN: not known */
} svs_evidence;

/* One alert event. Strings are NUL-terminated and NULL where absent. */
typedef struct svs_alert {
    int64_t number;       /* of the event, from 1 without gaps: a verdict takes one, too */
    int64_t alert;        /* of the alert; its open, updates and close share it */
    const char *kind;     /* novelty, quality or rule */
    const char *state;    /* open, update or close */
    const char *severity; /* notice, warning or serious */
    const char *rule;     /* of kind rule: its name */
    const char *detector; /* of kind novelty: the detector that leads */
    double ts;            /* time of the event, seconds since 1970 */
    double since;         /* time at which it began; NAN: not known */
    double p;             /* of kind novelty: p-value of the row; NAN: not known */
    const char *text;     /* one line for people */
    const char *key;      /* stream key */
    const char *json;     /* the whole event as JSON */
    const void *packed;   /* the whole event as msgpack, as the program publishes it */
    size_t packed_size;   /* bytes */
} svs_alert;

/* The result of one row. */
typedef struct svs_outcome {
    svs_prediction prediction;
    svs_evidence evidence;
    const svs_alert
        *alerts; /* opened, updated or closed by this row; valid until the next call on the stream */
    int alert_count;
    bool learned; /* the row was accepted with a label, so the model has it */
    bool dropped; /* it was left out for a missing value (setting missing drop): nothing else is set */
} svs_outcome;

/* Creates a stream with the settings of `svmstream eval`: method auto, novelty on, of rows without times one
 * a minute for the budget of alerts. `settings` (count of them, may be NULL with 0) override these; with the
 * setting `key` (any text) each stream key has its own model. NULL on failure: SVS_SETTING (which and why),
 * SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_stream *svs_stream_new(const svs_setting *settings, int count, svs_error *err);

/* Frees a stream and sets *s to NULL; *s may be NULL. */
SVS_API void svs_stream_free(svs_stream **s);

/* ---- one row */

/* Predicts the row, assesses its novelty and then learns it, if it has a label. *out (may be NULL)
 * is filled in. The arrival time of the row is that of the machine's clock. If alert.interval was
 * set, a row without ts counts as that many seconds after the one before it. A refusal is counted
 * (figure `refused`), and with keys it is a use of its key. It changes nothing else.
 *
 * Codes: SVS_MISSING_X, SVS_NOT_FINITE, SVS_WRONG_DIMENSION, SVS_WRONG_KIND (rows with names in a
 * stream without, or the reverse), SVS_WRONG_TYPE (a word in a column of numbers), SVS_BAD_COLUMN,
 * SVS_DUPLICATE_KEY, SVS_MISSING_VALUE (the setting missing refuses), SVS_BAD_LABEL,
 * SVS_BAD_WEIGHT, SVS_BAD_ID, SVS_BAD_KEY, SVS_TS_AHEAD, SVS_OUTLIER, SVS_TOO_LARGE, SVS_LIMIT,
 * SVS_SETTING (the calendar needs a ts), SVS_INVALID (a member of the row is out of its range),
 * SVS_NO_MEMORY. */
SVS_API svs_code svs_stream_step(svs_stream *s, const svs_row *row, svs_outcome *out, svs_error *err);

/* Predicts a row with the current model and changes nothing. *out may be NULL; label, id and weight are
 * ignored. The evidence is novelty and p. A column that the stream does not have counts for nothing. The
 * scores equal those of the program's request `score`; those of svs_stream_step differ from them by rounding.
 * Codes of svs_stream_step; SVS_UNKNOWN_KEY: there is no such key, and no prior of others (setting
 * key.prior). */
SVS_API svs_code svs_stream_score(svs_stream *s, const svs_row *row, svs_outcome *out, svs_error *err);

/* Gives the newest waiting row of that id its label, and learns it. key: of the row, NULL without keys. ts:
 * seconds since 1970, NAN = now. SVS_UNKNOWN_ID, SVS_BAD_ID, SVS_BAD_LABEL, SVS_LIMIT, SVS_TS_AHEAD,
 * SVS_BAD_KEY, SVS_MISSING_KEY, SVS_UNKNOWN_KEY, SVS_NO_MEMORY: nothing has changed, except that the time of
 * the stream is not before ts from then on. */
SVS_API svs_code svs_stream_label(svs_stream *s, svs_value id, svs_value y, const char *key, double ts,
                                  svs_error *err);

/* Removes all rows of that id, held or waiting; the model is then that of the others. *count (may be NULL):
 * rows removed. Codes of svs_stream_label. */
SVS_API svs_code svs_stream_forget(svs_stream *s, svs_value id, const char *key, double ts, int *count,
                                   svs_error *err);

/* Forgets all rows, the model, novelty and quality; columns, classes and settings stay. With keys: of the
 * root. Open alerts end. */
SVS_API void svs_stream_reset(svs_stream *s);

/* ---- many rows at once, without copies */

/* A block of dense rows; with keys they are rows of the root. Members that are NULL are absent. Views:
 * nothing needs to outlive the call. */
typedef struct svs_block {
    int64_t n; /* rows */
    int d;     /* columns */
    const double *x;
    const float *x32;         /* x or x32: row i begins at i * stride; NAN is a missing value */
    int64_t stride;           /* values from row to row, at least d */
    const char *const *names; /* d names, or NULL: as in svs_row */
    bool all;                 /* as in svs_row */
    const char *const *words; /* n x d without gaps: a word instead of the number, NULL where x counts */
    const svs_value *labels;  /* label_count classes that y_index refers to */
    int label_count;
    const int32_t *y_index; /* n indexes into labels, -1 = no label */
    const double *y;        /* n labels as numbers instead, NAN = no label: targets, or integral classes */
    const double *weight;   /* n, >= 0; a row of weight 0 is passed over */
    const double *ts;       /* n, seconds since 1970, NAN = none */
    const svs_value *ids;   /* n */
    int64_t first, count;   /* only rows first to first + count - 1 are learned or scored; count 0 = to the
                               last. A caller with other work between the parts of a long block begins with
                               first 0, which checks all n, and continues at *row with the same block */
} svs_block;

/* Where the results of a block go. Members that are NULL are not wanted. A row without the result has -1 or
 * NAN there. */
typedef struct svs_results {
    int32_t *predicted;            /* n class indexes, see svs_stream_class */
    double *value;                 /* n predictions of a regression */
    double *scores;                /* n x rows */
    double *proba;                 /* n x classes */
    double *low, *high;            /* n, interval of a regression */
    double *novelty, *p, *anomaly; /* n */
    int rows, classes;             /* widths of scores and proba: what a row has beyond is left out */
} svs_results;

/* Learns the rows in order, as svs_stream_step would; the result does not depend on how rows are divided
 * into blocks. `out` (may be NULL) receives the predictions before each row was learned. All rows are checked
 * first: after a refusal nothing was learned, and *row (may be NULL) is the number of the row, from 0. Only
 * SVS_NO_MEMORY and refusals that depend on earlier rows of the same block (SVS_OUTLIER; SVS_LIMIT of classes
 * given in `y`, or of features for novel words) can come later: then the rows before *row were learned. A
 * number beyond 1e100 is refused in a block, though svs_stream_step may clip it as an outlier. On success
 * *row is the number after the last row learned. Alerts: svs_stream_alerts. Codes of svs_stream_step. */
SVS_API svs_code svs_stream_learn_block(svs_stream *s, const svs_block *b, svs_results *out, int64_t *row,
                                        svs_error *err);

/* Predicts the rows with the current model and changes nothing. Codes of svs_stream_score. */
SVS_API svs_code svs_stream_score_block(svs_stream *s, const svs_block *b, svs_results *out, int64_t *row,
                                        svs_error *err);

/* ---- alerts */

/* The alert events since the last call of this function, oldest first, including those of the outcomes of
 * svs_stream_step; *count of them. At most alert.keep are kept: after a longer time the numbers show a gap.
 * Valid until the next call on the stream. NULL with *count 0: none; with *count -1: memory is out, call
 * again. */
SVS_API const svs_alert *svs_stream_alerts(svs_stream *s, int *count);

/* A verdict on a novelty alert, by svs_alert.alert: confirmed, or rejected because nothing was wrong, in
 * which case its rows are learned as normal. key: of the alert, NULL without. by: name of the person, NULL:
 * not stated. SVS_UNAVAILABLE (there is no such alert, or none that takes a verdict: the text says why),
 * SVS_WRONG_TYPE (the name), SVS_BAD_KEY, SVS_UNKNOWN_KEY, SVS_NO_MEMORY. */
SVS_API svs_code svs_stream_verdict(svs_stream *s, int64_t alert, const char *key, bool confirmed,
                                    const char *by, svs_error *err);

/* ---- figures and the state */

/* A figure of `svmstream ctl status`, under the same name. */
typedef struct svs_figure {
    const char *name;
    double value;     /* NAN: not known, or a text */
    const char *text; /* NULL: a number */
    bool integral;    /* it is a count */
} svs_figure;

/* All figures of the stream: counters, quality, health; *count of them. Valid until the next call on the
 * stream. */
SVS_API const svs_figure *svs_stream_figures(svs_stream *s, int *count);

/* The table that `svmstream eval` prints, or with `json` its JSON object. seconds: the duration that it
 * states. NUL-terminated, valid until the next call on the stream. NULL: SVS_NO_MEMORY; SVS_NOT_SUPPORTED (a
 * stream with keys). */
SVS_API const char *svs_stream_report(svs_stream *s, double seconds, bool json, svs_error *err);

/* Rows of scores that a prediction has now (svs_prediction.rows), and the classes in the order of their first
 * appearance. svs_stream_class: SVS_NONE for other indexes; its text is valid until the next call on the
 * stream. */
SVS_API int svs_stream_rows(svs_stream *s);
SVS_API int svs_stream_class_count(svs_stream *s);
SVS_API svs_value svs_stream_class(svs_stream *s, int index);

/* Columns of rows and features of the model so far, and their names; NULL: no such column or feature, or it
 * has no name. Valid until the next call on the stream. */
SVS_API int svs_stream_columns(svs_stream *s);
SVS_API const char *svs_stream_column(svs_stream *s, int column);
SVS_API int svs_stream_features(svs_stream *s);
SVS_API const char *svs_stream_feature(svs_stream *s, int feature);

/* Rows accepted so far, and the version of the model, which counts every change of its weights. */
SVS_API int64_t svs_stream_seen(svs_stream *s);
SVS_API uint64_t svs_stream_version(svs_stream *s);

/* The present linear model, of a stream key or (NULL, "") of the root. Its pointers are valid until the next
 * call on the stream; do not free it. With method auto it is a linear stand-in (svs_model.elsewhere).
 * SVS_UNKNOWN_KEY, SVS_UNAVAILABLE (method none), SVS_NO_MEMORY. */
SVS_API svs_code svs_stream_model(svs_stream *s, const char *key, svs_model *m, svs_error *err);

/* The same as the msgpack of a `model.` event for svs_model_decode, with schema and calibration: *size bytes,
 * valid until the next call on the stream. NULL: codes of svs_stream_model. */
SVS_API const void *svs_stream_model_event(svs_stream *s, const char *key, size_t *size, svs_error *err);

/* The effective value of a setting, as text; NULL: no such setting. Valid until the next call on the
 * stream. */
SVS_API const char *svs_stream_setting(svs_stream *s, const char *key);

/* Changes settings as `svmstream ctl config` does: all of them or none. The model is rebuilt from the rows
 * held where that is needed. SVS_SETTING (unknown, out of range, a contradiction, or fixed since the start),
 * SVS_UNAVAILABLE, SVS_NO_MEMORY. */
SVS_API svs_code svs_stream_configure(svs_stream *s, const svs_setting *settings, int count, svs_error *err);

/* ---- save and load */

/* Saves the whole state: *bytes receives *size bytes, which svs_bytes_free frees. A loaded stream continues
 * as this one does, bit for bit on the same kind of processor, and saving it gives the same bytes. In both
 * the solver of refits begins its next problem from nothing: the solution is within refit.tol of the one
 * without saving. SVS_NO_MEMORY, SVS_TOO_LARGE. */
SVS_API svs_code svs_stream_save(svs_stream *s, void **bytes, size_t *size, svs_error *err);

/* Loads such a state. NULL on failure: SVS_DAMAGED (where), SVS_UNAVAILABLE (written with another layout of
 * the state; the text names the version), SVS_SETTING, SVS_NO_MEMORY. Owner: the caller. */
SVS_API svs_stream *svs_stream_load(const void *bytes, size_t size, svs_error *err);

/* Writes the fingerprint of the state, 32 hexadecimal digits and a NUL, to `hash` (33 bytes). Equal states
 * have equal fingerprints. SVS_NO_MEMORY. */
SVS_API svs_code svs_stream_hash(svs_stream *s, char *hash, svs_error *err);

/* Frees *bytes and sets it to NULL. */
SVS_API void svs_bytes_free(void **bytes);

#ifdef __cplusplus
}
#endif
#endif
