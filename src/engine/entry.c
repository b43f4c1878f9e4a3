/* The entry of a stream. A source numbers its elements from 0 without gaps. A message below `next` is a
 * duplicate and is skipped; one above it is refused, so that the source sends again from `next`; neither is
 * applied twice. */
#include "engine/entry.h"

#include <string.h>

#include "base/fail.h"

svs_code svi_entry_init(struct svi_entry *n, int64_t max_sources, svs_error *err) {
    *n = (struct svi_entry){.sources = svi_sources_new(max_sources, err)};
    return n->sources ? SVS_OK : err->code;
}

void svi_entry_clear(struct svi_entry *n) {
    svi_sources_free(&n->sources);
}

/* ---- a message */

static svs_code refuse_forgotten(const struct svi_receipt *r, svs_error *err) {
    char shown[80];
    return svi_fail(err, SVS_SOURCE_FORGOTTEN,
                    "source %s is not known (any more), and n is %lld, not 0: say hello, then number what "
                    "was not acknowledged from 0",
                    svi_escape(shown, sizeof shown, r->src, strlen(r->src)), (long long)r->first);
}

static struct svi_source *entry_add(struct svi_entry *n, const struct svi_envelope *env,
                                    const struct svi_arrival *a, svs_error *err) {
    return svi_sources_add(n->sources, env->src, env->src_length, a->now, a->idle, err);
}

/* Checks the number of a message against the table of sources. After a loss of the journal the first message
 * of a source shows where it continues, and the numbers before are lost; a later one that does not follow was
 * refused the first time, too, and is refused again. */
static svs_code entry_number(struct svi_entry *n, const struct svi_envelope *env, struct svi_arrival *a,
                             struct svi_receipt *r, svs_error *err) {
    if (svi_envelope_check_source(env, err) != SVS_OK)
        return err->code;
    if (!env->has_src)
        return SVS_OK;
    r->first = env->n;
    memcpy(r->src, env->src, env->src_length);
    r->src[env->src_length] = '\0';
    a->source = svi_sources_find(n->sources, env->src, env->src_length);
    int64_t next = a->source ? a->source->next : 0;
    r->n = next - 1;
    if (svi_envelope_cursor(env, &a->at, &a->at_size, &a->at_text, err) != SVS_OK)
        return err->code;
    const bool may_jump =
        n->gaps_allowed && r->first <= SVI_NEXT_MAX / 2 && (a->source ? a->source->losses : 0) < n->losses;
    if (r->first > next && !may_jump)
        return a->source ? svi_fail(err, SVS_GAP, "n is %lld, but %lld is next: send again from there",
                                    (long long)r->first, (long long)next)
                         : refuse_forgotten(r, err);
    if (!a->source && !(a->source = entry_add(n, env, a, err)))
        return err->code;
    /* A duplicate is a sign of life; a refused message is not. */
    svi_sources_touch(n->sources, a->source, a->now);
    if (r->first > next) {
        r->jumped_from = next;
        a->source->next = next = r->first;
        svi_source_set_at(a->source, NULL, 0, false); /* it belonged to the number that was skipped */
    }
    if (r->first + env->left > next) /* it has new elements, so the source is in step again */
        a->source->losses = n->losses;
    a->skip = next - r->first < env->left ? next - r->first : env->left;
    return SVS_OK;
}

/* bye ends a source; hello with n restores one that was removed, with its number. Neither has samples. */
static svs_code entry_greet(struct svi_entry *n, const struct svi_envelope *env, struct svi_arrival *a,
                            svs_error *err) {
    if (!env->src_good)
        return svi_fail(err, SVS_MISSING_SOURCE, "%s needs src, a name of 1 to %d bytes of UTF-8",
                        env->bye ? "bye" : "hello", SVS_NAME_MAX);
    struct svi_source *source = svi_sources_find(n->sources, env->src, env->src_length);
    if (env->bye && source)
        svi_sources_remove(n->sources, source);
    a->last_left = env->bye && svi_sources_count(n->sources) == 0;
    if (env->bye || source) /* the number of a known source is ours, not the one it states */
        return SVS_OK;
    if (env->n < 1 || env->n > SVI_NEXT_MAX / 2)
        return svi_fail(err, SVS_MISSING_SOURCE,
                        "hello of a source that continues needs n, a whole number from 1");
    if (svi_envelope_cursor(env, &a->at, &a->at_size, &a->at_text, err) != SVS_OK ||
        !(source = entry_add(n, env, a, err)))
        return err->code;
    svi_source_take(source, env->n, n->fsync_generation);
    svi_source_set_at(source, a->at, a->at_size, a->at_text);
    source->losses = n->losses;
    return SVS_OK;
}

svs_code svi_entry_begin(struct svi_entry *n, const struct svi_envelope *env, struct svi_arrival *a,
                         struct svi_receipt *r, svs_error *err) {
    const bool greets = a->sourced && (env->hello || env->bye);
    a->source = NULL;
    a->count = greets ? 0 : env->left;
    a->at_size = 0;
    a->skip = 0;
    a->last_left = false;
    r->accepted = r->refused = r->duplicates = 0;
    r->error.code = SVS_OK;
    r->error.text[0] = r->src[0] = '\0';
    r->n = r->first = r->jumped_from = -1;
    if (env->form.code != SVS_OK) {
        *err = env->form;
        return err->code;
    }
    if (greets)
        return entry_greet(n, env, a, err);
    return a->sourced && env->left > 0 ? entry_number(n, env, a, r, err) : SVS_OK;
}

void svi_entry_end(struct svi_entry *n, const struct svi_arrival *a, svs_code code, struct svi_receipt *r) {
    if (a->source && code == SVS_OK && r->first + a->count > a->source->next) {
        svi_source_take(a->source, r->first + a->count, n->fsync_generation);
        svi_source_set_at(a->source, a->at, a->at_size, a->at_text); /* none, where it states none */
    }
    r->n = a->source ? a->source->next - 1 : r->n;
}

/* ---- sources */

int64_t svi_entry_durable(const struct svi_entry *n, const char *src) {
    const struct svi_source *p = svi_sources_find(n->sources, src, strlen(src));
    return p ? svi_source_durable(p, n->fsync_generation_durable) : -1;
}

const struct svi_source *svi_entry_source(const struct svi_entry *n, const char *src) {
    return svi_sources_find(n->sources, src, strlen(src));
}

int64_t svi_entry_next(const struct svi_entry *n, const char *src) {
    const struct svi_source *p = svi_sources_find(n->sources, src, strlen(src));
    return p ? p->next : 0;
}

uint64_t *svi_entry_owner(struct svi_entry *n, const char *src, size_t length) {
    struct svi_source *p = svi_sources_find(n->sources, src, length);
    return p ? &p->owner : NULL;
}

void svi_entry_allow_gaps(struct svi_entry *n, bool allowed) {
    n->gaps_allowed = allowed;
    n->losses += allowed;
}

void svi_entry_set_fsync_generation(struct svi_entry *n, uint64_t fsync_generation, uint64_t durable) {
    n->fsync_generation = fsync_generation;
    n->fsync_generation_durable = durable;
}
