/* The parts of a merge (merge.h): which record of a part counts, which parts are dropped, silent, or
 * published by two processes. Payloads, requests and the time go in. The list of parts comes out, and the
 * flag `changed` for the next solution (merge_solve.c).
 *
 * Parts are held in the order of their names, which is the order of everything that rounds: the model must
 * not depend on the order of arrival.
 *
 * The difficulty is that records arrive late, repeated, out of order, and from anybody. Limits bound the size
 * of a record, the number of parts and the bytes of all. The union is bounded by max.features and
 * max.classes, each number by what can be added up without an overflow.
 *
 * A part owns its record and its places in the union; the merge owns the parts. Read svi_merge_take first,
 * then merge_take, part_compare and part_note_rival. */
#include "merge/merge.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "wire/fields.h"

#define SUM_MAX (SVI_UNION_VALUE_MAX * SVI_UNION_VALUE_MAX * 1e30) /* of a sum of squares */

void svi_merge_init(struct svi_merge *m, const struct svi_merge_options *o) {
    m->o = *o;
}

/* Also for a part that never became one of the merge: what was not made is NULL. */
static void part_free(struct svi_part *p) {
    svi_sums_clear(&p->record);
    svi_free(p->feature);
    svi_free(p->label);
    svi_free(p);
}

void svi_merge_clear(struct svi_merge *m) {
    for (int64_t i = 0; i < m->count; i++)
        part_free(m->part[i]);
    svi_free(m->part);
    svs_model_free(&m->model);
    svi_bytes_clear(&m->schema);
    svi_bytes_clear(&m->next);
    svi_union_clear(&m->sums);
    *m = (struct svi_merge){0};
}

/* ---- records */

/* The place of the first part whose name is not less. */
static int64_t merge_place(const struct svi_merge *m, const char *name) {
    int64_t low = 0, high = m->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(m->part[middle]->record.part, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct svi_part *merge_find(const struct svi_merge *m, const char *name) {
    const int64_t at = merge_place(m, name);
    return at < m->count && strcmp(m->part[at]->record.part, name) == 0 ? m->part[at] : NULL;
}

/* Numbers are finite here, because svi_sums_decode refuses others: fmax would skip a NaN. */
static bool numbers_below(const double *v, size_t count, double most) {
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(v[i]));
    return largest <= most;
}

/* Beyond these, products of sums overflow. */
static svs_code check_numbers(const struct svi_window_sums *s, svs_error *err) {
    const size_t d = (size_t)s->d, k = (size_t)s->classes;
    if (numbers_below(s->center, d, SVI_UNION_VALUE_MAX) && numbers_below(s->sum, d, SUM_MAX) &&
        numbers_below(s->square, svi_sums_packed(s->d), SUM_MAX) &&
        numbers_below(&s->weight, 1, SVI_UNION_VALUE_MAX) &&
        numbers_below(s->class_weight, k, SVI_UNION_VALUE_MAX) &&
        numbers_below(s->class_sum, d * k, SUM_MAX) && numbers_below(&s->target_weight, 1, SUM_MAX) &&
        numbers_below(s->target_sum, s->target_sum ? d : 0, SUM_MAX))
        return SVS_OK;
    return svi_fail(err, SVS_TOO_LARGE,
                    "a number of the sums record is too large to be added to others: center "
                    "and weights are at most 1e100, sums 1e230");
}

/* Which process sent the record, and in what order, are keys of the event, which svi_sums_decode skips. That
 * decoder must run before: it checks the form of the whole payload. */
static void read_event(struct svi_part *p, const void *payload, size_t size) {
    static const struct svi_field fields[] = {SVI_FIELD_OPTIONAL(struct svi_part, epoch, UINT, 0, 0),
                                              SVI_FIELD_OPTIONAL(struct svi_part, seq, UINT, 0, 0)};
    /* Without numbers it is the oldest of its offset. */
    if (svi_fields_read("event", SVI_FIELDS(fields), payload, (const uint8_t *)payload + size, p, NULL) !=
        SVS_OK)
        p->epoch = p->seq = 0;
}

/* Do both records say the same? A part repeats its last record as a sign of life. */
static bool records_equal(const struct svi_sums *a, const struct svi_sums *b) {
    const struct svi_window_sums *s = &a->sums, *t = &b->sums;
    bool same = a->task == b->task && a->kind == b->kind && a->scale == b->scale && a->C == b->C &&
                a->window == b->window && s->d == t->d && s->classes == t->classes && s->n == t->n &&
                s->weight == t->weight && a->unscaled_count == b->unscaled_count &&
                a->schema_size == b->schema_size && a->prior_size == b->prior_size &&
                !a->features == !b->features && s->target_weight == t->target_weight;
    if (!same)
        return false;
    /* The shapes are equal from here on, so each block has the same size in both. The bytes are compared:
     * only a repetition of the very same numbers is meant. */
    const size_t d = (size_t)s->d, k = (size_t)s->classes;
    const struct {
        const void *a, *b;
        size_t size;
    } block[] = {{s->center, t->center, d * sizeof(double)},
                 {s->sum, t->sum, d * sizeof(double)},
                 {s->square, t->square, svi_sums_packed(s->d) * sizeof(double)},
                 {s->class_weight, t->class_weight, k * sizeof(double)},
                 {s->class_sum, t->class_sum, k * d * sizeof(double)},
                 {s->target_sum, t->target_sum, s->target_sum ? d * sizeof(double) : 0},
                 {a->unscaled, b->unscaled, (size_t)a->unscaled_count * sizeof *a->unscaled},
                 {a->schema, b->schema, a->schema_size},
                 {a->prior, b->prior, a->prior_size}};
    for (size_t i = 0; same && i < sizeof block / sizeof *block; i++)
        same = block[i].size == 0 || memcmp(block[i].a, block[i].b, block[i].size) == 0;
    /* Names and classes are pointers into each record's own text, so their content is compared. */
    for (int j = 0; same && a->features && j < s->d; j++)
        same = strcmp(a->features[j], b->features[j]) == 0;
    for (int c = 0; same && c < s->classes; c++)
        same = svs_value_equal(a->classes[c], b->classes[c]);
    return same;
}

/* What was done at the same number of samples (settings changed, samples forgotten) is in a later event. */
static enum svi_merge_taken part_compare(const struct svi_part *p, const struct svi_part *old) {
    const struct svi_sums *a = &p->record, *b = &old->record;
    /* The generation and the number of samples decide first. Events are compared only where both are equal: a
     * record of an earlier state must not win because it was sent later. */
    if (a->part_epoch != b->part_epoch || a->offset != b->offset)
        return svi_sums_newer(a->part_epoch, a->offset, b->part_epoch, b->offset) ? SVI_TAKEN_NEW
                                                                                  : SVI_TAKEN_OLD;
    if (p->epoch < old->epoch || (p->epoch == old->epoch && p->seq < old->seq))
        return SVI_TAKEN_OLD;
    /* Only now are the contents compared, which reads all d^2 numbers. */
    if (records_equal(a, b))
        return SVI_TAKEN_AGAIN;
    return p->epoch != old->epoch || p->seq != old->seq ? SVI_TAKEN_NEW : SVI_TAKEN_OLD;
}

/* Two processes with one name cannot both count, and the samples of one would be missing without a word. A
 * process that started earlier has ended when the next one begins; so records of an earlier one that go on,
 * with numbers beyond all it had sent, are not late: it lives. And a later one that continues after the sums
 * that count is a second process, or the same one with an older state. */
static void part_note_rival(struct svi_part *held, const struct svi_part *p) {
    const struct svi_sums *a = &p->record, *b = &held->record;
    /* Records without an event, of the same process, or of a later generation of the part are no sign of a
     * rival. A later process counts only where the held record is newer than its own: otherwise it has simply
     * taken over. */
    if (p->epoch == 0 || p->epoch == held->epoch || a->part_epoch > b->part_epoch ||
        (p->epoch > held->epoch && !svi_sums_newer(b->part_epoch, b->offset, a->part_epoch, a->offset)))
        return;
    /* A number that is not beyond the last one is a late or repeated message. Another process starts the
     * count again: SVI_PART_RIVALS records of one and the same must arrive. */
    const bool known = p->epoch == held->rival;
    if (known && p->seq <= held->rival_seq)
        return;
    held->rivals = known ? held->rivals + 1 : 1;
    held->rival = p->epoch;
    held->rival_seq = p->seq;
    held->rival_seen = p->last_arrival;
}

/* What is known of a rival when record `p` replaces `old`: after a change of the process it is the former
 * one. */
static void part_follow(struct svi_part *p, const struct svi_part *old) {
    /* The count survives only if the two processes are the same two as before: a rival whose record takes
     * over must not clear it. */
    const bool same = p->epoch == old->epoch;
    p->rival = same ? old->rival : old->epoch;
    p->rival_seq = same ? old->rival_seq : old->seq;
    p->rival_seen = same ? old->rival_seen : old->last_arrival;
    p->rivals = same || p->epoch == old->rival ? old->rivals : 0;
}

/* Is the name in a list with commas? */
static bool name_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    /* The test of the next character keeps `a` from matching the entry `ab`. */
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == 0 || at[n] == ','))
            return true;
    return false;
}

/* Puts the new record where the old one of its part is, or a new part in its place. `p` is taken over. */
static svs_code merge_store(struct svi_merge *m, struct svi_part *p, struct svi_part *old, svs_error *err) {
    const int64_t at = merge_place(m, p->record.part);
    const bool fresh = !old;
    /* All that can fail is before the first change: a refused record leaves the old one in place. */
    const double bytes = m->bytes + (double)p->bytes - (old ? (double)old->bytes : 0);
    if (bytes > m->o.max_bytes)
        return svi_fail(err, SVS_LIMIT,
                        "the records of all parts would take more than %.0f MB (merge.memory): start another "
                        "merge for some of them, or raise it",
                        m->o.max_bytes / 1e6);
    if (old) {
        /* What was decided about the part outlives its records. `why` stays until the next solution, so that
         * a refused part is not shown as joined in between. `sound` stays out: it is a fact of one record. */
        p->dropped = old->dropped;
        p->reported = old->reported;
        part_follow(p, old);
        p->why = old->why;
        part_free(old);
    } else {
        if (m->count == SVI_MERGE_PARTS_MAX)
            return svi_fail(err, SVS_LIMIT, "a merge has at most %d parts", SVI_MERGE_PARTS_MAX);
        if (!svi_grow(&m->part, m->count, &m->capacity, 16, sizeof(struct svi_part *)))
            return svi_fail_memory(err, "another part");
        /* The capacity for one more is there: nothing below fails, and the list is never half moved. */
        memmove(m->part + at + 1, m->part + at, (size_t)(m->count - at) * sizeof(struct svi_part *));
        m->count++;
        p->dropped = name_listed(m->o.dropped, p->record.part);
    }
    m->part[at] = p;
    m->bytes = bytes;
    /* A dropped part takes no part in the model, so its later records need no solution. */
    m->changed = m->changed || fresh || !p->dropped;
    return SVS_OK;
}

/* The decisions about a record. *taken is SVI_TAKEN_NEW when it begins, and p belongs to the merge only if it
 * still is at the end and the code is SVS_OK. */
static svs_code merge_take(struct svi_merge *m, struct svi_part *p, const void *payload, size_t size,
                           enum svi_merge_taken *taken, svs_error *err) {
    SVI_TRY(svi_sums_decode(&p->record, payload, size, err));
    SVI_TRY(check_numbers(&p->record.sums, err));
    read_event(p, payload, size);
    struct svi_part *old = merge_find(m, p->record.part);
    /* Before the comparison: a record that is too old to count may still show that a second process lives. */
    if (old)
        part_note_rival(old, p);
    if (old && (*taken = part_compare(p, old)) != SVI_TAKEN_NEW) {
        if (*taken == SVI_TAKEN_AGAIN) {
            /* A repetition changes no number, but it is a sign of life. The event's number moves up with it:
             * a late record from before it is then old. */
            old->last_arrival = fmax(old->last_arrival, p->last_arrival);
            old->epoch = p->epoch;
            old->seq = p->seq;
        }
        return SVS_OK;
    }
    return merge_store(m, p, old, err);
}

svs_code svi_merge_take(struct svi_merge *m, const void *payload, size_t size, double now,
                        enum svi_merge_taken *taken, svs_error *err) {
    /* A part is made for each record, before it is known whether the record counts: so a refused one leaves
     * nothing to undo. */
    struct svi_part *p = svi_new(sizeof *p, "another part", err);
    if (!p)
        return SVS_NO_MEMORY;
    p->bytes = size;
    p->last_arrival = now;
    *taken = SVI_TAKEN_NEW;
    /* Each record that reaches this point is in one of the four counts. */
    const svs_code code = merge_take(m, p, payload, size, taken, err);
    if (code != SVS_OK || *taken != SVI_TAKEN_NEW)
        part_free(p);
    m->counts.refused += code != SVS_OK;
    m->counts.taken += code == SVS_OK && *taken == SVI_TAKEN_NEW;
    m->counts.again += code == SVS_OK && *taken == SVI_TAKEN_AGAIN;
    m->counts.old += code == SVS_OK && *taken == SVI_TAKEN_OLD;
    return code;
}

/* ---- requests, and time */

/* A request can name only a part that has appeared: those dropped from the start are in the options. */
static svs_code merge_set_dropped(struct svi_merge *m, const char *name, bool dropped, svs_error *err) {
    char text[SVI_PART_MAX * 4 + 1];
    struct svi_part *p = merge_find(m, name);
    svi_escape(text, sizeof text, name, strlen(name));
    if (!p)
        return svi_fail(err, SVS_UNKNOWN_ID, "there is no part %.80s: `svmstream ctl parts` lists them",
                        text);
    if (p->dropped == dropped)
        return svi_fail(err, SVS_UNAVAILABLE, "the part %.80s is %s", text,
                        dropped ? "dropped already" : "not dropped");
    p->dropped = dropped;
    /* The reason of the last solution is void: the next one decides again. */
    p->why.code = SVS_OK;
    m->changed = true;
    return SVS_OK;
}

svs_code svi_merge_drop(struct svi_merge *m, const char *name, svs_error *err) {
    return merge_set_dropped(m, name, true, err);
}

svs_code svi_merge_restore(struct svi_merge *m, const char *name, svs_error *err) {
    return merge_set_dropped(m, name, false, err);
}

/* Silence changes no model: a stale part stays joined, and only its mark changes. So `changed` of the merge
 * is not set here. */
bool svi_merge_mark(struct svi_merge *m, double now) {
    bool changed = false;
    for (int64_t i = 0; i < m->count; i++) {
        struct svi_part *p = m->part[i];
        const bool stale = m->o.stale > 0 && now - p->last_arrival > m->o.stale;
        changed = changed || stale != p->stale;
        p->stale = stale;
        if (m->o.stale > 0 && now - p->rival_seen > m->o.stale)
            p->rivals = 0; /* it has ended */
    }
    return changed;
}

/* By the same function that names a part's state elsewhere, so that figures and lists agree. */
void svi_merge_states(const struct svi_merge *m, int64_t count[SVI_PART_STATE_COUNT]) {
    memset(count, 0, SVI_PART_STATE_COUNT * sizeof *count);
    for (int64_t i = 0; i < m->count; i++)
        count[svi_part_state(m->part[i])]++;
}

/* ---- for people and programs */

/* One shape for the model event, the list of parts and the reports. The reason is optional: it is a sentence
 * for each part, and thousands of parts may be refused. */
static void put_part(const struct svi_part *p, double now, bool why, struct svi_pack *out) {
    const struct svi_open_map map = svi_pack_open(out);
    svi_put_text(out, "name", p->record.part);
    svi_put_int(out, "n", p->record.sums.n);
    svi_put_real(out, "age", fmax(0, now - p->last_arrival));
    svi_put_uint(out, "epoch", p->record.part_epoch);
    svi_put_int(out, "offset", p->record.offset);
    svi_put_text(out, "state", svi_part_state_name(svi_part_state(p)));
    if (svi_part_contested(p))
        svi_put_uint(out, "rival", p->rival);
    if (why && svi_part_state(p) == SVI_PART_REFUSED)
        svi_put_error(out, &p->why);
    svi_pack_close(out, map);
}

void svi_merge_put_parts(const struct svi_merge *m, double now, bool why, struct svi_pack *p) {
    svi_pack_array(p, (size_t)m->count);
    for (int64_t i = 0; i < m->count; i++)
        put_part(m->part[i], now, why, p);
}

void svi_merge_put_others(const struct svi_merge *m, double now, int most, struct svi_pack *p) {
    /* The head of the array holds the count, which is known only after the loop: a byte is kept for it. */
    const size_t hole = svi_pack_hole(p);
    size_t count = 0;
    for (int64_t i = 0; i < m->count && count < (size_t)most; i++)
        if (svi_part_state(m->part[i]) != SVI_PART_JOINED || svi_part_contested(m->part[i])) {
            put_part(m->part[i], now, true, p);
            count++;
        }
    svi_pack_fill(p, hole, count, false);
}
