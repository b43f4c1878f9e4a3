/* Mutes in the engine: which columns of the row at hand leave no trace in what is normal. What is held back
 * is the business of the stream (fleet/stream_mutes.c). */
#include "engine/engine_internal.h"

static const char *engine_mutes_name(const void *user, int column) {
    return svi_schema_name(user, column);
}

const struct svi_unlearned *svi_engine_find_unlearned(const struct svi_engine *e, int d,
                                                      struct svi_unlearned *out) {
    return svi_mutes_unlearned(e->common->mutes, e->label, e->time, d, engine_mutes_name, &e->schema, out)
               ? out
               : NULL;
}

bool svi_engine_is_muted(const struct svi_engine *e) {
    return svi_engine_has_mutes(e) && svi_mutes_cover(e->common->mutes, e->label, e->time);
}
