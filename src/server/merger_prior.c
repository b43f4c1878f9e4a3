/* The prior event of a merge: what the keys of all parts hold, for new keys on any machine
 * (merge/prior_merge.h). It is published when it has changed, after a solution; the last one is retained. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "merge/prior_merge.h"
#include "server/merger_state.h"

/* The parts that are joined and have keys. */
static int prior_gather(const struct svi_merge *m, struct svi_prior_part *parts) {
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

static void prior_put_parts(struct svi_pack *p, const struct svi_prior_part *parts, int count) {
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

/* The two pairs of the event, in `out`. */
static svs_code prior_pairs(struct svi_prior_part *parts, int count, bool regress, struct svi_bytes *out,
                            svs_error *err) {
    struct svi_bytes map = {0};
    struct svi_pack p;
    svs_code code = svi_prior_merge(parts, count, regress, &map, err);
    if (code == SVS_OK) {
        svi_pack_begin(&p, out);
        svi_pack_key(&p, "prior");
        svi_pack_raw(&p, map.data, map.size);
        prior_put_parts(&p, parts, count);
        code = svi_pack_end(&p) == SVS_OK ? SVS_OK : svi_fail_memory(err, "the prior of keys");
    }
    svi_bytes_clear(&map);
    return code;
}

/* Nothing to publish is no failure: most merges have no keys. */
void svi_merger_publish_prior(struct svi_merger_state *s) {
    const struct svi_merge *m = &s->merge;
    struct svi_bytes pairs = {0};
    svs_error err = {0};
    struct svi_prior_part *parts = s->out ? svi_alloc_array((size_t)m->count + 1, sizeof *parts) : NULL;
    const int count = parts && m->model ? prior_gather(m, parts) : 0;
    svs_code code =
        count > 0 ? prior_pairs(parts, count, m->model->task == SVS_REGRESS, &pairs, &err) : SVS_EMPTY;
    svi_free(parts);
    const bool same =
        code == SVS_OK && pairs.size == s->prior.size && memcmp(pairs.data, s->prior.data, pairs.size) == 0;
    if (code == SVS_OK && !same) {
        const struct svi_event e = {.topic = SVI_TOPIC_PRIOR,
                                    .stream = s->settings->stream,
                                    .epoch = s->epoch,
                                    .seq = s->seq[SVI_TOPIC_PRIOR]++,
                                    .ts = svi_wall_clock(),
                                    .as.sums = {pairs.data, pairs.size, 2}};
        (void)svi_publisher_publish(s->out, &e); /* without memory it is lost; the next one makes up for it */
        svi_bytes_clear(&s->prior);
        s->prior = pairs;
        return;
    }
    svi_bytes_clear(&pairs);
}
