#include "merge/part.h"

const char *svi_part_state_name(enum svi_part_state state) {
    static const char *const words[] = {
#define X(constant, word) #word,
        SVI_PART_STATES(X)
#undef X
    };
    return words[state];
}
