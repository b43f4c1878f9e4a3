#include "svmstream/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "svmstream/svmstream.h"

const char *svs_version(void) {
    return SVS_VERSION;
}

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
    char text[40];
    if (size <= 0)
        return out;
    out[0] = '\0';
    if (v.kind == SVS_INT)
        snprintf(out, (size_t)size, "%lld", (long long)v.as.i);
    else if (v.kind == SVS_STR)
        svi_escape(out, (size_t)size, v.as.s, v.length);
    if (v.kind != SVS_REAL)
        return out;
    /* 15 digits if they identify the number, otherwise 17, which always do: 0.1, not 0.10000000000000001. */
    snprintf(text, sizeof text, "%.15g", v.as.r);
    if (strtod(text, NULL) != v.as.r)
        snprintf(text, sizeof text, "%.17g", v.as.r);
    snprintf(out, (size_t)size, "%s", text);
    return out;
}
