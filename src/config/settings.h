/* settings.h: every setting is one row of one table (settings.c): key, type, default, range, unit, sentence,
 * and when it may change. From it come the flags (--key value), the YAML file, `config` and its help, the
 * manual and the shell completion.
 *
 * Sources: settings.c (table; values from and to text), settings_check.c (contradictions between settings,
 * and options that follow from them), settings_file.c (YAML). What a kept state records: settings_record.h.
 */
#ifndef SVI_SETTINGS_H
#define SVI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/class_weights.h"
#include "data/text_options.h"
#include "features/schema.h"
#include "store/journal.h"
#include "svmstream/learner.h"
#include "svmstream/novelty.h"

#define SVI_TEXT_MAX      1024                        /* bytes of a text setting with its NUL */
#define SVI_FEATURES_MAX  (16 * SVI_TEXT_MAX)         /* bytes of the longest one, `features` */
#define SVI_SETTING_MAX   128                         /* rows of the table at most */
#define SVI_SETTINGS_LINE (2 * SVI_FEATURES_MAX + 64) /* bytes of a line of YAML with its NUL */

/* Every way for samples to come in. X(constant, NAME of src/server/intake_NAME.c, word of in.mode, peers connect
 * to it, each message is acknowledged, text of the setting). Another one is a row, and its file. Standard input
 * comes last and has no word: `in` - asks for it. */
#define SVI_INTAKES(X)                                                                                       \
    X(SVI_IN_PULL, zmq, "pull", true, false, "pull takes what producers push")                               \
    X(SVI_IN_ROUTER, zmq, "router", true, true, ", router acknowledges each message")                        \
    X(SVI_IN_SUB, zmq, "sub", false, false, ", sub subscribes to a publisher")                               \
    X(SVI_IN_STDIN, stdin, NULL, false, false, "")
#define X(constant, name, word, binds, replies, text) constant,
enum svi_in_mode { SVI_INTAKES(X) };
#undef X
enum svi_method { SVI_METHOD_ALSVM, SVI_METHOD_FALSVM, SVI_METHOD_NONE, SVI_METHOD_AUTO };
#define SVI_AUTO_WINDOW 5000 /* samples that `method auto` holds */
enum svi_drift_action { SVI_DRIFT_NONE, SVI_DRIFT_SHRINK, SVI_DRIFT_REFIT };
enum svi_outlier_action { SVI_OUTLIER_CLIP, SVI_OUTLIER_REFUSE, SVI_OUTLIER_TAKE };
enum svi_columns_new { SVI_COLUMNS_ADD, SVI_COLUMNS_REFUSE };
enum svi_serve { SVI_SERVE_ONLINE, SVI_SERVE_REFIT, SVI_SERVE_BEST, SVI_SERVE_LINEAR };
enum svi_novelty { SVI_NOVELTY_NONE = 0, SVI_NOVELTY_FOSVM1 = 1, SVI_NOVELTY_FOSVM2 = 2 };
enum svi_journal_keep { SVI_JOURNAL_KEEP_NEEDED, SVI_JOURNAL_KEEP_ALL };
enum { SVI_REFIT_NONE = -1 };                     /* of `refit`, else enum svs_solver */
enum { SVI_FSYNC_AUTO = -1 };                     /* of `journal.fsync`, else enum svi_fsync */
enum { SVI_SCORES_NONE = 0, SVI_SCORES_ALL = 1 }; /* of `scores`, else N for every N-th */

/* By how much an acknowledgement promises, ascending. */
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
    int serve;          /* enum svi_serve */
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
    char alert_rules[SVI_TEXT_MAX];  /* none, or names separated by commas */
    char alert_absent[SVI_TEXT_MAX]; /* none, auto or seconds */
    char limits[SVI_FEATURES_MAX];   /* COLUMN:LOW..HIGH, separated by commas */
    char context[SVI_FEATURES_MAX];  /* columns */
    int64_t publish_every;
    double publish_seconds;
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
    unsigned char given[SVI_SETTING_MAX]; /* enum svi_given by row of the table */
};

/* Where a value comes from. A file that states a default, as `config default` writes it, wishes for nothing.
 */
enum svi_given { SVI_NOT_GIVEN, SVI_GIVEN_AS_DEFAULT, SVI_GIVEN };

#define SVI_KEY_ENTRY 2048.0 /* bytes of memory of a key on disk, beside its traits; 1.1 to 1.9 kB measured  \
                              */

/* Has the stream keys, with a model for each? `key` is the column of text rows that holds them; a message has
 * them as `key`. */
static inline bool svi_settings_keyed(const struct svi_settings *s) {
    return s->key[0] != '\0';
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

/* When a setting may change. A kept state records the rows of all classes but the first. */
enum svi_change_class {
    SVI_CHANGE_START,   /* at a start, to any value */
    SVI_CHANGE_LIVE,    /* at any time: between two samples by `ctl config`, or at a start */
    SVI_CHANGE_LIMIT,   /* at a start, to a higher value */
    SVI_CHANGE_MODEL,   /* never: another value makes another model */
    SVI_CHANGE_ONWARD,  /* at any time; it holds from then on */
    SVI_CHANGE_RELEARN, /* at any time; the model is made again from the samples held */
    SVI_CHANGE_RENEW    /* at any time; novelty begins from nothing */
};

/* At any time, not at a start alone? */
static inline bool svi_change_any_time(enum svi_change_class c) {
    return c == SVI_CHANGE_LIVE || c >= SVI_CHANGE_ONWARD;
}

/* An allowed word and its C constant (of a choice or an integer). */
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
    double low, high;             /* of numbers, inclusive; 0, 0 otherwise */
    const char *unit;             /* "samples", "seconds", "bytes", "" */
    const char *text;             /* one sentence */
    size_t offset, size;          /* of the field in struct svi_settings */
};

/* In the order of the help. */
extern const struct svi_setting svi_settings_table[];
extern const int svi_settings_count;

/* The field of a row. */
static inline void *svi_settings_field(const struct svi_settings *s, const struct svi_setting *row) {
    return (char *)s + row->offset;
}

/* Once all settings are in: where no method was given, but a setting that only alsvm has, it becomes alsvm.
 * Returns the key of that setting, NULL: nothing was changed. */
const char *svi_settings_settle_method(struct svi_settings *s);

/* Likewise: where no alert.budget was given, but alert.p or alert.fdr, it becomes none. *key: that one,
 * NULL: nothing was changed. And alert.interval, where it was not given, suits standard input. SVS_SETTING:
 * both were given. */
svs_code svi_settings_settle_alerts(struct svi_settings *s, const char **key, svs_error *err);

/* Rows come from a file: those without ts count as this many seconds for alert.budget. */
#define SVI_FILE_INTERVAL 60

void svi_settings_default(struct svi_settings *s);

/* Sets one key from text. SVS_SETTING: unknown key (with the nearest known one), value out of range (with the
 * range). */
svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err);

/* The row of a key, or NULL. */
const struct svi_setting *svi_settings_row(const char *key);

/* Was the row set by flag or file? */
bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row);

/* Was it asked for: set by a flag to any value, or by a file to another one than its default? What a default
 * leaves open (a label column that need not be there, sockets beside standard input) is fixed only then. */
bool svi_settings_chosen(const struct svi_settings *s, const char *key);

/* Does the row have its default value? */
bool svi_settings_is_default(const struct svi_settings *s, const struct svi_setting *row);

/* Is the row yes or no, so that its flag may stand alone for yes? */
bool svi_settings_switch(const struct svi_setting *row);

/* The allowed words, joined: "pull|router|sub". Returns out. */
char *svi_settings_words(const struct svi_setting *row, const char *separator, char *out, size_t size);

/* The word that stands for a constant: svi_settings_word("delivery", SVI_ACKED) is "acked". NULL: none. */
const char *svi_settings_word(const char *key, int value);

/* The allowed values, for people: "0 to 100000000 samples", "pull, router, sub". Returns out. */
char *svi_settings_range(const struct svi_setting *row, char *out, size_t size);

/* The value of one row as text that svi_settings_set takes. Returns out. */
char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out, size_t size);

/* The error for an unknown key, with the nearest known one. Returns SVS_SETTING. */
svs_code svi_settings_unknown(const char *key, svs_error *err);

/* ---- the file */

/* Reads a flat YAML map of dotted keys. SVS_IO, SVS_SETTING with file, line and column, SVS_NO_MEMORY;
 * nothing is changed then. */
svs_code svi_settings_load(struct svi_settings *s, const char *path, svs_error *err);

/* The same from memory; `name` stands for the file in error texts. */
svs_code svi_settings_read(struct svi_settings *s, const char *name, const void *bytes, size_t length,
                           svs_error *err);

/* Writes every row as one line of a YAML map that svi_settings_read takes, each after a comment with its
 * sentence. */
void svi_settings_write(const struct svi_settings *s, FILE *to);

/* One such line, `key: value` and a newline, in SVI_SETTINGS_LINE bytes. Returns its length. */
size_t svi_settings_line(const struct svi_settings *s, const struct svi_setting *row, bool quoted, char *out);

/* ---- checks, and what follows from several settings */

/* Do the settings contradict each other? SVS_SETTING: which two, and what to change. */
svs_code svi_settings_check(const struct svi_settings *s, svs_error *err);

/* Those of SVI_CHANGE_START alone: with a kept state, the others are known only when it has been read
 * (svi_settings_merge). */
svs_code svi_settings_check_start(const struct svi_settings *s, svs_error *err);

/* For a process that binds the addresses. SVS_SETTING: one is reachable from other machines without CURVE or
 * `insecure`, or the settings of CURVE contradict each other. */
svs_code svi_settings_check_security(const struct svi_settings *s, svs_error *err);

/* Is this address (of key `in`, `out` or `ctl`) bound by a process with these settings? */
bool svi_settings_binds(const struct svi_settings *s, const char *key, const char *address);

/* How samples come in: `in` and `in.mode` together. */
struct svi_intake_mode {
    enum svi_in_mode mode;
    bool binds;   /* peers connect to it */
    bool replies; /* each message is acknowledged */
};
struct svi_intake_mode svi_settings_intake(const struct svi_settings *s);

/* `delivery` and `journal.fsync` with auto resolved. */
enum svi_delivery svi_settings_delivery(const struct svi_settings *s);
enum svi_fsync svi_settings_fsync(const struct svi_settings *s);

/* `threads`: those of one computation (bits depend on it), and is there one more that judges novelty (they do
 * not). */
static inline int svi_settings_blas_threads(const struct svi_settings *s) {
    return s->threads > 1 && !svi_settings_keyed(s) ? (int)s->threads : 1;
}
static inline bool svi_settings_two_threads(const struct svi_settings *s) {
    return s->threads != 1;
}

/* The exponent of the refit's loss, 1 to 2. SVS_SETTING: refit.loss is neither a word nor such a number. */
svs_code svi_settings_loss(const struct svi_settings *s, double *p, svs_error *err);

/* Names in `features`. */
int svi_settings_feature_count(const struct svi_settings *s);

/* The learner's options. */
void svi_settings_schema(const struct svi_settings *s, struct svi_schema_options *o);
/* Without the weights of classes. */
void svi_settings_learner(const struct svi_settings *s, svs_options *o);

/* What they say about rows of text, as a reader takes it; the strings are the settings'. */
struct svi_reader_options svi_settings_reader(const struct svi_settings *s);
/* With them. `w` and the settings must outlive the call that takes the options. SVS_SETTING. */
svs_code svi_settings_learning(const struct svi_settings *s, struct svi_class_weights *w, svs_options *o,
                               svs_error *err);

/* The novelty model's options. SVS_SETTING: novelty.gamma is neither a word nor a usable number. */
svs_code svi_settings_novelty(const struct svi_settings *s, svs_novelty_options *o, svs_error *err);

#endif
