/* prefixes.h: a set of texts, asked which of them a name begins with: subscriptions to some keys of a stream.
 * At most SVI_PREFIXES_MAX of them are kept. When there are more, or memory lacks, it is `full`, and says of
 * each name from then on that it begins with one: too much is sent to a socket that filters anyway. */
#ifndef SVI_PREFIXES_H
#define SVI_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/event.h"

#define SVI_PREFIXES_MAX 100000

struct svi_prefix; /* a text and its hash */

/* Zero-initialised is empty. */
struct svi_prefixes {
    struct svi_prefix **place; /* by hash, `places` of them, a power of two */
    size_t places;
    int count;
    int of_length[SVI_TOPIC_MAX + 1]; /* how many have that length */
    bool full;
};

void svi_prefixes_clear(struct svi_prefixes *p);

/* length: at most SVI_TOPIC_MAX. One that is there already, or not there, changes nothing. */
void svi_prefixes_add(struct svi_prefixes *p, const char *text, size_t length);
void svi_prefixes_remove(struct svi_prefixes *p, const char *text, size_t length);

/* Does it begin with one of them? Cost: a hash for each length there is. */
bool svi_prefixes_match(const struct svi_prefixes *p, const char *name, size_t length);

#endif
