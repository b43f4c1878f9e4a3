#include "config/decision_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/cell.h"

#define PRICE_MOST 1e9

static struct svi_span cost_trim(struct svi_span s) {
    while (s.at < s.end && *s.at == ' ')
        s.at++;
    while (s.end > s.at && s.end[-1] == ' ')
        s.end--;
    return s;
}

static svs_code cost_wrong(struct svi_span item, const char *why, svs_error *err) {
    char shown[80];
    return svi_fail(err, SVS_SETTING,
                    "decision.cost: '%s' %s: give CLASS=PRICE or TRUTH>DECISION=PRICE, separated by commas, "
                    "or none",
                    svi_span_text(item, shown, sizeof shown), why);
}

static svs_code cost_class(struct svi_span name, struct svi_span item, svs_value *out, svs_error *err) {
    svs_error why;
    name = cost_trim(name);
    if (name.at == name.end)
        return cost_wrong(item, "names no class", err);
    if (svi_cell_label(name, NULL, out, &why) != SVS_OK || out->kind == SVS_REAL)
        return cost_wrong(item, "has a class that cannot be a label", err);
    return SVS_OK;
}

static svs_code cost_item(struct svi_decision_cost *c, struct svi_span item, svs_error *err) {
    struct svi_price *p = &c->price[c->count];
    const char *equals = NULL, *arrow = NULL;
    for (const char *at = item.at; at < item.end; at++) {
        equals = *at == '=' ? at : equals;
        arrow = *at == '>' && !arrow ? at : arrow;
    }
    if (!equals)
        return cost_wrong(item, "has no price", err);
    const struct svi_span number = cost_trim((struct svi_span){equals + 1, item.end});
    if (number.at == number.end || !svi_cell_number(number, &p->price) ||
        !(p->price >= 0 && p->price <= PRICE_MOST))
        return cost_wrong(item, "has a price that is no number from 0 to 1e9", err);
    arrow = arrow < equals ? arrow : NULL;
    p->decision = svs_none();
    svs_code code = cost_class((struct svi_span){item.at, arrow ? arrow : equals}, item, &p->truth, err);
    if (code == SVS_OK && arrow)
        code = cost_class((struct svi_span){arrow + 1, equals}, item, &p->decision, err);
    if (code == SVS_OK && arrow && svs_value_equal(p->truth, p->decision))
        return cost_wrong(item, "is a right decision, which costs nothing", err);
    for (int i = 0; i < c->count && code == SVS_OK; i++)
        if (svs_value_equal(p->truth, c->price[i].truth) &&
            svs_value_equal(p->decision, c->price[i].decision))
            return cost_wrong(item, "is a duplicate", err);
    c->count += code == SVS_OK;
    return code;
}

svs_code svi_decision_cost_parse(struct svi_decision_cost *c, const char *text, svs_error *err) {
    const size_t length = strnlen(text, SVI_PRICES_TEXT);
    c->count = 0;
    memset(c->text, 0, sizeof c->text);
    memcpy(c->text, text, length);
    if (length == 0 || strcmp(c->text, "none") == 0)
        return SVS_OK;
    for (const char *at = c->text, *end = at + length; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const struct svi_span item = cost_trim((struct svi_span){at, comma ? comma : end});
        if (c->count == SVI_PRICES_MAX)
            return svi_fail(err, SVS_SETTING, "decision.cost has more than %d prices", SVI_PRICES_MAX);
        svs_code code = cost_item(c, item, err);
        if (code != SVS_OK)
            return code;
        at = comma ? comma + 1 : end + 1;
    }
    return SVS_OK;
}
