/* What is always with a learner besides its rows, in one block: so that one of many is few pieces of memory,
 * and close together: first behind the learner itself. A part that outgrows its space moves all of them to a
 * block of their own. Where learners change places, the store of the one that is to stay is apart. */
#include "base/alloc.h"
#include "base/arrays.h"
#include "base/fail.h"
#include "learner/learner_internal.h"

/* Bytes of a learner, behind which its first store is. */
#define STORE_BEGIN ((sizeof(svs_learner) + sizeof(double) - 1) / sizeof(double) * sizeof(double))

enum { FEATURES, RIDGE, CLASSES, HELD, PACKED, EACH, FLAGS, DIMS };
static const struct svi_array store_table[] = {
#define OWNER svs_learner
    SVI_ARRAY(OWNER, classes, NULL, SVI_AXIS(CLASSES)),
    SVI_ARRAY(OWNER, scaler.mean, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, scaler.inverse, NULL, SVI_AXIS(FEATURES)),
    SVI_ARRAY(OWNER, ridge, NULL, SVI_AXIS(RIDGE)),
    SVI_ARRAY(OWNER, targets_in, NULL, SVI_AXIS(CLASSES)),
    SVI_ARRAY(OWNER, class_held, NULL, SVI_AXIS(HELD)),
    SVI_ARRAY(OWNER, packed, NULL, SVI_AXIS(PACKED), SVI_AXIS(EACH)),
    SVI_ARRAY(OWNER, scaler.unscaled, NULL, SVI_AXIS(FLAGS)),
#undef OWNER
};
static const struct svi_arrays store_arrays = SVI_ARRAYS(store_table, "the model of a learner");

/* The numbers of elements of each part, by the options: what an option rules out takes no memory. */
static void store_dims(const svs_options *o, int features, int rows, int classes, bool packs, int32_t *dims) {
    dims[FEATURES] = features;
    dims[RIDGE] = o->forget < 1 ? features + 1 : 0;
    dims[CLASSES] = classes;
    dims[HELD] = o->class_rule == SVS_CLASSES_BALANCED ? classes : 0;
    dims[EACH] = features % 2 == 0 ? features + 1 : (features + 1) / 2; /* divides what is packed */
    dims[PACKED] = packs ? (int32_t)(svi_packed_capacity(features, rows) / (size_t)dims[EACH]) : 0;
    dims[FLAGS] = (o->max_features + 7) / 8;
}

static void store_dims_now(const svs_learner *l, int32_t *dims) {
    store_dims(&l->o, l->scaler.capacity, l->packed_rows, l->class_capacity, l->packed, dims);
}

void svi_learner_store_free(svs_learner *l) {
    if (!l->store_inside)
        svi_free(l->classes); /* the first of them */
    l->classes = NULL;
}

/* A new store of at least this size, in a block of its own. All parts move together; the old block is freed
 * last, as its contents are copied. Pointers into it (l->classes, ...) are those of the new block
 * afterwards. */
static svs_code store_make(svs_learner *l, int features, int rows, int classes, bool packs, svs_error *err) {
    const svs_learner old = *l;
    int32_t from[DIMS], to[DIMS];
    store_dims_now(l, from);
    features = features > l->scaler.capacity ? features : l->scaler.capacity;
    classes = classes > l->class_capacity ? classes : l->class_capacity;
    rows = rows > l->packed_rows ? rows : l->packed_rows;
    store_dims(&l->o, features, rows, classes, packs || l->packed, to);
    void *block = svi_alloc(svi_arrays_bytes(&store_arrays, to));
    if (!block)
        return svi_fail_memory(err, store_arrays.what);
    svi_arrays_place(&store_arrays, l, block, to);
    svi_arrays_copy(&store_arrays, l, to, &old, from);
    if (!old.store_inside)
        svi_free(old.classes);
    l->store_inside = false;
    l->scaler.capacity = features;
    l->class_capacity = classes;
    l->packed_rows = rows;
    return SVS_OK;
}

svs_code svi_learner_store_reserve(svs_learner *l, int features, int rows, int classes, bool packs,
                                   svs_error *err) {
    const bool more = features > l->scaler.capacity || classes > l->class_capacity ||
                      (packs && (rows > l->packed_rows || !l->packed));
    return more ? store_make(l, features, rows, classes, packs, err) : SVS_OK;
}

svs_code svi_learner_store_apart(svs_learner *l, svs_error *err) {
    return l->store_inside ? store_make(l, 0, 0, 0, false, err) : SVS_OK;
}

/* The first store lies behind the learner in one allocation: for thousands of learners that is one block
 * instead of nine. */
svs_learner *svi_learner_store_learner(const svs_options *o, int features, bool packs) {
    int32_t dims[DIMS];
    store_dims(o, features, 1, SVI_CLASSES_FIRST, packs, dims);
    svs_learner *l = svi_alloc(STORE_BEGIN + svi_arrays_bytes(&store_arrays, dims));
    if (!l)
        return NULL;
    svi_arrays_place(&store_arrays, l, (char *)l + STORE_BEGIN, dims);
    l->store_inside = true;
    l->o = *o;
    l->scaler.max_d = o->max_features;
    l->scaler.capacity = features;
    l->class_capacity = SVI_CLASSES_FIRST;
    l->packed_rows = 1;
    return l;
}

double svi_learner_store_bytes(const svs_learner *l) {
    int32_t dims[DIMS];
    store_dims_now(l, dims);
    return (double)svi_arrays_bytes(&store_arrays, dims);
}

/* Classes double, as svi_class_table_reserve lets them. */
double svi_learner_store_memory(const svs_options *o, int d, int classes) {
    int32_t dims[DIMS];
    int capacity = SVI_CLASSES_FIRST;
    while (capacity < classes)
        capacity *= 2;
    store_dims(o, d, svi_rows_of(classes), capacity, true, dims);
    return (double)svi_arrays_bytes(&store_arrays, dims);
}
