/* control_command.h: a control request {op, ...}, parsed once into its operation and the places of its
 * values. The control socket answers it; the journal stores requests that change the state, and a recovery
 * applies them again through the same parse. Nothing is copied: the bytes must outlive the command. */
#ifndef SVI_CONTROL_COMMAND_H
#define SVI_CONTROL_COMMAND_H

#include "svmstream/value.h"
#include "wire/cursor.h"

/* Every operation. X(CONSTANT, name, when it changes the state: enum changes in control_command.c) */
#define SVI_COMMANDS(X)                                                                                      \
    X(STATUS, status, NEVER)                                                                                 \
    X(CONFIG, config, WITH_SET)                                                                              \
    X(MODEL, model, NEVER)                                                                                   \
    X(PUBLISH, publish, ALWAYS)                                                                              \
    X(FORGET, forget, ALWAYS)                                                                                \
    X(LABEL, label, ALWAYS)                                                                                  \
    X(RESET, reset, ALWAYS)                                                                                  \
    X(STOP, stop, NEVER)                                                                                     \
    X(REFIT, refit, ALWAYS)                                                                                  \
    X(SAVE, save, NEVER)                                                                                     \
    X(SCORE, score, NEVER)                                                                                   \
    X(LOAD, load, WITH_MODEL)                                                                                \
    X(PRUNE, prune, ALWAYS)                                                                                  \
    X(COLUMNS, columns, NEVER)                                                                               \
    X(TUNE, tune, NEVER)                                                                                     \
    X(BANK, bank, NEVER)                                                                                     \
    X(ALERT, alert, ALWAYS)                                                                                  \
    X(DROP, drop, ALWAYS)                                                                                    \
    X(KEYS, keys, NEVER)                                                                                     \
    X(MUTE, mute, ALWAYS)                                                                                    \
    X(MUTES, mutes, NEVER)                                                                                   \
    X(UNMUTE, unmute, ALWAYS)                                                                                \
    X(ALERTS, alerts, NEVER)

enum svi_command_op {
#define X(constant, name, changes) SVI_COMMAND_##constant,
    SVI_COMMANDS(X)
#undef X
        SVI_COMMAND_COUNT
};

struct svi_command {
    enum svi_command_op op;
    const uint8_t *bytes; /* the request; not owned */
    size_t size;
    struct svi_item id, y, key;         /* of all operations; an absent item has type SVI_ITEM_TYPE_COUNT */
    struct svi_item alert, verdict, by; /* of alert */
    struct svi_item since, epoch;       /* of alerts, with limit */
    struct svi_item like, prefix, limit, sort, silent, rows; /* of keys */
    bool open;                                               /* of keys: true was given */
    struct svi_item name, sensor, lasts, reason, who, learn; /* of mute; `lasts`: the key `for` */
    struct svi_item mute;                                    /* of unmute */
    bool yes;                                                /* of reset: true was given */
    struct svi_item checkpoint, without; /* of load: which checkpoint, and the source to leave out */
    bool relearn;                        /* of load: true was given */
    bool loo;                            /* of model: true was given */
    bool has_set;                        /* of config: `set` was given */
    struct svi_item set;                 /* its value, of any type */
    const uint8_t *sample;               /* of score: the bytes of its value; NULL: absent */
    size_t sample_size;
    bool has_x;           /* of score: the request itself is the sample */
    const uint8_t *model; /* of load: the bytes of its value; NULL: absent */
    size_t model_size;
    bool keeps_shape; /* of reset, set by the program, not in the bytes: features and classes stay, because
                         the input is rows of text */
};

/* Parses a request. The codes of svi_msgpack_check; SVS_WRONG_TYPE; SVS_UNKNOWN_OP with the most similar
 * operation, or all. */
svs_code svi_command_read(struct svi_command *c, const void *bytes, size_t size, svs_error *err);

/* Does it change the state? Such a command is written to the journal before it takes effect. */
bool svi_command_changes(const struct svi_command *c);

const char *svi_command_name(enum svi_command_op op);

/* Its id or y as in an element of the stream; strings point into the request. SVS_BAD_ID, SVS_BAD_LABEL. */
svs_code svi_command_id(const struct svi_command *c, svs_value *id, svs_error *err);
svs_code svi_command_label(const struct svi_command *c, svs_value *y, svs_error *err);

/* Of alert: the number of the episode (from 1; 0: none is given) and the verdict on it. SVS_WRONG_TYPE. */
svs_code svi_command_verdict(const struct svi_command *c, int64_t *number, bool *is_true, svs_error *err);

/* Of alert: the person who gives the verdict, at most SVS_NAME_MAX bytes and NUL; "": not stated.
 * SVS_WRONG_TYPE. */
svs_code svi_command_by(const struct svi_command *c, char *by, svs_error *err);

/* A scalar as a value: bools and integral reals become integers; SVS_NONE for anything else. Strings are not
 * copied. */
svs_value svi_item_value(const struct svi_item *item);

#endif
