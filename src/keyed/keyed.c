/* A stream with keys: an engine for each, behind the engine of the stream.
 *
 * The engine that the world holds is the root: it has what there is once (sources and their numbers, the
 * table of keys, what couples them) and the model of the samples without a key. An element of a message goes
 * to the engine of its key, which is begun by the first sample of it; from there on it goes the way of every
 * sample (engine.c), and what the key's engine has to say carries its name and numbers of its own. So a key
 * comes to the same bits as an engine that has had its samples alone.
 *
 * Read svi_fleet_take_element first. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/key_list.h"
#include "keyed/keyed_internal.h"
#include "wire/fields.h"

#define FORGET_MOST 16 /* keys that are forgotten before an element */

svs_code svi_fleet_new(struct svi_engine *root, svs_error *err) {
    struct svi_fleet *f = svi_alloc(sizeof *f);
    if (!f)
        return svi_fail_memory(err, "the keys");
    root->of->fleet = f;
    svi_large_pages_begin(&f->pages);
    svs_code code = (f->table = svi_key_table_new(err)) && (f->groups = svi_alert_groups_new(err))
                        ? svi_fleet_reserve_note(root, err)
                        : SVS_NO_MEMORY;
    if (code == SVS_OK)
        svi_fleet_note(root, SVI_NOTE_CONFIG, 0, 0);
    return code == SVS_OK ? svi_fleet_prior_new(root, err) : code;
}

void svi_fleet_free(struct svi_stream *of) {
    struct svi_fleet *f = of->fleet;
    svi_crew_stop(of->crew);
    for (struct svi_key_entry *n = f->table ? svi_key_table_first(f->table) : NULL; n; n = n->after)
        svi_engine_free(&n->engine);
    svi_key_table_free(&f->table);
    svi_fleet_notes_clear(f);
    svi_key_cache_free(&f->cache);
    svi_key_queue_clear(&f->queue);
    svi_alert_groups_free(&f->groups);
    svi_bytes_clear(&f->raw);
    svi_bytes_clear(&f->state);
    svi_bytes_clear(&f->packed);
    svi_fleet_kept_clear(f);
    svi_fleet_prior_free(f);
    svi_free(f->folder);
    svi_free(f);
    of->fleet = NULL;
    svi_crew_free(&of->crew);
}

struct svi_engine *svi_fleet_make(struct svi_engine *root, struct svi_settings *s,
                                  const struct svi_key_entry *entry, svs_error *err) {
    struct svi_engine *e = svi_engine_new_key(root, s, entry->name, err);
    if (e && svi_fleet_prior_join(e, err) != SVS_OK)
        svi_engine_free(&e);
    if (!e)
        return NULL;
    e->again = entry->again;
    e->unplaced = svi_engine_features(e) > 0; /* by the setting features */
    return e;
}

/* A name as a text may show it: it came from outside. */
#define KEY_SHOWN 100
static const char *key_shown(char shown[KEY_SHOWN], const char *key) {
    svi_escape(shown, KEY_SHOWN, key, strlen(key));
    return shown;
}

/* ---- which engine */

/* May this source begin one more key? Without keys.quota nine tenths of keys.max are for all, and
 * each source that there may be has its part of the last tenth to itself, one key at least: so a client that
 * begins keys without end, under as many names as it may have at a time, leaves others their part. One that
 * says bye and takes another name has a new part. */
static bool fleet_may_begin(const struct svi_engine *root, uint64_t owner) {
    const struct svi_settings *s = root->s;
    svi_key_table *table = root->of->fleet->table;
    const int64_t tenth = s->keys_max / 10, part = tenth / s->max_sources > 1 ? tenth / s->max_sources : 1;
    const int64_t owned = svi_key_table_owned(table, owner);
    if (s->keys_quota > 0)
        return owned < s->keys_quota;
    return owned < part || svi_key_table_beyond(table, part) < s->keys_max - tenth;
}

static void fleet_refuse_more(const struct svi_engine *root, const char *shown, uint64_t owner,
                              svs_error *err) {
    const char *who = owner ? "this source" : "messages without src";
    const long long begun = svi_key_table_owned(root->of->fleet->table, owner);
    if (root->s->keys_quota > 0)
        svi_fail(err, SVS_LIMIT,
                 "key %s is one more than keys.quota (%lld) lets %s begin, which began %lld: raise it", shown,
                 (long long)root->s->keys_quota, who, begun);
    else
        svi_fail(
            err, SVS_LIMIT,
            "key %s is one more than the share that %s may begin of keys.max (%lld), which began %lld: raise "
            "keys.max, or set keys.quota",
            shown, who, (long long)root->s->keys_max, begun);
}

static struct svi_key_entry *fleet_begin(struct svi_engine *root, const char *key, uint64_t owner,
                                         svs_error *err) {
    struct svi_fleet *f = root->of->fleet;
    char shown[KEY_SHOWN];
    if (svi_key_table_count(f->table) >= root->s->keys_max) {
        svi_fail(err, SVS_LIMIT, "key %s is one more than keys.max (%lld): drop keys, or start with more",
                 key_shown(shown, key), (long long)root->s->keys_max);
        return NULL;
    }
    if (!fleet_may_begin(root, owner)) {
        fleet_refuse_more(root, key_shown(shown, key), owner, err);
        return NULL;
    }
    svi_crew_settle(root);
    if (svi_key_queue_reserve(&f->queue, svi_key_table_count(f->table) + 1, err) != SVS_OK)
        return NULL;
    struct svi_key_entry *entry = svi_key_table_add(f->table, key, strlen(key), owner, err);
    if (!entry)
        return NULL;
    entry->begun = svi_engine_seen(root);
    entry->again = f->gone;
    if (!(entry->engine = svi_fleet_make(root, root->s, entry, err))) {
        svi_key_table_remove(f->table, entry);
        return NULL;
    }
    if (svi_fleet_change(root, entry, err) != SVS_OK) {
        svi_engine_free(&entry->engine);
        svi_key_table_remove(f->table, entry);
        return NULL;
    }
    entry->number = f->begun++;
    entry->rests = (uint32_t)f->rests;
    svi_fleet_join(f, entry);
    return entry;
}

struct svi_engine *svi_fleet_find(struct svi_engine *root, const char *key, bool make, uint64_t owner,
                                  struct svi_key_entry **entry, svs_error *err) {
    char shown[KEY_SHOWN];
    *entry = NULL;
    if (!key[0])
        return root;
    *entry = svi_key_table_find(root->of->fleet->table, key, strlen(key));
    if (!*entry && make)
        *entry = fleet_begin(root, key, owner, err);
    else if (!*entry)
        svi_fail(err, SVS_UNKNOWN_KEY, "there is no key %s", key_shown(shown, key));
    if (!*entry || (!(*entry)->engine && svi_fleet_return(root, *entry, err) != SVS_OK))
        return NULL;
    svi_key_table_use(root->of->fleet->table, *entry);
    return (*entry)->engine;
}

/* It was not read back for what it is to take: that must be taken by a restart. */
void svi_fleet_lose(struct svi_engine *root, const struct svi_key_entry *entry, const svs_error *err) {
    svs_error *lost = &root->of->fleet->lost;
    char shown[KEY_SHOWN];
    if (entry && !entry->engine && lost->code == SVS_OK && err->code != SVS_NO_MEMORY)
        svi_fail(lost, err->code, "key %s: %.150s", key_shown(shown, entry->name), err->text);
}

static void fleet_remove(struct svi_engine *root, struct svi_key_entry *entry) {
    struct svi_fleet *f = root->of->fleet;
    f->total.open -= entry->last.open;
    svi_fleet_groups_drop(root, entry);
    svi_engine_free(&entry->engine);
    svi_key_queue_leave(&f->queue, entry);
    svi_fleet_leave(f, entry);
    svi_fleet_uncache(f, entry);
    svi_key_table_remove(f->table, entry);
}

/* One that has been heard of: if it comes again, its events are others. */
static void fleet_go(struct svi_engine *root, struct svi_key_entry *entry) {
    root->of->fleet->gone++;
    fleet_remove(root, entry);
}

void svi_fleet_figures(const struct svi_engine *e, struct svi_key_figures *figures) {
    const struct svi_metrics_sums sums = svi_metrics_sums(e->metrics);
    const struct svi_drift_stage *drift = &e->quality_stage.drift;
    figures->rows = e->kept[SVI_KEPT_SEEN];
    figures->labelled = e->kept[SVI_KEPT_LABELLED];
    figures->refused = e->kept[SVI_KEPT_REFUSED];
    figures->judged = sums.judged;
    figures->right = sums.right;
    figures->squares = sums.squares;
    figures->quality = svi_metrics_windowed(e->metrics);
    figures->alerts = (int32_t)(e->novelty->alert.opened + drift->opened + e->rules->opened);
    figures->open = (int32_t)e->novelty->alert.open + (int32_t)drift->open + svi_rules_open(e->rules);
    figures->deadline = svi_engine_deadline(e);
    figures->quiet = isinf(figures->deadline) ? 0 : svi_rules_quiet(e->rules);
    svi_fleet_finds(e, &figures->finds);
    figures->out_of_memory = svi_engine_out_of_memory(e);
}

/* What has come to it since `before`. After a reset what was judged is counted from 0. */
static void fleet_add(struct svi_fleet_total *t, const struct svi_key_figures *before,
                      const struct svi_key_figures *now) {
    static const struct svi_key_figures none;
    const struct svi_key_figures *judged = now->judged < before->judged ? &none : before;
    t->labelled += now->labelled - before->labelled;
    t->refused += now->refused - before->refused;
    t->alerts += now->alerts - before->alerts;
    t->open += now->open - before->open;
    t->judged += now->judged - judged->judged;
    t->right += now->right - judged->right;
    t->squares += now->squares - judged->squares;
}

int svi_fleet_sum_up(const struct svi_engine *root, struct svi_figure *counted, struct svi_figure *further) {
    const struct svi_fleet *f = root->of->fleet;
    const struct svi_fleet_total *t = &f->total;
    const struct svi_metrics_sums own = svi_metrics_sums(root->metrics);
    const double judged = (double)(t->judged + own.judged);
    struct svi_key_figures last;
    svi_fleet_figures(root, &last);
    counted[SVI_COUNTER_SEEN].as.count += f->seen;
    counted[SVI_COUNTER_LABELLED].as.count += t->labelled;
    counted[SVI_COUNTER_REFUSED].as.count += t->refused;
    const struct svi_figure all[SVI_FLEET_FIGURES] = {
        {"keys", SVI_COUNT, .as.count = svi_key_table_count(f->table)},
        {"keys_in_memory", SVI_COUNT, .as.count = svi_key_table_in_memory(f->table)},
        {"keys_alerts", SVI_COUNT, .as.count = t->alerts + last.alerts},
        {"keys_alerts_open", SVI_COUNT, .as.count = t->open + last.open},
        root->s->task == SVS_REGRESS
            ? (struct svi_figure){"keys_rmse", SVI_NUMBER,
                                  .as.number = sqrt((t->squares + own.squares) / judged)}
            : (struct svi_figure){"keys_accuracy", SVI_NUMBER,
                                  .as.number = (double)(t->right + own.right) / judged}};
    memcpy(further, all, sizeof all);
    return SVI_FLEET_FIGURES;
}

void svi_fleet_progress(const struct svi_engine *root, struct svi_engine_progress *p) {
    const struct svi_fleet *f = root->of->fleet;
    p->seen += f->seen;
    p->alerts += f->total.alerts;
    p->sums.judged += f->total.judged;
    p->sums.right += f->total.right;
    p->sums.squares += f->total.squares;
    const double n = (double)p->sums.judged;
    struct svi_figure *quality = root->scratch->quality;
    for (int i = 0; i < p->quality_count; i++)
        quality[i].as.number = strcmp(quality[i].name, "accuracy") == 0 ? (double)p->sums.right / n
                               : strcmp(quality[i].name, "rmse") == 0   ? sqrt(p->sums.squares / n)
                                                                        : NAN;
}

int svi_engine_keys(svi_engine *e, const struct svi_key_query *q, const struct svi_key_entry **entries,
                    int64_t *matching) {
    *matching = 0;
    svi_crew_settle(e);
    return e->of->fleet ? svi_key_list(e->of->fleet->table, q, entries, matching) : 0;
}

int64_t svi_engine_key_count(const svi_engine *e) {
    return e->of->fleet ? svi_key_table_count(e->of->fleet->table) : 0;
}

void svi_fleet_done(struct svi_engine *root, struct svi_key_entry *entry,
                    const struct svi_key_figures *figures, bool sample, double now) {
    if (!entry) {
        struct svi_key_finds own;
        svi_fleet_finds(root, &own);
        svi_fleet_find_alike(root, &root->of->fleet->found, &own);
        root->of->fleet->found = own;
        return;
    }
    root->of->fleet->seen += figures->rows - entry->last.rows;
    svi_fleet_find_alike(root, &entry->last.finds, &figures->finds);
    fleet_add(&root->of->fleet->total, &entry->last, figures);
    root->out_of_memory = root->out_of_memory || figures->out_of_memory;
    entry->last = *figures;
    svi_fleet_queue(root->of->fleet, entry);
    if (sample) {
        entry->heard = now;
        svi_key_table_hear(root->of->fleet->table, entry);
    } else if (figures->rows == 0 && entry->heard == 0) {
        root->of->fleet->begun -= entry->number + 1 == root->of->fleet->begun;
        (void)svi_fleet_end(root, entry, NULL); /* no record is of it, so it takes no memory */
        fleet_remove(root, entry);
    }
}

svs_code svi_fleet_drop(struct svi_engine *root, const char *key, svs_error *err) {
    struct svi_key_entry *entry = svi_key_table_find(root->of->fleet->table, key, strlen(key));
    char shown[KEY_SHOWN];
    if (!key[0])
        return svi_fail(err, SVS_MISSING_KEY, "drop needs a key: reset is for the samples without one");
    if (!entry)
        return svi_fail(err, SVS_UNKNOWN_KEY, "there is no key %s", key_shown(shown, key));
    if (svi_fleet_end(root, entry, err) != SVS_OK)
        return err->code;
    fleet_go(root, entry);
    return SVS_OK;
}

void svi_fleet_done_here(struct svi_engine *root, struct svi_key_entry *entry, bool sample, double now) {
    struct svi_key_figures figures;
    if (!entry) {
        svi_fleet_done(root, NULL, NULL, sample, now);
        return;
    }
    root->of->columns = svi_engine_features(entry->engine);
    svi_fleet_figures(entry->engine, &figures);
    svi_fleet_done(root, entry, &figures, sample, now);
}

/* ---- what comes in */

static svs_code fleet_fail_missing(bool labels, svs_error *err) {
    return svi_fail(err, SVS_MISSING_KEY, "%s needs the key of its sample: '' where it has none",
                    labels ? "label" : "forget");
}

/* Of which key is it, and is it about a sample that came before? */
static svs_code fleet_read(const struct svi_envelope *env, char *key, bool *about, svs_error *err) {
    const struct svi_element *el = &env->first;
    const bool labels = svi_element_is(el, SVI_KEY_OP, "label");
    svs_code code = svi_element_key(el, key, err);
    *about = labels || svi_element_is(el, SVI_KEY_OP, "forget");
    return code == SVS_OK && *about && !svi_element_has(el, SVI_KEY_KEY) ? fleet_fail_missing(labels, err)
                                                                         : code;
}

/* The threads, where there are to be any; they begin when they are first needed. */
static struct svi_crew *fleet_crew(struct svi_engine *root) {
    if (!root->open || !svi_engine_has_crew(root))
        return NULL;
    if (!root->of->crew) {
        root->of->crew =
            svi_crew_new(root->s, root->s->threads < SVI_CREW_MOST ? (int)root->s->threads : SVI_CREW_MOST);
        root->of->later = root->of->crew != NULL;
    }
    return root->of->crew;
}

/* What couples the keys takes effect at these numbers of what came, whatever became of it. */
static bool is_coupled(int64_t taken) {
    const bool early = taken < SVI_FLEET_COUPLE && taken >= SVI_FLEET_COUPLE / 16;
    return taken % SVI_FLEET_COUPLE == 0 || (early && (taken & (taken - 1)) == 0);
}

static void fleet_count(struct svi_engine *root) {
    if (!is_coupled(++root->of->fleet->taken))
        return;
    svi_crew_settle(root);
    svi_fleet_couple(root);
    svi_fleet_evict(root);
}

/* ---- keys.idle */

static bool fleet_forget(struct svi_engine *root, struct svi_key_entry *entry) {
    svs_error err;
    const svs_code code = svi_fleet_end(root, entry, &err);
    if (code == SVS_OK)
        fleet_go(root, entry);
    else if (code == SVS_NO_MEMORY)
        root->out_of_memory = true;
    else
        svi_fleet_lose(root, entry, &err);
    return code == SVS_OK;
}

/* Since when there is no key that is silent for longer. */
static double fleet_silent(struct svi_fleet *f) {
    struct svi_key_entry *silent = svi_key_table_silent(f->table);
    if (silent && (silent != f->silent || silent->turn != f->silent_turn || f->noted != f->silent_noted))
        f->silent_since = svi_fleet_heard(f, silent);
    f->silent = silent;
    f->silent_turn = silent ? silent->turn : 0;
    f->silent_noted = f->noted;
    return silent ? f->silent_since : INFINITY;
}

/* Before an element: keys that are silent for too long go, the one that it is of in any case, and of the
 * others so few that it does not wait for them. All threads come to the same, for what is on its way counts.
 */
static void fleet_forget_idle(struct svi_engine *root, const char *key, double now) {
    struct svi_fleet *f = root->of->fleet;
    f->now = now;
    svi_large_pages_go_on(&f->pages);
    const double idle = root->s->keys_idle;
    if (idle <= 0 || !(now - fleet_silent(f) > idle))
        return;
    svi_crew_settle(root);
    struct svi_key_entry *entry = key[0] ? svi_key_table_find(f->table, key, strlen(key)) : NULL;
    if (entry && now - svi_fleet_heard(f, entry) > idle)
        (void)fleet_forget(root, entry);
    bool good = true;
    for (int i = 0; i < FORGET_MOST && now - fleet_silent(f) > idle && good; i++)
        good = fleet_forget(root, svi_key_table_silent(f->table));
}

void svi_fleet_couple(struct svi_engine *root) {
    svi_fleet_prior_couple(root);
    svi_fleet_share_out(root);
}

static void fleet_take(struct svi_engine *root, struct svi_envelope *env, double now, struct svi_receipt *r) {
    char key[SVS_KEY_MAX + 1] = "";
    struct svi_key_entry *entry = NULL;
    struct svi_engine *e = root;
    bool about = false;
    svs_error err;
    err.text[0] = '\0';
    svi_envelope_peek(env);
    const uint64_t owner = env->has_src ? svi_key_hash(env->src, env->src_length) : 0;
    svs_code code = env->first.is_map ? fleet_read(env, key, &about, &err) : SVS_OK;
    fleet_forget_idle(root, code == SVS_OK ? key : "", now);
    if (code == SVS_OK && !(e = svi_fleet_find(root, key, !about, owner, &entry, &err))) {
        code = err.code;
        svi_fleet_lose(root, entry, &err);
        entry = NULL;
    }
    if (code == SVS_OK && entry && (code = svi_fleet_touch(root, entry, &err)) == SVS_OK)
        e = entry->engine; /* it may be another since the touch */
    if (code == SVS_OK && entry && entry->last.rows > 0 && fleet_crew(root) &&
        svi_crew_hand(root, entry, env, now))
        return;
    svi_crew_settle(root);
    root->of->fleet->arrival = now;
    if (code != SVS_OK) {
        svi_envelope_pass(env);
        e = root;
    } else {
        code = svi_engine_take_element(e, env, now, &err);
    }
    if (code == SVS_OK)
        r->accepted++;
    else /* one that would begin a key has none to say so */
        svi_engine_refuse_element(entry && entry->last.rows == 0 && entry->heard == 0 ? root : e, env, code,
                                  &err, now, r);
    svi_fleet_done_here(root, entry, code == SVS_OK, now);
}

void svi_fleet_take_element(struct svi_engine *root, struct svi_envelope *env, double now,
                            struct svi_receipt *r) {
    fleet_take(root, env, now, r);
    fleet_count(root);
}

/* What a row in the root's shape needs to be one of this engine's. */
static svs_code fleet_move_row(const struct svi_engine *e, struct svi_message *m, svs_error *err) {
    double *row = e->schema.shape.row;
    if (!m->has_x || m->cells)
        return SVS_OK;
    if (m->kind == SVI_NAMED)
        return svi_fail(err, SVS_NOT_SUPPORTED, "rows of this format cannot have keys: use CSV or JSON");
    if (svi_shape_fits(&e->schema.shape, m, err) != SVS_OK)
        return err->code;
    if (m->x != row)
        memcpy(row, m->x, (size_t)m->d * sizeof *row);
    m->x = row;
    for (; m->kind == SVI_SPARSE && m->d < e->schema.shape.d; m->d++)
        row[m->d] = 0;
    return SVS_OK;
}

svs_code svi_fleet_take_row(struct svi_engine *root, struct svi_message *m, const void *bytes, size_t length,
                            double now, svs_error *err) {
    char key[SVS_KEY_MAX + 1] = "";
    struct svi_key_entry *entry = NULL;
    struct svi_engine *e = NULL;
    svs_code code = SVS_OK;
    svi_crew_settle(root);
    root->of->fleet->arrival = now;
    if (m->key.kind == SVS_STR && m->key.length > SVS_KEY_MAX)
        code = svi_fail(err, SVS_BAD_KEY, "the key has %u bytes: at most %d are taken", m->key.length,
                        SVS_KEY_MAX);
    else if (m->key.kind == SVS_NONE && m->op != SVI_LEARN)
        code = fleet_fail_missing(m->op == SVI_LABEL, err);
    else if (m->key.kind == SVS_STR)
        snprintf(key, sizeof key, "%.*s", (int)m->key.length, m->key.as.s);
    fleet_forget_idle(root, key, now);
    if (code == SVS_OK && !(e = svi_fleet_find(root, key, m->op == SVI_LEARN, 0, &entry, err))) {
        code = err->code;
        svi_fleet_lose(root, entry, err);
        entry = NULL;
    }
    if (code == SVS_OK && entry && (code = svi_fleet_touch(root, entry, err)) == SVS_OK)
        e = entry->engine;
    if (code == SVS_OK)
        code = fleet_move_row(e, m, err);
    if (code == SVS_OK)
        code = svi_engine_row(e, m, bytes, length, now, err);
    else
        svi_publish_error(root, code, err->text, bytes, length, now);
    svi_fleet_done_here(root, entry, code == SVS_OK, now);
    fleet_count(root);
    svi_fleet_evict(root);
    return code;
}
