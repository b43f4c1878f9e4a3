/* Prints a bank from the bytes of its event, without building a structure of it: fields are read where they
 * are used, and an invalid part is skipped. */
#include "report/bank_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/human.h"
#include "wire/fields.h"

#define STACKS 3
#define NAME   64

struct bank_parts {
    const uint8_t *members, *experts;
};

struct member_part {
    char name[NAME];
    double recent, vote, share;
    int64_t window;
    const uint8_t *stacks;
};

static const struct svi_field member_fields[] = {
    SVI_FIELD_STRING(struct member_part, name),
    SVI_FIELD_OPTIONAL(struct member_part, recent, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, vote, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, share, REAL, -INFINITY, INFINITY),
    SVI_FIELD_OPTIONAL(struct member_part, window, INTEGER, 0, SVI_FIELD_UNLIMITED),
    SVI_FIELD_OPTIONAL(struct member_part, stacks, ANY, 0, 0)};

/* Reads the entry at *at and moves past it, even if it is invalid. False: invalid. */
static bool next_part(const uint8_t **at, const uint8_t *end, struct member_part *m) {
    *m = (struct member_part){.recent = NAN, .vote = NAN, .share = NAN, .window = -1};
    const svs_code code = svi_fields_read("a member", SVI_FIELDS(member_fields), *at, end, m, NULL);
    /* Past the entry even if it was invalid, so that the next one can be read. */
    svi_walk(at, end, SVI_WALK_MAX);
    return code == SVS_OK;
}

static void report_number(FILE *to, int width, double value) {
    char text[SVI_HUMAN];
    fprintf(to, " %*s", width, svi_human_digits(text, value, 4));
}

/* A member that takes part in no stack has no weights: its line just ends earlier. */
static void report_member(FILE *to, const struct member_part *m) {
    char name[4 * NAME];
    struct svi_item stacks, item;
    svi_escape(name, sizeof name, m->name, strlen(m->name));
    fprintf(to, "  %-18s", name);
    report_number(to, 9, m->recent);
    report_number(to, 9, m->vote);
    const uint8_t *at = m->stacks ? svi_item_read(m->stacks, &stacks) : NULL;
    for (uint32_t i = 0; at && stacks.type == SVI_ARRAY && i < stacks.length && i < STACKS; i++) {
        double weight;
        at = svi_item_read(at, &item);
        report_number(to, 10, svi_item_number(&item, &weight) ? weight : NAN);
    }
    fputc('\n', to);
}

/* Prints the head of the table, with the windows of the stacks, or its last line, with their shares of the
 * answer. */
static void report_experts(FILE *to, const uint8_t *at, const uint8_t *end, bool head) {
    struct svi_item experts;
    struct member_part m;
    at = svi_item_read(at, &experts);
    fprintf(to, head ? "  %-18s %9s" : "  %-28s", head ? "member" : "share of the answer", "recent");
    /* Entry 0 is the vote of the members, the others are the stacks. */
    for (uint32_t i = 0; experts.type == SVI_ARRAY && i < experts.length && i <= STACKS; i++) {
        char title[32] = "stack all";
        if (!next_part(&at, end, &m))
            continue;
        if (m.window > 0)
            snprintf(title, sizeof title, "stack %" PRId64, m.window);
        if (head)
            fprintf(to, " %*.16s", i > 0 ? 10 : 9, m.window >= 0 ? title : m.name);
        else
            report_number(to, i > 0 ? 10 : 9, m.share);
    }
    fputc('\n', to);
}

void svi_bank_report(FILE *to, const uint8_t *bank, const uint8_t *end) {
    static const struct svi_field fields[] = {SVI_FIELD(struct bank_parts, members, ANY, 0, 0),
                                              SVI_FIELD(struct bank_parts, experts, ANY, 0, 0)};
    struct bank_parts parts = {0};
    struct svi_item members;
    struct member_part m;
    if (svi_fields_read("a bank", SVI_FIELDS(fields), bank, end, &parts, NULL) != SVS_OK)
        return;
    /* The list of experts is read twice: for the head of the table and for its last line. */
    report_experts(to, parts.experts, end, true);
    const uint8_t *at = svi_item_read(parts.members, &members);
    for (uint32_t i = 0; members.type == SVI_ARRAY && i < members.length; i++)
        if (next_part(&at, end, &m))
            report_member(to, &m);
    report_experts(to, parts.experts, end, false);
}
