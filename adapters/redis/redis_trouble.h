/* redis_trouble.h: errors of a server that are no answer to a command, but a state of the server or of our
 * rights there, with what to do. */
#ifndef REDIS_TROUBLE_H
#define REDIS_TROUBLE_H

#include <stdbool.h>

struct redis_trouble {
    const char *word; /* with which the error begins */
    bool retry;       /* it may pass */
    const char *text; /* for a person */
};

/* NULL: another error, which is the answer to the command. */
const struct redis_trouble *redis_trouble_find(const char *error);

/* What to do about an error that is the answer to one of our scripts. */
const char *redis_trouble_of_script(const char *error);

#endif
