/* Prints a reply to `keys` from its bytes. An entry without its required fields is skipped; a quality that is
 * not known is shown as "-". */
#include "report/key_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/human.h"
#include "base/text.h"
#include "wire/fields.h"

#define KEY_WIDTH 24 /* characters */

struct key_reply {
    int64_t count, matching, unkeyed;
    char measure[32], error[SVS_ERROR_TEXT];
    const uint8_t *keys;
};

struct key_line {
    char key[SVS_KEY_MAX + 1];
    int64_t rows, alerts, open;
    double age, quality;
};

int svi_key_width(const char *name) {
    int width = KEY_WIDTH;
    for (; *name; name++)
        width += (*name & 0xc0) == 0x80; /* a continuation byte of UTF-8 */
    return width;
}

static void key_line_write(FILE *to, const struct key_line *k) {
    char name[4 * SVS_KEY_MAX + 4], age[SVI_HUMAN], quality[SVI_HUMAN], open[32] = "";
    svi_escape(name, sizeof name, k->key, strlen(k->key));
    if (k->open > 0)
        snprintf(open, sizeof open, ", %" PRId64 " open", k->open);
    fprintf(to, "%-*s %10" PRId64 " %16s %10s %8" PRId64 "%s\n", svi_key_width(name), name, k->rows,
            svi_human_duration(age, k->age), svi_human_digits(quality, k->quality, 4), k->alerts, open);
}

static void key_lines_write(FILE *to, const struct key_reply *r, const uint8_t *end, int64_t *shown) {
    static const struct svi_field fields[] = {
        SVI_FIELD_STRING(struct key_line, key),
        SVI_FIELD(struct key_line, rows, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct key_line, alerts, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct key_line, open, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD(struct key_line, age, REAL, 0, INFINITY),
        SVI_FIELD_OPTIONAL(struct key_line, quality, REAL, -INFINITY, INFINITY)};
    struct svi_item list;
    const uint8_t *at = svi_item_read(r->keys, &list);
    const size_t name = strcspn(r->measure, "."); /* ".w" (over the window) is dropped */
    if (list.type == SVI_ARRAY && list.length > 0)
        fprintf(to, "%-*s %10s %16s %10.*s %8s\n", KEY_WIDTH, "key", "rows", "silent for", (int)name,
                r->measure, "alerts");
    for (*shown = 0; list.type == SVI_ARRAY && *shown < list.length; ++*shown) {
        struct key_line k = {.quality = NAN};
        if (svi_fields_read("a key", SVI_FIELDS(fields), at, end, &k, NULL) == SVS_OK)
            key_line_write(to, &k);
        svi_walk(&at, end, SVI_WALK_MAX);
    }
}

svs_code svi_key_report(FILE *to, const uint8_t *reply, const uint8_t *end, svs_error *err) {
    static const struct svi_field fields[] = {
        SVI_FIELD_OPTIONAL(struct key_reply, count, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD_OPTIONAL(struct key_reply, matching, INTEGER, 0, SVI_FIELD_UNLIMITED),
        SVI_FIELD_OPTIONAL(struct key_reply, unkeyed, INTEGER, 0, SVI_FIELD_UNLIMITED),
        {"measure", SVI_FIELD_TEXT, offsetof(struct key_reply, measure), 0,
         sizeof((struct key_reply *)0)->measure, NULL, true},
        {"error", SVI_FIELD_TEXT, offsetof(struct key_reply, error), 0, sizeof((struct key_reply *)0)->error,
         NULL, true},
        SVI_FIELD_OPTIONAL(struct key_reply, keys, ANY, 0, 0)};
    struct key_reply r = {0};
    int64_t shown;
    /* All fields are optional, since an error reply has none of the others. */
    SVI_TRY(svi_fields_read("the reply", SVI_FIELDS(fields), reply, end, &r, err));
    if (r.error[0] || !r.keys)
        return svi_fail(err, SVS_INVALID, "%s", r.error[0] ? r.error : "the reply has no list of keys");
    if (!to)
        return SVS_OK;
    key_lines_write(to, &r, end, &shown);
    if (r.matching < r.count || shown < r.matching)
        fprintf(to, "%" PRId64 " of %" PRId64 " keys%s\n", shown, r.count,
                shown < r.matching ? ": --limit shows more" : "");
    else
        fprintf(to, "%" PRId64 " key%s\n", r.count, r.count == 1 ? "" : "s");
    if (r.unkeyed > 0)
        fprintf(to, "%" PRId64 " row%s without a key\n", r.unkeyed, r.unkeyed == 1 ? "" : "s");
    return SVS_OK;
}
