/* fail.h: how functions inside the project report an error, and the texts that name errors to people. */
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

/* Returns from the current function with the code of `call`, an svs_code, unless it is SVS_OK. For functions
 * that have nothing to clean up; others must check the code themselves. */
#define SVI_TRY(call)                                                                                        \
    do {                                                                                                     \
        const svs_code svi_try_code = (call);                                                                \
        if (svi_try_code != SVS_OK)                                                                          \
            return svi_try_code;                                                                             \
    } while (0)

/* Fails with SVS_NO_MEMORY: "no memory for WHAT". */
svs_code svi_fail_memory(svs_error *err, const char *what);

/* A zeroed object (svi_alloc), or NULL with SVS_NO_MEMORY, which names it by `what`. */
void *svi_new(size_t size, const char *what, svs_error *err);
void *svi_new_plain(size_t size, const char *what, svs_error *err); /* of svi_alloc_plain */

/* The code of a name as svs_code_name returns it; SVS_INVALID for any other name. */
svs_code svi_code_by_name(const char *name);

/* Copies `length` untrusted bytes into `out` (at most `size` bytes with the NUL) as printable, valid UTF-8:
 * control characters, marks of the writing direction and malformed bytes become \xNN; a text that does not
 * fit ends in "...". Returns `out`. */
char *svi_escape(char *out, size_t size, const char *bytes, size_t length);

/* True when an error event of this code is about no sample: nothing was refused. */
bool svi_code_is_notice(svs_code code);

/* A notice about a probable mistake of the user: not an error, counted only by its code, and not part of the
 * state. */
bool svi_code_is_remark(svs_code code);

/* The counts of codes as text, the most frequent first: "20 wrong_type, 1 not_finite". Codes that do not fit
 * are omitted. `counts` has SVS_CODE_COUNT numbers. *most (may be NULL): the most frequent code, SVS_OK when
 * all counts are 0. Returns `out`. */
char *svi_code_counts(const int64_t *counts, char *out, size_t size, svs_code *most);

/* More than a tenth of a file's rows refused: the last line of output reports it. More than half: the command
 * fails. */
static inline bool svi_refused_many(int64_t refused, int64_t rows) {
    return refused > rows / 10;
}

static inline bool svi_refused_most(int64_t refused, int64_t rows) {
    return refused > rows / 2;
}

/* Appends a name, escaped, to the list "a, b" in `out` (`size` bytes with the NUL). False: it does not fit;
 * the list then ends in "...". */
bool svi_list_add(char *out, size_t size, const char *name, size_t length);
#define SVI_LIST_PAIR 84 /* bytes of a list of which two fit one error text */

#endif
