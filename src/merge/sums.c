#include "merge/sums.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fnv.h"
#include "merge/sums_internal.h"

const char *const svi_sums_tasks[] = {[SVS_CLASSIFY] = "classify", [SVS_REGRESS] = "regress", NULL};
const char *const svi_sums_kinds[] = {
    [SVI_SUMS_DENSE] = "dense", [SVI_SUMS_SPARSE] = "sparse", [SVI_SUMS_NAMED] = "named", NULL};
const char *const svi_sums_scales[] = {[SVS_SCALE_NONE] = "none", [SVS_SCALE_STANDARD] = "standard", NULL};

void svi_sums_clear(struct svi_sums *r) {
    svi_window_sums_clear(&r->sums);
    svi_free(r->text);
    *r = (struct svi_sums){0};
}

bool svi_sums_newer(uint64_t epoch, int64_t offset, uint64_t old_epoch, int64_t old_offset) {
    return epoch != old_epoch ? epoch > old_epoch : offset > old_offset;
}

uint64_t svi_sums_schema_hash(const struct svi_sums *r) {
    char text[64];
    uint64_t names = 0;
    const bool dense = r->kind == SVI_SUMS_DENSE;
    int n = snprintf(text, sizeof text, "%s %s ", svi_sums_tasks[r->task], svi_sums_kinds[r->kind]);
    if (dense && !r->features)
        n += snprintf(text + n, sizeof text - (size_t)n, "%d", r->sums.d);
    /* A sum, so that the order of the columns does not matter. */
    for (int j = 0; dense && r->features && j < r->sums.d; j++)
        names += svi_fnv(SVI_FNV_SEED, r->features[j], strlen(r->features[j]));
    return svi_fnv(SVI_FNV_SEED, text, (size_t)n) + names;
}

static void put_raw(struct svi_pack *p, const char *key, const void *bytes, size_t size) {
    if (!bytes)
        return;
    svi_pack_key(p, key);
    svi_pack_raw(p, bytes, size);
}

static void put_unscaled(struct svi_pack *p, const struct svi_sums *r) {
    svi_put_array(p, "unscaled", (size_t)r->unscaled_count);
    for (int i = 0; i < r->unscaled_count; i++)
        svi_pack_int(p, r->unscaled[i]);
}

void svi_sums_put(struct svi_pack *p, const struct svi_sums *r) {
    const struct svi_window_sums *s = &r->sums;
    const size_t d = (size_t)s->d, classes = (size_t)s->classes;
    svi_put_text(p, "part", r->part);
    svi_put_uint(p, "part_epoch", r->part_epoch);
    svi_put_int(p, "offset", r->offset);
    svi_put_int(p, "n", s->n);
    svi_put_text(p, "task", svi_sums_tasks[r->task]);
    svi_put_text(p, "kind", svi_sums_kinds[r->kind]);
    svi_put_int(p, "window", r->window);
    svi_put_real(p, "C", r->C);
    svi_put_text(p, "scale", svi_sums_scales[r->scale]);
    svi_put_int(p, "d", s->d);
    svi_pack_key(p, "features");
    svi_pack_names(p, r->features, s->d);
    if (r->unscaled_count > 0)
        put_unscaled(p, r);
    svi_put_uint(p, "schema_hash", svi_sums_schema_hash(r));
    put_raw(p, "schema", r->schema, r->schema_size);
    svi_put_doubles(p, "center", s->center, d);
    svi_put_real(p, "weight", s->weight);
    svi_put_doubles(p, "sum", s->sum, d);
    svi_put_doubles(p, "square", s->square, svi_sums_packed(s->d));
    svi_pack_key(p, "classes");
    svi_pack_values(p, r->classes, s->classes);
    svi_put_doubles(p, "class_weight", s->class_weight, classes);
    svi_put_doubles(p, "class_sum", s->class_sum, classes * d);
    if (r->task == SVS_REGRESS) {
        svi_put_real(p, "target_weight", s->target_weight);
        svi_put_doubles(p, "target_sum", s->target_sum, d);
        svi_put_real(p, "target_square", s->target_square);
    }
    put_raw(p, "prior", r->prior, r->prior_size);
}

svs_code svi_sums_encode_pairs(const struct svi_sums *r, struct svi_bytes *out, size_t *pairs) {
    struct svi_pack p;
    out->size = 0;
    svi_pack_begin(&p, out);
    svi_sums_put(&p, r);
    *pairs = p.keys;
    return svi_pack_end(&p);
}

svs_code svi_sums_encode(const struct svi_sums *r, struct svi_bytes *out) {
    struct svi_pack p;
    svi_pack_begin(&p, out);
    const struct svi_open_map map = svi_pack_open(&p);
    svi_sums_put(&p, r);
    svi_pack_close(&p, map);
    return svi_pack_end(&p);
}
