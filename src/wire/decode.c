#include "wire/decode.h"

#include <math.h>

#include "base/fail.h"
#include "base/text.h"
#include "wire/features_in.h"

#define EXACT_INTEGERS 9007199254740992.0 /* 2^53: beyond it a double no longer names one integer */

enum key {
    KEY_UNKNOWN = 0,
    KEY_X,
    KEY_Y,
    KEY_ID,
    KEY_TS,
    KEY_W,
    KEY_STREAM,
    KEY_OP,
    KEY_SRC,
    KEY_N,
    KEY_COUNT
};

static const char *const key_names[KEY_COUNT] = {"", "x", "y", "id", "ts", "w", "stream", "op", "src", "n"};

static enum key key_of_one(uint8_t c) {
    return c == 'x' ? KEY_X : c == 'y' ? KEY_Y : c == 'w' ? KEY_W : c == 'n' ? KEY_N : KEY_UNKNOWN;
}

static enum key key_of_two(const uint8_t *s) {
    switch (s[0] << 8 | s[1]) {
    case 'i' << 8 | 'd':
        return KEY_ID;
    case 't' << 8 | 's':
        return KEY_TS;
    case 'o' << 8 | 'p':
        return KEY_OP;
    default:
        return KEY_UNKNOWN;
    }
}

static enum key key_of(const uint8_t *s, uint32_t length) {
    if (length == 1)
        return key_of_one(s[0]);
    if (length == 2)
        return key_of_two(s);
    if (length == 3)
        return memcmp(s, "src", 3) == 0 ? KEY_SRC : KEY_UNKNOWN;
    return length == 6 && memcmp(s, "stream", 6) == 0 ? KEY_STREAM : KEY_UNKNOWN;
}

static svs_code wrong_type(const struct svi_reading *r, enum key key, const struct svi_item *item,
                           const char *wanted) {
    return svi_fail(r->err, SVS_WRONG_TYPE, "%s is %s: it must be %s", key_names[key], svi_item_name(item),
                    wanted);
}

static svs_value view(const struct svi_item *item) {
    return (svs_value){.kind = SVS_STR, .length = item->length, .as.s = (const char *)item->body};
}

static bool is_text(const struct svi_item *item) {
    const char *s = (const char *)item->body;
    return item->length > 0 && svi_utf8_valid(s, item->length);
}

static svs_code take_label_text(struct svi_reading *r, const struct svi_item *item) {
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_TOO_LARGE, "y is a string of %u bytes: a label has at most %d",
                        item->length, SVS_NAME_MAX);
    if (!is_text(item))
        return svi_fail(r->err, SVS_BAD_LABEL, "y is a string that is empty or not valid UTF-8");
    r->m->y = view(item);
    return SVS_OK;
}

static svs_code take_label_real(struct svi_reading *r, double y) {
    if (!isfinite(y))
        return svi_fail(r->err, SVS_NOT_FINITE, "y is %s: leave it out if the label is not known",
                        isnan(y) ? "NaN" : "infinite");
    bool integral = y == trunc(y) && fabs(y) <= EXACT_INTEGERS;
    r->m->y = integral ? svs_int((int64_t)y) : svs_real(y);
    return SVS_OK;
}

static svs_code take_y(struct svi_reading *r, const struct svi_item *item) {
    switch (item->type) {
    case SVI_INT:
    case SVI_BOOL:
        r->m->y = svs_int(item->i);
        return SVS_OK;
    case SVI_REAL:
        return take_label_real(r, item->r);
    case SVI_STRING:
        return take_label_text(r, item);
    case SVI_HUGE_INT:
        return svi_fail(r->err, SVS_BAD_LABEL, "y is an integer above 2^63 - 1");
    default:
        return wrong_type(r, KEY_Y, item, "a number, a bool or a string");
    }
}

static svs_code take_id(struct svi_reading *r, const struct svi_item *item) {
    if (item->type == SVI_INT) {
        r->m->id = svs_int(item->i);
        return SVS_OK;
    }
    if (item->type != SVI_STRING)
        return svi_fail(r->err, SVS_BAD_ID, "id is %s: it must be an integer (below 2^63) or a string",
                        svi_item_name(item));
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_BAD_ID, "id is a string of %u bytes: at most %d are taken", item->length,
                        SVS_NAME_MAX);
    if (!is_text(item))
        return svi_fail(r->err, SVS_BAD_ID, "id is a string that is empty or not valid UTF-8");
    r->m->id = view(item);
    return SVS_OK;
}

static svs_code take_ts(struct svi_reading *r, const struct svi_item *item) {
    if (!svi_item_number(item, &r->m->ts))
        return wrong_type(r, KEY_TS, item, "a number, seconds since 1970");
    if (!isfinite(r->m->ts))
        return svi_fail(r->err, SVS_NOT_FINITE, "ts is not finite: leave it out if the time is not known");
    return SVS_OK;
}

static svs_code take_w(struct svi_reading *r, const struct svi_item *item) {
    double *w = &r->m->weight;
    if (!svi_item_number(item, w))
        return wrong_type(r, KEY_W, item, "a number above 0");
    if (!(*w > 0 && isfinite(*w)))
        return svi_fail(r->err, SVS_BAD_WEIGHT, "w is %g: a weight is finite and above 0", *w);
    return SVS_OK;
}

/* A name: `stream` and `src`. */
static svs_code take_name(struct svi_reading *r, const struct svi_item *item, enum key key, svs_value *out) {
    if (item->type != SVI_STRING)
        return wrong_type(r, key, item, "a string");
    if (item->length > SVS_NAME_MAX)
        return svi_fail(r->err, SVS_TOO_LARGE, "%s is a string of %u bytes: at most %d are taken",
                        key_names[key], item->length, SVS_NAME_MAX);
    if (!is_text(item) || memchr(item->body, 0, item->length))
        return svi_fail(r->err, SVS_WRONG_TYPE, "%s is empty or not valid UTF-8 text", key_names[key]);
    *out = view(item);
    return SVS_OK;
}

static svs_code take_stream(struct svi_reading *r, const struct svi_item *item) {
    return take_name(r, item, KEY_STREAM, &r->m->stream);
}

static svs_code take_src(struct svi_reading *r, const struct svi_item *item) {
    return take_name(r, item, KEY_SRC, &r->m->src);
}

static svs_code take_n(struct svi_reading *r, const struct svi_item *item) {
    double v = -1;
    bool number = svi_item_number(item, &v);
    bool whole = item->type == SVI_INT || (number && v == trunc(v) && fabs(v) <= EXACT_INTEGERS);
    if (!whole || v < 0)
        return wrong_type(r, KEY_N, item, "an integer from 0");
    r->m->n = item->type == SVI_INT ? item->i : (int64_t)v;
    return SVS_OK;
}

static svs_code take_op(struct svi_reading *r, const struct svi_item *item) {
    static const char *const ops[] = {[SVI_LEARN] = "learn", [SVI_LABEL] = "label", [SVI_FORGET] = "forget"};
    char text[40];
    if (item->type != SVI_STRING)
        return wrong_type(r, KEY_OP, item, "a string");
    for (int op = 0; op < 3; op++)
        if (strlen(ops[op]) == item->length && memcmp(ops[op], item->body, item->length) == 0) {
            r->m->op = (enum svi_op)op;
            return SVS_OK;
        }
    return svi_fail(r->err, SVS_UNKNOWN_OP, "op is \"%s\": learn, label and forget are known",
                    svi_escape(text, sizeof text, (const char *)item->body, item->length));
}

static svs_code (*const take[KEY_COUNT])(struct svi_reading *, const struct svi_item *) = {
    [KEY_X] = svi_take_x,       [KEY_Y] = take_y,   [KEY_ID] = take_id,
    [KEY_TS] = take_ts,         [KEY_W] = take_w,   [KEY_N] = take_n,
    [KEY_STREAM] = take_stream, [KEY_OP] = take_op, [KEY_SRC] = take_src,
};

/* Keys are short strings nearly always. */
static inline const uint8_t *read_key(const uint8_t *at, struct svi_item *item) {
    if ((*at & 0xe0) != 0xa0)
        return svi_item_read(at, item);
    item->type = SVI_STRING;
    item->length = *at & 0x1fu;
    item->body = at + 1;
    return item->body + item->length;
}

/* One key with its value. `seen`: bits of the keys that were met. */
static svs_code take_pair(struct svi_reading *r, unsigned *seen) {
    struct svi_item item;
    r->at = read_key(r->at, &item);
    if (item.type != SVI_STRING)
        return svi_fail(r->err, SVS_WRONG_TYPE, "a key of the sample is %s: keys are strings",
                        svi_item_name(&item));
    enum key key = key_of(item.body, item.length);
    if (key == KEY_UNKNOWN)
        return svi_walk(&r->at, r->end, SVI_DEPTH_MAX);
    if (*seen & 1u << key)
        return svi_fail(r->err, SVS_DUPLICATE_KEY, "the key %s is there twice", key_names[key]);
    *seen |= 1u << key;
    r->at = svi_item_read(r->at, &item);
    return item.type == SVI_NIL ? SVS_OK : take[key](r, &item); /* nil: as if it were not there */
}

/* Is there what the operation needs? */
static svs_code check_complete(const struct svi_message *m, svs_error *err) {
    bool has_id = m->id.kind != SVS_NONE, has_y = m->y.kind != SVS_NONE;
    if (m->op == SVI_LEARN && !m->has_x)
        return svi_fail(err, SVS_MISSING_X, "the sample has no x");
    if (m->op != SVI_LEARN && !has_id)
        return svi_fail(err, SVS_BAD_ID, "%s needs an id", m->op == SVI_LABEL ? "label" : "forget");
    if (m->op == SVI_LABEL && !has_y)
        return svi_fail(err, SVS_BAD_LABEL, "label needs a y");
    return SVS_OK;
}

static svs_code take_sample(struct svi_reading *r) {
    struct svi_item item;
    unsigned seen = 0;
    r->at = svi_item_read(r->at, &item);
    if (item.type != SVI_MAP)
        return svi_fail(r->err, SVS_WRONG_TYPE, "the element is %s: a sample is a map", svi_item_name(&item));
    for (uint32_t i = 0; i < item.length; i++) {
        svs_code code = take_pair(r, &seen);
        if (code != SVS_OK)
            return code;
    }
    return check_complete(r->m, r->err);
}

/* Field by field: compilers clear the whole of it by a string instruction, which takes longer than the rest
 * of a sample. */
static void clear_message(struct svi_message *m, double *row) {
    m->op = SVI_LEARN;
    m->has_x = false;
    m->kind = SVI_UNSET;
    m->d = 0;
    m->x = row;
    m->missing = 0;
    m->id = m->y = m->stream = m->src = (svs_value){.kind = SVS_NONE};
    m->ts = NAN;
    m->weight = 1;
    m->n = -1;
}

svs_code svi_frame_next(struct svi_frame *f, struct svi_shape *shape, struct svi_message *m, svs_error *err) {
    clear_message(m, shape->row);
    struct svi_reading r = {.at = f->at, .end = f->end, .shape = shape, .m = m, .err = err};
    svs_code code = take_sample(&r);
    f->element = f->at;
    if (code == SVS_OK)
        f->at = r.at;
    else
        svi_walk(&f->at, f->end, SVI_DEPTH_MAX);
    f->element_size = (size_t)(f->at - f->element);
    f->left--;
    return code;
}

static svs_code refuse_form(svs_code code, size_t at, size_t length, int depth, svs_error *err) {
    if (code == SVS_TRUNCATED)
        return svi_fail(err, code, "the message has %zu bytes; what begins at byte %zu announces more",
                        length, at);
    if (code == SVS_TOO_DEEP)
        return svi_fail(err, code, "arrays and maps are nested more than %d deep at byte %zu", depth, at);
    return svi_fail(err, code, "byte %zu is 0xc1, which begins nothing in msgpack", at);
}

svs_code svi_msgpack_check(const void *bytes, size_t length, int depth, svs_error *err) {
    if (length == 0)
        return svi_fail(err, SVS_EMPTY, "the message has no bytes");
    const uint8_t *start = bytes, *at = start;
    if (depth > SVI_WALK_MAX)
        depth = SVI_WALK_MAX;
    svs_code code = svi_walk(&at, start + length, depth);
    size_t end = (size_t)(at - start);
    if (code != SVS_OK)
        return refuse_form(code, end, length, depth, err);
    if (end != length)
        return svi_fail(err, SVS_TRAILING, "the object ends after %zu bytes, but the message has %zu", end,
                        length);
    return SVS_OK;
}

svs_code svi_frame_open(struct svi_frame *f, const void *bytes, size_t length, svs_error *err) {
    struct svi_item item;
    *f = (struct svi_frame){.at = bytes};
    svs_code code = svi_msgpack_check(bytes, length, SVI_DEPTH_MAX, err);
    if (code != SVS_OK)
        return code;
    svi_item_read(bytes, &item);
    if (item.type != SVI_MAP && item.type != SVI_ARRAY)
        return svi_fail(err, SVS_WRONG_TYPE, "the message is %s: a sample is a map, a batch an array of maps",
                        svi_item_name(&item));
    f->end = f->at + length;
    f->left = 1;
    if (item.type == SVI_ARRAY && item.length > SVI_BATCH_MAX)
        return svi_fail(err, SVS_TOO_LARGE, "a batch of %u elements: at most %d are taken at once",
                        item.length, SVI_BATCH_MAX);
    if (item.type == SVI_ARRAY) {
        f->at = item.body;
        f->left = item.length;
    }
    return SVS_OK;
}
