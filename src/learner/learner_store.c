/* What is always with a learner besides its rows, in one block: so that one of many is few pieces of memory,
 * and close together: first behind the learner itself. A part that outgrows its room moves all of them to a
 * block of their own. Where learners change places, the store of the one that is to stay is apart. */
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

/* Bytes of a learner, behind which its first store is. */
#define STORE_BEGIN ((sizeof(svs_learner) + sizeof(double) - 1) / sizeof(double) * sizeof(double))

/* Where the parts are, by the doubles before each. */
struct store {
    size_t mean, inverse, ridge, held, packed, classes, unscaled, size; /* size: bytes */
};

static struct store store_lay_out(const svs_options *o, int features, int rows, int classes, bool packs) {
    const size_t d = (size_t)features, k = (size_t)classes;
    struct store at = {.inverse = d, .ridge = 2 * d};
    at.held = at.ridge + (o->forget < 1 ? d + 1 : 0);
    at.packed = at.held + (o->class_rule == SVS_CLASSES_BALANCED ? k : 0);
    at.classes = at.packed + (packs ? svi_packed_room(features, rows) : 0);
    at.unscaled = at.classes + k * sizeof(svs_value) / sizeof(double);
    at.size = at.unscaled * sizeof(double) + ((size_t)o->max_features + 7) / 8;
    return at;
}

static void store_copy(void *to, const void *from, size_t count, size_t size) {
    if (from)
        memcpy(to, from, count * size);
}

void svi_store_free(svs_learner *l) {
    if (!l->store_inside)
        svi_free(l->store);
    l->store = NULL;
}

/* A new store of at least this size, in `inside` if there is one. */
static svs_code store_make(svs_learner *l, int features, int rows, int classes, bool packs, double *inside,
                           svs_error *err) {
    features = features > l->scaler.capacity ? features : l->scaler.capacity;
    classes = classes > l->class_room ? classes : l->class_room;
    rows = rows > l->packed_rows ? rows : l->packed_rows;
    const struct store at = store_lay_out(&l->o, features, rows, classes, packs || l->packed);
    double *store = inside ? inside : svi_alloc(at.size);
    if (!store)
        return svi_fail_memory(err, "the model of a learner");
    const size_t old = (size_t)l->scaler.capacity;
    store_copy(store + at.mean, l->scaler.mean, old, sizeof(double));
    store_copy(store + at.inverse, l->scaler.inverse, old, sizeof(double));
    store_copy(store + at.ridge, l->ridge, old + 1, sizeof(double));
    store_copy(store + at.held, l->class_held, (size_t)l->class_room, sizeof(double));
    store_copy(store + at.classes, l->classes, (size_t)l->class_count, sizeof *l->classes);
    store_copy(store + at.unscaled, l->scaler.unscaled, ((size_t)l->o.max_features + 7) / 8, 1);
    if (l->packed && features == l->scaler.capacity && rows == l->packed_rows)
        memcpy(store + at.packed, l->packed, svi_packed_room(features, rows) * sizeof(double));
    svi_store_free(l);
    l->store = store;
    l->store_inside = inside;
    l->scaler.mean = store + at.mean;
    l->scaler.inverse = store + at.inverse;
    l->scaler.unscaled = (uint8_t *)(store + at.unscaled);
    l->scaler.capacity = features;
    l->ridge = l->o.forget < 1 ? store + at.ridge : NULL;
    l->class_held = l->o.class_rule == SVS_CLASSES_BALANCED ? store + at.held : NULL;
    l->classes = (svs_value *)(store + at.classes);
    l->class_room = classes;
    l->packed = packs || l->packed ? store + at.packed : NULL;
    l->packed_rows = rows;
    return SVS_OK;
}

svs_code svi_store_reserve(svs_learner *l, int features, int rows, int classes, bool packs, svs_error *err) {
    const bool more = features > l->scaler.capacity || classes > l->class_room ||
                      (packs && (rows > l->packed_rows || !l->packed));
    return more ? store_make(l, features, rows, classes, packs, NULL, err) : SVS_OK;
}

svs_code svi_store_apart(svs_learner *l, svs_error *err) {
    return l->store_inside ? store_make(l, 0, 0, 0, false, NULL, err) : SVS_OK;
}

svs_learner *svi_store_learner(const svs_options *o, int features, bool packs) {
    const struct store at = store_lay_out(o, features, 1, SVI_CLASSES_FIRST, packs);
    svs_learner *l = svi_alloc(STORE_BEGIN + at.size);
    if (!l)
        return NULL;
    l->o = *o;
    l->scaler.room = o->max_features;
    store_make(l, features, 1, SVI_CLASSES_FIRST, packs, (double *)l + STORE_BEGIN / sizeof(double), NULL);
    return l;
}

double svi_store_bytes(const svs_learner *l) {
    return (double)store_lay_out(&l->o, l->scaler.capacity, l->packed_rows, l->class_room, l->packed).size;
}

double svi_store_memory(const svs_options *o, int d, int classes) {
    int room = SVI_CLASSES_FIRST;
    while (room < classes)
        room *= 2;
    return (double)store_lay_out(o, d, svi_rows_of(classes), room, true).size;
}
