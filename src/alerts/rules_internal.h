/* rules_internal.h: a plain rule is one file, rule_NAME.c, and one line of SVI_RULES_ALL
 * (config/rule_settings.h). The file defines the row of the rule, svi_rule_NAME: what it looks for and what
 * it says. The frame (rules.c, rule_report.c) calls the row and knows no rule by name.
 *
 * A figure that goes by the rule (rows, times, seconds) is a constant of its file; where the frame needs it,
 * it is a member of the row. */
#ifndef SVI_RULES_INTERNAL_H
#define SVI_RULES_INTERNAL_H

#include "alerts/alert_text.h"
#include "alerts/rules.h"

/* Series of the records: values, negated values, steps. */
enum svi_rules_side { SVI_RULES_UP, SVI_RULES_DOWN, SVI_RULES_STEP, SVI_RULES_SIDES };

#define SVI_RULE_PART (SVI_ALERT_NAME + SVI_HUMAN_UNIT + 4 * SVI_HUMAN + 60) /* of a line, one member */

/* What the text of a member is made of. */
struct svi_rule_words {
    const struct svi_rules *r;
    const struct svi_rules_member *m;
    char name[SVI_ALERT_NAME], unit[SVI_HUMAN_UNIT]; /* as they stand in a line */
    bool key;                                        /* the stream is one of a key */
    double time;
};

/* A hook that is NULL does nothing. Those marked * may add a member. */
struct svi_rule_kind {
    bool of_stream; /* of the stream as a whole, by arrival; else of columns, by the time of rows */
    bool lasts;     /* what counts is for how many rows it is bad (`high`: before), not how bad one is */
    bool valueless; /* its event has no value */
    int64_t normal_after; /* bad rows, after which what they show is normal; 0: it never is */
    const char *again;    /* a line that closes: "moving again" */
    const char *of_key;   /* what the rule is called of a key's stream; NULL: as always */
    void (*text)(char out[SVI_RULE_PART], const struct svi_rule_words *w);

    /* * A row of which a column has no value, or the row before it. gaps: as in svi_rules_row. */
    void (*gaps)(struct svi_rules *r, const uint8_t *gaps, int d, double time);
    /* Of the columns of a row that does not pass (rules_passes): * the step of each; * the value of one that
     * stirs. look returns whether the value must not count as seen. */
    void (*step)(struct svi_rules *r, int j, double step, double time);
    bool (*look)(struct svi_rules *r, int j, double v, double time);
    /* * The row was the last of a block, which has not ended yet. */
    void (*block)(struct svi_rules *r);

    /* How bad a row is for a member, with its value (0: of the stream) in *value, which becomes what is
     * reported: above 0; well: 0; NAN: the row says nothing of it. NULL: any row is well. */
    double (*badness)(const struct svi_rules *r, const struct svi_rules_member *m, double *value);
    void (*recovers)(struct svi_rules *r,
                     struct svi_rules_member *m); /* the first well row after a bad one */
    /* The member is removed: it was well for long enough, or (normal) bad for normal_after rows. */
    void (*leaves)(struct svi_rules *r, struct svi_rules_member *m, bool normal);
};

/* By enum svi_rule. */
extern const struct svi_rule_kind *const svi_rule_kinds[SVI_RULES];

#define X(constant, name, about) extern const struct svi_rule_kind svi_rule_##name;
SVI_RULES_ALL(X)
#undef X

/* NULL: it is not reported. */
struct svi_rules_member *svi_rules_member(const struct svi_rules *r, int rule, int feature);

/* A new member, which begins at `since`. NULL: its rule has no place for an alert, as long as the close of
 * another is not reported, or there is no memory; the rule tries again with the next row. */
struct svi_rules_member *svi_rules_add(struct svi_rules *r, int rule, int feature, double since, double time);

/* A bad row of a member: its value, and by how much it is too much. */
void svi_rules_bad(struct svi_rules *r, struct svi_rules_member *m, double value, double excess);

/* A row has arrived (rule_silent.c). */
void svi_rules_arrive(struct svi_rules *r, double arrival);

/* " (a row usually every 60 s)" after a text; "" where it is not known. */
#define SVI_RULE_EVERY (SVI_HUMAN + 32)
const char *svi_rule_every(char out[SVI_RULE_EVERY], const char *what, double seconds);

/* Is the column reported under the rule? */
static inline bool svi_rules_has(const struct svi_rules *r, int rule, int feature) {
    return r->told[feature] >> rule & 1;
}

/* The series of a column on a side. */
static inline int svi_rules_series(const struct svi_rules *r, enum svi_rules_side side, int j) {
    return (int)side * r->seen.capacity + j;
}

/* The record of a column on a side. */
static inline double svi_rules_most(const struct svi_rules *r, enum svi_rules_side side, int j) {
    return svi_records_most(&r->records, svi_rules_series(r, side, j));
}

/* What was reported has ended after n: what has come twice counts as seen. */
static inline void svi_rules_seen_twice(double *longest, double *reported, double n) {
    const double twice = n < *reported ? n : *reported;
    *reported = n > *reported ? n : *reported;
    *longest = twice > *longest ? twice : *longest;
}

#endif
