/* A ring as pieces of a few thousand slots, oldest first, so that where a ring begins does not show and the
 * room to gather them in stays small. A piece is a handful of columns. A dead slot is all zero: a sample that
 * was taken out is not kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "learner/archive.h"

#define PIECE_DOUBLES 32768 /* of rows: what a second-level cache holds */
#define PIECE_SLOTS   4096
#define KEY_MAX       64

/* The state of a slot in one byte. */
#define LIVE    1u
#define LEARNED 2u
#define KIND(s) ((s) >> 2) /* enum svs_value_kind of the id */

/* Which rings have a column. */
#define LABELLED 1u /* window, classification */
#define TARGETED 2u /* window, regression */
#define WAITING  4u

#define SLOT(member) offsetof(struct svi_slot, member), sizeof(((struct svi_slot *)NULL)->member)

static const struct column {
    const char *name;
    size_t offset, size;
    enum svi_archive_type type;
    unsigned of;
} columns[] = {
    {"times", SLOT(time), SVI_ARCHIVE_DOUBLES, LABELLED | TARGETED | WAITING},
    {"weights", SLOT(weight), SVI_ARCHIVE_DOUBLES, LABELLED | TARGETED | WAITING},
    {"orders", SLOT(order), SVI_ARCHIVE_INT64, LABELLED | TARGETED},
    {"labels", SLOT(label), SVI_ARCHIVE_INT32, LABELLED},
    {"targets", SLOT(target), SVI_ARCHIVE_DOUBLES, TARGETED},
    {"versions", SLOT(version), SVI_ARCHIVE_INT64, WAITING},
    {"predicted", SLOT(predicted), SVI_ARCHIVE_INT32, WAITING},
    {"classes", SLOT(class_count), SVI_ARCHIVE_INT32, WAITING},
};
#define COLUMNS ((int)(sizeof columns / sizeof columns[0]))

struct piece {
    const struct svi_ring_kind *kind;
    unsigned of;
    int number, width, slots; /* width: of a row with its scores; slots: at most */
    int n;                    /* slots in it now */
    double *rows;
    int64_t *ids; /* an integer, or the length of a string */
    char *names;  /* the strings, one behind the other */
    int64_t names_size;
    unsigned char *state, *column[COLUMNS];
    int64_t last_order;
};

static bool piece_new(struct piece *p, const struct svi_ring_kind *kind) {
    *p = (struct piece){.kind = kind, .width = kind->features + kind->scores};
    p->of = kind->waiting ? WAITING : kind->regress ? TARGETED : LABELLED;
    p->slots = PIECE_DOUBLES / (p->width + 1) + 1;
    p->slots = p->slots < PIECE_SLOTS ? p->slots : PIECE_SLOTS;
    size_t n = (size_t)p->slots, row = (size_t)p->width * sizeof(double);
    size_t slot = row + sizeof(int64_t) + COLUMNS * sizeof(double) + SVS_NAME_MAX + 1;
    p->rows = svi_alloc_array(n, slot);
    if (!p->rows)
        return false;
    p->ids = (int64_t *)(p->rows + n * (size_t)p->width);
    unsigned char *at = (unsigned char *)(p->ids + n);
    for (int c = 0; c < COLUMNS; c++, at += n * sizeof(double))
        p->column[c] = at;
    p->names = (char *)at;
    p->state = at + n * SVS_NAME_MAX;
    return true;
}

/* ---- saving */

static void gather_id(struct piece *p, int i, const svs_value *id) {
    p->ids[i] = id->kind == SVS_INT ? id->as.i : id->kind == SVS_STR ? id->length : 0;
    if (id->kind != SVS_STR)
        return;
    memcpy(p->names + p->names_size, id->as.s, id->length);
    p->names_size += id->length;
}

static void gather_columns(struct piece *p, int i, const struct svi_slot *s) {
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].of & p->of)
            memcpy(p->column[c] + (size_t)i * columns[c].size, (const char *)s + columns[c].offset,
                   columns[c].size);
}

static void gather_row(struct piece *p, int i, const struct svi_slot *s, const double *row) {
    double *to = p->rows + (size_t)i * (size_t)p->width;
    memcpy(to, row, (size_t)p->kind->features * sizeof *to);
    if (!p->kind->waiting)
        return;
    to += p->kind->features;
    memcpy(to, row + p->kind->scores_at, (size_t)s->rows * sizeof *to);
    memset(to + s->rows, 0, (size_t)(p->kind->scores - s->rows) * sizeof *to);
}

static void gather(struct piece *p, const struct svi_ring *r, int32_t from) {
    static const struct svi_slot dead = {0};
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        int32_t at = svi_ring_at(r, from + i);
        const struct svi_slot *s = r->slots[at].live ? &r->slots[at] : &dead;
        p->state[i] = (unsigned char)(s->live * LIVE | s->learned * LEARNED | (unsigned)s->id.kind << 2);
        gather_id(p, i, &s->id);
        gather_columns(p, i, s);
        if (s->live)
            gather_row(p, i, s, svi_ring_row(r, at));
        else
            memset(p->rows + (size_t)i * (size_t)p->width, 0, (size_t)p->width * sizeof(double));
    }
}

/* ---- loading */

static svs_code check_state(struct svi_archive *a, struct piece *p) {
    bool good = true;
    p->names_size = 0;
    for (int i = 0; i < p->n; i++) {
        unsigned s = p->state[i], kind = KIND(s);
        good &= kind == SVS_NONE || kind == SVS_INT || kind == SVS_STR;
        good &= (s & LIVE) ? kind != SVS_NONE || !p->kind->waiting : s == 0;
        good &= !(s & LEARNED) || !p->kind->waiting;
        if (kind != SVS_STR)
            continue;
        if (p->ids[i] < 1 || p->ids[i] > SVS_NAME_MAX) /* added to nothing before it is known to be small */
            good = false;
        else
            p->names_size += p->ids[i];
    }
    return svi_archive_check(a, good, "a sample's state or id is none") ? SVS_OK : SVS_DAMAGED;
}

static bool good_row(const struct piece *p, const double *row) {
    bool good = true;
    for (int j = 0; j < p->kind->features; j++)
        good &= fabs(row[j]) <= SVI_VALUE_MAX;
    return good;
}

static bool good_slot(const struct piece *p, const struct svi_slot *s) {
    const struct svi_ring_kind *k = p->kind;
    bool good = isfinite(s->time) && s->weight > 0 && s->weight <= SVI_VALUE_MAX;
    if (k->waiting)
        return good && s->class_count >= 0 && s->class_count <= k->class_count && s->predicted >= -1 &&
               s->predicted < (s->class_count > 0 ? s->class_count : 0);
    good &= s->order >= p->last_order && s->order <= k->order;
    return good &&
           (k->regress ? fabs(s->target) <= SVI_VALUE_MAX : s->label >= 0 && s->label < k->class_count);
}

/* Fills the slot that was pushed for entry i. False: it says what cannot be. */
static bool scatter(struct piece *p, const struct svi_ring *r, int32_t at, int i) {
    struct svi_slot *s = &r->slots[at];
    const double *from = p->rows + (size_t)i * (size_t)p->width;
    double *row = svi_ring_row(r, at);
    for (int c = 0; c < COLUMNS; c++)
        if (columns[c].of & p->of)
            memcpy((char *)s + columns[c].offset, p->column[c] + (size_t)i * columns[c].size,
                   columns[c].size);
    if (!good_slot(p, s) || !good_row(p, from))
        return false;
    memcpy(row, from, (size_t)p->kind->features * sizeof *row);
    s->learned = p->state[i] & LEARNED;
    if (p->kind->waiting) {
        s->rows = s->class_count < 3 ? 1 : s->class_count;
        memcpy(row + p->kind->scores_at, from + p->kind->features, (size_t)s->rows * sizeof *row);
        return true;
    }
    if (p->kind->regress)
        s->label = -1;
    else
        s->target = NAN;
    p->last_order = s->order;
    return true;
}

/* The id of entry i, whose string, if it is one, begins at *name; moves *name behind it. */
static svs_value id_of(const struct piece *p, int i, const char **name) {
    svs_value id = {.kind = (uint8_t)KIND(p->state[i])};
    if (id.kind == SVS_INT)
        id.as.i = p->ids[i];
    if (id.kind != SVS_STR)
        return id;
    id.length = (uint32_t)p->ids[i];
    id.as.s = *name;
    *name += id.length;
    return id;
}

static void push_all(struct svi_archive *a, struct svi_ring *r, struct piece *p) {
    const char *name = p->names;
    for (int i = 0; i < p->n && svi_archive_ok(a); i++) {
        svs_value id = id_of(p, i, &name);
        bool text = id.kind != SVS_STR || svi_utf8_valid(id.as.s, id.length);
        if (!svi_archive_check(a, text, "an id is not valid UTF-8"))
            return;
        if (svi_ring_reserve(r, id, NULL) != SVS_OK) {
            svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the samples held");
            return;
        }
        int32_t at = svi_ring_push(r, id);
        if (p->state[i] & LIVE)
            svi_archive_check(a, scatter(p, r, at, i), "a sample cannot be one");
        else
            svi_ring_kill(r, at);
    }
}

/* ---- both */

static const char *key(const struct piece *p, const char *field, char *text) {
    snprintf(text, KEY_MAX, "%s %d %s", p->kind->name, p->number, field);
    return text;
}

static void archive_piece(struct svi_archive *a, struct piece *p) {
    char text[KEY_MAX];
    svi_archive_bytes(a, key(p, "states", text), p->state, p->n);
    svi_archive_int64s(a, key(p, "ids", text), p->ids, p->n, INT64_MIN, INT64_MAX);
    if (!svi_archive_ok(a) || (a->loading && check_state(a, p) != SVS_OK))
        return;
    svi_archive_bytes(a, key(p, "names", text), p->names, p->names_size);
    for (int c = 0; c < COLUMNS && svi_archive_ok(a); c++)
        if (columns[c].of & p->of)
            a->form->block(a, key(p, columns[c].name, text), columns[c].type, p->column[c], p->n);
    svi_archive_doubles(a, key(p, "rows", text), p->rows, (int64_t)p->n * p->width);
}

static void archive_pieces(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind,
                           int32_t count) {
    struct piece p;
    if (!piece_new(&p, kind)) {
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory to gather samples in");
        return;
    }
    for (int32_t from = 0; from < count && svi_archive_ok(a); from += p.n, p.number++) {
        p.n = count - from < p.slots ? count - from : p.slots;
        if (!a->loading)
            gather(&p, r, from);
        archive_piece(a, &p);
        if (a->loading && svi_archive_ok(a))
            push_all(a, r, &p);
    }
    svi_free(p.rows);
}

void svi_ring_archive(struct svi_archive *a, struct svi_ring *r, const struct svi_ring_kind *kind) {
    char text[KEY_MAX];
    int count = r->count;
    int64_t pushed = r->pushed;
    snprintf(text, sizeof text, "%s count", kind->name);
    svi_archive_int(a, text, &count, 0, r->max);
    snprintf(text, sizeof text, "%s pushed", kind->name);
    svi_archive_int64(a, text, &pushed, count, SVI_COUNT_MAX);
    if (!svi_archive_ok(a))
        return;
    if (a->loading)
        r->pushed = pushed - count; /* numbers rise by one from slot to slot */
    if (count > 0)
        archive_pieces(a, r, kind, count);
}
