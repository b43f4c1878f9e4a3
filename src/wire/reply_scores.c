#include "wire/reply_scores.h"

#include "base/fail.h"
#include "wire/pack.h"

#define KEPT_BYTES (256 * 1024) /* capacity that stays for the next message */

void svi_reply_scores_clear(struct svi_reply_scores *r) {
    svi_bytes_clear(&r->maps);
}

void svi_reply_scores_begin(struct svi_reply_scores *r) {
    if (r->maps.capacity > KEPT_BYTES)
        svi_bytes_clear(&r->maps);
    r->maps.size = 0;
    r->count = r->scored = 0;
    r->failed = SVS_OK;
}

static void reply_scores_fail(struct svi_reply_scores *r, svs_code code) {
    r->failed = code;
    svi_bytes_clear(&r->maps);
}

/* The samples are acknowledged whatever becomes of their scores, so failures are kept until the reply. */
static void reply_scores_end(struct svi_reply_scores *r, struct svi_pack *p, struct svi_open_map map) {
    svi_pack_close(p, map);
    r->count++;
    if (svi_pack_end(p) != SVS_OK)
        reply_scores_fail(r, SVS_NO_MEMORY);
    else if (r->maps.size > SVI_REPLY_SCORES_MAX)
        reply_scores_fail(r, SVS_LIMIT);
}

static struct svi_open_map reply_scores_open(struct svi_reply_scores *r, struct svi_pack *p) {
    svi_pack_begin(p, &r->maps);
    return svi_pack_open(p);
}

void svi_reply_scores_event(struct svi_reply_scores *r, const struct svi_event *score) {
    struct svi_pack p;
    if (r->failed != SVS_OK)
        return;
    const struct svi_open_map map = reply_scores_open(r, &p);
    svi_put_score_event(&p, score);
    reply_scores_end(r, &p, map);
}

void svi_reply_scores_nothing(struct svi_reply_scores *r) {
    struct svi_pack p;
    if (r->failed == SVS_OK)
        reply_scores_end(r, &p, reply_scores_open(r, &p));
}

void svi_reply_scores_duplicate(struct svi_reply_scores *r) {
    struct svi_pack p;
    if (r->failed != SVS_OK)
        return;
    const struct svi_open_map map = reply_scores_open(r, &p);
    svi_put_bool(&p, "duplicate", true);
    reply_scores_end(r, &p, map);
}

void svi_reply_scores_refusal(struct svi_reply_scores *r, const svs_error *err) {
    struct svi_pack p;
    if (r->failed != SVS_OK)
        return;
    const struct svi_open_map map = reply_scores_open(r, &p);
    svi_put_error(&p, err);
    reply_scores_end(r, &p, map);
}

void svi_reply_scores_join(struct svi_reply_scores *r, const struct svi_reply_scores *other) {
    if (r->failed != SVS_OK)
        return;
    r->count += other->count;
    r->scored += other->scored;
    if (other->failed != SVS_OK)
        reply_scores_fail(r, other->failed);
    else if (svi_bytes_append(&r->maps, other->maps.data, other->maps.size) != SVS_OK)
        reply_scores_fail(r, SVS_NO_MEMORY);
    else if (r->maps.size > SVI_REPLY_SCORES_MAX)
        reply_scores_fail(r, SVS_LIMIT);
}

void svi_put_no_scores(struct svi_pack *p, const svs_error *why) {
    svi_put_map(p, "no_scores", 2);
    svi_put_text(p, "error", why->text);
    svi_put_text(p, "code", svs_code_name(why->code));
}

void svi_reply_scores_put(struct svi_pack *p, const struct svi_reply_scores *r) {
    svs_error why;
    if (r->failed == SVS_OK) {
        svi_put_array(p, "scores", (size_t)r->count);
        svi_pack_raw(p, r->maps.data, r->maps.size);
        return;
    }
    if (r->failed == SVS_LIMIT)
        svi_fail(&why, SVS_LIMIT,
                 "the scores of this message take more than %d MiB: send fewer samples at once",
                 SVI_REPLY_SCORES_MAX >> 20);
    else
        svi_fail_memory(&why, "the scores of a reply");
    svi_put_no_scores(p, &why);
}
