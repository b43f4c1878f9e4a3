#include "quality/decision.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

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

/* A class that came as text is the same as one that came as a number: the setting cannot tell them apart. */
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
    if (d->known == d->max_classes)
        return;
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

int svi_decision_of(const struct svi_decision *d, const double *proba, int class_count, int usual) {
    double all = 0;
    for (int k = 0; k < class_count; k++)
        all += proba[k] * d->missed[k];
    for (int k = 0; k < class_count; k++)
        d->expected[k] = all - proba[k] * d->missed[k];
    for (int i = 0; i < d->cost.count; i++) { /* pairs with a price of their own */
        const int truth = d->truth[i], decision = d->decision[i];
        if (truth >= 0 && decision >= 0 && truth < class_count && decision < class_count)
            d->expected[decision] += proba[truth] * (d->cost.price[i].price - d->missed[truth]);
    }
    int best = usual >= 0 && usual < class_count ? usual : 0;
    for (int k = 0; k < class_count; k++)
        best = d->expected[k] < d->expected[best] ? k : best;
    return best;
}

double svi_decision_memory(int max_classes) {
    return 2.0 * max_classes * sizeof(double);
}
