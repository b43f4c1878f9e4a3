/* rules_internal.h: how to add a plain rule. A rule is one file, rule_NAME.c, and one line of SVI_RULES_ALL
 * (config/rule_settings.h). The file defines the row of the rule, svi_rule_NAME: its conditions and its
 * words. The frame (rules.c, rule_report.c) calls the row and knows no rule by name.
 *
 * Figures of a rule (rows, factors, seconds) are constants of its file, or members of the row if the frame
 * needs them. */
#ifndef SVI_RULES_INTERNAL_H
#define SVI_RULES_INTERNAL_H

#include <math.h>

#include "alerts/alert_text.h"
#include "alerts/rules.h"

/* Series of the records: values, negated values, steps. */
enum svi_rules_side { SVI_RULES_UP, SVI_RULES_DOWN, SVI_RULES_STEP, SVI_RULES_SIDES };

#define SVI_RULE_PART                                                                                        \
    (SVI_ALERT_NAME + SVI_HUMAN_UNIT + 4 * SVI_HUMAN + 60) /* bytes of one member in a line */

/* The input of a member's text. */
struct svi_rule_words {
    const struct svi_rules *r;
    const struct svi_rules_member *m;
    char name[SVI_ALERT_NAME], unit[SVI_HUMAN_UNIT]; /* ready for the line */
    double time;                                     /* of the sample, seconds */
    bool by_rows;                                    /* rows have no times: the text counts them */
};

/* A hook that is NULL does nothing. Those marked * may add a member. */
struct svi_rule_kind {
    bool of_stream; /* about the stream as a whole, by arrival; else about columns, by the time of rows */
    bool lasts;     /* counts bad rows (`high`: the most before), not how bad a row is */
    bool valueless; /* its event has no value */
    const char *missing; /* what does not arrive, "values": the line names the columns, and `text` has the end
                            of a line of one. NULL: `text` has all words of a column */
    int64_t normal_after; /* bad rows after which their value is normal; 0: never */
    const char *again;    /* words of the close after the column: "moving again" */
    const char *of_key;   /* its name in events of one key of a stream; NULL: the name of the rule */
    void (*text)(char out[SVI_RULE_PART], const struct svi_rule_words *w);

    /* * A row with a gap, or the row after one. gaps: as in svi_rules_row. */
    void (*gaps)(struct svi_rules *r, const uint8_t *gaps, int d, double time);
    /* Called if a row does not pass (rules_passes). * step: for each column. * assess: for each column that
     * stirs (rules_stirs); true: the value must not count as seen. */
    void (*step)(struct svi_rules *r, int j, double step, double time);
    bool (*assess)(struct svi_rules *r, int j, double v, double time);
    /* * Before a row of d values, while values are held back. */
    void (*follow)(struct svi_rules *r, const double *x, int d, double time);
    /* The settings have switched it off; there are no members. */
    void (*off)(struct svi_rules *r);
    /* A column starts again. */
    void (*forget)(struct svi_rules *r, int j);
    /* * The row was the last of a block; records and clock still have that block. */
    void (*block)(struct svi_rules *r);

    /* How bad a row is for a member: > 0 if it is bad, 0 if it is well, NaN if it has no evidence.
     * `value` is the value of the column (0 for the stream) on entry, and what is reported on
     * return. NULL: every row is well. */
    double (*badness)(const struct svi_rules *r, const struct svi_rules_member *m, double *value);
    /* The first well row after a bad one. */
    void (*recovers)(struct svi_rules *r, struct svi_rules_member *m);
    /* The member is about to be removed: well for long enough, or (normal) bad for normal_after rows. */
    void (*removed)(struct svi_rules *r, struct svi_rules_member *m, bool normal);
};

/* By enum svi_rule. */
extern const struct svi_rule_kind *const svi_rule_kinds[SVI_RULES];

#define X(constant, name, about) extern const struct svi_rule_kind svi_rule_##name;
SVI_RULES_ALL(X)
#undef X

/* The member (rule, feature); NULL: it is not reported. */
struct svi_rules_member *svi_rules_member(const struct svi_rules *r, int rule, int feature);

/* Adds a member that began at `since`; `time`: now. NULL: out of memory, or all alerts of the rule are closes
 * that are not reported yet. The rule tries again with the next row. Invalidates pointers to
 * other members. */
struct svi_rules_member *svi_rules_add(struct svi_rules *r, int rule, int feature, double since, double time);

/* The member began that many rows before the present one, its alert no later. */
void svi_rules_began(struct svi_rules *r, struct svi_rules_member *m, double rows);

/* Records a bad row of a member: its value, and its excess over the bound. */
void svi_rules_bad(struct svi_rules *r, struct svi_rules_member *m, double value, double excess);

/* A row has arrived (rule_silent.c). */
void svi_rules_arrive(struct svi_rules *r, double arrival);

/* Writes " (usually one every 60 s)", by rows " (usually one every 3 rows)", or "" if `interval` is not
 * finite.
 */
void svi_rule_every(char out[SVI_RULE_PART], bool by_rows, double interval);

/* Is the column reported under the rule? */
static inline bool svi_rules_has(const struct svi_rules *r, int rule, int feature) {
    return r->open_rules[feature] >> rule & 1;
}

/* The series of a column on a side, in the arrays of the records. */
static inline int svi_rules_series(const struct svi_rules *r, enum svi_rules_side side, int j) {
    return (int)side * r->seen.capacity + j;
}

/* The record of a column on a side. */
static inline double svi_rules_most(const struct svi_rules *r, enum svi_rules_side side, int j) {
    return svi_records_most(&r->records, svi_rules_series(r, side, j));
}

/* Highest minus lowest value seen of a column; below 0: it has had none. */
static inline double svi_rules_range(const struct svi_rules *r, int j) {
    return svi_rules_most(r, SVI_RULES_UP, j) + svi_rules_most(r, SVI_RULES_DOWN, j);
}

/* A sensor with fewer values is young: it may not have shown all its states, a machine at rest for one. */
#define SVI_RULES_OLD 2000
static inline bool svi_rules_young(const struct svi_rules *r, int j) {
    return r->seen.values[j] < SVI_RULES_OLD;
}

/* Is v near zero, as that of a machine at rest: within a twentieth of the largest magnitude seen? */
static inline bool svi_rules_rests(const struct svi_rules *r, int j, double v) {
    const double up = svi_rules_most(r, SVI_RULES_UP, j), down = svi_rules_most(r, SVI_RULES_DOWN, j);
    return 20 * fabs(v) <= fmax(fabs(up), fabs(down));
}

/* A reported run of n rows (or seconds) has ended: what was reported twice counts as seen. */
static inline void svi_rules_seen_twice(double *longest, double *reported, double n) {
    const double twice = n < *reported ? n : *reported;
    *reported = n > *reported ? n : *reported;
    *longest = twice > *longest ? twice : *longest;
}

#endif
