/* Prints a bank from the bytes of its event, without building a structure of it: fields are read where they
 * are used, and an invalid part is skipped. */
#include "report/bank_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/human.h"
#include "wire/fields.h"

#define STACKS   3
#define LOGISTIC 2
#define MIXED    8 /* experts of a mixture that are printed at most */
#define NAME     64
#define COLUMN   10 /* characters of a stack's weight, of a member's name more */
#define MEMBER   21

struct bank_parts {
    const uint8_t *members, *experts, *mixture;
};

struct member_part {
    char name[NAME];
    double recent, vote, share, keep;
    int64_t window;
    const uint8_t *stacks, *logistic;
};

static const struct svi_field member_fields[] = {
    SVI_FIELD_STRING(struct member_part, name),
    SVI_FIELD_OPTIONAL(struct member_part, recent, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, vote, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, share, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, keep, REAL, 0, 1),
    SVI_FIELD_OPTIONAL(struct member_part, window, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(struct member_part, stacks, ANY, 0, 0),
    SVI_FIELD_OPTIONAL(struct member_part, logistic, ANY, 0, 0)};

/* Reads the entry at *at and moves past it, even if it is invalid. False: invalid. */
static bool next_part(const uint8_t **at, const uint8_t *end, struct member_part *m) {
    *m = (struct member_part){.recent = NAN, .vote = NAN, .share = NAN, .keep = NAN, .window = -1};
    const svs_code code = svi_fields_read("a member", SVI_FIELDS(member_fields), *at, end, m, NULL);
    /* Past the entry even if it was invalid, so that the next one can be read. */
    svi_walk(at, end, SVI_WALK_MAX);
    return code == SVS_OK;
}

static void report_number(FILE *to, int width, double value) {
    char text[SVI_HUMAN];
    fprintf(to, " %*s", width, svi_human_digits(text, value, 4));
}

/* The first `most` numbers of an array; nothing without an array. */
static void report_weights(FILE *to, const uint8_t *at, uint32_t most) {
    struct svi_item list, item;
    at = at ? svi_item_read(at, &list) : NULL;
    for (uint32_t i = 0; at && list.type == SVI_ARRAY && i < list.length && i < most; i++) {
        double weight;
        at = svi_item_read(at, &item);
        report_number(to, COLUMN, svi_item_number(&item, &weight) ? weight : NAN);
    }
}

/* A member that takes part in no stack has no weights: its line just ends earlier. */
static void report_member(FILE *to, const struct member_part *m) {
    char name[4 * NAME];
    svi_escape(name, sizeof name, m->name, strlen(m->name));
    fprintf(to, "  %-*s", MEMBER, name);
    report_number(to, 9, m->recent);
    report_number(to, 9, m->vote);
    report_weights(to, m->stacks, STACKS);
    report_weights(to, m->logistic, LOGISTIC);
    fputc('\n', to);
}

/* Prints the head of the table, with the windows of the stacks, or the line of their shares. */
static void report_experts(FILE *to, const struct bank_parts *parts, const uint8_t *end, bool head) {
    struct svi_item experts;
    struct member_part m;
    const uint8_t *at = svi_item_read(parts->experts, &experts);
    if (head)
        fprintf(to, "  %-*s %9s", MEMBER, "member", "recent");
    else
        fprintf(to, "  %-*s", MEMBER + 10,
                parts->mixture ? "share of the combination" : "share of the answer");
    /* Entry 0 is the vote of the members, the others are the stacks. */
    for (uint32_t i = 0; experts.type == SVI_ARRAY && i < experts.length && i <= STACKS; i++) {
        char title[32] = "stack all";
        if (!next_part(&at, end, &m))
            continue;
        if (m.window > 0)
            snprintf(title, sizeof title, "stack %" PRId64, m.window);
        if (head)
            fprintf(to, " %*.16s", i > 0 ? COLUMN : 9, m.window >= 0 ? title : m.name);
        else
            report_number(to, i > 0 ? COLUMN : 9, m.share);
    }
    for (uint32_t i = 0; head && parts->mixture && i < LOGISTIC; i++)
        fprintf(to, " %*s", COLUMN, "logistic");
    fputc('\n', to);
}

/* Of classes: the share of each expert of the mixture, and the memory of the logistic stacks, in samples. */
static void report_mixture(FILE *to, const uint8_t *at, const uint8_t *end) {
    struct svi_item mixture;
    struct member_part m;
    at = svi_item_read(at, &mixture);
    const char *between = "  share of the answer: ";
    for (uint32_t i = 0; mixture.type == SVI_ARRAY && i < mixture.length && i < MIXED; i++) {
        char name[4 * NAME], share[SVI_HUMAN];
        if (!next_part(&at, end, &m))
            continue;
        svi_escape(name, sizeof name, m.name, strlen(m.name));
        fprintf(to, "%s%s", between, name);
        if (m.keep < 1)
            fprintf(to, " %.0f", 1 / (1 - m.keep));
        fprintf(to, " %s", svi_human_digits(share, m.share, 4));
        between = ", ";
    }
    fputc('\n', to);
}

void svi_bank_report(FILE *to, const uint8_t *bank, const uint8_t *end) {
    static const struct svi_field fields[] = {SVI_FIELD(struct bank_parts, members, ANY, 0, 0),
                                              SVI_FIELD(struct bank_parts, experts, ANY, 0, 0),
                                              SVI_FIELD_OPTIONAL(struct bank_parts, mixture, ANY, 0, 0)};
    struct bank_parts parts = {0};
    struct svi_item members;
    struct member_part m;
    if (svi_fields_read("a bank", SVI_FIELDS(fields), bank, end, &parts, NULL) != SVS_OK)
        return;
    /* The list of experts is read twice: for the head of the table and for the line below it. */
    report_experts(to, &parts, end, true);
    const uint8_t *at = svi_item_read(parts.members, &members);
    for (uint32_t i = 0; members.type == SVI_ARRAY && i < members.length; i++)
        if (next_part(&at, end, &m))
            report_member(to, &m);
    report_experts(to, &parts, end, false);
    if (parts.mixture)
        report_mixture(to, parts.mixture, end);
}
