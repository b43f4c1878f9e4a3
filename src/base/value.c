#include "svmstream/value.h"

#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/fail.h"

svs_value svs_none(void) {
    return (svs_value){.kind = SVS_NONE};
}

svs_value svs_int(int64_t i) {
    return (svs_value){.kind = SVS_INT, .as.i = i};
}

svs_value svs_real(double r) {
    return (svs_value){.kind = SVS_REAL, .as.r = r};
}

svs_value svs_str(const char *s) {
    return (svs_value){.kind = SVS_STR, .length = (uint32_t)strlen(s), .as.s = s};
}

bool svs_value_equal(svs_value a, svs_value b) {
    if (a.kind != b.kind)
        return false;
    if (a.kind == SVS_INT)
        return a.as.i == b.as.i;
    if (a.kind == SVS_REAL)
        return a.as.r == b.as.r;
    return a.kind != SVS_STR ||
           (a.length == b.length && (a.length == 0 || memcmp(a.as.s, b.as.s, a.length) == 0));
}

char *svs_value_text(svs_value v, char *out, int size) {
    char text[SVI_DECIMAL_MAX];
    if (size <= 0)
        return out;
    out[0] = '\0';
    if (v.kind == SVS_INT)
        snprintf(out, (size_t)size, "%lld", (long long)v.as.i);
    else if (v.kind == SVS_STR)
        svi_escape(out, (size_t)size, v.as.s, v.length);
    if (v.kind != SVS_REAL)
        return out;
    svi_decimal_shortest(text, v.as.r, false);
    snprintf(out, (size_t)size, "%s", text);
    return out;
}
