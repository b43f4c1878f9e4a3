/* A stream with keys: an engine for each key, and the root for the samples without one.
 *
 * The fleet holds what exists once: the table of keys, and what couples them (prior, alert budget, alert
 * groups). An element of a message goes to the engine of its key, which its first sample creates; from there
 * it takes the path of every sample (engine.c). Events of that engine pass the sink in this file, which adds
 * the key's name. Alerts also get their numbers there, and may join an alert of another key.
 *
 * Invariants: a key reaches the same bits as an engine that had its samples alone, but for what couples the
 * keys, and that takes effect at fixed numbers of elements (is_coupled). No result depends on which keys are
 * in memory or on the number of threads. Whatever reads or changes a key on this thread settles the workers
 * first.
 *
 * In the order of reading: fleet_take (one element), svi_fleet_find and fleet_begin (which engine),
 * svi_fleet_done (what it leaves behind), fleet_forget_idle (keys.idle), then the commands and the table of
 * verbs. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "fleet/key_list.h"
#include "fleet/fleet_internal.h"
#include "learner/learner_archive.h"
#include "wire/fields.h"

#define MAX_FORGOTTEN_AN_ELEMENT 16     /* keys that are forgotten before an element */
#define KEYS_NAMELESS            100000 /* that messages without src begin, where keys.quota is 0 */

static void fleet_root_sink(void *user, const struct svi_event *event) {
    struct svi_fleet *f = user;
    svi_fleet_send(f, NULL, event, f->stream.root ? f->stream.root->time : -INFINITY);
}

void svi_fleet_key_sink(void *user, const struct svi_event *event) {
    const struct svi_key_entry *entry = user;
    svi_fleet_send(entry->fleet, entry, event, entry->engine ? entry->engine->time : -INFINITY);
}

void svi_fleet_send(struct svi_fleet *f, const struct svi_key_entry *entry, const struct svi_event *event,
                    double time) {
    struct svi_event named = *event;
    named.key = entry ? entry->name : "";
    if (event->topic == SVI_TOPIC_ALERT)
        svi_stream_publish_alert(&f->stream, &named, time);
    else
        svi_stream_send(&f->stream, &named);
}

/* The epoch of a key's events grows with the keys that were removed before it began: a key that is dropped
 * and begins again counts its events from 0, and consumers must not take these for repetitions. */
struct svi_engine *svi_fleet_make(struct svi_fleet *f, struct svi_shared_settings *s,
                                  struct svi_key_entry *entry, svs_error *err) {
    const struct svi_engine_setup setup = {.common = &f->stream.common,
                                           .scratch = f->stream.scratch,
                                           .off = &f->off,
                                           .label = entry->name,
                                           .columns = f->columns};
    entry->fleet = f;
    struct svi_engine *e =
        svi_engine_new(s, &setup, f->stream.epoch + entry->head.again, svi_fleet_key_sink, entry, err);
    if (e && svi_fleet_prior_join(f, entry, e, err) != SVS_OK)
        svi_engine_free(&e);
    if (e)
        svi_fleet_shared_join(f, entry, e);
    return e;
}

/* A name as a text may show it: it is from outside. */
#define KEY_SHOWN 100
static const char *key_shown(char shown[KEY_SHOWN], const char *key) {
    svi_escape(shown, KEY_SHOWN, key, strlen(key));
    return shown;
}

/* ---- which engine */

/* May this source begin one more key? Without keys.quota, nine tenths of keys.max are for all
 * sources. The last tenth is divided by max_sources, and each source has its part of it to itself,
 * one key at least. A client may begin keys without end, under all the names it may have at a time.
 * It still leaves the others their part. A source that says bye and takes another name has a new
 * part. Messages without src, which no quota of sources counts, begin KEYS_NAMELESS keys together
 * at most. */
static bool fleet_may_begin(const struct svi_fleet *f, uint64_t owner) {
    const struct svi_settings *s = f->stream.root->s;
    svi_key_table *table = f->table;
    const int64_t tenth = s->keys_max / 10, part = tenth / s->max_sources > 1 ? tenth / s->max_sources : 1;
    const int64_t owned = svi_key_table_owned(table, owner);
    if (s->keys_quota > 0)
        return owned < s->keys_quota;
    if (owner == 0 && owned >= KEYS_NAMELESS)
        return false;
    /* Within its own part a source is never refused. Beyond it, it competes for the nine tenths, in which
     * only what sources began beyond their parts is counted. */
    return owned < part || svi_key_table_beyond(table, part) < s->keys_max - tenth;
}

static void fleet_refuse_more(const struct svi_fleet *f, const char *shown, uint64_t owner, svs_error *err) {
    const char *who = owner ? "this source" : "messages without src";
    const long long begun = svi_key_table_owned(f->table, owner);
    if (f->stream.root->s->keys_quota > 0)
        svi_fail(err, SVS_LIMIT,
                 "key %s is one more than keys.quota (%lld) allows: %s began %lld; raise keys.quota", shown,
                 (long long)f->stream.root->s->keys_quota, who, begun);
    else if (owner == 0 && begun >= KEYS_NAMELESS)
        svi_fail(err, SVS_LIMIT,
                 "key %s is one more than messages without src may begin (%d): let producers send src, or set "
                 "keys.quota",
                 shown, KEYS_NAMELESS);
    else
        svi_fail(
            err, SVS_LIMIT,
            "key %s is one more than the share of keys.max (%lld) allows: %s began %lld; raise keys.max, or set "
            "keys.quota%s",
            shown, (long long)f->stream.root->s->keys_max, who, begun,
            owner ? "" : ", or let producers send src");
}

/* Limits are checked first: they refuse without a trace. What can fail for memory follows, and the numbers
 * that the state shows (begun, rests, note) are taken last, so that a key that could not begin leaves no
 * gap. */
static struct svi_key_entry *fleet_begin(struct svi_fleet *f, const char *key, uint64_t owner,
                                         svs_error *err) {
    char shown[KEY_SHOWN];
    if (svi_key_table_count(f->table) >= f->stream.root->s->keys_max) {
        svi_fail(err, SVS_LIMIT, "key %s is one more than keys.max (%lld): drop keys, or raise keys.max",
                 key_shown(shown, key), (long long)f->stream.root->s->keys_max);
        return NULL;
    }
    if (!fleet_may_begin(f, owner)) {
        fleet_refuse_more(f, key_shown(shown, key), owner, err);
        return NULL;
    }
    /* The table, the queue and the prior are changed below, which needs idle workers. The queue gets its
     * place now: svi_fleet_queue, after a sample was learned, has no way to fail. */
    svi_workers_settle(f);
    if (svi_key_queue_reserve(&f->queue, svi_key_table_count(f->table) + 1, err) != SVS_OK)
        return NULL;
    struct svi_key_entry *entry = svi_key_table_add(f->table, key, strlen(key), owner, err);
    if (!entry)
        return NULL;
    entry->head.begun = svi_stream_seen(&f->stream);
    entry->head.again = f->removed;
    if (!(entry->engine = svi_fleet_make(f, f->stream.root->shared, entry, err)) ||
        svi_fleet_change(f, entry, err) != SVS_OK) {
        svi_engine_free(&entry->engine);
        svi_key_table_remove(f->table, entry);
        return NULL;
    }
    entry->head.number = f->begun++;
    entry->head.rests = (uint32_t)f->rests;
    svi_fleet_join(f, entry, f->noted);
    return entry;
}

struct svi_engine *svi_fleet_find(struct svi_fleet *f, const char *key, bool make, uint64_t owner,
                                  struct svi_key_entry **entry, svs_error *err) {
    char shown[KEY_SHOWN];
    *entry = NULL;
    if (!key[0])
        return f->stream.root;
    *entry = svi_key_table_find(f->table, key, strlen(key));
    if (!*entry && make)
        *entry = fleet_begin(f, key, owner, err);
    else if (!*entry)
        svi_fail(err, SVS_UNKNOWN_KEY, "there is no key %s", key_shown(shown, key));
    /* A key that is out of memory comes back here. What fails leaves *entry set: the caller tells "no such
     * key" from "cannot be read" by it (svi_fleet_lose). */
    if (!*entry || (!(*entry)->engine && svi_fleet_return(f, *entry, err) != SVS_OK))
        return NULL;
    svi_key_table_use(f->table, *entry);
    return (*entry)->engine;
}

/* A key could not be read back for what it was to take. The first such failure is kept for
 * svi_stream_lost_key: the element was accepted, and only a restart, which repeats the journal, can apply
 * it. A lack of memory is reported by the engine and is no loss. */
/* It was not read back for what it is to take: that must be taken by a restart. */
void svi_fleet_lose(struct svi_fleet *f, const struct svi_key_entry *entry, const svs_error *err) {
    svs_error *lost = &f->stream.lost;
    char shown[KEY_SHOWN];
    if (entry && !entry->engine && lost->code == SVS_OK && err->code != SVS_NO_MEMORY)
        svi_fail(lost, err->code, "key %s: %.150s", key_shown(shown, entry->name), err->text);
}

static void fleet_remove(struct svi_fleet *f, struct svi_key_entry *entry) {
    /* The key's open alerts leave the totals before its groups are updated, which may publish events of other
     * keys. The engine goes before the entry, which the table frees. */
    f->stream.others.open -= entry->last.open;
    svi_stream_mutes_drop(&f->stream, entry->name);
    svi_fleet_groups_drop(f, entry);
    svi_fleet_unshare(f, entry);
    svi_engine_free(&entry->engine);
    svi_key_queue_leave(&f->queue, entry);
    svi_fleet_unlink(f, entry);
    svi_fleet_uncache(f, entry);
    svi_key_table_remove(f->table, entry);
}

/* Removes a key that has published events, and counts it. If the key begins again, its events have
 * another epoch (svi_fleet_make). */
static svs_code fleet_end_key(struct svi_fleet *f, struct svi_key_entry *entry, svs_error *err) {
    if (svi_fleet_end(f, entry, err) != SVS_OK)
        return err->code;
    f->removed++;
    fleet_remove(f, entry);
    return SVS_OK;
}

void svi_fleet_figures(const struct svi_engine *e, struct svi_key_figures *figures) {
    const struct svi_metrics_sums sums = svi_metrics_sums(e->quality_stage.metrics);
    const struct svi_alarm *alarm = &e->quality_stage.alarm;
    figures->rows = e->kept[SVI_KEPT_SEEN];
    figures->labelled = e->kept[SVI_KEPT_LABELLED];
    /* A notice is an error event that refuses nothing; the engine counts both in one place. */
    figures->refused = e->kept[SVI_KEPT_REFUSED] - svi_engine_notices(e);
    figures->judged = sums.judged;
    figures->right = sums.right;
    figures->squares = sums.squares;
    figures->quality = svi_metrics_windowed(e->quality_stage.metrics);
    figures->worse = svi_quality_figures_worse(e->quality_stage.figures);
    figures->alerts = (int32_t)(e->novelty->alert.opened + alarm->opened + e->rules->opened);
    figures->open = (int32_t)e->novelty->alert.open + (int32_t)alarm->published + svi_rules_open(e->rules);
    figures->deadline = svi_engine_deadline(e);
    figures->quiet = isinf(figures->deadline) ? 0 : svi_rules_quiet(e->rules);
    svi_fleet_finds(e, &figures->finds);
    figures->out_of_memory = svi_engine_out_of_memory(e);
    figures->columns = svi_engine_features(e);
    figures->ts = e->event_ts;
    figures->classes = svi_engine_classes(e);
}

/* Adds what changed since `before`. A reset of the key sets its judged samples back to 0: then all that it
 * has judged since is new. */
static void fleet_add(struct svi_stream_total *t, const struct svi_key_figures *before,
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

int svi_stream_keys(svi_stream *s, const struct svi_key_query *q, const struct svi_key_entry **entries,
                    int64_t *matching) {
    *matching = 0;
    svi_stream_settle(s);
    const struct svi_fleet *f = svi_fleet_of(s);
    return f ? svi_key_list(f, q, entries, matching) : 0;
}

double svi_stream_key_last_arrival(svi_stream *s, const struct svi_key_entry *entry) {
    return svi_fleet_last_arrival(svi_fleet_of(s), entry);
}

int64_t svi_stream_key_count(const svi_stream *s) {
    const struct svi_fleet *f = svi_fleet_of((svi_stream *)s);
    return f ? svi_key_table_count(f->table) : 0;
}

void svi_fleet_done(struct svi_fleet *f, struct svi_key_entry *entry, const struct svi_key_figures *figures,
                    bool sample, double now) {
    /* The figures may come from a worker's task, so nothing here reads the engine. Order matters in one
     * place: `last` must still hold the figures of before while the differences are taken. */
    svi_fleet_measure(f, figures->columns, figures->classes);
    f->stream.others.seen += figures->rows - entry->last.rows;
    svi_fleet_find_alike(f, &entry->last.finds, &figures->finds);
    fleet_add(&f->stream.others, &entry->last, figures);
    f->stream.root->out_of_memory = f->stream.root->out_of_memory || figures->out_of_memory;
    entry->last = *figures;
    svi_fleet_queue(f, entry);
    /* A turn is given to accepted samples alone: a command or passing time does not touch a key. */
    if (sample) {
        svi_fleet_groups_time(f, figures->ts);
        entry->last_arrival = now;
        svi_key_table_touch(f->table, entry);
        /* The key began with something that was refused: it is removed, and its number is given back if no
         * other key has begun since. So it leaves no trace in the state. */
    } else if (figures->rows == 0 && entry->last_arrival == 0) {
        f->begun -= entry->head.number + 1 == f->begun;
        (void)svi_fleet_end(f, entry, NULL); /* no record is of it, so it takes no memory */
        fleet_remove(f, entry);
    }
}

svs_code svi_fleet_drop(struct svi_fleet *f, const char *key, svs_error *err) {
    struct svi_key_entry *entry = svi_key_table_find(f->table, key, strlen(key));
    char shown[KEY_SHOWN];
    if (!key[0])
        return svi_fail(err, SVS_MISSING_KEY, "drop needs a key: reset is for the samples without one");
    if (!entry)
        return svi_fail(err, SVS_UNKNOWN_KEY, "there is no key %s", key_shown(shown, key));
    return fleet_end_key(f, entry, err);
}

void svi_fleet_done_here(struct svi_fleet *f, struct svi_key_entry *entry, bool sample, double now) {
    struct svi_key_figures figures;
    struct svi_key_finds own;
    /* The root has no entry: what its alert policy found since the last time is kept in f->found instead of
     * entry->last.finds. */
    svi_stream_mutes_time(&f->stream, entry ? entry->engine->time : f->stream.root->time);
    if (!entry) {
        svi_fleet_finds(f->stream.root, &own);
        svi_fleet_find_alike(f, &f->found, &own);
        f->found = own;
        if (sample)
            svi_fleet_groups_time(f, f->stream.root->event_ts);
        return;
    }
    f->columns = svi_engine_features(entry->engine);
    svi_fleet_figures(entry->engine, &figures);
    svi_fleet_done(f, entry, &figures, sample, now);
}

/* ---- what comes in */

svs_code svi_fleet_fail_missing(bool labels, svs_error *err) {
    return svi_fail(err, SVS_MISSING_KEY, "%s needs the key of its sample: '' where it has none",
                    labels ? "label" : "forget");
}

/* Reads the key of the next element, and whether it is about an earlier sample. A label or a forget must
 * name the key of its sample: without one it would fall on the samples without a key, silently. */
static svs_code fleet_read(const struct svi_envelope *env, char *key, bool *about, svs_error *err) {
    const struct svi_element *el = &env->first;
    const bool labels = svi_element_is(el, SVI_KEY_OP, "label");
    svs_code code = svi_element_key(el, key, err);
    *about = labels || svi_element_is(el, SVI_KEY_OP, "forget");
    return code == SVS_OK && *about && !svi_element_has(el, SVI_KEY_KEY) ? svi_fleet_fail_missing(labels, err)
                                                                         : code;
}

/* The key threads, where there are to be any: the caller takes receipts later, and `threads` is above 1.
 * They are started by the first element that needs them. */
static struct svi_workers *fleet_workers(struct svi_fleet *f) {
    const int64_t threads = f->stream.root->s->threads;
    if (!f->stream.open || !svi_stream_has_threads(&f->stream))
        return NULL;
    if (!f->workers) {
        f->workers = svi_workers_new(f, threads < SVI_WORKERS_MAX ? (int)threads : SVI_WORKERS_MAX);
        f->stream.later = f->workers != NULL;
    }
    return f->workers;
}

/* What couples the keys takes effect at these numbers of elements, refused ones included: the numbers are
 * the same for any number of threads and in any repetition of the journal. Early on the powers of 2 from 64
 * are such numbers too, as a small fleet would wait long for the first prior. */
static bool is_coupled(int64_t taken) {
    const bool early = taken < SVI_FLEET_COUPLE && taken >= SVI_FLEET_COUPLE / 16;
    return taken % SVI_FLEET_COUPLE == 0 || (early && (taken & (taken - 1)) == 0);
}

/* Early on the number of keys grows fast, and each new one must have its share of alert.budget before its
 * levels are first set, after 16 rows. */
static bool is_shared_out(int64_t taken) {
    return taken < SVI_FLEET_COUPLE && taken % SVI_FLEET_SHARE == 0;
}

static void fleet_count(struct svi_fleet *f) {
    if (!is_coupled(++f->taken)) {
        if (is_shared_out(f->taken)) {
            svi_workers_settle(f);
            svi_fleet_share_out(f);
        }
        return;
    }
    /* All workers must be idle while the sums are moved. The prior comes before the eviction: it may bring
     * keys back into memory. */
    svi_workers_settle(f);
    svi_fleet_prior_couple(f);
    if (f->sums && f->stream.root->s->publish_sums == 0) /* a setting that changes while it runs */
        svi_fleet_sums_keep(f, false, NULL);
    svi_fleet_shared_couple(f);
    svi_fleet_share_out(f);
    svi_fleet_evict(f);
}

/* ---- keys.idle */

static bool fleet_forget(struct svi_fleet *f, struct svi_key_entry *entry) {
    svs_error err;
    const svs_code code = fleet_end_key(f, entry, &err);
    if (code == SVS_NO_MEMORY)
        f->stream.root->out_of_memory = true;
    else if (code != SVS_OK)
        svi_fleet_lose(f, entry, &err);
    return code == SVS_OK;
}

/* Since when the key that is silent the longest is silent; INFINITY without keys. The time is computed again
 * only when that key, its turn or the notes changed: this is asked before each element. */
static double fleet_silent(struct svi_fleet *f) {
    struct svi_key_entry *silent = svi_key_table_silent(f->table);
    if (silent && (silent != f->silent || silent->head.turn != f->silent_turn || f->noted != f->silent_noted))
        f->silent_since = svi_fleet_last_arrival(f, silent);
    f->silent = silent;
    f->silent_turn = silent ? silent->head.turn : 0;
    f->silent_noted = f->noted;
    return silent ? f->silent_since : INFINITY;
}

/* Runs before each element. Keys silent for longer than keys.idle are forgotten: the key of this element in
 * any case, as it must start again, and of the others at most MAX_FORGOTTEN_AN_ELEMENT, so that the element
 * does not wait for them. The times are arrivals, and elements that are still with a worker count, so any
 * number of threads forgets the same keys. */
static void fleet_forget_idle(struct svi_fleet *f, const char *key, double now) {
    f->now = now;
    svi_large_pages_go_on(&f->pages);
    const double idle = f->stream.root->s->keys_idle;
    /* No pass over the keys: the table keeps them in the order in which they were last seen. The negation
     * also catches NAN. */
    if (idle <= 0 || !(now - fleet_silent(f) > idle))
        return;
    svi_workers_settle(f);
    struct svi_key_entry *entry = key[0] ? svi_key_table_find(f->table, key, strlen(key)) : NULL;
    if (entry && now - svi_fleet_last_arrival(f, entry) > idle)
        (void)fleet_forget(f, entry);
    bool good = true;
    for (int i = 0; i < MAX_FORGOTTEN_AN_ELEMENT && now - fleet_silent(f) > idle && good; i++)
        good = fleet_forget(f, svi_key_table_silent(f->table));
}

/* The key is ready to take something; *entry: NULL for "", or if it cannot be brought back. */
static svs_code fleet_prepare(struct svi_fleet *f, const char *key, bool make, uint64_t owner,
                              struct svi_key_entry **entry, svs_error *err) {
    if (svi_fleet_find(f, key, make, owner, entry, err))
        return *entry ? svi_fleet_touch(f, *entry, err) : SVS_OK;
    svi_fleet_lose(f, *entry, err);
    *entry = NULL;
    return err->code;
}

/* One element: which key, which engine, whether a worker or this thread learns it, and what it leaves
 * behind. */
static void fleet_take(struct svi_fleet *f, struct svi_envelope *env, double now, struct svi_receipt *r) {
    char key[SVS_KEY_MAX + 1] = "";
    struct svi_key_entry *entry = NULL;
    struct svi_engine *e = f->stream.root;
    bool about = false;
    svs_error err;
    err.text[0] = '\0';
    /* The key is read without decoding the element, which may be left to a worker. */
    svi_envelope_peek(env);
    const uint64_t owner = env->has_src ? svi_key_hash(env->src, env->src_length) : 0;
    svs_code code = env->first.is_map ? fleet_read(env, key, &about, &err) : SVS_OK;
    /* Before the key is looked up: forgetting could free the entry. */
    fleet_forget_idle(f, code == SVS_OK ? key : "", now);
    if (code == SVS_OK && (code = fleet_prepare(f, key, !about, owner, &entry, &err)) == SVS_OK && entry)
        e = entry->engine;
    /* The bank of all keys takes the element first, here and in order: its score travels with it. */
    const struct svi_shared_score *score =
        code == SVS_OK ? svi_fleet_share_element(f, entry, env, now) : NULL;
    /* A key that has accepted a sample goes to its worker, which counts the element in the receipt later.
     * The first sample stays on this thread: if it is refused, there is no such key. */
    if (code == SVS_OK && entry && entry->last.rows > 0 && fleet_workers(f) &&
        svi_workers_give(f, entry, env, score, now))
        return;
    /* From here on this thread works with the engine; what was handed out before is taken up first, so
     * events leave in the order of the elements. */
    svi_workers_settle(f);
    f->stream.arrival = now;
    const bool first = svi_stream_seen(&f->stream) == 0;
    if (code != SVS_OK) {
        /* No engine has read the element: it is skipped, or the next one would begin in its midst. */
        svi_envelope_pass(env);
        e = f->stream.root;
    } else {
        svi_engine_receive_shared(e, score);
        svi_engine_ask(e->scratch, r->scores);
        code = svi_engine_take_element(e, env, now, &err);
        svi_engine_ask(e->scratch, NULL);
        svi_engine_receive_shared(e, NULL);
    }
    if (code == SVS_OK)
        r->accepted++;
    else /* a key that does not exist yet publishes nothing: its refusal is the root's */
        svi_engine_refuse_input(
            entry && entry->last.rows == 0 && entry->last_arrival == 0 ? f->stream.root : e, env,
            false, code, &err, now, r);
    svi_fleet_done_here(f, entry, code == SVS_OK, now);
    if (first && svi_stream_seen(&f->stream) > 0)
        svi_stream_check_names(&f->stream, e, now);
}

/* Turns a row in the root's shape into one of this engine's. The columns were matched against the root, as a
 * format of rows has one header for all keys; the engine keeps its own buffer of d values. */
svs_code svi_fleet_move_row(const struct svi_engine *e, struct svi_message *m, svs_error *err) {
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
    /* A sparse row is as long as its last index says; the d of the engine may be larger. */
    for (; m->kind == SVI_SPARSE && m->d < e->schema.shape.d; m->d++)
        row[m->d] = 0;
    return SVS_OK;
}

static svs_code fleet_take_row(svi_stream *s, struct svi_message *m, const void *bytes, size_t length,
                               double now, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    char key[SVS_KEY_MAX + 1] = "";
    struct svi_key_entry *entry = NULL;
    svs_code code = SVS_OK;
    svi_workers_settle(f);
    f->stream.arrival = now;
    if (m->key.kind == SVS_STR && m->key.length > SVS_KEY_MAX)
        code = svi_fail(err, SVS_BAD_KEY, "the key has %u bytes: at most %d are allowed", m->key.length,
                        SVS_KEY_MAX);
    else if (m->key.kind == SVS_NONE && m->op != SVI_LEARN)
        code = svi_fleet_fail_missing(m->op == SVI_LABEL, err);
    else if (m->key.kind == SVS_STR)
        snprintf(key, sizeof key, "%.*s", (int)m->key.length, m->key.as.s);
    fleet_forget_idle(f, key, now);
    if (code == SVS_OK)
        code = fleet_prepare(f, key, m->op == SVI_LEARN, 0, &entry, err);
    struct svi_engine *e = entry ? entry->engine : f->stream.root;
    const bool first = svi_stream_seen(&f->stream) == 0;
    if (code == SVS_OK)
        code = svi_fleet_move_row(e, m, err);
    /* The bank of all keys does not take a row that was refused here. */
    const struct svi_shared_score *score =
        code == SVS_OK ? svi_fleet_share_row(f, entry, m, now) : NULL;
    svi_engine_receive_shared(e, score);
    if (code == SVS_OK)
        code = svi_engine_row(e, m, bytes, length, now, err);
    else
        svi_publish_error(f->stream.root, code, err->text, bytes, length, now);
    svi_engine_receive_shared(e, NULL);
    svi_fleet_done_here(f, entry, code == SVS_OK, now);
    if (first && svi_stream_seen(&f->stream) > 0)
        svi_stream_check_names(&f->stream, e, now);
    fleet_count(f);
    return code;
}

/* The elements of one message. Keys are fetched into the caches SVI_FLEET_AHEAD elements at a time. The
 * first `skip` elements were accepted before (the source repeats them): they only pass, and are not counted
 * as taken either. */
static svs_code fleet_take_message(svi_stream *s, struct svi_envelope *env, const struct svi_arrival *a,
                                   struct svi_receipt *r, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    (void)err;
    for (int64_t i = 0; i < a->count; i++) {
        if (i % SVI_FLEET_AHEAD == 0 && i + 1 < a->count)
            svi_fleet_look_ahead(f, env);
        if (i < a->skip) {
            svi_engine_pass_element(s->root, env, r);
            continue;
        }
        fleet_take(f, env, a->now, r);
        fleet_count(f);
    }
    return SVS_OK;
}

static void fleet_settle(svi_stream *s) {
    svi_workers_settle(svi_fleet_of(s));
}

static void fleet_end(svi_stream *s) {
    svi_fleet_evict(svi_fleet_of(s));
}

/* ---- commands */

static svi_engine *fleet_engine(svi_stream *s, const char *key, svs_error *err) {
    struct svi_key_entry *entry;
    struct svi_fleet *f = svi_fleet_of(s);
    svi_workers_settle(f);
    /* Eviction comes first: nothing that a caller holds of an engine is valid after it. */
    svi_fleet_evict(f);
    return svi_fleet_find(f, key, false, 0, &entry, err);
}

/* An engine made like that of a new key, from the prior alone. It is in no table; the caller scores with it
 * and frees it. Without a prior a new key knows nothing, and there is no guest. */
static svi_engine *fleet_unkeyed(svi_stream *s, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    if (!svi_fleet_prior_known(f))
        return NULL;
    if (!f->guest && !(f->guest = svi_alloc(sizeof *f->guest + 1))) {
        svi_fail_memory(err, "a key that is not known");
        return NULL;
    }
    struct svi_engine *e = svi_fleet_make(f, s->root->shared, f->guest, err);
    if (e)
        e->event_ts = s->arrival;
    return e;
}

static svs_code fleet_command(svi_stream *s, const char *key, const struct svi_command *c, double now,
                              int *count, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    struct svi_key_entry *entry;
    if (c->op == SVI_COMMAND_DROP)
        return svi_fleet_drop(f, key, err);
    if (!svi_fleet_find(f, key, false, 0, &entry, err) || svi_fleet_touch(f, entry, err) != SVS_OK)
        return err->code;
    svi_engine_receive_shared(entry->engine, svi_fleet_share_command(f, entry, c));
    const svs_code code = svi_stream_command_engine(s, entry->engine, c, NULL, now, count, err);
    svi_engine_receive_shared(entry->engine, NULL);
    svi_fleet_done_here(f, entry, false, now);
    return code;
}

/* Totals over all keys: `others` sums the keys, the root adds its own. Quality is summed as counts and
 * squares, since averages of averages would weigh a key of ten rows like one of a million. */
static int fleet_figures(const svi_stream *s, struct svi_figure *counted, struct svi_figure *further) {
    const struct svi_fleet *f = svi_fleet_of((svi_stream *)s);
    const struct svi_stream_total *t = &s->others;
    const struct svi_metrics_sums own = svi_metrics_sums(s->root->quality_stage.metrics);
    const double judged = (double)(t->judged + own.judged);
    struct svi_key_figures last;
    int64_t keys_out, rows_out;
    svi_fleet_figures(s->root, &last);
    svi_fleet_prior_out(f, &keys_out, &rows_out);
    counted[SVI_COUNTER_SEEN].as.count += t->seen;
    counted[SVI_COUNTER_LABELLED].as.count += t->labelled;
    counted[SVI_COUNTER_REFUSED].as.count += t->refused;
    svi_fleet_shared_figures(f, counted);
    const struct svi_figure all[SVI_FLEET_FIGURES] = {
        {"keys", SVI_COUNT, .as.count = svi_key_table_count(f->table)},
        {"keys_in_memory", SVI_COUNT, .as.count = svi_key_table_in_memory(f->table)},
        {"keys_alerts", SVI_COUNT, .as.count = t->alerts + last.alerts},
        {"keys_alerts_open", SVI_COUNT, .as.count = t->open + last.open},
        s->root->s->task == SVS_REGRESS
            ? (struct svi_figure){"keys_rmse", SVI_NUMBER,
                                  .as.number = sqrt((t->squares + own.squares) / judged)}
            : (struct svi_figure){"keys_accuracy", SVI_NUMBER,
                                  .as.number = (double)(t->right + own.right) / judged},
        {"prior_keys_excluded", SVI_COUNT, .as.count = keys_out},
        {"prior_rows_excluded", SVI_COUNT, .as.count = rows_out},
        {"prior_merged", SVI_COUNT, .as.count = svi_fleet_merged_taken(f)}};
    memcpy(further, all, sizeof all);
    /* The last three figures are those of the prior, and of a merged one. */
    return f->merged ? SVI_FLEET_FIGURES : f->prior ? SVI_FLEET_FIGURES - 1 : SVI_FLEET_FIGURES - 3;
}

static svs_code fleet_verify(svi_stream *s, double *difference, svs_error *err) {
    svs_code code = SVS_OK;
    struct svi_fleet *f = svi_fleet_of(s);
    svi_workers_settle(f);
    /* Each key may have to come back from the disk for it, and leaves memory again at once. A NAN difference
     * sticks: no later key may hide it. */
    for (struct svi_key_entry *n = svi_key_table_first(f->table), *entry; n && code == SVS_OK; n = n->after) {
        double one = 0;
        struct svi_engine *e = svi_fleet_find(f, n->name, false, 0, &entry, err);
        code = e ? svi_learner_verify(e->learner, &one, err) : err->code;
        *difference = one > *difference || isnan(one) ? one : *difference;
        svi_fleet_evict(f);
    }
    return code;
}

/* ---- a stream with keys */

static bool fleet_shares_budget(const svi_stream *s) {
    return svi_alert_stage_has_policy(s->root->novelty);
}

static void fleet_archive_share(struct svi_archive *a, svi_stream *s) {
    svi_budget_share_archive(a, &s->root->novelty->policy.budget);
}

static void fleet_archive_groups(struct svi_archive *a, svi_stream *s) {
    svi_alert_groups_archive(a, svi_fleet_of(s)->groups);
}

static bool fleet_has_prior(const svi_stream *s) {
    return svi_fleet_of((svi_stream *)s)->prior;
}

static bool fleet_has_sums(const svi_stream *s) {
    return svi_fleet_of((svi_stream *)s)->sums;
}

static bool fleet_has_shared(const svi_stream *s) {
    return svi_fleet_of((svi_stream *)s)->shared;
}

static bool fleet_is_whole(const svi_stream *s) {
    return !svi_fleet_of((svi_stream *)s)->kept.apart;
}

static bool fleet_is_apart(const svi_stream *s) {
    return !fleet_is_whole(s);
}

/* In the order of loading. "key clock" has the notes that the states refer to, and times of the
 * groups. "key totals" is not hashed, as it follows from the states. "key sum" is the last, because
 * archiving the states computes it (svi_stream_hash relies on that place). */
static const struct svi_stream_section fleet_sections[] = {
    SVI_STREAM_SECTIONS,
    {"shared desk", true, false, fleet_archive_share, fleet_shares_budget},
    {"alert groups", true, false, fleet_archive_groups, NULL},
    {"keys", true, false, svi_fleet_archive, NULL},
    {"key clock", false, false, svi_fleet_clock_archive, NULL},
    {"merged prior", true, false, svi_fleet_merged_archive, svi_fleet_merged_known},
    {"key prior", true, false, svi_fleet_prior_archive, fleet_has_prior},
    {"key sums", false, false, svi_fleet_sums_archive, fleet_has_sums},
    {"key bank", true, false, svi_fleet_shared_archive, fleet_has_shared},
    {"key totals", false, false, svi_fleet_totals_archive, NULL},
    {"key states", false, true, svi_fleet_states_archive, fleet_is_whole},
    {SVI_KEY_FILES, false, true, svi_fleet_files_archive, fleet_is_apart},
    {"key sum", true, true, svi_fleet_sum_archive, NULL},
};

static void fleet_clear(svi_stream *s) {
    struct svi_fleet *f = svi_fleet_of(s);
    /* Threads end first: they call the engines that are freed next. Their scratch goes last
     * (svi_workers_free), as engines point into it while they are freed. */
    svi_workers_stop(f->workers);
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
    svi_bytes_clear(&f->common);
    svi_fleet_kept_clear(f);
    svi_fleet_prior_free(f);
    svi_fleet_sums_free(f);
    svi_fleet_merged_free(f);
    svi_fleet_shared_free(f);
    svi_free(f->guest);
    svi_free(f->folder);
    svi_workers_free(&f->workers);
}

static const struct svi_stream_verbs fleet_verbs = {.take = fleet_take_message,
                                                    .take_row = fleet_take_row,
                                                    .end = fleet_end,
                                                    .deadline = svi_fleet_deadline,
                                                    .pass = svi_fleet_pass,
                                                    .arrived = svi_fleet_arrived,
                                                    .latest = svi_fleet_latest,
                                                    .engine = fleet_engine,
                                                    .command = fleet_command,
                                                    .guest = fleet_unkeyed,
                                                    .consult = svi_fleet_shared_peek,
                                                    .reserve = svi_fleet_reserve_note,
                                                    .reach = svi_fleet_note,
                                                    .alert = svi_fleet_publish_alert,
                                                    .settle = fleet_settle,
                                                    .sections = fleet_sections,
                                                    .section_count =
                                                        sizeof fleet_sections / sizeof fleet_sections[0],
                                                    .add_up = svi_fleet_add_up,
                                                    .verify = fleet_verify,
                                                    .figures = fleet_figures,
                                                    .memory = svi_fleet_memory,
                                                    .clear = fleet_clear};

struct svi_fleet *svi_fleet_of(svi_stream *s) {
    return s->verbs == &fleet_verbs ? (struct svi_fleet *)s : NULL;
}

svi_stream *svi_fleet_new(svs_error *err) {
    struct svi_fleet *f = svi_alloc(sizeof *f);
    if (!f) {
        svi_fail_memory(err, "the keys");
        return NULL;
    }
    f->stream.verbs = &fleet_verbs;
    svi_rules_init(&f->off.rules, true);
    return &f->stream;
}

svs_code svi_fleet_begin(svi_stream *s, struct svi_shared_settings *shared,
                         const struct svi_engine_setup *setup, svs_error *err) {
    struct svi_fleet *f = svi_fleet_of(s);
    /* `desks` must be 1 and not 0 before the first engine reads it. */
    svi_fleet_share(f);
    if (!(s->root = svi_engine_new(shared, setup, s->epoch, fleet_root_sink, f, err)))
        return err->code;
    svi_large_pages_begin(&f->pages);
    SVI_TRY((f->table = svi_key_table_new(err)) && (f->groups = svi_alert_groups_new(err))
                ? svi_fleet_reserve_note(s, err)
                : SVS_NO_MEMORY);
    /* The first note holds the settings that new keys begin with: svi_fleet_settings never finds the list
     * empty. */
    svi_fleet_note(s, SVI_NOTE_CONFIG, 0, 0);
    SVI_TRY(svi_fleet_shared_new(f, err));
    SVI_TRY(svi_fleet_prior_new(f, err));
    return svi_fleet_sums_keep(f, s->root->s->publish_sums > 0, err);
}
