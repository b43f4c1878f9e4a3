/* value.h: a label or an id: nothing, an integer, a real number or a string.
 *
 * A value is a view: its string is not copied and must outlive the value. 7 and "7" differ. */
#ifndef SVMSTREAM_VALUE_H
#define SVMSTREAM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "svmstream/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SVS_NAME_MAX 64 /* longest id, string label or feature name, in bytes without a NUL */
#define SVS_KEY_MAX  64 /* longest stream key, in bytes without a NUL */

enum svs_value_kind { SVS_NONE = 0, SVS_INT, SVS_REAL, SVS_STR };

typedef struct svs_value {
    uint8_t kind;    /* enum svs_value_kind */
    uint32_t length; /* of the string, bytes; 0 otherwise */
    union {
        int64_t i;
        double r;
        const char *s; /* not NUL-terminated */
    } as;
} svs_value;

/* Make a value of each kind. */
SVS_API svs_value svs_none(void);
SVS_API svs_value svs_int(int64_t i);
SVS_API svs_value svs_real(double r);
SVS_API svs_value svs_str(const char *s); /* NUL-terminated; kept as a view */

/* Same kind and same content. */
SVS_API bool svs_value_equal(svs_value a, svs_value b);

/* Writes the value as text for people (7, 0.5, spam) into `out`, at most `size` bytes with the NUL; bytes
 * that are not printable UTF-8 are escaped. Returns `out`. */
SVS_API char *svs_value_text(svs_value v, char *out, int size);

#ifdef __cplusplus
}
#endif
#endif
