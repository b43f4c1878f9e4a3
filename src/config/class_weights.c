#include "config/class_weights.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "config/rule_settings.h"
#include "base/limits.h"

#define SHOWN 84 /* bytes of an entry in an error text */

/* Does a label read as an integer in text input: digits, perhaps after a sign? */
static bool weights_integer(const char *text, size_t length, int64_t *value) {
    char copy[24], *end;
    if (length == 0 || length >= sizeof copy || strspn(text, "+-0123456789") < length)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *value = strtoll(copy, &end, 10);
    return errno == 0 && *end == '\0' && end[-1] >= '0';
}

static svs_code weights_add(struct svi_class_weights *out, svs_value label, double weight, svs_error *err) {
    char shown[SHOWN];
    for (int i = 0; i < out->count; i++)
        if (svs_value_equal(out->of[i].label, label))
            return svi_fail(err, SVS_SETTING,
                            "class.weight: class %s has two weights, %g and %g: leave out one of them",
                            svs_value_text(label, shown, sizeof shown), out->of[i].weight, weight);
    if (out->count == SVI_CLASS_WEIGHTS_MAX)
        return svi_fail(err, SVS_SETTING, "class.weight: more than %d entries: leave some out",
                        SVI_CLASS_WEIGHTS_MAX);
    out->of[out->count++] = (svs_class_weight){label, weight};
    return SVS_OK;
}

/* Adds the entry LABEL=WEIGHT of `length` bytes. */
static svs_code weights_entry(const char *entry, size_t length, struct svi_class_weights *out,
                              svs_error *err) {
    char shown[SHOWN];
    size_t name = length;
    int64_t integer;
    svi_escape(shown, sizeof shown, entry, length);
    while (name > 0 && entry[name - 1] != '=')
        name--;
    if (name < 2 || name - 1 > SVS_NAME_MAX)
        return svi_fail(
            err, SVS_SETTING,
            "class.weight: '%s' is not an allowed value (none, balanced, or CLASS=WEIGHT,... with "
            "classes of 1 to %d bytes)",
            shown, SVS_NAME_MAX);
    double weight;
    if (!svi_setting_number(entry + name, length - name, &weight) || !(weight > 0))
        return svi_fail(err, SVS_SETTING,
                        "class.weight: the weight of '%s' must be a number above 0 and at most 1e100", shown);
    /* The integer precedes its string: weights_known relies on this order. */
    svs_value label = {.kind = SVS_STR, .length = (uint32_t)name - 1, .as.s = entry};
    if (!weights_integer(entry, name - 1, &integer))
        return weights_add(out, label, weight, err);
    svs_code code = weights_add(out, svs_int(integer), weight, err);
    return code == SVS_OK ? weights_add(out, label, weight, err) : code;
}

svs_code svi_class_weights_read(const char *text, struct svi_class_weights *out, svs_error *err) {
    const bool balanced = strcmp(text, "balanced") == 0;
    out->count = 0;
    out->rule = balanced ? SVS_CLASSES_BALANCED : SVS_CLASSES_ALIKE;
    if (balanced || strcmp(text, "none") == 0)
        return SVS_OK;
    out->rule = SVS_CLASSES_GIVEN;
    for (const char *at = text;; at++) { /* past the comma; an empty entry is refused */
        const size_t length = strcspn(at, ",");
        svs_code code = weights_entry(at, length, out, err);
        at += length;
        if (code != SVS_OK || !*at)
            return code;
    }
}

/* Does entry i name one of the classes? A label that reads as an integer has two entries (twins), of which
 * one needs to match. The string twin is not reported again: its integer, the entry before it, was checked.
 */
static bool weights_known(const struct svi_class_weights *w, int i, const svs_value *classes, int count) {
    const int twin = w->of[i].label.kind == SVS_INT ? i + 1 : i;
    for (int k = 0; k < count; k++)
        if (svs_value_equal(w->of[i].label, classes[k]) || svs_value_equal(w->of[twin].label, classes[k]))
            return true;
    return w->of[i].label.kind == SVS_STR && i > 0 && w->of[i - 1].label.kind == SVS_INT;
}

svs_code svi_class_weights_factors(const struct svi_class_weights *w, const svs_value *classes, int count,
                                   double *factors, svs_error *err) {
    char shown[SHOWN];
    for (int k = 0; k < count; k++) {
        factors[k] = 1;
        for (int i = 0; i < w->count; i++)
            if (svs_value_equal(w->of[i].label, classes[k]))
                factors[k] = w->of[i].weight;
    }
    for (int i = 0; i < w->count; i++)
        if (!weights_known(w, i, classes, count))
            return svi_fail(
                err, SVS_SETTING,
                "class.weight names the class %s, which is not in the file: correct the name or leave it out",
                svs_value_text(w->of[i].label, shown, sizeof shown));
    return SVS_OK;
}
