/* settings.h: every setting is one row of one table (settings.c): key, type, default, range, sentence. From
 * it come the flags (--key value), the YAML file, `config` and its help, the man page and the shell
 * completion. */
#ifndef SVI_SETTINGS_H
#define SVI_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "svmstream/learner.h"
#include "svmstream/novelty.h"

#define SVI_TEXT_MAX    1024 /* bytes of a text setting with its NUL */
#define SVI_SETTING_MAX 96   /* rows of the table at most */

enum svi_in_mode { SVI_IN_PULL = 0, SVI_IN_ROUTER, SVI_IN_SUB };
enum svi_method { SVI_METHOD_ALSVM = 0, SVI_METHOD_FALSVM, SVI_METHOD_NONE }; /* the first two: svs_rule */
enum svi_serve { SVI_SERVE_ONLINE = 0, SVI_SERVE_REFIT, SVI_SERVE_BEST };
/* In the order of what an acknowledgement promises. */
enum svi_delivery {
    SVI_AUTO = 0,
    SVI_AT_MOST_ONCE,
    SVI_ACKED,
    SVI_AT_LEAST_ONCE,
    SVI_DURABLE,
    SVI_EXACTLY_ONCE
};
enum svi_missing { SVI_MISSING_REFUSE = 0, SVI_MISSING_CARRY, SVI_MISSING_DROP };

struct svi_settings {
    char in[SVI_TEXT_MAX];
    int in_mode;        /* enum svi_in_mode */
    char in_format[16]; /* auto, csv, libsvm, jsonl, msgpack */
    char in_topic[SVI_TEXT_MAX];
    char out[SVI_TEXT_MAX];
    char ctl[SVI_TEXT_MAX];
    char stream[65];
    char curve[SVI_TEXT_MAX]; /* off, on or a key file */
    char curve_server[SVI_TEXT_MAX], curve_allow[SVI_TEXT_MAX];
    int insecure; /* 0 no, 1 yes */
    int task;     /* svs_task */
    int method;   /* enum svi_method */
    double C;
    int64_t window;
    double window_seconds;
    double forget;
    int scale; /* svs_scale */
    char features[16 * SVI_TEXT_MAX];
    char label[SVI_TEXT_MAX], id[SVI_TEXT_MAX], ts[SVI_TEXT_MAX], weight[SVI_TEXT_MAX]; /* columns */
    int missing;                                                                        /* enum svi_missing */
    int refit; /* none, alm, alm-inexact, dcd, nesvm, auto */
    int64_t refit_every;
    double refit_seconds;
    char refit_loss[16];
    double refit_tol;
    int serve;          /* enum svi_serve */
    int novelty;        /* 0 none, else the number of the FOSVM algorithm */
    int novelty_kernel; /* svs_novelty_kernel */
    char novelty_gamma[32];
    double novelty_theta, novelty_epsilon;
    int64_t novelty_m, novelty_max, novelty_window, novelty_lags;
    int novelty_differences; /* 0 no, 1 yes */
    double novelty_trim;
    int novelty_learn; /* enum svi_novelty_learn */
    int64_t novelty_persist, novelty_calibration, novelty_confirm, novelty_warmup;
    double alert_p, alert_clear, alert_cooldown, alert_fdr;
    int64_t publish_every;
    double publish_seconds;
    int64_t scores; /* 0 = none, 1 = all, N = every N-th */
    double labels_ttl;
    int64_t labels_max;
    double ts_ahead;
    int64_t max_message; /* bytes */
    int64_t max_features, max_classes, max_sources, max_connections;
    int64_t threads;
    int64_t seed;
    char state_dir[SVI_TEXT_MAX];
    int delivery;      /* enum svi_delivery, 0 = auto */
    int journal_fsync; /* 0 = auto, else 1 + enum svi_fsync */
    double journal_interval;
    int64_t journal_segment; /* bytes */
    int journal_keep;        /* 0 needed, 1 all */
    double checkpoint_seconds;
    int accept_loss;             /* 0 no, 1 yes */
    bool given[SVI_SETTING_MAX]; /* by row of the table: set by flag or file, not by default */
};

enum svi_setting_type {
    SVI_SET_TEXT, /* char[size]; valid UTF-8 without control characters; with `choices`: one of these words */
    SVI_SET_NAME, /* char[size]; letters, digits, _ and -; at least one */
    SVI_SET_ADDRESS, /* char[size]; transport://address, or one of `choices` */
    SVI_SET_CHOICE,  /* int: the place of the word in `choices` */
    SVI_SET_INTEGER, /* int64_t */
    SVI_SET_NUMBER,  /* double */
    SVI_SET_BYTES,   /* int64_t; "65536", "64 KiB", "1MiB" */
    SVI_SET_SCORES   /* int64_t; all, none or an integer */
};

struct svi_setting {
    const char *key;
    enum svi_setting_type type;
    const char *value;   /* default, as text */
    const char *choices; /* "pull|router|sub", or NULL */
    double low, high;    /* of numbers, inclusive; 0, 0 otherwise */
    const char *unit;    /* "samples", "seconds", "bytes", "" */
    const char *text;    /* one sentence */
    size_t offset, size; /* of the field in struct svi_settings */
};

/* The table, in the order of the help. */
const struct svi_setting *svi_settings_table(int *count);

void svi_settings_default(struct svi_settings *s);

/* Sets one key from text. SVS_SETTING: unknown key (with the nearest known one), out of range (with the
 * range). */
svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err);

/* The row of a key, or NULL. */
const struct svi_setting *svi_settings_row(const char *key);

/* Its place in the table. */
int svi_settings_place(const struct svi_setting *row);

/* What a change of the row means to a state that is kept. */
enum svi_setting_nature {
    SVI_NATURE_OUTSIDE, /* nothing: the surroundings of the engine alone */
    SVI_NATURE_LIVE,    /* it may be changed between two samples */
    SVI_NATURE_LIMIT,   /* it may be raised at a start */
    SVI_NATURE_MODEL    /* another model: it cannot be changed */
};
enum svi_setting_nature svi_settings_nature(const struct svi_setting *row);

/* Was the row set by flag or file? */
bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row);

/* What a row takes, for people: "0 to 100000000 samples", "pull, router or sub". Returns out. */
char *svi_settings_range(const struct svi_setting *row, char *out, size_t size);

/* The refusal of a key that is none, with the nearest known one. Returns SVS_SETTING. */
svs_code svi_settings_unknown(const char *key, svs_error *err);

/* Reads a flat YAML map of dotted keys. SVS_IO, SVS_SETTING with file and key, SVS_NO_MEMORY; nothing is
 * changed then. */
svs_code svi_settings_load(struct svi_settings *s, const char *path, svs_error *err);

/* The same from memory; `name` stands for the file in error texts. */
svs_code svi_settings_read(struct svi_settings *s, const char *name, const void *bytes, size_t length,
                           svs_error *err);

/* Writes every row as one line of a YAML map that svi_settings_read takes, each after its sentence as a
 * comment. */
void svi_settings_write(const struct svi_settings *s, FILE *to);

/* Do the settings contradict each other? SVS_SETTING: which two, and what to do. */
svs_code svi_settings_check(const struct svi_settings *s, svs_error *err);

/* Those of the surroundings alone: with a state that is kept, what the others are is known when it has been
 * read (svi_settings_merge). */
svs_code svi_settings_check_outside(const struct svi_settings *s, svs_error *err);

/* May these addresses be bound? SVS_SETTING: one can be reached from other machines, neither CURVE protects
 * it nor `insecure` allows that; or the settings of CURVE contradict each other. For who binds them. */
svs_code svi_settings_check_security(const struct svi_settings *s, svs_error *err);

/* The level that is promised: `delivery`, auto resolved. */
enum svi_delivery svi_settings_delivery(const struct svi_settings *s);

/* The word of a level, "at-least-once". */
const char *svi_delivery_name(enum svi_delivery level);

/* Is the row a switch (no or yes), whose flag may stand alone for yes? */
bool svi_settings_switch(const struct svi_setting *row);

/* The value of one row as text, as svi_settings_set takes it. Returns out. */
char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out, size_t size);

/* The learner's part. */
void svi_settings_learner(const struct svi_settings *s, svs_options *o);

/* The novelty model's part. SVS_SETTING: novelty.gamma is neither a rule nor a number that can be
 * computed with. */
svs_code svi_settings_novelty(const struct svi_settings *s, svs_novelty_options *o, svs_error *err);

#endif
