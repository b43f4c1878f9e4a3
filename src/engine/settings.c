#include "engine/settings.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "base/text.h"

#define ADDRESS_IN  "tcp://127.0.0.1:5555"
#define ADDRESS_OUT "tcp://127.0.0.1:5556"
#define ADDRESS_CTL "tcp://127.0.0.1:5557"
#define FOREVER     1e9                /* seconds, 31 years */
#define EXACT       9007199254740992.0 /* 2^53: integers above it are no longer exact as low and high */

#define FIELD(f) offsetof(struct svi_settings, f), sizeof(((struct svi_settings *)0)->f)

/* key, type, default, choices, low, high, unit, sentence, field */
static const struct svi_setting table[] = {
    {"in", SVI_SET_ADDRESS, ADDRESS_IN, "-", 0, 0, "", "where samples come from; - is standard input",
     FIELD(in)},
    {"in.mode", SVI_SET_CHOICE, "pull", "pull|router|sub", 0, 0, "",
     "kind of input socket: pull takes what is pushed, router acknowledges each message, sub connects to a "
     "publisher",
     FIELD(in_mode)},
    {"in.format", SVI_SET_TEXT, "auto", "auto|csv|libsvm|jsonl|msgpack", 0, 0, "",
     "format of text input; auto looks at the file name and the first line", FIELD(in_format)},
    {"in.topic", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "prefix of the topics to subscribe to, with in.mode sub; empty is all", FIELD(in_topic)},
    {"out", SVI_SET_ADDRESS, ADDRESS_OUT, NULL, 0, 0, "",
     "where models, scores, stats and errors are published", FIELD(out)},
    {"ctl", SVI_SET_ADDRESS, ADDRESS_CTL, NULL, 0, 0, "", "where control requests are answered", FIELD(ctl)},
    {"stream", SVI_SET_NAME, "default", NULL, 0, 0, "", "name of the stream, part of every topic",
     FIELD(stream)},
    {"curve", SVI_SET_TEXT, "off", NULL, 0, 0, "",
     "encrypt all sockets and let in known keys only: off, on (the key file is svmstream.key in the present "
     "folder) or a key file",
     FIELD(curve)},
    {"curve.server", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "public key of the process to connect to, or the file that holds it", FIELD(curve_server)},
    {"curve.allow", SVI_SET_TEXT, "svmstream.allow", NULL, 0, 0, "",
     "file of the keys that are let in, with their roles; changes take effect at once", FIELD(curve_allow)},
    {"insecure", SVI_SET_CHOICE, "no", "no|yes", 0, 0, "",
     "bind addresses that other machines reach without curve: anybody there may feed, read and stop it",
     FIELD(insecure)},
    {"task", SVI_SET_CHOICE, "classify", "classify|regress", 0, 0, "", "what is learned: a class or a number",
     FIELD(task)},
    {"method", SVI_SET_CHOICE, "alsvm", "alsvm|falsvm|none", 0, 0, "",
     "alsvm learns every labelled sample, falsvm only those that the model gets wrong, none has no "
     "classifier: novelty alone",
     FIELD(method)},
    {"C", SVI_SET_NUMBER, "1", NULL, 1e-9, 1e12, "", "penalty of the squared errors; larger fits closer",
     FIELD(C)},
    {"window", SVI_SET_INTEGER, "1000", NULL, 0, 1e8, "samples",
     "labelled samples that the model rests on; older ones are removed exactly; 0 keeps none and forgets "
     "nothing",
     FIELD(window)},
    {"window.seconds", SVI_SET_NUMBER, "0", NULL, 0, FOREVER, "seconds",
     "samples older than this leave the window too; 0 is no limit", FIELD(window_seconds)},
    {"forget", SVI_SET_NUMBER, "1", NULL, 1e-3, 1, "",
     "factor by which a learned sample counts less with every sample learned after it; 1 is no decay",
     FIELD(forget)},
    {"scale", SVI_SET_CHOICE, "standard", "none|standard", 0, 0, "",
     "standard brings features to mean 0 and deviation 1 inside; published weights are always in raw units",
     FIELD(scale)},
    {"features", SVI_SET_TEXT, "", NULL, 0, 0, "",
     "names of the features in column order, separated by commas; no others are taken then", FIELD(features)},
    {"label", SVI_SET_TEXT, "label", NULL, 0, 0, "", "column of the label in CSV and JSON lines",
     FIELD(label)},
    {"id", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the id; empty is none", FIELD(id)},
    {"ts", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the time stamp, in seconds since 1970; empty is none",
     FIELD(ts)},
    {"weight", SVI_SET_TEXT, "", NULL, 0, 0, "", "column of the sample weight; empty is none", FIELD(weight)},
    {"missing", SVI_SET_CHOICE, "refuse", "refuse|carry|drop", 0, 0, "",
     "a missing feature value: refuse the sample with an error, carry the last value over, drop the sample "
     "quietly",
     FIELD(missing)},
    {"refit", SVI_SET_CHOICE, "auto", "none|alm|alm-inexact|dcd|nesvm|auto", 0, 0, "",
     "solver that fits the window to the support vector optimum beside the online model; auto picks one",
     FIELD(refit)},
    {"refit.every", SVI_SET_INTEGER, "0", NULL, 0, 1e9, "samples",
     "refit after so many samples; 0 is as many as the window holds", FIELD(refit_every)},
    {"refit.seconds", SVI_SET_NUMBER, "0", NULL, 0, FOREVER, "seconds",
     "refit after so much engine time too; 0 does not", FIELD(refit_seconds)},
    {"refit.loss", SVI_SET_TEXT, "l2", NULL, 0, 0, "",
     "loss of the refit: l1 (hinge), l2 (its square) or a number from 1 to 2 between them",
     FIELD(refit_loss)},
    {"refit.tol", SVI_SET_NUMBER, "0.001", NULL, 1e-12, 1, "",
     "a refit ends when its duality gap is this share of its objective", FIELD(refit_tol)},
    {"serve", SVI_SET_CHOICE, "online", "online|refit|best", 0, 0, "",
     "whose scores are published: the online model's, the last refit's, or those of the better one lately",
     FIELD(serve)},
    {"novelty", SVI_SET_CHOICE, "fosvm1", "none|fosvm1|fosvm2", 0, 0, "",
     "one-class model that judges how new each sample is; of samples that lie outside, fosvm1 takes each as "
     "a "
     "support vector, fosvm2 the worst of each novelty.m",
     FIELD(novelty)},
    {"novelty.kernel", SVI_SET_CHOICE, "laplacian", "rbf|laplacian|polynomial", 0, 0, "",
     "kernel of the novelty model", FIELD(novelty_kernel)},
    {"novelty.gamma", SVI_SET_TEXT, "auto", NULL, 0, 0, "",
     "width of the kernel: auto (several together), median, scale, or a number", FIELD(novelty_gamma)},
    {"novelty.theta", SVI_SET_NUMBER, "0.05", NULL, 1e-9, 0.999, "",
     "a sample lies outside when its membership is below 1 - theta", FIELD(novelty_theta)},
    {"novelty.epsilon", SVI_SET_NUMBER, "0.05", NULL, 1e-6, 0.999, "",
     "share of samples that fosvm2 may leave outside", FIELD(novelty_epsilon)},
    {"novelty.m", SVI_SET_INTEGER, "0", NULL, 0, 1e6, "samples",
     "of so many samples fosvm2 takes the worst; 0 is ln(20) / epsilon", FIELD(novelty_m)},
    {"novelty.max", SVI_SET_INTEGER, "200", NULL, 2, 5000, "samples",
     "support vectors at most; the price of a sample grows with it", FIELD(novelty_max)},
    {"novelty.window", SVI_SET_INTEGER, "10000", NULL, 0, 1e12, "samples",
     "learned samples that a support vector stays; 0 is no limit", FIELD(novelty_window)},
    {"novelty.lags", SVI_SET_INTEGER, "1", NULL, 1, 1024, "samples",
     "the last so many samples are judged as one, so that a single sensor has a shape", FIELD(novelty_lags)},
    {"novelty.differences", SVI_SET_CHOICE, "no", "no|yes", 0, 0, "",
     "with novelty.lags, judge the newest sample and the steps that led to it, instead of the samples",
     FIELD(novelty_differences)},
    {"novelty.learn", SVI_SET_CHOICE, "normal", "normal|all|labelled|persistent", 0, 0, "",
     "which samples the novelty model may learn: those that are not novel, all, those with a label, or a "
     "change too that lasts",
     FIELD(novelty_learn)},
    {"novelty.trim", SVI_SET_NUMBER, "0.2", NULL, 0, 0.5, "",
     "share of the least usual samples that normal and persistent leave out all the same",
     FIELD(novelty_trim)},
    {"novelty.persist", SVI_SET_INTEGER, "100", NULL, 1, 1e6, "samples",
     "with persistent, a change is learned once so many of the last 5/4 as many were novel",
     FIELD(novelty_persist)},
    {"novelty.calibration", SVI_SET_INTEGER, "2000", NULL, 1, 1e6, "samples",
     "every second sample is kept out of the model; p compares with the scores of the last so many of them",
     FIELD(novelty_calibration)},
    {"novelty.confirm", SVI_SET_INTEGER, "10", NULL, 1, 1e4, "samples",
     "so many samples on end with p up to alert.clear are believed to be no chance: they do not calibrate",
     FIELD(novelty_confirm)},
    {"novelty.warmup", SVI_SET_INTEGER, "100", NULL, 0, 1e9, "samples", "no alert before so many samples",
     FIELD(novelty_warmup)},
    {"alert.p", SVI_SET_NUMBER, "0.001", NULL, 1e-6, 0.999, "",
     "an alert opens at p-values up to this: the share of false alarms among normal samples", FIELD(alert_p)},
    {"alert.clear", SVI_SET_NUMBER, "0.05", NULL, 1e-6, 0.999, "", "an alert closes at p-values above this",
     FIELD(alert_clear)},
    {"alert.cooldown", SVI_SET_NUMBER, "60", NULL, 0, FOREVER, "seconds",
     "after an alert closed, no other opens for so long", FIELD(alert_cooldown)},
    {"alert.fdr", SVI_SET_NUMBER, "0", NULL, 0, 0.999, "",
     "open alerts so that only this share of them is false, instead of by alert.p; 0 does not",
     FIELD(alert_fdr)},
    {"publish.every", SVI_SET_INTEGER, "1000", NULL, 0, 1e9, "samples",
     "publish the model after so many samples; 0 does not", FIELD(publish_every)},
    {"publish.seconds", SVI_SET_NUMBER, "1", NULL, 0, FOREVER, "seconds",
     "publish model and stats after so much time; 0 does not", FIELD(publish_seconds)},
    {"scores", SVI_SET_SCORES, "all", NULL, 0, 1e9, "samples",
     "which scores are published: all, none, or a number N for every N-th", FIELD(scores)},
    {"labels.ttl", SVI_SET_NUMBER, "3600", NULL, 0, FOREVER, "seconds",
     "how long a sample with an id waits for its label; 0 does not wait", FIELD(labels_ttl)},
    {"labels.max", SVI_SET_INTEGER, "10000", NULL, 1, 1e8, "samples",
     "samples that wait for a label at most; the oldest leaves when full", FIELD(labels_max)},
    {"ts.ahead", SVI_SET_NUMBER, "60", NULL, 0, 1e12, "seconds",
     "a time stamp further than this ahead of the clock is refused", FIELD(ts_ahead)},
    {"max.message", SVI_SET_BYTES, "1 MiB", NULL, 64, 1 << 30, "bytes",
     "largest message; a peer that sends a larger one is cut off", FIELD(max_message)},
    {"max.features", SVI_SET_INTEGER, "1024", NULL, 1, 32768, "features",
     "features at most; memory grows with its square", FIELD(max_features)},
    {"max.classes", SVI_SET_INTEGER, "64", NULL, 2, 4096, "classes", "classes at most", FIELD(max_classes)},
    {"max.sources", SVI_SET_INTEGER, "1024", NULL, 1, 1e6, "sources",
     "producers whose sequence numbers are kept, for acknowledged input", FIELD(max_sources)},
    {"max.connections", SVI_SET_INTEGER, "1000", NULL, 1, 10000, "connections",
     "connections to all sockets together; beyond it those that do not speak make room",
     FIELD(max_connections)},
    {"threads", SVI_SET_INTEGER, "1", NULL, 1, 64, "threads", "threads for work beside the stream",
     FIELD(threads)},
    {"seed", SVI_SET_INTEGER, "1", NULL, 0, EXACT, "", "start of the random numbers", FIELD(seed)},
};

#define ROWS ((int)(sizeof table / sizeof table[0]))
_Static_assert(sizeof table / sizeof table[0] <= SVI_SETTING_MAX, "`given` has room for every row");

const struct svi_setting *svi_settings_table(int *count) {
    *count = ROWS;
    return table;
}

const struct svi_setting *svi_settings_row(const char *key) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].key, key) == 0)
            return &table[i];
    return NULL;
}

bool svi_settings_given(const struct svi_settings *s, const struct svi_setting *row) {
    return s->given[row - table];
}

svs_code svi_settings_unknown(const char *key, svs_error *err) {
    const char *keys[ROWS + 1];
    char shown[80];
    for (int i = 0; i < ROWS; i++)
        keys[i] = table[i].key;
    keys[ROWS] = NULL;
    const char *nearest = svi_nearest(key, keys);
    svi_escape(shown, sizeof shown, key, strlen(key));
    if (!nearest)
        return svi_fail(err, SVS_SETTING, "unknown setting '%s'", shown);
    return svi_fail(err, SVS_SETTING, "unknown setting '%s', the nearest known one is '%s'", shown, nearest);
}

/* The `index`-th word of "a|b|c" and its length; NULL behind the last. */
static const char *choice_at(const char *choices, int index, size_t *length) {
    for (; choices; index--) {
        *length = strcspn(choices, "|");
        if (index == 0)
            return choices;
        choices = choices[*length] ? choices + *length + 1 : NULL;
    }
    return NULL;
}

static int choice_index(const char *choices, const char *value) {
    size_t length;
    const char *word;
    for (int i = 0; (word = choice_at(choices, i, &length)); i++)
        if (strlen(value) == length && memcmp(word, value, length) == 0)
            return i;
    return -1;
}

static char *write_choices(const char *choices, char *out, size_t size) {
    size_t length, next;
    const char *word;
    int at = 0;
    out[0] = '\0';
    for (int i = 0; (word = choice_at(choices, i, &length)); i++) {
        const char *before = i == 0 ? "" : choice_at(choices, i + 1, &next) ? ", " : " or ";
        at += snprintf(out + at, size - (size_t)at, "%s%.*s", before, (int)length, word);
        if (at >= (int)size)
            break;
    }
    return out;
}

/* 1e9 and 1e-9 rather than rows of zeros, but only where they may be written so: integers take digits alone.
 */
static char *write_bound(const struct svi_setting *row, double bound, char *out, size_t size) {
    double power = bound > 0 && row->type == SVI_SET_NUMBER ? log10(bound) : 0;
    bool round = fabs(power - rint(power)) < 1e-9;
    if (round && (power > 5.5 || power < -3.5))
        snprintf(out, size, "1e%d", (int)rint(power));
    else
        snprintf(out, size, "%.16g", bound);
    return out;
}

static void write_interval(const struct svi_setting *row, char *out, size_t size) {
    char low[32], high[32];
    const char *words = row->type == SVI_SET_SCORES ? "all, none or " : "";
    snprintf(out, size, "%s%s to %s%s%s", words, write_bound(row, row->low, low, sizeof low),
             write_bound(row, row->high, high, sizeof high), row->unit[0] ? " " : "", row->unit);
}

char *svi_settings_range(const struct svi_setting *row, char *out, size_t size) {
    if (row->type == SVI_SET_CHOICE || (row->type == SVI_SET_TEXT && row->choices))
        return write_choices(row->choices, out, size);
    if (row->type == SVI_SET_TEXT)
        snprintf(out, size, "text of at most %zu bytes", row->size - 1);
    else if (row->type == SVI_SET_NAME)
        snprintf(out, size, "1 to %zu letters, digits, _ or -", row->size - 1);
    else if (row->type == SVI_SET_ADDRESS)
        snprintf(out, size, "an address like tcp://127.0.0.1:5555%s%s", row->choices ? " or " : "",
                 row->choices ? row->choices : "");
    else
        write_interval(row, out, size);
    return out;
}

/* Every refusal of a value: the key, the value, what is wrong with it, what the row takes. */
static svs_code refuse(const struct svi_setting *row, const char *value, const char *fault, svs_error *err) {
    char shown[64], range[96];
    svi_escape(shown, sizeof shown, value, strlen(value));
    return svi_fail(err, SVS_SETTING, "%s: '%s' %s; it takes %s", row->key, shown, fault,
                    svi_settings_range(row, range, sizeof range));
}

static void *field(struct svi_settings *s, const struct svi_setting *row) {
    return (char *)s + row->offset;
}

/* Control characters, line separators and what is no character: nothing that a name or address holds, and
 * YAML could not give them back. */
static bool unprintable(const char *text) {
    static const char *const codes[] = {"\u2028", "\u2029", "\ufeff", "\xef\xbf\xbe", "\xef\xbf\xbf"};
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0))
            return true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strstr(text, codes[i]))
            return true;
    return false;
}

static svs_code set_text(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    size_t length = strlen(value);
    if (length >= row->size)
        return refuse(row, value, "is too long", err);
    if (!svi_utf8_valid(value, length))
        return refuse(row, value, "is not valid UTF-8", err);
    if (unprintable(value))
        return refuse(row, value, "holds a control character", err);
    memset(field(s, row), 0, row->size);
    memcpy(field(s, row), value, length);
    return SVS_OK;
}

static svs_code set_word(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    if (row->choices && choice_index(row->choices, value) < 0)
        return refuse(row, value, "is none of its words", err);
    return set_text(s, row, value, err);
}

static svs_code set_name(struct svi_settings *s, const struct svi_setting *row, const char *value,
                         svs_error *err) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    if (value[0] == '\0')
        return refuse(row, value, "is empty", err);
    if (value[strspn(value, allowed)] != '\0')
        return refuse(row, value, "holds another character", err);
    return set_text(s, row, value, err);
}

static svs_code set_address(struct svi_settings *s, const struct svi_setting *row, const char *value,
                            svs_error *err) {
    const char *colon = strstr(value, "://");
    bool word = row->choices && choice_index(row->choices, value) >= 0;
    if (!word && (!colon || colon == value || colon[3] == '\0'))
        return refuse(row, value, "is no address", err);
    return set_text(s, row, value, err);
}

static svs_code set_choice(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    int index = choice_index(row->choices, value);
    if (index < 0)
        return refuse(row, value, "is none of its words", err);
    *(int *)field(s, row) = index;
    return SVS_OK;
}

static svs_code store_integer(struct svi_settings *s, const struct svi_setting *row, const char *value,
                              int64_t n, svs_error *err) {
    if ((double)n < row->low || (double)n > row->high || errno == ERANGE)
        return refuse(row, value, "is out of range", err);
    *(int64_t *)field(s, row) = n;
    return SVS_OK;
}

/* The digits of a whole number, with a sign at most: strtoll alone would pass spaces. */
static bool whole(const char *value, int64_t *n, const char **rest) {
    const char *digits = value + (value[0] == '-' || value[0] == '+');
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    char *end;
    errno = 0;
    *n = strtoll(value, &end, 10);
    *rest = end;
    return true;
}

static svs_code set_integer(struct svi_settings *s, const struct svi_setting *row, const char *value,
                            svs_error *err) {
    int64_t n;
    const char *rest;
    if (!whole(value, &n, &rest) || rest[0] != '\0')
        return refuse(row, value, "is not a whole number", err);
    return store_integer(s, row, value, n, err);
}

static svs_code set_scores(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    if (strcmp(value, "all") == 0)
        value = "1";
    else if (strcmp(value, "none") == 0)
        value = "0";
    return set_integer(s, row, value, err);
}

static const struct {
    const char *name;
    int64_t bytes;
} sizes[] = {{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}};
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

static svs_code set_bytes(struct svi_settings *s, const struct svi_setting *row, const char *value,
                          svs_error *err) {
    int64_t n;
    const char *rest;
    if (!whole(value, &n, &rest))
        return refuse(row, value, "is not a whole number of bytes, KiB, MiB or GiB", err);
    if (rest[0] == ' ' && rest[1] != '\0')
        rest++;
    for (int i = 0; i < SIZES; i++) {
        if (strcmp(rest, sizes[i].name) != 0)
            continue;
        bool fits = n >= 0 && n <= INT64_MAX / sizes[i].bytes;
        return store_integer(s, row, value, fits ? n * sizes[i].bytes : -1, err);
    }
    return refuse(row, value, "is not a whole number of bytes, KiB, MiB or GiB", err);
}

static svs_code set_number(struct svi_settings *s, const struct svi_setting *row, const char *value,
                           svs_error *err) {
    char *end = NULL;
    double number = strtod(value, &end);
    /* The characters are checked first because strtod also takes spaces, hexadecimals, NaN and infinities. */
    if (value[0] == '\0' || value[strspn(value, "0123456789+-.eE")] != '\0' || *end != '\0')
        return refuse(row, value, "is not a number", err);
    if (!(number >= row->low && number <= row->high))
        return refuse(row, value, "is out of range", err);
    *(double *)field(s, row) = number + 0.0; /* -0 would not survive being written and read */
    return SVS_OK;
}

typedef svs_code setter(struct svi_settings *s, const struct svi_setting *row, const char *value,
                        svs_error *err);

static setter *const setters[] = {
    [SVI_SET_TEXT] = set_word,     [SVI_SET_NAME] = set_name,       [SVI_SET_ADDRESS] = set_address,
    [SVI_SET_CHOICE] = set_choice, [SVI_SET_INTEGER] = set_integer, [SVI_SET_NUMBER] = set_number,
    [SVI_SET_BYTES] = set_bytes,   [SVI_SET_SCORES] = set_scores,
};

svs_code svi_settings_set(struct svi_settings *s, const char *key, const char *value, svs_error *err) {
    const struct svi_setting *row = svi_settings_row(key);
    if (!row)
        return svi_settings_unknown(key, err);
    svs_code code = setters[row->type](s, row, value, err);
    if (code == SVS_OK)
        s->given[row - table] = true;
    return code;
}

void svi_settings_default(struct svi_settings *s) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROWS; i++)
        (void)svi_settings_set(s, table[i].key, table[i].value, NULL);
    memset(s->given, 0, sizeof s->given);
}

static void write_bytes(int64_t bytes, char *out, size_t size) {
    for (int i = 0; i < SIZES; i++)
        if (bytes % sizes[i].bytes == 0 && bytes >= sizes[i].bytes) {
            snprintf(out, size, "%lld%s%s", (long long)(bytes / sizes[i].bytes),
                     sizes[i].bytes > 1 ? " " : "", sizes[i].bytes > 1 ? sizes[i].name : "");
            return;
        }
    snprintf(out, size, "0");
}

/* The shortest form that reads back as the same double. */
static void write_number(double value, char *out, size_t size) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, size, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

static void write_integer(const struct svi_setting *row, int64_t n, char *out, size_t size) {
    if (row->type == SVI_SET_BYTES)
        write_bytes(n, out, size);
    else if (row->type == SVI_SET_SCORES && n <= 1)
        snprintf(out, size, "%s", n == 1 ? "all" : "none");
    else
        snprintf(out, size, "%lld", (long long)n);
}

char *svi_settings_value(const struct svi_settings *s, const struct svi_setting *row, char *out,
                         size_t size) {
    const void *at = (const char *)s + row->offset;
    size_t length;
    const char *word;
    switch (row->type) {
    case SVI_SET_TEXT:
    case SVI_SET_NAME:
    case SVI_SET_ADDRESS:
        snprintf(out, size, "%s", (const char *)at);
        break;
    case SVI_SET_CHOICE:
        word = choice_at(row->choices, *(const int *)at, &length);
        snprintf(out, size, "%.*s", word ? (int)length : 0, word ? word : "");
        break;
    case SVI_SET_NUMBER:
        write_number(*(const double *)at, out, size);
        break;
    default:
        write_integer(row, *(const int64_t *)at, out, size);
    }
    return out;
}
