#include "quality/decision.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "data/cell.h"

#define MAX_PRICE 1e9

/* ---- prices as text */

static struct svi_span decision_trim(struct svi_span s) {
    while (s.at < s.end && *s.at == ' ')
        s.at++;
    while (s.end > s.at && s.end[-1] == ' ')
        s.end--;
    return s;
}

static svs_code decision_wrong(struct svi_span item, const char *why, svs_error *err) {
    char shown[80];
    return svi_fail(err, SVS_SETTING,
                    "decision.cost: '%s' %s: give CLASS=PRICE or TRUTH>DECISION=PRICE, separated by commas, "
                    "or none",
                    svi_span_text(item, shown, sizeof shown), why);
}

static svs_code decision_class(struct svi_span name, struct svi_span item, svs_value *out, svs_error *err) {
    svs_error why;
    name = decision_trim(name);
    if (name.at == name.end)
        return decision_wrong(item, "names no class", err);
    if (svi_cell_label(name, NULL, out, &why) != SVS_OK || out->kind == SVS_REAL)
        return decision_wrong(item, "has a class that cannot be a label", err);
    return SVS_OK;
}

/* Parses one item into the next price. */
static svs_code decision_item(struct svi_decision_cost *c, struct svi_span item, svs_error *err) {
    struct svi_price *p = &c->price[c->count];
    const char *equals = NULL, *arrow = NULL;
    /* The last '=' and the first '>' separate, so a class name may contain '=', and a decision '>'. */
    for (const char *at = item.at; at < item.end; at++) {
        equals = *at == '=' ? at : equals;
        arrow = *at == '>' && !arrow ? at : arrow;
    }
    if (!equals)
        return decision_wrong(item, "has no price", err);
    const struct svi_span number = decision_trim((struct svi_span){equals + 1, item.end});
    if (number.at == number.end || !svi_cell_number(number, &p->price) ||
        !(p->price >= 0 && p->price <= MAX_PRICE))
        return decision_wrong(item, "has a price that is not a number from 0 to 1e9", err);
    /* An arrow after the last '=' is part of the price, not a separator. */
    arrow = arrow < equals ? arrow : NULL;
    p->decision = svs_none();
    svs_code code = decision_class((struct svi_span){item.at, arrow ? arrow : equals}, item, &p->truth, err);
    if (code == SVS_OK && arrow)
        code = decision_class((struct svi_span){arrow + 1, equals}, item, &p->decision, err);
    if (code == SVS_OK && arrow && svs_value_equal(p->truth, p->decision))
        return decision_wrong(item, "is a right decision, which costs nothing", err);
    /* Two prices of one pair would make the decision depend on their order in the text. */
    for (int i = 0; i < c->count && code == SVS_OK; i++)
        if (svs_value_equal(p->truth, c->price[i].truth) &&
            svs_value_equal(p->decision, c->price[i].decision))
            return decision_wrong(item, "is a duplicate", err);
    c->count += code == SVS_OK;
    return code;
}

/* The text is copied first, because the parsed values point into it. `none` and the empty text have no
 * prices. */
svs_code svi_decision_cost_parse(struct svi_decision_cost *c, const char *text, svs_error *err) {
    const size_t length = strnlen(text, SVI_PRICES_TEXT);
    c->count = 0;
    memset(c->text, 0, sizeof c->text);
    memcpy(c->text, text, length);
    if (length == 0 || strcmp(c->text, "none") == 0)
        return SVS_OK;
    /* `at` moves to end + 1 after the last item, so that an empty item after a final comma is still
     * reported. */
    for (const char *at = c->text, *end = at + length; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const struct svi_span item = decision_trim((struct svi_span){at, comma ? comma : end});
        if (c->count == SVI_PRICES_MAX)
            return svi_fail(err, SVS_SETTING, "decision.cost has more than %d prices", SVI_PRICES_MAX);
        SVI_TRY(decision_item(c, item, err));
        at = comma ? comma + 1 : end + 1;
    }
    return SVS_OK;
}

/* ---- decisions */

svs_code svi_decision_new(struct svi_decision *d, int max_classes, svs_error *err) {
    d->max_classes = max_classes;
    d->known = d->cost.count = 0;
    d->missed = svi_alloc_array(2 * (size_t)max_classes, sizeof *d->missed);
    d->expected = d->missed ? d->missed + max_classes : NULL;
    return d->missed ? SVS_OK : svi_fail_memory(err, "the prices of decisions");
}

void svi_decision_free(struct svi_decision *d) {
    svi_free(d->missed);
    d->missed = d->expected = NULL;
}

void svi_decision_forget(struct svi_decision *d) {
    d->known = 0;
    for (int i = 0; i < d->cost.count; i++)
        d->truth[i] = d->decision[i] = -1;
}

void svi_decision_set(struct svi_decision *d, const char *cost) {
    svs_error err;
    if (svi_decision_cost_parse(&d->cost, cost, &err) != SVS_OK)
        d->cost.count = 0;
    svi_decision_forget(d);
}

/* A class given as text equals one given as a number when both print alike: the setting cannot distinguish
 * them. */
static bool decision_names(svs_value named, svs_value class) {
    char number[32], text[32];
    if (named.kind == class.kind || named.kind == SVS_NONE)
        return svs_value_equal(named, class) && named.kind != SVS_NONE;
    if (class.kind != SVS_STR || class.length >= sizeof number)
        return false;
    return strcmp(svs_value_text(named, number, sizeof number), svs_value_text(class, text, sizeof text)) ==
           0;
}

void svi_decision_know(struct svi_decision *d, svs_value class) {
    /* No class beyond the capacity of `missed` can be learned either. */
    if (d->known == d->max_classes)
        return;
    /* Classes arrive after the prices were set, so each new class is matched against all prices. */
    d->missed[d->known] = 1;
    for (int i = 0; i < d->cost.count; i++) {
        const struct svi_price *p = &d->cost.price[i];
        if (decision_names(p->truth, class)) {
            d->truth[i] = d->known;
            d->missed[d->known] = p->decision.kind == SVS_NONE ? p->price : d->missed[d->known];
        }
        if (decision_names(p->decision, class))
            d->decision[i] = d->known;
    }
    d->known++;
}

int svi_decision_of(const struct svi_decision *d, const double *proba, int class_count, int by_score) {
    /* Deciding k costs what missing every other class costs: sum_j p_j missed_j less the part of k itself,
     * which would be right. This is O(classes), where the full matrix would be O(classes^2). */
    double all = 0;
    for (int k = 0; k < class_count; k++)
        all += proba[k] * d->missed[k];
    for (int k = 0; k < class_count; k++)
        d->expected[k] = all - proba[k] * d->missed[k];
    for (int i = 0; i < d->cost.count; i++) { /* pairs with an explicit price replace the general one */
        const int truth = d->truth[i], decision = d->decision[i];
        if (truth >= 0 && decision >= 0 && truth < class_count && decision < class_count)
            d->expected[decision] += proba[truth] * (d->cost.price[i].price - d->missed[truth]);
    }
    /* Starting from the decision of the scores and replacing it only by a strictly lower price keeps it among
     * equals. */
    int best = by_score >= 0 && by_score < class_count ? by_score : 0;
    for (int k = 0; k < class_count; k++)
        best = d->expected[k] < d->expected[best] ? k : best;
    return best;
}

double svi_decision_memory(int max_classes) {
    return 2.0 * max_classes * sizeof(double);
}
