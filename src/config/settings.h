/* settings.h: every setting is one row of a table (settings.c): key, type, default, range, unit, sentence,
 * and when it may change. The flags (--key value), the YAML file, `config` and its help, the manual and
 * the shell completion are generated from it.
 *
 * Sources: settings.c (the table; values from and to text), settings_check.c (contradictions between
 * settings, and options that follow from them), settings_file.c (YAML). What a kept state records:
 * settings_record.h. */
#ifndef SVI_SETTINGS_H
#define SVI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "config/class_weights.h"
#include "data/text_options.h"
#include "features/schema.h"
#include "store/journal.h"
#include "svmstream/learner.h"
#include "svmstream/novelty.h"

#define SVI_TEXT_MAX      1024                        /* bytes of a text setting with its NUL */
#define SVI_FEATURES_MAX  (16 * SVI_TEXT_MAX)         /* bytes of the longest one, `features` */
#define SVI_PART_NAME     65                          /* the same of merge.part */
#define SVI_SETTING_MAX   128                         /* rows of the table at most */
#define SVI_SETTINGS_LINE (2 * SVI_FEATURES_MAX + 64) /* bytes of a line of YAML with its NUL */

/* Every intake of samples. X(constant, NAME of src/server/intake_NAME.c, word of in.mode, peers connect to
 * it, each message is acknowledged, text of the setting). A new intake is a row and its file. Standard
 * input is the last one and has no word: `in` - selects it. */
#define SVI_INTAKES(X)                                                                                       \
    X(SVI_IN_PULL, zmq, "pull", true, false, "pull takes what producers push")                               \
    X(SVI_IN_ROUTER, zmq, "router", true, true, ", router acknowledges each message")                        \
    X(SVI_IN_SUB, zmq, "sub", false, false, ", sub subscribes to a publisher")                               \
    X(SVI_IN_STDIN, stdin, NULL, false, false, "")
#define X(constant, name, word, binds, replies, text) constant,
enum svi_in_mode { SVI_INTAKES(X) };
#undef X
enum svi_method { SVI_METHOD_ALSVM, SVI_METHOD_FALSVM, SVI_METHOD_NONE, SVI_METHOD_AUTO };
#define SVI_AUTO_WINDOW  5000 /* samples that `method auto` holds */
#define SVI_STACK_WINDOW 96   /* the same for each key with key.shared */
#define SVI_STREAM_UNNAMED "default" /* what a stream is called whose name nobody set */
#define SVI_MERGE_WINDOW_OWN (-1) /* that of the stream's learner */
enum svi_drift_action { SVI_DRIFT_NONE, SVI_DRIFT_SHRINK, SVI_DRIFT_REFIT };
enum svi_outlier_action { SVI_OUTLIER_CLIP, SVI_OUTLIER_REFUSE, SVI_OUTLIER_TAKE };
enum svi_columns_new { SVI_COLUMNS_ADD, SVI_COLUMNS_REFUSE };
enum svi_serve { SVI_SERVE_ONLINE, SVI_SERVE_REFIT, SVI_SERVE_BEST, SVI_SERVE_LINEAR, SVI_SERVE_MERGED };
enum svi_novelty { SVI_NOVELTY_NONE = 0, SVI_NOVELTY_FOSVM1 = 1, SVI_NOVELTY_FOSVM2 = 2 };
enum svi_journal_keep { SVI_JOURNAL_KEEP_NEEDED, SVI_JOURNAL_KEEP_ALL };
enum { SVI_REFIT_NONE = -1 };                     /* of `refit`; other values: enum svs_solver */
enum { SVI_FSYNC_AUTO = -1 };                     /* of `journal.fsync`; other values: enum svi_fsync */
enum { SVI_SCORES_NONE = 0, SVI_SCORES_ALL = 1 }; /* of `scores`; N: every N-th score */

/* What an acknowledgement promises, from weak to strong: values are compared. */
enum svi_delivery {
    SVI_DELIVERY_AUTO,
    SVI_AT_MOST_ONCE,
    SVI_ACKED,
    SVI_AT_LEAST_ONCE,
    SVI_DURABLE,
    SVI_EXACTLY_ONCE
};

struct svi_settings {
    char in[SVI_TEXT_MAX];
    int in_mode;        /* enum svi_in_mode */
    char in_format[16]; /* auto, csv, libsvm, jsonl, vw, msgpack */
    char in_topic[SVI_TEXT_MAX];
    char out[SVI_TEXT_MAX];
    char ctl[SVI_TEXT_MAX];
    char stream[65];
    char curve[SVI_TEXT_MAX]; /* off, on or the name of a key file */
    char curve_server[SVI_TEXT_MAX], curve_allow[SVI_TEXT_MAX];
    int insecure;       /* bool */
    int task;           /* svs_task */
    int method;         /* enum svi_method */
    double auto_budget; /* microseconds a sample; 0: by the number of features */
    double C;
    int64_t window;
    double window_seconds;
    double forget;
    int scale;                        /* svs_scale */
    char class_weight[SVI_TEXT_MAX];  /* none, balanced, or CLASS=WEIGHT,... */
    char decision_cost[SVI_TEXT_MAX]; /* none, or CLASS=PRICE and TRUTH>DECISION=PRICE,... */
    double interval;                  /* share of the targets inside; 0 = off */
    double drift_rate;                /* false alarms per labelled sample; 0 = off */
    int drift_action;                 /* enum svi_drift_action */
    char features[SVI_FEATURES_MAX];
    char label[SVI_TEXT_MAX], id[SVI_TEXT_MAX], ts[SVI_TEXT_MAX], weight[SVI_TEXT_MAX]; /* columns */
    char columns[SVI_FEATURES_MAX]; /* names of the columns of a text without a header */
    int no_header;                  /* bool */
    char categories[SVI_TEXT_MAX], numbers[SVI_TEXT_MAX], ignore[SVI_TEXT_MAX], unscaled[SVI_FEATURES_MAX];
    int64_t categories_max, hash; /* values of a column; bits */
    char calendar[SVI_TEXT_MAX], zone[SVI_TEXT_MAX];
    int columns_new; /* enum svi_columns_new */
    int missing;     /* enum svi_missing */
    char missing_words[SVI_TEXT_MAX];
    char ts_format[SVI_TEXT_MAX];
    int outlier; /* enum svi_outlier_action */
    int refit;   /* svs_solver or SVI_REFIT_NONE */
    int64_t refit_every;
    double refit_seconds;
    char refit_loss[16];
    double refit_tol;
    int serve;                     /* enum svi_serve */
    char merge_from[SVI_TEXT_MAX]; /* address of a merger, or none */
    int novelty;        /* enum svi_novelty */
    int novelty_kernel; /* svs_novelty_kernel */
    char novelty_gamma[32];
    double novelty_theta, novelty_epsilon;
    int64_t novelty_m, novelty_max, novelty_window, novelty_lags;
    int novelty_differences; /* bool */
    double novelty_trim;
    int novelty_learn; /* enum svi_novelty_learn */
    int64_t novelty_persist, novelty_calibration, novelty_confirm, novelty_warmup;
    double alert_p, alert_clear, alert_cooldown, alert_fdr;
    char alert_budget[SVI_TEXT_MAX]; /* none, or N/hour, N/day, N/week */
    double alert_interval;           /* seconds; 0 = by arrival */
    double alert_group;              /* seconds */
    int64_t alert_keep;              /* events */
    char alert_rules[SVI_TEXT_MAX];  /* none, or names separated by commas */
    char alert_absent[SVI_TEXT_MAX]; /* none, auto or seconds */
    char alert_ondelay[SVI_TEXT_MAX], alert_offdelay[SVI_TEXT_MAX]; /* none, or RULE:TIME,... */
    char limits[SVI_FEATURES_MAX];   /* COLUMN:LOW..HIGH, separated by commas */
    char context[SVI_FEATURES_MAX];  /* columns */
    int64_t publish_every;
    double publish_seconds;
    double publish_sums;            /* seconds; 0 = never */
    int64_t merge_window;           /* samples, 0 = all, or SVI_MERGE_WINDOW_OWN */
    char merge_part[SVI_PART_NAME]; /* "": the name of the stream */
    int score_members; /* bool */
    int64_t scores;    /* SVI_SCORES_NONE, SVI_SCORES_ALL, N = every N-th */
    double labels_ttl;
    int64_t labels_max;
    double ts_ahead;
    int64_t max_message; /* bytes */
    int64_t max_features, max_classes, max_sources, max_connections;
    double sources_idle; /* seconds */
    int64_t sources_quota;
    char key[SVI_TEXT_MAX]; /* see svi_settings_keyed */
    int64_t keys_max, keys_memory /* 0: as the machine has (fleet/fleet.h) */, keys_quota;
    double keys_idle, key_prior;
    int key_shared; /* bool; see svi_settings_stacked */
    int64_t threads; /* see svi_settings_blas_threads, svi_settings_two_threads */
    int64_t seed;
    char state_dir[SVI_TEXT_MAX];
    int delivery;      /* enum svi_delivery; see svi_settings_delivery */
    int journal_fsync; /* enum svi_fsync or SVI_FSYNC_AUTO; see svi_settings_fsync */
    double journal_interval;
    int64_t journal_segment; /* bytes */
    int journal_keep;        /* enum svi_journal_keep */
    double checkpoint_seconds;
    int64_t checkpoint_keep;
    int accept_loss;                      /* bool */
    double merge_stale;
    int64_t merge_memory; /* bytes */
    unsigned char given[SVI_SETTING_MAX]; /* enum svi_given by row of the table */
};

/* The origin of a value. A file that states a default, as `config default` writes it, does not choose it. */
enum svi_given { SVI_NOT_GIVEN, SVI_GIVEN_AS_DEFAULT, SVI_GIVEN };

/* Memory of a key whose state is on disk, without its traits, in bytes; 1.1 to 1.9 kB were measured. */
#define SVI_KEY_ENTRY 2048.0

/* Does the stream have keys, with one model each? The setting `key` is the column of text rows that holds
 * them; in a message they are the value of `key`. */
static inline bool svi_settings_keyed(const struct svi_settings *s) {
    return s->key[0] != '\0';
}

/* Does each key have a small stack over a few members, one of them a bank that all keys share, instead of a bank
 * of its own? */
static inline bool svi_settings_stacked(const struct svi_settings *s) {
    return svi_settings_keyed(s) && s->method == SVI_METHOD_AUTO && s->key_shared;
}

/* Does the stream take merged models (merge.from)? They have the place of the refit. */
static inline bool svi_settings_merges(const struct svi_settings *s) {
    return s->merge_from[0] != '\0' && strcmp(s->merge_from, "none") != 0;
}

/* Does it solve its window as a batch in the background? */
static inline bool svi_settings_refits(const struct svi_settings *s) {
    return s->refit != SVI_REFIT_NONE && !svi_settings_merges(s);
}

enum svi_setting_type {
    SVI_SET_TEXT,    /* char[size]; valid UTF-8 without control characters; with `words`: one of these */
    SVI_SET_NAME,    /* char[size]; letters, digits, _ and -; at least one */
    SVI_SET_ADDRESS, /* char[size]; transport://address, or one of `words` */
    SVI_SET_CHOICE,  /* int: the constant of one of `words` */
    SVI_SET_INTEGER, /* int64_t; or one of `words` */
    SVI_SET_NUMBER,  /* double */
    SVI_SET_BYTES    /* int64_t; "65536", "64 KiB", "1MiB" */
};

/* When a setting may change. A kept state records the rows of all classes except the first. */
enum svi_change_class {
    SVI_CHANGE_START,   /* at a start, to any value */
    SVI_CHANGE_LIVE,    /* at any time: between two samples by `ctl config`, or at a start */
    SVI_CHANGE_LIMIT,   /* at a start, to a higher value */
    SVI_CHANGE_MODEL,   /* never: another value makes another model */
    SVI_CHANGE_ONWARD,  /* at any time; it holds from then on */
    SVI_CHANGE_RELEARN, /* at any time; the model is rebuilt from the samples held */
    SVI_CHANGE_RENEW    /* at any time; novelty starts from nothing */
};

/* May it change at any time, not only at a start? */
static inline bool svi_change_any_time(enum svi_change_class c) {
    return c == SVI_CHANGE_LIVE || c >= SVI_CHANGE_ONWARD;
}

/* An allowed word, and its C constant if the row is a choice or an integer. */
struct svi_word {
    const char *word; /* NULL ends a list */
    int value;
};

struct svi_setting {
    const char *key; /* NULL ends the table */
    enum svi_setting_type type;
    enum svi_change_class change;
    const char *value;            /* default, as text */
    const struct svi_word *words; /* or NULL */
    double low, high;             /* inclusive range of numbers; 0, 0 otherwise */
    const char *unit;             /* "samples", "seconds", "bytes", "" */
    const char *text;             /* what it does, for help and manual */
    const char *advice;           /* when to change it: a sentence, for the manual and the settings file */
    size_t offset, size;          /* of the field in struct svi_settings */
};

/* The rows in the order of the help; a row without key ends them. */
extern const struct svi_setting svi_settings_table[];
extern const int svi_settings_count;

/* The field of a row in *s, of the C type that row->type states. */
static inline void *svi_settings_field(const struct svi_settings *s, const struct svi_setting *row) {
    return (char *)s + row->offset;
}

/* Called when all settings are set: if a setting that only alsvm has was given and no method was, the method
 * becomes alsvm. Returns the key of that setting; NULL: the method is unchanged. With keys it also sets the
 * defaults of many small models. */
const char *svi_settings_settle_method(struct svi_settings *s);

/* Likewise: if alert.p or alert.fdr was given and alert.budget was not, the budget becomes none. *key: the
 * given setting; NULL: the budget is unchanged. With standard input, an alert.interval that was not given
 * becomes SVI_FILE_INTERVAL. SVS_SETTING: both were given. */
svs_code svi_settings_settle_alerts(struct svi_settings *s, const char **key, svs_error *err);

/* Seconds that a row of a file without ts counts for alert.budget. */
#define SVI_FILE_INTERVAL 60

void svi_settings_default(struct svi_settings *s);

/* Sets one setting from text. SVS_SETTING: the key is unknown (with the nearest known one), or the value
 * is not allowed (with the range). */
svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err);

/* The row of a key, or NULL. */
const struct svi_setting *svi_settings_row(const char *key);

/* Was the row set by flag or file? */
bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row);

/* Was it chosen: set by a flag to any value, or by a file to a value other than its default? Only then is
 * a choice fixed that a default leaves open (a label column that may be absent, sockets in addition to
 * standard input). */
bool svi_settings_chosen(const struct svi_settings *s, const char *key);

/* Does the row have its default value? */
bool svi_settings_is_default(const struct svi_settings *s, const struct svi_setting *row);

/* Is the row a yes/no switch, whose flag without a value means yes? */
bool svi_settings_switch(const struct svi_setting *row);

/* Joins the allowed words: "pull|router|sub". Returns out. */
char *svi_settings_words(const struct svi_setting *row, const char *separator, char *out, size_t size);

/* The word of a constant: svi_settings_word("delivery", SVI_ACKED) is "acked". NULL: the constant has
 * none. */
const char *svi_settings_word(const char *key, int value);

/* The allowed values, for people: "0 to 100000000 samples", "pull, router, sub". Returns out. */
char *svi_settings_range(const struct svi_setting *row, char *out, size_t size);

/* Writes the value of a row as text that svi_settings_set reads back as the same value. Returns out. */
char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out, size_t size);

/* Reports an unknown key, with the nearest known one. Returns SVS_SETTING. */
svs_code svi_settings_unknown(const char *key, svs_error *err);

/* ---- the file */

/* Reads a file with a flat YAML map of dotted keys. SVS_IO, SVS_SETTING with file, line and column,
 * SVS_NO_MEMORY: *s is unchanged. */
svs_code svi_settings_load(struct svi_settings *s, const char *path, svs_error *err);

/* The same from memory; `name` is the name of the file in error texts. */
svs_code svi_settings_read(struct svi_settings *s, const char *name, const void *bytes, size_t length,
                           svs_error *err);

/* Writes every row as one line of a YAML map for svi_settings_read, each after comments with what
 * it does and when to change it. */
void svi_settings_write(const struct svi_settings *s, FILE *to);

/* Writes one such line, `key: value` and a newline, to `out` (SVI_SETTINGS_LINE bytes). Returns its
 * length. */
size_t svi_settings_line(const struct svi_settings *s, const struct svi_setting *row, bool quoted, char *out);

/* ---- checks, and values that follow from several settings */

/* Checks the settings for contradictions. SVS_SETTING: which two, and what to change. */
svs_code svi_settings_check(const struct svi_settings *s, svs_error *err);

/* Checks those of SVI_CHANGE_START only: with a kept state the others are not known before it is read
 * (svi_settings_merge). */
svs_code svi_settings_check_start(const struct svi_settings *s, svs_error *err);

/* Checks the addresses of a process that binds them. SVS_SETTING: one is reachable from other machines
 * without CURVE or `insecure`, or the settings of CURVE contradict each other. */
svs_code svi_settings_check_security(const struct svi_settings *s, svs_error *err);

/* Is this address (of key `in`, `out` or `ctl`) bound by a process with these settings? */
bool svi_settings_binds(const struct svi_settings *s, const char *key, const char *address);

/* The intake that `in` and `in.mode` select. */
struct svi_intake_mode {
    enum svi_in_mode mode;
    bool binds;   /* peers connect to it */
    bool replies; /* each message is acknowledged */
};
struct svi_intake_mode svi_settings_intake(const struct svi_settings *s);

/* `delivery` and `journal.fsync` with auto resolved. */
enum svi_delivery svi_settings_delivery(const struct svi_settings *s);
enum svi_fsync svi_settings_fsync(const struct svi_settings *s);

/* `threads`: the threads of one computation, on which the bits of results depend; and whether novelty has
 * a second thread, on which they do not. */
static inline int svi_settings_blas_threads(const struct svi_settings *s) {
    return s->threads > 1 && !svi_settings_keyed(s) ? (int)s->threads : 1;
}
static inline bool svi_settings_two_threads(const struct svi_settings *s) {
    return s->threads != 1;
}

/* The exponent p of the refit's loss, 1 to 2. SVS_SETTING: refit.loss is neither a word nor such a number. */
svs_code svi_settings_loss(const struct svi_settings *s, double *p, svs_error *err);

/* Number of names in `features`. */
int svi_settings_feature_count(const struct svi_settings *s);

/* The learner's options. */
void svi_settings_schema(const struct svi_settings *s, struct svi_schema_options *o);
/* Without the weights of classes. */
void svi_settings_learner(const struct svi_settings *s, svs_options *o);

/* The options of a reader of text rows; their strings belong to *s. */
struct svi_reader_options svi_settings_reader(const struct svi_settings *s);
/* The learner's options with the weights of classes. `w` and *s must outlive the call that receives the
 * options. SVS_SETTING. */
svs_code svi_settings_learning(const struct svi_settings *s, struct svi_class_weights *w, svs_options *o,
                               svs_error *err);

/* The novelty model's options. SVS_SETTING: novelty.gamma is neither a word nor a usable number. */
svs_code svi_settings_novelty(const struct svi_settings *s, svs_novelty_options *o, svs_error *err);

#endif
