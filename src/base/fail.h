/* fail.h: how a function inside the project reports an error. */
#ifndef SVI_FAIL_H
#define SVI_FAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "svmstream/error.h"

/* Writes code and text into `err` (may be NULL) and returns `code`: `return svi_fail(err, SVS_LIMIT, "...")`.
 */
svs_code svi_fail(svs_error *err, svs_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns from the function at hand with the code of `call`, an svs_code, unless it is SVS_OK. For a function
 * that has nothing to put back: where it has, it looks at the code. */
#define SVI_TRY(call)                                                                                        \
    do {                                                                                                     \
        const svs_code svi_try_code = (call);                                                                \
        if (svi_try_code != SVS_OK)                                                                          \
            return svi_try_code;                                                                             \
    } while (0)

/* SVS_NO_MEMORY, naming what was to be allocated. */
svs_code svi_fail_memory(svs_error *err, const char *what);

/* A zeroed object (svi_alloc), or NULL with SVS_NO_MEMORY, naming it. */
void *svi_new(size_t size, const char *what, svs_error *err);
void *svi_new_plain(size_t size, const char *what, svs_error *err); /* of svi_alloc_plain */

/* The code that svs_code_name calls so; SVS_INVALID for any other name. */
svs_code svi_code_by_name(const char *name);

/* Copies `length` bytes from outside into `out` (at most `size` bytes with the NUL) as printable, valid
 * UTF-8: control characters, marks of the direction of
 * writing and malformed bytes become \xNN; a text that does not fit ends in "...". Returns
 * `out`. */
char *svi_escape(char *out, size_t size, const char *bytes, size_t length);

/* Is an error event of this code about no sample, so that nothing was refused? */
bool svi_code_is_notice(svs_code code);

/* One of these that says what somebody may not have meant: it is no error, counts nowhere but by its code,
 * and the state does not have it. */
bool svi_code_is_remark(svs_code code);

/* How often each code came, the most frequent first, "20 wrong_type, 1 not_finite"; what does not fit is left
 * out. `counts` has SVS_CODE_COUNT numbers. *most (may be NULL): the most frequent one, SVS_OK = none came.
 * Returns `out`. */
char *svi_code_counts(const int64_t *counts, char *out, size_t size, svs_code *most);

/* More than a tenth of the rows of a file refused: the last line says so. More than half: the command fails.
 */
static inline bool svi_refused_many(int64_t refused, int64_t rows) {
    return refused > rows / 10;
}

static inline bool svi_refused_most(int64_t refused, int64_t rows) {
    return refused > rows / 2;
}

/* Adds a name, escaped, to the list "a, b" in `out` (`size` bytes with the NUL). False: it does not fit, and
 * the list ends in "...". */
bool svi_list_add(char *out, size_t size, const char *name, size_t length);
#define SVI_LIST_PAIR 84 /* bytes of a list, two of which go into one error text */

#endif
