/* columns_template.h: the loops of the plain rules (kernels.h: columns_pass, columns_seen) for COLUMNS_W
 * columns at a time. Included once for each width, from the widest to single columns; each continues where
 * the one before stopped. Comparisons and selections only: the same bits for all widths. */
#define OF(name) JOIN(name, COLUMNS_W)

typedef double OF(columns) __attribute__((vector_size(8 * COLUMNS_W), aligned(8)));
typedef long long OF(marks) __attribute__((vector_size(8 * COLUMNS_W)));

INLINE OF(columns) OF(pick)(OF(marks) which, OF(columns) a, OF(columns) b) {
    return (OF(columns))((which & (OF(marks))a) | (~which & (OF(marks))b));
}

/* The larger one; b when either is NaN or both are 0, as the processor's own instruction defines it: all
 * widths must agree on -0. */
INLINE OF(columns) OF(larger)(OF(columns) a, OF(columns) b) {
#if defined(MAX_WIDE) && COLUMNS_W == VW
    return (OF(columns))MAX_WIDE(a, b);
#else
    return OF(pick)(a > b, a, b);
#endif
}

INLINE OF(columns) OF(size)(OF(columns) a) {
    return (OF(columns))((OF(marks))a & 0x7fffffffffffffff);
}

/* The mask of the columns from j on that need a closer look, given their values v. Every comparison with NaN
 * is false, so a missing value never does. */
INLINE OF(marks)
    OF(stir_at)(const struct svi_column_seen *c, const double *beyond, OF(columns) v, int j, int sides) {
#define AT(p) (*(const OF(columns) *)((p) + j))
    const OF(columns) last = AT(c->last);
    OF(marks) any = (v > AT(beyond)) | (-v > AT(beyond + c->capacity)) | (v < AT(c->low)) | (v > AT(c->high));
    any |= (v == last) & (AT(c->run) >= AT(c->patient));
    if (sides > 2)
        any |= OF(size)(v - last) > AT(beyond + 2 * c->capacity);
    return any;
#undef AT
}

INLINE int OF(columns_stir)(const struct svi_column_seen *c, const double *beyond, const double *x, int j,
                            int d, int sides, OF(marks) * any) {
    for (; j + COLUMNS_W <= d; j += COLUMNS_W)
        *any |= OF(stir_at)(c, beyond, *(const OF(columns) *)(x + j), j, sides);
    return j;
}

INLINE bool OF(some)(OF(marks) any) {
#if defined(ANY_WIDE) && COLUMNS_W == VW
    return ANY_WIDE(any);
#else
    long long all = 0;
    for (int k = 0; k < COLUMNS_W; k++)
        all |= any[k];
    return all != 0;
#endif
}

/* Books the values v of the columns from j on, and s in the records (NaN: no record). */
INLINE void OF(seen_at)(const struct svi_column_seen *c, double *record, OF(columns) s, OF(columns) v,
                        OF(columns) now, int j, int sides) {
    const OF(columns) one = (OF(columns)){0} + 1.0;
#define AT(p) (*(OF(columns) *)((p) + j))
    const OF(columns) last = AT(c->last), run = AT(c->run);
    AT(record) = OF(larger)(s, AT(record));
    AT(record + c->capacity) = OF(larger)(-s, AT(record + c->capacity));
    if (sides > 2)
        AT(record + 2 * c->capacity) = OF(larger)(OF(size)(s - last), AT(record + 2 * c->capacity));
    /* A change of value closes a run; a missing value neither closes nor extends it. last is NaN before the
     * first value, so that one counts as a change. */
    const OF(marks) known = v == v, other = known & (v != last);
    const OF(columns) more = (OF(columns))(known & (OF(marks))one);
    AT(c->longest) = OF(larger)((OF(columns))(other & (OF(marks))run), AT(c->longest));
    AT(c->run) = (OF(columns))(~other & (OF(marks))run) + more;
    AT(c->changed_at) = OF(pick)(other, now, AT(c->changed_at));
    AT(c->last) = OF(pick)(known, v, last);
    AT(c->runs) += (OF(columns))(other & (OF(marks))one);
    AT(c->values) += more;
#undef AT
}

INLINE int OF(columns_seen)(const struct svi_column_seen *c, double *record, const double *seen,
                            const double *x, double time, int j, int d, int sides) {
    for (; j + COLUMNS_W <= d; j += COLUMNS_W)
        OF(seen_at)
    (c, record, *(const OF(columns) *)(seen + j), *(const OF(columns) *)(x + j), (OF(columns)){0} + time, j,
     sides);
    return j;
}

#undef OF
#undef COLUMNS_W
