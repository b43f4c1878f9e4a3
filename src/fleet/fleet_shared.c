/* The bank that all keys of a stream share (`key.shared`). What it says of a row is a member of the small
 * stack of each key (bank/key_stack.h). An element, a row or a command enters before the engine of its key
 * takes it; the bank's score leaves, and travels with it. It runs on the stream's thread, in the order of
 * arrival, so that the bank depends on the elements alone.
 *
 * The bank decodes elements with a schema of its own, over the columns of all keys. A row of the bank has
 * bits of the key's hash, the key's labels so far, and the columns (svi_fleet_shared.source). Samples are
 * known by a hash of the key's number and their id. Rows out of bounds, and of a key that has more than its
 * share, are scored without being learned.
 *
 * The main difficulty is to take back what a single key has taught. A key that is removed or reset takes its
 * rows with it, as far as members can take rows back (bank/bank.h). A failure here refuses nothing: the key
 * continues without this score, and its engine reports the reason.
 *
 * Read svi_fleet_share_element first, then shared_row, shared_step and svi_fleet_unshare. */
#define XXH_STATIC_LINKING_ONLY
#include <endian.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/limits.h"
#include "fleet/fleet_shared_internal.h"
#include "learner/learner_archive.h"
#include "learner/learner_held.h"
#include "learner/learner_prior.h"
#include "learner/learner_renew.h"
#include "learner/scratch.h"
#include "wire/decode.h"

#define WAIT        (366 * 86400.0) /* seconds that they wait at most */
#define KEEP        0.99            /* of what a key's labels have been, a label */
#define MAX_TARGET  1e36            /* of a target there: 1 / (1 - KEEP) of them fit a float */
#define PRIOR_SHARE 2               /* labels that the average counts for */

/* ---- making it */

static double shared_labels_ttl(const struct svi_settings *s) {
    return fmin(WAIT, s->labels_ttl);
}

void svi_fleet_shared_configure(struct svi_fleet *f) {
    if (f->shared)
        svi_learner_set_labels_ttl(f->shared->host, shared_labels_ttl(f->stream.root->s));
}

/* The host of the bank learns as that of a stream without keys: a key's options would give it the small
 * window of a stacked key. Slots are counted by its limits, so `held` and `waiting` have as many places. */
static svs_code shared_make_bank(struct svi_fleet_shared *sh, const struct svi_settings *s, svs_error *err) {
    struct svi_settings *alone = svi_alloc(sizeof *alone);
    struct svi_bank_options o = {.budget = s->auto_budget, .seed = (uint64_t)s->seed};
    struct svi_class_weights weights;
    if (!alone)
        return svi_fail_memory(err, "the bank of all keys");
    *alone = *s;
    alone->key[0] = '\0'; /* the learner of a bank, not that of a key */
    svs_code code = svi_settings_learning(alone, &weights, &o.host, err);
    svi_free(alone);
    /* The extras are no columns of the user and do not count against max.features. */
    o.host.max_features = sh->max_features + SVI_SHARED_EXTRAS;
    o.host.labels_ttl = shared_labels_ttl(s);
    o.host.labels_max = SVI_SHARED_WAITING;
    if (code == SVS_OK && !(sh->host = svi_learner_new(&o.host, sh->features, NULL, err)))
        code = err->code;
    if (code == SVS_OK && !(sh->bank = svi_bank_new(&o, sh->features, err)))
        code = err->code;
    /* Its scores pass through a bank and a stack, which hardly show the small error that this allows. */
    if (code == SVS_OK)
        svi_learner_relax(sh->host, true);
    return code;
}

static void shared_add_source(struct svi_fleet_shared *sh, int source) {
    sh->source[sh->features++] = source;
}

/* An empty range: the first label that is noted sets both ends. */
static void shared_forget_early(struct svi_fleet_shared *sh) {
    sh->early_weight = 0;
    sh->early_low = DBL_MAX;
    sh->early_high = -DBL_MAX;
}

static svs_code shared_make(struct svi_fleet_shared *sh, const struct svi_settings *s, svs_error *err) {
    const size_t most = (size_t)(s->max_features + SVI_SHARED_EXTRAS);
    struct svi_schema_options schema;
    svi_settings_schema(s, &schema);
    /* The schema owns its row: the stream's may hold the row that the engine of the key takes next, and
     * values are replaced and cut here. Units are kept by the engines. */
    schema.scratch = NULL;
    schema.units = NULL;
    sh->regress = s->task == SVS_REGRESS;
    sh->max_features = (int)s->max_features;
    sh->max_classes = (int)s->max_classes;
    sh->source = svi_alloc_array(most, sizeof *sh->source);
    sh->place = svi_alloc_array(most, sizeof *sh->place);
    sh->row = svi_alloc_array(3 * most, sizeof *sh->row);
    sh->scores = svi_alloc_array((size_t)sh->max_classes + 1, sizeof *sh->scores);
    sh->label = svi_alloc_array((size_t)sh->max_classes, sizeof *sh->label);
    sh->name = svi_alloc_array((size_t)sh->max_classes, sizeof *sh->name);
    if (!sh->source || !sh->place || !sh->row || !sh->scores || !sh->label || !sh->name)
        return svi_fail_memory(err, "the bank of all keys");
    /* One block for three arrays: only sh->row is freed. */
    sh->middle = sh->row + most;
    sh->limit = sh->row + 2 * most;
    svi_columns_init(&sh->columns, sh->max_features);
    SVI_TRY(svi_schema_init(&sh->schema, &schema, err));
    /* Features of the key stand before the columns, so they have the same places whatever columns arrive. */
    for (int i = 0; i < SVI_SHARED_KEY_BITS; i++)
        shared_add_source(sh, SVI_SHARED_BIT(i));
    /* Of two classes the second alone says all. */
    shared_add_source(sh, SVI_SHARED_LABEL(sh->regress ? 0 : 1));
    if (sh->regress)
        shared_add_source(sh, SVI_SHARED_LABEL(1));
    svi_stack_start_init(&sh->start);
    /* Parts are copies of the start: a merge takes the difference as what a part has learned. */
    for (int i = 0; i < SVI_FLEET_PARTS; i++)
        sh->part[i] = sh->start;
    sh->time = -DBL_MAX;
    /* Without a prior nothing is out of bounds. */
    sh->target_limit = sh->most = INFINITY;
    shared_forget_early(sh);
    return shared_make_bank(sh, s, err);
}

/* After a failure f->shared may be incomplete: svi_fleet_shared_free, which is called with the fleet, takes
 * that as well. */
svs_code svi_fleet_shared_new(struct svi_fleet *f, svs_error *err) {
    if (!svi_settings_stacked(f->stream.root->s))
        return SVS_OK;
    if (!(f->shared = svi_alloc(sizeof *f->shared)))
        return svi_fail_memory(err, "the bank of all keys");
    return shared_make(f->shared, f->stream.root->s, err);
}

void svi_fleet_shared_free(struct svi_fleet *f) {
    struct svi_fleet_shared *sh = f->shared;
    if (!sh)
        return;
    svi_schema_clear(&sh->schema);
    svi_columns_clear(&sh->columns);
    svs_learner_free(&sh->host);
    svi_bank_free(&sh->bank);
    svi_free(sh->source);
    svi_free(sh->place);
    svi_free(sh->row);
    svi_free(sh->scores);
    svi_free(sh->label);
    svi_free(sh->name);
    svi_free(sh);
    f->shared = NULL;
}

/* The engine reads `start`, which changes at couplings only. It writes to the part of its hash, so that two
 * threads never write to the same one. The guest stands for keys that do not exist, and teaches nothing. */
void svi_fleet_shared_join(struct svi_fleet *f, const struct svi_key_entry *entry, struct svi_engine *e) {
    if (!f->shared || !e->stack)
        return;
    e->stack->start = &f->shared->start;
    e->stack->part = entry == f->guest ? NULL : &f->shared->part[svi_fleet_part(entry->hash)];
}

/* ---- features */

/* Columns that the row adds, and categories that change hands. After a failure (no memory) the row is left to
 * its key alone, and the features that are there stay: the next row asks again for what is absent. A feature
 * is marked as unscaled before the learner has it, so that it is never scaled. */
static svs_code shared_grow(struct svi_fleet_shared *sh, int d, svs_error *err) {
    const int from = sh->placed;
    for (; sh->placed < d; sh->placed++) {
        if (svi_schema_unscaled(&sh->schema, sh->placed)) {
            svs_learner_unscaled(sh->host, sh->features);
            svi_bank_unscaled(sh->bank, sh->features);
        }
        sh->place[sh->placed] = sh->features;
        shared_add_source(sh, sh->placed);
    }
    if (sh->placed > from || svs_learner_dimension(sh->host) < sh->features)
        SVI_TRY(svs_learner_grow(sh->host, sh->features, err));
    return svi_bank_grow(sh->bank, sh->features, err);
}

static svs_code shared_widen(struct svi_fleet_shared *sh, const struct svi_message *m, svs_error *err) {
    const int before = sh->placed;
    /* A third class makes the shares of the others features, too. */
    const bool third = !sh->regress && sh->label_count > 2 && !sh->wide;
    for (int i = 0; third && i < SVI_SHARED_KEY_LABELS; i++)
        if (i != 1)
            shared_add_source(sh, SVI_SHARED_LABEL(i));
    sh->wide = sh->wide || third;
    /* The last two conditions hold after an earlier growth for which memory was lacking. */
    if (third || m->d > before || svs_learner_dimension(sh->host) < sh->features ||
        !svi_bank_follows(sh->bank, sh->host))
        SVI_TRY(shared_grow(sh, m->d > before ? m->d : before, err));
    /* A category that takes over a feature must not inherit the weights of the one that had it. Columns from
     * `before` on are new here and have no weights yet. */
    for (int i = 0; i < sh->schema.renewed_count; i++) {
        const int j = sh->schema.renewed[i].feature;
        if (j >= before)
            continue;
        svi_learner_renew(sh->host, sh->place[j]);
        svi_bank_renew(sh->bank, sh->place[j]);
        svs_learner_unscaled(sh->host, sh->place[j]);
        svi_bank_unscaled(sh->bank, sh->place[j]);
    }
    return SVS_OK;
}

/* How often a label of the key was of this class; a regression: its mean, its last target. The average of all
 * keys counts for PRIOR_SHARE labels, so that a key's first label does not decide alone. */
static double shared_share(const struct svi_fleet_shared *sh, const struct svi_key_share *k, int i) {
    const double all = sh->all.n > 0 ? (double)sh->all.v[i] / (double)sh->all.n : 0;
    if (sh->regress)
        return i == 0 ? (k->n > 0 ? (double)k->v[0] / (double)k->n : all)
                      : (k->n > 0 ? (double)k->v[1] : all);
    return ((double)k->v[i] + PRIOR_SHARE * all) / ((double)k->n + PRIOR_SHARE);
}

/* Bits of the hash let the bank tell keys apart in groups without a feature for each key. They are bits 40
 * and up: the low ones choose the part. */
static void shared_fill(struct svi_fleet_shared *sh, const struct svi_key_entry *entry, const double *x,
                        int d) {
    for (int i = 0; i < sh->features; i++) {
        const int from = sh->source[i];
        if (from >= 0)
            sh->row[i] = from < d ? x[from] : 0;
        else if (from > SVI_SHARED_LABEL(0))
            sh->row[i] = entry->hash >> (40 + SVI_SHARED_BIT(0) - from) & 1 ? 1 : -1;
        else
            sh->row[i] = shared_share(sh, &entry->share, SVI_SHARED_LABEL(0) - from);
    }
}

/* ---- ids */

#define ID_TEXT 32
/* The id of a sample in the bank. Two keys may use the same ids, and a key that is removed and begins again
 * has another number: neither may find samples of the other. A sample without an id takes the count of
 * elements, so that it can be taken back with its key. All is hashed in one byte order, as states move
 * between machines. */
static void shared_id(const struct svi_key_entry *entry, svs_value id, int64_t number, uint8_t out[16]) {
    struct {
        uint64_t key, kind, number;
        char text[SVS_NAME_MAX];
    } of;
    XXH128_canonical_t hash;
    memset(&of, 0, sizeof of);
    of.key = htole64(entry->head.number);
    of.kind = htole64((uint64_t)id.kind);
    of.number = htole64((uint64_t)(id.kind == SVS_INT ? id.as.i : id.kind == SVS_STR ? id.length : number));
    if (id.kind == SVS_STR)
        memcpy(of.text, id.as.s, id.length < SVS_NAME_MAX ? id.length : SVS_NAME_MAX);
    XXH128_canonicalFromHash(&hash, XXH3_128bits(&of, sizeof of));
    memcpy(out, hash.digest, 16);
}

/* An id as text, which learners take. `text` belongs to the caller and must outlive the value. */
static svs_value shared_id_value(const uint8_t id[16], char text[ID_TEXT + 1]) {
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return (svs_value){.kind = SVS_STR, .length = ID_TEXT, .as.s = text};
}

/* ---- scores */

/* Classes that the host has met; strings are copied, as other threads read them. */
void svi_fleet_shared_note_classes(struct svi_fleet_shared *sh) {
    for (; sh->label_count < svs_learner_class_count(sh->host); sh->label_count++) {
        svs_value y = svs_learner_class(sh->host, sh->label_count);
        if (y.kind == SVS_STR)
            y.as.s = memcpy(sh->name[sh->label_count], y.as.s, y.length);
        sh->label[sh->label_count] = y;
    }
}

/* What the bank says of sh->row, by the host's scores. A bank that has learned nothing says nothing; nor does
 * one of more classes than a score can carry. The bank is asked all the same, as learning needs its last
 * scores. */
static void shared_say(struct svi_fleet_shared *sh, const double *scores, int rows, int classes) {
    struct svi_bank_scored scored;
    struct svi_shared_score *score = &sh->score;
    svi_bank_score(sh->bank, sh->row, scores, rows, classes, &scored);
    score->classes = sh->label;
    score->class_count = sh->regress ? 1 : classes;
    score->known = sh->learned > 0 && classes <= SVI_SHARED_CLASSES;
    if (!score->known)
        return;
    if (sh->regress) {
        score->value[0] = scored.scores[0];
    } else if (classes < 2) {
        score->value[0] = 0;
    } else if (rows == 1) { /* half the log odds */
        score->value[0] = -log1p(exp(2 * scored.scores[0]));
        score->value[1] = -log1p(exp(-2 * scored.scores[0]));
    } else {
        memcpy(score->value, scored.scores, (size_t)rows * sizeof *score->value);
    }
}

/* For a row that the host does not step with: a step gives the scores itself. */
static void shared_consult(struct svi_fleet_shared *sh) {
    svs_learner_scores(sh->host, sh->row, sh->scores);
    shared_say(sh, sh->scores, svs_learner_rows(sh->host), svs_learner_class_count(sh->host));
}

/* ---- learning */

/* Counts a label of the key, or of all keys (sh->all). Older labels fade, so that a key that has changed is
 * not held to its past. The target is cut, or a few of them would overflow a float. */
static void shared_count_label(struct svi_fleet_shared *sh, struct svi_key_share *k, svs_value y, int label) {
    k->n = (float)KEEP * k->n + 1;
    if (sh->regress) {
        const double given = y.kind == SVS_INT ? (double)y.as.i : y.as.r;
        const float target = (float)fmax(fmin(given, MAX_TARGET), -MAX_TARGET);
        k->v[0] = (float)KEEP * k->v[0] + target;
        k->v[1] = k == &sh->all ? (float)KEEP * k->v[1] + target : target;
        return;
    }
    for (int i = 0; i < SVI_SHARED_KEY_LABELS; i++)
        k->v[i] = (float)KEEP * k->v[i] + (i == label);
}

/* Weights and targets leave their traces in scales and first-order members: fleet_shared_bounds.c. */
static void shared_note_early(struct svi_fleet_shared *sh, svs_value y, double weight) {
    const double target = !sh->regress ? 0 : y.kind == SVS_INT ? (double)y.as.i : y.as.r;
    sh->early_weight = fmax(sh->early_weight, weight);
    sh->early_low = fmin(sh->early_low, target);
    sh->early_high = fmax(sh->early_high, target);
}

/* After the host has learned the sample as its newest. */
static void shared_learned(struct svi_fleet *f, struct svi_key_entry *entry, const svs_sample *s,
                           const uint8_t id[16]) {
    struct svi_fleet_shared *sh = f->shared;
    struct svi_held_sample held;
    svs_error err;
    if (!svi_learner_newest_sample(sh->host, &held))
        return;
    /* The host has the sample already, so this cannot be undone: the root is marked instead. */
    if (svi_bank_learn(sh->bank, sh->host, s, &held, sh->time, &err) == SVS_NO_MEMORY)
        f->stream.root->out_of_memory = true;
    /* The window holds SVI_AUTO_WINDOW samples: a sample whose slot is taken has left it. */
    struct svi_shared_slot *slot = &sh->held[held.number % SVI_AUTO_WINDOW];
    slot->key = entry->head.number + 1;
    memcpy(slot->id, id, sizeof slot->id);
    sh->recent[sh->learned++ % SVI_SHARE_ROWS] = slot->key;
    if (!sh->knew_bounds)
        shared_note_early(sh, s->y, held.own);
    svi_fleet_shared_note_classes(sh);
    /* Last, as these counts are features: the row was made without its own label. */
    shared_count_label(sh, &sh->all, s->y, held.label);
    shared_count_label(sh, &entry->share, s->y, held.label);
}

/* Scores sh->row, and learns it or lets it wait where that is due. A row out of bounds does not wait either:
 * its label would bring it into the window later. */
static void shared_step(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_message *m,
                        bool inside) {
    struct svi_fleet_shared *sh = f->shared;
    const bool labelled = m->y.kind != SVS_NONE,
               waits = !labelled && m->id.kind != SVS_NONE && f->stream.root->s->labels_ttl > 0 &&
                       m->weight <= sh->most; /* its label is learned with this weight */
    char text[ID_TEXT + 1];
    uint8_t id[16];
    svs_step step;
    svs_error err;
    sh->taken++;
    if (!inside || !(labelled ? svi_fleet_shared_admits(f, entry, m->y, m->weight) : waits)) {
        shared_consult(sh);
        return;
    }
    shared_id(entry, m->id, sh->taken, id);
    const svs_sample s = {
        .x = sh->row, .d = sh->features, .id = shared_id_value(id, text), .y = m->y, .weight = m->weight};
    /* The host may refuse the sample. The row can still be scored. */
    if (svs_learner_step(sh->host, &s, sh->time, &step, &err) != SVS_OK) {
        shared_consult(sh);
        return;
    }
    /* The step's scores are those from before learning. The bank scores the row before it learns it, as each
     * of its members is weighed by what it predicted. */
    shared_say(sh, step.scores, step.rows, step.class_count);
    if (labelled) {
        shared_learned(f, entry, &s, id);
        return;
    }
    /* The row is the newest that waits; its slot lets the key take it back. */
    struct svi_learner_span span;
    svi_learner_span(sh->host, &span);
    struct svi_shared_slot *slot = &sh->waiting[(span.waiting - 1) % SVI_SHARED_WAITING];
    slot->key = entry->head.number + 1;
    memcpy(slot->id, id, sizeof slot->id);
}

/* Missing values are the mean of the rows held, whatever replaces them in the key: the bank has no last row
 * of a key to carry values from. False: the row is left out. */
static bool shared_fill_missing(struct svi_fleet_shared *sh, struct svi_message *m) {
    const enum svi_missing policy = svi_schema_policy(&sh->schema, m);
    if (policy == SVI_MISSING_DROP || policy == SVI_MISSING_REFUSE)
        return false;
    for (int j = 0; j < m->d; j++)
        if (isnan(m->x[j]))
            m->x[j] =
                policy == SVI_MISSING_ZERO || j >= sh->placed ? 0 : svi_learner_mean(sh->host, sh->place[j]);
    return true;
}

/* Does the engine of the key accept such a label? The bank must not learn what the key refuses. */
static bool shared_label_good(const struct svi_fleet_shared *sh, svs_value y) {
    if (y.kind == SVS_REAL)
        return sh->regress && fabs(y.as.r) <= SVI_VALUE_MAX;
    return y.kind != SVS_STR || !sh->regress;
}

/* What the engine of the key refuses by its head (check_claims there). */
static bool shared_origin_good(const struct svi_fleet *f, const struct svi_message *m, double now) {
    const struct svi_settings *s = f->stream.root->s;
    const bool named = m->stream.kind == SVS_STR;
    return !(named && (m->stream.length != strlen(s->stream) ||
                       memcmp(m->stream.as.s, s->stream, m->stream.length) != 0)) &&
           !(m->ts > now + s->ts_ahead);
}

/* Is the decoded row one that the bank can take? Its columns are in the schema then. The order is that of
 * decoding: cells become features, the calendar adds some, and only then is the shape known to fit. */
static bool shared_row_good(struct svi_fleet *f, struct svi_message *m, double now) {
    struct svi_fleet_shared *sh = f->shared;
    svs_error err;
    if (m->cells && svi_schema_row(&sh->schema, m, &err) != SVS_OK)
        return false;
    if (!m->has_x || svi_schema_calendar(&sh->schema, m, isnan(m->ts) ? now : m->ts, &err) != SVS_OK ||
        svi_shape_fits(&sh->schema.shape, m, &err) != SVS_OK ||
        (m->missing > 0 && !shared_fill_missing(sh, m)) || !shared_label_good(sh, m->y))
        return false;
    for (int j = 0; j < m->d; j++)
        if (!(fabs(m->x[j]) <= SVI_VALUE_MAX))
            return false;
    return true;
}

/* Which samples are held now: a category's feature may change hands when none of them has it. */
void svi_fleet_shared_note_held(struct svi_fleet_shared *sh) {
    struct svi_learner_span span;
    svi_learner_span(sh->host, &span);
    sh->schema.held = (struct svi_held){span.window, span.window_oldest, span.waiting, span.waiting_oldest};
}

/* One sample. */
static bool shared_row(struct svi_fleet *f, struct svi_key_entry *entry, struct svi_message *m, double now) {
    struct svi_fleet_shared *sh = f->shared;
    svs_error err;
    if (!shared_row_good(f, m, now) || shared_widen(sh, m, &err) != SVS_OK) {
        svi_schema_restore(&sh->schema);
        return false;
    }
    /* As in the engine of the key: the time that the sample has, so that what the bank holds does not depend
     * on when it arrived. */
    sh->time = fmax(sh->time, isnan(m->ts) ? now : m->ts);
    /* The columns have their features now, so the bounds cover all of them. They may cut values of m->x, from
     * which the row of the bank is filled. */
    svi_fleet_shared_read_bounds(f);
    const bool inside = svi_fleet_shared_bound(sh, m->x, m->d);
    shared_fill(sh, entry, m->x, m->d);
    shared_step(f, entry, m, inside);
    /* The schema first accepts the row, then learns which samples are held, then notes the row's categories
     * as those of a held sample. */
    svi_schema_commit(&sh->schema, m);
    svi_fleet_shared_note_held(sh);
    if (sh->schema.columns)
        svi_schema_used(&sh->schema);
    return true;
}

/* ---- late labels, forgetting */

/* A late label for a waiting row. False: no such row waits here, or the bank cannot learn such a label; the
 * key then learns it without a score of the bank. */
static bool shared_label(struct svi_fleet *f, struct svi_key_entry *entry, svs_value own, svs_value y) {
    struct svi_fleet_shared *sh = f->shared;
    char text[ID_TEXT + 1];
    uint8_t id[16];
    svs_step step;
    svs_error err;
    shared_id(entry, own, 0, id);
    const svs_value given = shared_id_value(id, text);
    const double *x = own.kind == SVS_NONE ? NULL : svi_learner_waiting_row(sh->host, given);
    if (!x || y.kind == SVS_NONE || !shared_label_good(sh, y))
        return false;
    /* The row is the host's and moves with the label. It keeps the features of its arrival; the score is made
     * now, since the bank learns from the scores that its present members give. */
    memcpy(sh->row, x, (size_t)svs_learner_dimension(sh->host) * sizeof *sh->row);
    shared_consult(sh);
    /* The weight was bounded when the row began to wait. */
    if (!svi_fleet_shared_admits(f, entry, y, 1)) {
        /* The label is not admitted: the row ends its wait, as the key has used the label. */
        svs_learner_forget(sh->host, given, sh->time, NULL, &err);
        return true;
    }
    struct svi_held_sample held;
    if (svs_learner_label(sh->host, given, y, sh->time, &step, &err) == SVS_OK &&
        svi_learner_newest_sample(sh->host, &held)) {
        const svs_sample s = {.x = sh->row, .d = sh->features, .id = given, .y = y, .weight = held.own};
        shared_learned(f, entry, &s, id);
    }
    return true;
}

/* Number of samples of this id that were held or waited. The bank is called first: it finds by the host's
 * samples what its members have to take back. */
static int shared_forget_id(struct svi_fleet_shared *sh, const uint8_t id[16]) {
    char text[ID_TEXT + 1];
    svs_error err;
    int count = 0;
    const svs_value given = shared_id_value(id, text);
    svi_bank_forget(sh->bank, sh->host, given, sh->time);
    return svs_learner_forget(sh->host, given, sh->time, &count, &err) == SVS_OK ? count : 0;
}

/* The bank holds a sample longer than its key does: the key then reports it as forgotten by this. */
static bool shared_forget(struct svi_fleet *f, const struct svi_key_entry *entry, svs_value own) {
    uint8_t id[16];
    if (own.kind == SVS_NONE)
        return false;
    shared_id(entry, own, 0, id);
    f->shared->score.known = false;
    f->shared->score.removed = shared_forget_id(f->shared, id);
    return f->shared->score.removed > 0;
}

/* By the slots of all samples that are, or were recently, in the window or waiting: an id of one that has
 * left finds nothing. The averages of all keys keep its labels, which fade. An excluded key stays excluded: a
 * reset must not be a way back in. */
void svi_fleet_unshare(struct svi_fleet *f, struct svi_key_entry *entry) {
    struct svi_fleet_shared *sh = f->shared;
    const uint64_t key = entry->head.number + 1;
    if (!sh)
        return;
    for (int i = 0; i < SVI_AUTO_WINDOW + SVI_SHARED_WAITING; i++) {
        struct svi_shared_slot *slot = i < SVI_AUTO_WINDOW ? &sh->held[i] : &sh->waiting[i - SVI_AUTO_WINDOW];
        if (slot->key != key)
            continue;
        (void)shared_forget_id(sh, slot->id);
        *slot = (struct svi_shared_slot){0};
    }
    /* The rows are no longer learned, so they do not count in any share. */
    for (int i = 0; i < SVI_SHARE_ROWS; i++)
        sh->recent[i] = sh->recent[i] == key ? 0 : sh->recent[i];
    const bool out = entry->share.out;
    entry->share = (struct svi_key_share){.out = out};
}

/* ---- what the fleet calls */

const struct svi_shared_score *svi_fleet_share_element(struct svi_fleet *f, struct svi_key_entry *entry,
                                                       const struct svi_envelope *env, double now) {
    struct svi_fleet_shared *sh = f->shared;
    struct svi_message m;
    svs_error err;
    if (!sh || !entry)
        return NULL;
    struct svi_envelope copy = *env; /* the element is decoded again by the engine of its key */
    copy.order = &sh->columns;
    svs_code code = svi_envelope_next(&copy, &sh->schema, &m, &err);
    /* An element may only name columns: the schema keeps the names, and there is no row to score. */
    if (code == SVS_OK && m.op == SVI_LEARN && copy.columns && !m.has_x) {
        if (svi_columns_match(&sh->columns, &sh->schema, &copy, false, &err) == SVS_OK)
            svi_schema_commit_names(&sh->schema);
        return NULL;
    }
    /* On failure the schema drops what the element has begun. The key's engine decodes it again and reports
     * why. */
    if (code == SVS_OK)
        code = svi_columns_order(&sh->columns, &sh->schema, &copy, &m, &err);
    if (code != SVS_OK) {
        svi_schema_restore(&sh->schema);
        return NULL;
    }
    /* The last element's score must not pass for this one's. */
    sh->score.known = false;
    return svi_fleet_share_row(f, entry, &m, now);
}

const struct svi_shared_score *svi_fleet_share_row(struct svi_fleet *f, struct svi_key_entry *entry,
                                                   const struct svi_message *given, double now) {
    struct svi_fleet_shared *sh = f->shared;
    struct svi_message m = *given;
    double *row = sh ? sh->schema.shape.row : NULL;
    bool found;
    if (!sh || !entry)
        return NULL;
    /* One buffer serves all elements: an old number must not be reported for this one. */
    sh->score.removed = 0;
    if (!shared_origin_good(f, given, now)) {
        svi_schema_restore(&sh->schema);
        return NULL;
    }
    /* The row may be another schema's; a sparse one is as long as its last index says. */
    if (m.has_x && !m.cells && m.x != row && m.d <= sh->max_features) {
        memcpy(row, m.x, (size_t)m.d * sizeof *row);
        m.x = row;
        for (; m.kind == SVI_SPARSE && m.d < sh->schema.shape.d; m.d++)
            row[m.d] = 0;
    }
    /* Cells are decoded into the row by shared_row_good. */
    if (m.cells)
        m.x = row;
    if (m.op == SVI_LEARN)
        found = shared_row(f, entry, &m, now);
    else if (m.op == SVI_LABEL)
        found = shared_label(f, entry, m.id, m.y);
    else
        found = shared_forget(f, entry, m.id);
    return found ? &sh->score : NULL;
}

/* Commands take the same way as elements. A reset takes the rows back here, before the engine forgets the
 * samples. */
const struct svi_shared_score *svi_fleet_share_command(struct svi_fleet *f, struct svi_key_entry *entry,
                                                       const struct svi_command *c) {
    svs_value id, y;
    svs_error err;
    if (!f->shared)
        return NULL;
    f->shared->score.removed = 0;
    if (c->op == SVI_COMMAND_RESET)
        svi_fleet_unshare(f, entry);
    if ((c->op != SVI_COMMAND_LABEL && c->op != SVI_COMMAND_FORGET) || svi_command_id(c, &id, &err) != SVS_OK)
        return NULL;
    if (c->op == SVI_COMMAND_FORGET) {
        if (shared_forget(f, entry, id))
            return &f->shared->score;
    } else if (svi_command_label(c, &y, &err) == SVS_OK && shared_label(f, entry, id, y))
        return &f->shared->score;
    return NULL;
}

/* The score of a row that is only scored: nothing of the schema stays. A key that does not exist has its hash
 * and the label averages of all keys. */
static const struct svi_shared_score *shared_peek(struct svi_fleet *f, const char *key,
                                                  struct svi_message *m) {
    struct svi_fleet_shared *sh = f->shared;
    struct svi_key_entry unknown = {.hash = svi_key_hash(key, strlen(key))};
    const struct svi_key_entry *entry = svi_key_table_find(f->table, key, strlen(key));
    const bool good = shared_row_good(f, m, isnan(m->ts) ? f->stream.arrival : m->ts);
    if (good) {
        /* A category that would take over a feature: the weights there are still those of another one. */
        for (int i = 0; i < sh->schema.renewed_count; i++)
            m->x[sh->schema.renewed[i].feature] = 0;
        /* The same cuts as for a row that is learned. Bounds are read from columns as they are without this
         * row, so one that renews a feature is held to those that are known. */
        if (sh->schema.renewed_count == 0)
            svi_fleet_shared_read_bounds(f);
        svi_fleet_shared_bound(sh, m->x, m->d);
        shared_fill(sh, entry ? entry : &unknown, m->x, m->d);
        shared_consult(sh);
    }
    svi_schema_restore(&sh->schema);
    return good ? &sh->score : NULL;
}

const struct svi_shared_score *svi_fleet_shared_peek(svi_stream *s, const char *key,
                                                     const struct svi_envelope *env) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_fleet_shared *sh = f->shared;
    struct svi_message m;
    svs_error err;
    if (!sh || !key[0])
        return NULL;
    struct svi_envelope copy = *env;
    copy.order = &sh->columns;
    if (svi_envelope_next(&copy, &sh->schema, &m, &err) == SVS_OK &&
        svi_columns_order(&sh->columns, &sh->schema, &copy, &m, &err) == SVS_OK && m.op == SVI_LEARN)
        return shared_peek(f, key, &m);
    svi_schema_restore(&sh->schema);
    return NULL;
}

const struct svi_shared_score *svi_fleet_shared_peek_row(svi_stream *s, const char *key,
                                                         const struct svi_message *given) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_fleet_shared *sh = f->shared;
    struct svi_message m = *given;
    double *row = sh ? sh->schema.shape.row : NULL;
    if (!sh || !key[0] || (!m.cells && m.d > sh->max_features))
        return NULL;
    /* The row may be another schema's. */
    if (!m.cells && m.x != row)
        memcpy(row, m.x, (size_t)m.d * sizeof *row);
    m.x = row;
    return shared_peek(f, key, &m);
}

const char *svi_fleet_shared_check(struct svi_fleet *f, double error) {
    return f->shared ? svi_bank_check(f->shared->bank, f->shared->host, error) : NULL;
}

int64_t svi_fleet_shared_held(const struct svi_fleet *f) {
    svs_health h = {0};
    if (f->shared)
        svs_learner_health(f->shared->host, &h);
    return h.held;
}

void svi_fleet_shared_figures(const struct svi_fleet *f, struct svi_figure *counted) {
    if (!f->shared)
        return;
    const struct svi_tree_waits trees = svi_bank_tree_waits(f->shared->bank);
    counted[SVI_COUNTER_TREE_FITS].as.count += trees.fits;
    counted[SVI_COUNTER_TREE_WAITS].as.count += trees.count;
    counted[SVI_COUNTER_TREE_WAIT_SECONDS].as.number += trees.seconds;
    counted[SVI_COUNTER_TREE_WAIT_LONGEST].as.number =
        fmax(counted[SVI_COUNTER_TREE_WAIT_LONGEST].as.number, trees.longest);
}

int64_t svi_fleet_shared_rows(const struct svi_fleet *f, const struct svi_key_entry *entry) {
    int64_t rows = 0;
    for (int i = 0; f->shared && i < SVI_SHARE_ROWS; i++)
        rows += f->shared->recent[i] == entry->head.number + 1;
    return rows;
}

/* An estimate by the options of the host, as shared_make_bank sets them. */
double svi_fleet_shared_memory(const struct svi_fleet *f) {
    const struct svi_fleet_shared *sh = f->shared;
    if (!sh)
        return 0;
    svs_options o;
    svi_settings_learner(f->stream.root->s, &o);
    o.window = SVI_AUTO_WINDOW;
    o.max_features = sh->max_features + SVI_SHARED_EXTRAS;
    o.labels_max = SVI_SHARED_WAITING;
    const struct svi_bank_options b = {.host = o, .budget = f->stream.root->s->auto_budget};
    return sizeof *sh + svs_learner_memory(&o, sh->features, sh->label_count) +
           svi_bank_memory(&b, sh->features, sh->label_count);
}
