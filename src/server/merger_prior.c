#include "server/merger_prior.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "merge/prior_merge.h"

/* The parts that are joined and have keys. */
static int merger_gather_priors(const struct svi_merge *m, struct svi_prior_part *parts) {
    int count = 0;
    for (int64_t i = 0; i < m->count; i++) {
        const struct svi_part *p = m->part[i];
        const enum svi_part_state state = svi_part_state(p);
        if (p->record.prior && (state == SVI_PART_JOINED || state == SVI_PART_STALE))
            parts[count++] = (struct svi_prior_part){
                .name = p->record.part, .prior = p->record.prior, .size = p->record.prior_size};
    }
    return count;
}

static void merger_put_prior_parts(struct svi_pack *p, const struct svi_prior_part *parts, int count) {
    svi_put_array(p, "parts", (size_t)count);
    for (int i = 0; i < count; i++) {
        const bool out = parts[i].factor == 0;
        svi_pack_map(p, out ? 4 : 3);
        svi_put_text(p, "name", parts[i].name);
        svi_put_int(p, "keys", parts[i].keys);
        svi_put_real(p, "factor", parts[i].factor);
        if (out)
            svi_put_text(p, "why", parts[i].why);
    }
}

static svs_code merger_prior_pairs(struct svi_prior_part *parts, int count, bool regress,
                                   struct svi_bytes *out, svs_error *err) {
    struct svi_bytes map = {0};
    struct svi_pack p;
    svs_code code = svi_prior_merge(parts, count, regress, &map, err);
    if (code == SVS_OK) {
        svi_pack_begin(&p, out);
        svi_pack_key(&p, "prior");
        svi_pack_raw(&p, map.data, map.size);
        merger_put_prior_parts(&p, parts, count);
        code = svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the prior of keys");
    }
    svi_bytes_clear(&map);
    return code;
}

svs_code svi_merger_prior(const struct svi_merge *m, struct svi_bytes *out, svs_error *err) {
    struct svi_prior_part *parts = svi_alloc_array((size_t)m->count + 1, sizeof *parts);
    if (!parts)
        return svi_fail_memory(err, "the priors of parts");
    const int count = m->model ? merger_gather_priors(m, parts) : 0;
    const svs_code code = count > 0
                              ? merger_prior_pairs(parts, count, m->model->task == SVS_REGRESS, out, err)
                              : svi_fail(err, SVS_EMPTY, "no part has keys: the merge has no prior");
    svi_free(parts);
    return code;
}
