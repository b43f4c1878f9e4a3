#include "tally.h"

#include <string.h>

const char *const http_tally_methods[HTTP_TALLY_METHOD_COUNT] = {
#define X(constant, name) name,
    HTTP_TALLY_METHODS(X)
#undef X
};

void http_tally_request(struct http_tally *t, const char *method, int status) {
    int of = 0;
    if (status < HTTP_TALLY_FIRST || status >= HTTP_TALLY_FIRST + HTTP_TALLY_CODES)
        return;
    while (of < HTTP_TALLY_OTHER && strcmp(http_tally_methods[of], method) != 0)
        of++;
    t->requests[of][status - HTTP_TALLY_FIRST]++;
}
