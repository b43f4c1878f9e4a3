/* prefixes.h: a set of prefixes, and whether a name begins with one of them: the subscriptions to single keys
 * of a stream. At most SVI_PREFIXES_MAX are stored. With more, or without memory, the set is `full` and
 * matches every name from then on: too much is then sent to a socket that filters anyway. */
#ifndef SVI_PREFIXES_H
#define SVI_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/event.h"

#define SVI_PREFIXES_MAX 100000

struct svi_prefix; /* a prefix and its hash */

/* Zero-initialised is empty. */
struct svi_prefixes {
    struct svi_prefix **place; /* hash table with `places` slots, a power of two */
    size_t places;
    int count;
    int of_length[SVI_TOPIC_MAX + 1]; /* number of prefixes of each length */
    bool full;
};

void svi_prefixes_clear(struct svi_prefixes *p);

/* length: at most SVI_TOPIC_MAX. Adding a stored prefix, or removing a missing one, has no effect. */
void svi_prefixes_add(struct svi_prefixes *p, const char *text, size_t length);
void svi_prefixes_remove(struct svi_prefixes *p, const char *text, size_t length);

/* Does `name` begin with one of the prefixes? Costs one hash for each length that occurs. */
bool svi_prefixes_match(const struct svi_prefixes *p, const char *name, size_t length);

#endif
