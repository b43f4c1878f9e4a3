/* Points of time in four steps, each made of the finer one.
 *
 * A measurement is merged into the open point of each step. The next one outside of it moves the
 * point to `pending`, and the next commit from there into the file. A commit writes points of one
 * second at once, and coarser ones when they are over. So a kill loses only what arrived after the
 * last commit: all coarser points that were open can be made again from the finer ones in the file.
 *
 * Opening a point does that: it takes the row of the file or the merge of the finer rows, whichever
 * has more measurements. After a kill that is the merge. It is the row when the finer rows are
 * pruned, as for late points. If the clock steps back, measurements are merged into the point that
 * exists.
 *
 * Read http_history_store_add, store_open_point, http_history_store_commit. Invariants: `pending`
 * is ascending and has one point a begin, which replaces the row of the file. Only a transaction
 * with a point removes it, unless MAX_PENDING is reached. All runs on the history's thread. */
#include "history_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"

#define MAX_PENDING 20000 /* points that may wait for a disk, over all streams; 12 MB */
#define PRUNE_PIECE 400   /* rows removed at once */

const int64_t http_history_step[HISTORY_STEPS] = {1, 10, 60, 600};
/* A little longer than promised, so that a range of just this length, asked for a moment later, is there. */
const int64_t http_history_keep[HISTORY_STEPS] = {600 + 60, 6 * 3600 + 600, 7 * 86400 + 3600, 366 * 86400};

static int64_t store_begin(int64_t t, int step) {
    const int64_t length = http_history_step[step], rest = t % length;
    return t - (rest < 0 ? rest + length : rest);
}

/* ---- points that are not in the file yet */

/* Index of the first pending point that begins at `t` or later. */
static int64_t store_pending_at(const struct history_pending *p, int64_t t) {
    int64_t low = 0, high = p->count;
    if (p->count > 0 && p->point[p->count - 1].t < t)
        return p->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->point[middle].t < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The oldest points of the finest step that has any: coarser ones hold the same measurements. */
static void store_drop_oldest(struct history_store *h) {
    for (int k = 0; k < HISTORY_STEPS; k++)
        for (int i = 0; i < h->count; i++) {
            struct history_pending *p = &h->stream[i]->pending[k];
            const int64_t drop = p->count - p->count / 2;
            if (p->count == 0)
                continue;
            memmove(p->point, p->point + drop, (size_t)(p->count - drop) * sizeof *p->point);
            p->count -= drop;
            h->dropped += drop;
            return;
        }
}

static void store_put(struct history_store *h, struct history_stream *s, int k) {
    struct history_pending *p = &s->pending[k];
    int64_t waiting = 0;
    if (!s->is_open[k] || !s->unsaved[k])
        return;
    for (int i = 0; i < h->count; i++)
        for (int j = 0; j < HISTORY_STEPS; j++)
            waiting += h->stream[i]->pending[j].count;
    if (waiting >= MAX_PENDING)
        store_drop_oldest(h);
    /* After the drop, which moves what is pending. */
    const int64_t at = store_pending_at(p, s->open[k].t);
    if (at < p->count && p->point[at].t == s->open[k].t)
        p->point[at] = s->open[k];
    else if (svi_grow(&p->point, p->count, &p->capacity, 16, sizeof *p->point)) {
        memmove(p->point + at + 1, p->point + at, (size_t)(p->count - at) * sizeof *p->point);
        p->point[at] = s->open[k];
        p->count++;
    } else
        h->dropped++;
    s->unsaved[k] = false;
}

void http_history_store_settle(struct history_store *h, struct history_stream *s) {
    for (int k = 0; k < HISTORY_STEPS; k++)
        store_put(h, s, k);
}

/* ---- reading */

int http_history_store_range(struct history_store *h, struct history_stream *s, int step, int64_t from,
                             int64_t to, history_visit *visit, void *user) {
    const struct history_pending *p = &s->pending[step];
    int64_t at = store_pending_at(p, from);
    struct history_point row;
    int rc = SQLITE_DONE;
    sqlite3_stmt *q =
        s->id != 0 && h->db.sqlite ? http_history_db_statement(&h->db, HISTORY_POINT_RANGE) : NULL;
    if (q) {
        sqlite3_bind_int64(q, 1, s->id);
        sqlite3_bind_int64(q, 2, http_history_step[step]);
        sqlite3_bind_int64(q, 3, from);
        sqlite3_bind_int64(q, 4, to);
    }
    while (q && (rc = sqlite3_step(q)) == SQLITE_ROW) {
        row.t = sqlite3_column_int64(q, 0);
        /* What is pending replaces the row of the same begin. */
        while (at < p->count && p->point[at].t < to && p->point[at].t <= row.t) {
            const bool same = p->point[at].t == row.t;
            visit(user, &p->point[at++]);
            if (same)
                row.t = INT64_MIN;
        }
        if (row.t == INT64_MIN)
            continue;
        if (http_history_point_decode(&row, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1)))
            visit(user, &row);
        else
            h->damaged++;
    }
    if (q)
        sqlite3_reset(q);
    while (at < p->count && p->point[at].t < to)
        visit(user, &p->point[at++]);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void store_merge(void *user, const struct history_point *p) {
    http_history_point_merge(user, p);
}

/* Opens the point of a step that spans `t`; see the top. */
static int store_open_point(struct history_store *h, struct history_stream *s, int k, int64_t t) {
    const int64_t begin = store_begin(t, k);
    struct history_point made = {.t = begin};
    int rc, finer = SQLITE_OK;
    if (s->is_open[k] && s->open[k].t == begin)
        return SQLITE_OK;
    /* The point that ends becomes pending first: the next coarser one reads it there. */
    store_put(h, s, k);
    s->open[k] = (struct history_point){.t = begin};
    s->is_open[k] = true;
    rc = http_history_store_range(h, s, k, begin, begin + 1, store_merge, &s->open[k]);
    if (k > 0)
        finer =
            http_history_store_range(h, s, k - 1, begin, begin + http_history_step[k], store_merge, &made);
    if (http_history_point_weight(&made) > http_history_point_weight(&s->open[k])) {
        s->open[k] = made;
        s->unsaved[k] = true;
        store_put(h, s, k); /* the next step is made of it */
    }
    return rc != SQLITE_OK ? rc : finer;
}

/* From the finest on: each is made of the one before. */
static int store_open_points(struct history_store *h, struct history_stream *s, int64_t t) {
    int first = SQLITE_OK;
    for (int k = 0; k < HISTORY_STEPS; k++) {
        const int rc = store_open_point(h, s, k, t);
        first = first != SQLITE_OK ? first : rc;
    }
    return first;
}

int http_history_store_first(struct history_store *h, struct history_stream *s, int64_t *first) {
    *first = -1;
    /* A coarse point may begin before its first measurement; a finer one within it is more exact. */
    for (int k = HISTORY_STEPS - 1; k >= 0; k--) {
        sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_POINT_FIRST);
        int64_t t = s->pending[k].count > 0 ? s->pending[k].point[0].t : -1;
        sqlite3_bind_int64(q, 1, s->id);
        sqlite3_bind_int64(q, 2, http_history_step[k]);
        const int rc = sqlite3_step(q);
        if (rc == SQLITE_ROW && sqlite3_column_type(q, 0) == SQLITE_INTEGER) {
            const int64_t kept = sqlite3_column_int64(q, 0);
            t = t < 0 || kept < t ? kept : t;
        }
        sqlite3_reset(q);
        if (rc != SQLITE_ROW)
            return rc;
        if (s->is_open[k] && (t < 0 || s->open[k].t < t))
            t = s->open[k].t;
        if (t >= 0 && (*first < 0 || t < *first + (k < HISTORY_STEPS - 1 ? http_history_step[k + 1] : 0)))
            *first = t;
    }
    return SQLITE_OK;
}

/* ---- streams */

/* What the file knows of a stream. Points that were open when the last process ended are opened again, so
 * that those of coarser steps are written even if no measurement follows them. */
static int store_load(struct history_store *h, struct history_stream *s) {
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_GET);
    sqlite3_bind_text(q, 1, s->name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        const char *measure = (const char *)sqlite3_column_text(q, 2);
        s->id = sqlite3_column_int64(q, 0);
        if (s->last < 0 && sqlite3_column_type(q, 1) == SQLITE_INTEGER)
            s->last = sqlite3_column_int64(q, 1);
        if (!s->measure[0] && measure)
            strncpy(s->measure, measure, HISTORY_MEASURE - 1);
        s->epoch = (uint64_t)sqlite3_column_int64(q, 3);
        s->number = (uint64_t)sqlite3_column_int64(q, 4);
    }
    sqlite3_reset(q);
    if (rc == SQLITE_ROW && s->last >= 0 && !s->is_open[0])
        return store_open_points(h, s, s->last);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

struct history_stream *http_history_store_stream(struct history_store *h, const char *name, int *result) {
    *result = SQLITE_OK;
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->stream[i]->name, name) == 0)
            return h->stream[i];
    struct history_stream *s = h->count < HISTORY_STREAMS ? svi_alloc(sizeof *s) : NULL;
    if (!s || !(s->name = svi_alloc_plain(strlen(name) + 1))) {
        svi_free(s);
        *result = h->count < HISTORY_STREAMS ? SQLITE_NOMEM : SQLITE_TOOBIG;
        return NULL;
    }
    strcpy(s->name, name);
    s->last = -1;
    h->stream[h->count++] = s;
    *result = store_load(h, s);
    return s;
}

/* Names come from outside: one that has no history must not take a place. */
struct history_stream *http_history_store_find(struct history_store *h, const char *name, int *result) {
    char only[1088] = "";
    int64_t rows = 0;
    *result = SQLITE_OK;
    if (!name[0] && h->count == 1)
        return h->stream[0];
    for (int i = 0; i < h->count; i++)
        if (strcmp(h->stream[i]->name, name) == 0)
            return h->stream[i];
    sqlite3_stmt *q = http_history_db_statement(&h->db, name[0] ? HISTORY_STREAM_GET : HISTORY_STREAM_NAMES);
    if (name[0])
        sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        const char *text = name[0] ? name : (const char *)sqlite3_column_text(q, 0);
        rows++;
        if (text && strlen(text) < sizeof only)
            strcpy(only, text);
    }
    sqlite3_reset(q);
    *result = rc == SQLITE_DONE ? SQLITE_OK : rc;
    return rc == SQLITE_DONE && rows == 1 && only[0] ? http_history_store_stream(h, only, result) : NULL;
}

char *http_history_store_names(struct history_store *h, char *out, size_t size) {
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_NAMES);
    out[0] = '\0';
    for (int i = 0; i < h->count; i++)
        if (h->stream[i]->id == 0)
            svi_list_add(out, size, h->stream[i]->name, strlen(h->stream[i]->name));
    while (sqlite3_step(q) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(q, 0);
        if (name)
            svi_list_add(out, size, name, strlen(name));
    }
    sqlite3_reset(q);
    return out;
}

int http_history_store_add(struct history_store *h, const char *stream, const struct history_point *p,
                           const char *measure) {
    int loaded;
    struct history_stream *s = http_history_store_stream(h, stream, &loaded);
    if (!s)
        return loaded;
    /* All four are open before any is changed: opening one merges what is stored of the finer one. */
    const int rc = store_open_points(h, s, p->t);
    for (int k = 0; k < HISTORY_STEPS; k++) {
        http_history_point_merge(&s->open[k], p);
        s->unsaved[k] = true;
    }
    s->last = p->t;
    if (measure && strcmp(measure, s->measure) != 0) {
        memset(s->measure, 0, sizeof s->measure);
        strncpy(s->measure, measure, HISTORY_MEASURE - 1);
    }
    s->changed = true;
    return loaded != SQLITE_OK ? loaded : rc;
}

/* ---- writing */

static int store_done(sqlite3_stmt *q) {
    const int rc = sqlite3_step(q);
    sqlite3_reset(q);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int http_history_store_identify(struct history_store *h, struct history_stream *s) {
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_ADD);
    sqlite3_bind_text(q, 1, s->name, -1, SQLITE_STATIC);
    int rc = store_done(q);
    if (rc != SQLITE_OK)
        return rc;
    q = http_history_db_statement(&h->db, HISTORY_STREAM_GET);
    sqlite3_bind_text(q, 1, s->name, -1, SQLITE_STATIC);
    if ((rc = sqlite3_step(q)) == SQLITE_ROW)
        s->id = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

static int store_write_point(struct history_store *h, const struct history_stream *s, int k,
                             const struct history_point *p) {
    uint8_t bytes[HISTORY_POINT_BYTES];
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_POINT_PUT);
    sqlite3_bind_int64(q, 1, s->id);
    sqlite3_bind_int64(q, 2, http_history_step[k]);
    sqlite3_bind_int64(q, 3, p->t);
    sqlite3_bind_blob(q, 4, bytes, (int)http_history_point_encode(p, bytes), SQLITE_STATIC);
    return store_done(q);
}

static int store_write_stream(struct history_store *h, struct history_stream *s) {
    int rc = s->id == 0 ? http_history_store_identify(h, s) : SQLITE_OK;
    for (int k = 0; k < HISTORY_STEPS; k++)
        for (int64_t i = 0; i < s->pending[k].count && rc == SQLITE_OK; i++)
            rc = store_write_point(h, s, k, &s->pending[k].point[i]);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_SET);
    sqlite3_bind_int64(q, 1, s->id);
    if (s->last >= 0)
        sqlite3_bind_int64(q, 2, s->last);
    sqlite3_bind_text(q, 3, s->measure, -1, SQLITE_STATIC);
    return store_done(q);
}

int http_history_store_commit(struct history_store *h, bool all) {
    int64_t waiting = 0;
    bool fresh[HISTORY_STREAMS];
    for (int i = 0; i < h->count; i++) {
        struct history_stream *s = h->stream[i];
        for (int k = 0; k < HISTORY_STEPS; k++) {
            if (k == 0 || all)
                store_put(h, s, k);
            waiting += s->pending[k].count;
        }
        waiting += s->changed;
        fresh[i] = s->id == 0;
    }
    /* An idle history does not wake its disk. */
    if (waiting == 0)
        return SQLITE_OK;
    int rc = http_history_db_run(&h->db, HISTORY_BEGIN);
    for (int i = 0; i < h->count && rc == SQLITE_OK; i++)
        rc = store_write_stream(h, h->stream[i]);
    rc = http_history_db_end(&h->db, rc);
    for (int i = 0; i < h->count; i++)
        if (rc != SQLITE_OK && fresh[i])
            h->stream[i]->id = 0; /* its row is not in the file after all */
        else if (rc == SQLITE_OK) {
            h->stream[i]->changed = false;
            for (int k = 0; k < HISTORY_STEPS; k++)
                h->stream[i]->pending[k].count = 0;
        }
    return rc;
}

/* ---- opening, pruning */

enum history_opening http_history_store_open(struct history_store *h, const char *path, double days,
                                             svs_error *err) {
    *h = (struct history_store){.days = path       ? days
                                        : days > 0 ? fmin(days, HISTORY_MEMORY_DAYS)
                                                   : HISTORY_MEMORY_DAYS};
    return http_history_db_open(&h->db, path, err);
}

void http_history_store_close(struct history_store *h) {
    for (int i = 0; i < h->count; i++) {
        for (int k = 0; k < HISTORY_STEPS; k++)
            svi_free(h->stream[i]->pending[k].point);
        svi_free(h->stream[i]->name);
        svi_free(h->stream[i]);
    }
    h->count = 0;
    http_history_db_close(&h->db);
}

enum history_opening http_history_store_reopen(struct history_store *h, const char *path, svs_error *err) {
    http_history_db_close(&h->db);
    const enum history_opening result = http_history_db_open(&h->db, path, err);
    for (int i = 0; i < h->count; i++) {
        h->stream[i]->id = 0;
        h->stream[i]->epoch = h->stream[i]->number = 0;
        h->stream[i]->changed = true;
        /* Rows, epoch and number are those of the new file; pending points stay and are written there. */
        if (result == HISTORY_OPENED)
            store_load(h, h->stream[i]);
    }
    return result;
}

static int store_prune_points(struct history_store *h, int64_t id, double now, bool *more) {
    for (int k = 0; k < HISTORY_STEPS; k++) {
        double keep = (double)http_history_keep[k];
        sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_POINT_PRUNE);
        if (h->days > 0)
            keep = fmin(keep, h->days * 86400);
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, http_history_step[k]);
        sqlite3_bind_int64(q, 3, (int64_t)floor(now - keep) - http_history_step[k]);
        sqlite3_bind_int64(q, 4, PRUNE_PIECE);
        const int rc = store_done(q);
        if (rc != SQLITE_OK)
            return rc;
        /* A piece at a time: questions wait meanwhile. */
        *more = *more || sqlite3_changes(h->db.sqlite) == PRUNE_PIECE;
    }
    return SQLITE_OK;
}

/* Events before their episodes: those are found through them. */
static int store_prune_alerts(struct history_store *h, double before, bool *more) {
    static const enum history_statement order[] = {HISTORY_EVENT_PRUNE, HISTORY_EPISODE_PRUNE,
                                                   HISTORY_OTHERS_PRUNE};
    int rc = http_history_db_run(&h->db, HISTORY_BEGIN);
    for (size_t i = 0; i < sizeof order / sizeof order[0] && rc == SQLITE_OK; i++) {
        sqlite3_stmt *q = http_history_db_statement(&h->db, order[i]);
        sqlite3_bind_double(q, 1, before);
        if (order[i] != HISTORY_OTHERS_PRUNE)
            sqlite3_bind_int64(q, 2, PRUNE_PIECE);
        rc = store_done(q);
        *more = *more || (order[i] == HISTORY_EPISODE_PRUNE && sqlite3_changes(h->db.sqlite) == PRUNE_PIECE);
    }
    rc = http_history_db_end(&h->db, rc);
    return rc;
}

/* Of all streams that the file has, also those that are not shown now. */
int http_history_store_prune(struct history_store *h, double now, bool *more) {
    int rc = SQLITE_OK;
    int64_t id = 0;
    *more = false;
    while (rc == SQLITE_OK) {
        sqlite3_stmt *q = http_history_db_statement(&h->db, HISTORY_STREAM_NEXT);
        sqlite3_bind_int64(q, 1, id);
        if ((rc = sqlite3_step(q)) == SQLITE_ROW)
            id = sqlite3_column_int64(q, 0);
        sqlite3_reset(q);
        if (rc != SQLITE_ROW)
            break;
        rc = store_prune_points(h, id, now, more);
    }
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK && h->days > 0)
        rc = store_prune_alerts(h, now - h->days * 86400, more);
    return rc == SQLITE_OK ? http_history_db_run(&h->db, HISTORY_VACUUM) : rc;
}
