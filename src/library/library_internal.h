/* library_internal.h: the stream of the library: svi_stream, and what turns rows of a caller into messages
 * and events into results. */
#ifndef SVI_LIBRARY_INTERNAL_H
#define SVI_LIBRARY_INTERNAL_H

#include "base/arrival_clock.h"
#include "base/bytes.h"
#include "fleet/stream.h"
#include "svmstream/stream.h"

/* The columns that rows name. */
struct svi_library_columns {
    struct svi_cell *first; /* of the first list of names: they stay as they are, so that the schema looks
                               them up once; owned, with their names in `text` */
    struct svi_cell *other; /* of any other list, with the names of the caller; owned */
    char *text;
    int first_count, other_capacity;
    struct svi_cell *now; /* of the list at hand */
    int count;
    bool listed; /* it is the first one */
};

/* Results of the row at hand, and of the rows of a block. */
struct svi_library_results {
    bool scored;            /* a row was accepted */
    bool wanted;            /* the prediction of the row is to be copied */
    svs_prediction at_hand; /* points into `values` */
    svs_evidence evidence;
    double *values;           /* scores and probabilities, `capacity` each; owned */
    char label[SVS_NAME_MAX]; /* of the predicted class: its model may be freed within the call */
    int capacity;
    svs_results *block; /* NULL: a single row */
};

/* Alerts decoded from their bytes. */
struct svi_library_alerts {
    svs_alert *of; /* owned */
    int count, capacity;
    struct svi_bytes text; /* strings and bytes of all of them, one after another */
};

struct svi_library_given {
    char **of; /* key and value in turn, each owned */
    int count; /* of pairs */
};

struct svs_stream {
    svi_stream *stream;
    const svi_kept_alerts *kept;
    struct svi_library_given given; /* settings, for a copy of the stream */
    struct svi_arrival_clock clock;
    double interval; /* seconds from row to row without times; 0: by the clock */
    double latest;   /* time of the last row, with `interval` */
    int64_t taken;   /* number of the last alert event that svs_stream_alerts has returned */
    struct svi_library_columns columns;
    struct svi_library_results results;
    struct svi_scoring scoring;
    struct svi_library_alerts of_row, of_all;
    struct svi_bytes event; /* an alert event at hand */
    struct svi_bytes text;  /* of the last report, setting or model event */
    double *wide;           /* a row of float32 as doubles; owned */
    int wide_capacity;
    svs_figure *figures; /* owned */
    int figure_capacity;
};

/* ---- rows */

/* Selects the list of names for rows to come; NULL: no names. The names must outlive these rows. SVS_INVALID,
 * SVS_NO_MEMORY. */
svs_code svi_library_name(svs_stream *s, const char *const *names, int d, svs_error *err);

/* Keeps the selected list of names as the first one, if no list is kept yet. Without memory nothing happens. */
void svi_library_adopt(svs_stream *s);

/* Makes a message of a row whose names were selected. Nothing of it needs the row to stay, except its
 * strings. */
svs_code svi_library_message(svs_stream *s, const svs_row *row, struct svi_message *m, svs_error *err);

/* Checks a label or an id; *out: with integral numbers as SVS_INT. SVS_BAD_LABEL, SVS_BAD_ID, SVS_NOT_FINITE.
 */
svs_code svi_library_label(svs_value y, svs_value *out, svs_error *err);
svs_code svi_library_id(svs_value id, svs_error *err);

/* Checks a stream key; *out: SVS_NONE for NULL and "". SVS_BAD_KEY. */
svs_code svi_library_key(const svs_stream *s, const char *key, svs_value *out, svs_error *err);

/* Is a row without a time taken? SVS_SETTING. */
svs_code svi_library_untimed(const svs_stream *s, svs_error *err);

/* Arrival time of a message, and its being taken. */
double svi_library_time(const svs_stream *s, const struct svi_message *m);
void svi_library_took(svs_stream *s, const struct svi_message *m, double now);

/* ---- rows of a block */

/* Values of row i; of float32 in a buffer of the stream, until the next call. */
const double *svi_library_block_x(svs_stream *s, const svs_block *b, int64_t i);
const char *const *svi_library_block_words(const svs_block *b, int64_t i); /* NULL: none */
svs_row svi_library_block_row(const svs_block *b, int64_t i);              /* without its values */
bool svi_library_passes_over(const svs_block *b, int64_t i);               /* weight 0 */

/* Would each row be accepted? `learns`: it is to be learned, not only scored. Otherwise *row is the number of
 * the first that would not. Codes of svs_stream_step. */
svs_code svi_library_check_block(svs_stream *s, const svs_block *b, bool learns, int64_t *row,
                                 svs_error *err);

/* ---- results */

extern const svs_evidence svi_library_no_evidence; /* of a row that was not assessed */

void svi_library_sink(void *user, const struct svi_event *event);

/* Capacity for the results of any row. SVS_NO_MEMORY. */
svs_code svi_library_reserve(svs_stream *s, svs_error *err);

/* Fills in the results of a row that was only scored. */
void svi_library_scored(svs_stream *s, const struct svi_scored *scored);

/* Clears row i of the results of a block, before it is known. */
void svi_library_clear_row(const svs_results *to, int64_t i);
void svi_library_put_row(const svs_results *to, int64_t i, const svs_prediction *p, const svs_evidence *f);

/* ---- alerts */

/* Replaces *list by the alert events after number `since`. SVS_NO_MEMORY: it is empty. */
svs_code svi_library_alerts(svs_stream *s, int64_t since, struct svi_library_alerts *list);
void svi_library_alerts_clear(struct svi_library_alerts *list);

/* ---- settings */

/* svs_stream_new, with the settings that a state recorded (YAML) in place of those that may differ since. */
svs_stream *svi_library_new_kept(const svs_setting *settings, int count, const struct svi_bytes *recorded,
                                 svs_error *err);

/* Notes settings as given, replacing earlier values. SVS_NO_MEMORY: some may be noted. */
svs_code svi_library_give(struct svi_library_given *g, const svs_setting *settings, int count,
                          svs_error *err);

/* Is the setting one that a stream inside a program has? SVS_SETTING: why not. */
svs_code svi_library_takes(const char *key, svs_error *err);

/* Clears what earlier calls returned, and what was computed from the current model. */
void svi_library_changed(svs_stream *s);

#endif
