/* Any bytes: the decoder must neither crash nor disagree with msgpack-c. */
#include <stdint.h>
#include <stdlib.h>

#include "support/schema.h"
#include "wire/oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct svi_schema s;
    if (schema_open(&s, 32, size % 5 == 4 ? "a,b,c" : NULL, NULL) != SVS_OK)
        abort();
    const char *problem = oracle_form(data, size);
    if (!problem)
        problem = oracle_values(data, size, &s, NULL);
    svi_schema_clear(&s);
    if (problem)
        abort();
    return 0;
}
