/* The sound checkpoint of an engine with some fields changed, as a disk or a hand that knows the checks might
 * do it: the loader refuses it with a text, or the engine learns on; and what was taken is saved again as the
 * same bytes. The first byte chooses the kind of the engine, the next ones are changes of 12 bytes. */
#include "fuzz/target.h"

#include <math.h>

#include "state/recovery.h"

#define BEFORE  70 /* samples in the checkpoint */
#define AFTER   50
#define CHANGES 12

static struct svi_checkpoint sound[FUZZ_ENGINES];

/* ---- a change */

struct change {
    unsigned section, field, how, at;
    uint64_t value;
};

/* Where a field of a section stands. */
struct field {
    size_t name, value, behind; /* offsets in the body */
    struct svi_item item;
};

static bool find_field(const struct svi_bytes *b, unsigned number, struct field *f) {
    const uint8_t *end = b->data + b->size, *at;
    struct svi_item map;
    at = svi_item_read(b->data, &map);
    if (map.type != SVI_MAP || map.length == 0)
        return false;
    for (uint32_t i = 0; i <= number % map.length; i++) {
        f->name = (size_t)(at - b->data);
        if (svi_walk(&at, end, 2) != SVS_OK)
            return false;
        f->value = (size_t)(at - b->data);
        if (svi_walk(&at, end, 2) != SVS_OK)
            return false;
        f->behind = (size_t)(at - b->data);
    }
    svi_item_read(b->data + f->value, &f->item);
    return true;
}

/* Replaces bytes from..to by others. */
static void splice(struct svi_bytes *b, size_t from, size_t to, const void *bytes, size_t size) {
    struct svi_bytes made = {0};
    must(svi_bytes_append(&made, b->data, from) == SVS_OK && svi_bytes_append(&made, bytes, size) == SVS_OK);
    must(svi_bytes_append(&made, b->data + to, b->size - to) == SVS_OK);
    svi_bytes_clear(b);
    *b = made;
}

static uint64_t odd_integer(unsigned k) {
    static const int64_t odd[] = {0,         1,         -1,         2,          3,         7,
                                  INT8_MAX,  INT16_MAX, INT32_MAX,  INT32_MIN,  INT64_MAX, INT64_MIN,
                                  1LL << 32, 1LL << 40, UINT32_MAX, 1000000007, 64,        -2};
    return (uint64_t)odd[k % (sizeof odd / sizeof odd[0])];
}

static uint64_t odd_real(unsigned k) {
    static const double odd[] = {0,      -0.0,  1,      -1,       0.5,       2,   1e300,   -1e300, 1e-300,
                                 5e-324, 1e154, 1e-154, INFINITY, -INFINITY, NAN, 1000000, 1e16,   1 - 1e-16};
    uint64_t bits;
    memcpy(&bits, &odd[k % (sizeof odd / sizeof odd[0])], sizeof bits);
    return bits;
}

static size_t width(const struct svi_item *item) {
    return item->type == SVI_BIN || item->type == SVI_STRING ? 1 : item->ext == 3 ? 4 : 8;
}

/* A scalar is replaced, moved a little, or becomes something odd. */
static void change_scalar(struct svi_bytes *b, const struct field *f, const struct change *c) {
    uint64_t v = svi_load64(b->data + f->value + 1);
    if (f->behind - f->value != 9)
        return;
    if (c->how % 3 == 0)
        v = c->value;
    else if (c->how % 3 == 1)
        v += (uint64_t)(int64_t)(int8_t)c->value;
    else
        v = f->item.type == SVI_REAL ? odd_real(c->at) : odd_integer(c->at);
    v = htobe64(v);
    memcpy(b->data + f->value + 1, &v, sizeof v);
}

static void change_element(struct svi_bytes *b, const struct field *f, const struct change *c) {
    const size_t w = width(&f->item), count = f->item.length / w;
    uint64_t v = c->how % 3 == 0 ? c->value : f->item.ext == 2 ? odd_real(c->at) : odd_integer(c->at);
    if (count == 0)
        return;
    size_t k = (c->how % 3 == 0 ? c->at : (size_t)c->value) % count;
    memcpy(b->data + (f->item.body - b->data) + k * w, &v, w);
}

/* A block becomes longer or shorter. */
static void change_length(struct svi_bytes *b, const struct field *f, const struct change *c) {
    const size_t w = width(&f->item), header = (size_t)(f->item.body - b->data) - f->value;
    size_t length = (c->how % 2 ? c->at % 64 : f->item.length / w + (size_t)c->at % 5 - 2) * w;
    uint8_t *made;
    if (header < 5 || length > 4096)
        return;
    made = calloc(1, header + length + 1);
    const uint32_t big = htobe32((uint32_t)length);
    memcpy(made, b->data + f->value, header);
    memcpy(made + 1, &big, sizeof big);
    memcpy(made + header, f->item.body, length < f->item.length ? length : f->item.length);
    splice(b, f->value, f->behind, made, header + length);
    free(made);
}

static void change_body(struct svi_bytes *b, const struct change *c) {
    struct field f;
    if (!find_field(b, c->field, &f))
        return;
    const bool block = f.item.type == SVI_EXT || f.item.type == SVI_BIN || f.item.type == SVI_STRING;
    if (c->how == 255) /* gone */
        splice(b, f.name, f.behind, "", 0);
    else if (c->how == 254) /* another type */
        splice(b, f.value, f.behind, "\xc0", 1);
    else if (c->how == 253) /* any byte */
        b->data[c->at % b->size] ^= (uint8_t)(c->value | 1);
    else if (!block)
        change_scalar(b, &f, c);
    else if (c->how < 128)
        change_element(b, &f, c);
    else
        change_length(b, &f, c);
}

/* ---- loading */

static void make_sound(unsigned kind) {
    struct fuzz_engine f;
    fuzz_engine_open(&f, kind);
    fuzz_go_on(&f, 0, BEFORE);
    must(svi_stream_save(f.stream, &sound[f.kind], NULL) == SVS_OK);
    fuzz_engine_close(&f);
}

/* The sections one by one, changed, and together again. */
static void make_changed(const struct svi_checkpoint *from, struct input in, struct svi_checkpoint *to) {
    struct svi_bytes body[SVI_SECTIONS_MAX] = {{0}};
    *to = *from;
    to->settings = to->bodies = (struct svi_bytes){0};
    for (int i = 0; i < from->sections; i++)
        must(svi_bytes_append(&body[i], from->bodies.data + from->section[i].offset, from->section[i].size) ==
             SVS_OK);
    for (int i = 0; i < CHANGES && input_left(&in) > 0; i++) {
        struct change c;
        c.section = (unsigned)input_take(&in, 1) % (unsigned)from->sections;
        c.field = (unsigned)input_take(&in, 1);
        c.how = (unsigned)input_take(&in, 1);
        c.at = (unsigned)input_take(&in, 1);
        c.value = input_take(&in, 8);
        change_body(&body[c.section], &c);
    }
    for (int i = 0; i < from->sections; i++) {
        to->section[i].offset = to->bodies.size;
        to->section[i].size = body[i].size;
        must(svi_bytes_append(&to->bodies, body[i].data, body[i].size) == SVS_OK);
        svi_bytes_clear(&body[i]);
    }
}

/* Names the field in which two sections differ first. */
static void tell_difference(const char *section, const struct svi_bytes *a, const struct svi_bytes *b) {
    struct field x, y;
    for (unsigned i = 0; i < 4096 && find_field(a, i, &x) && find_field(b, i, &y); i++) {
        if (x.behind - x.name == y.behind - y.name &&
            memcmp(a->data + x.name, b->data + y.name, x.behind - x.name) == 0)
            continue;
        fprintf(stderr, "section %s: the field %.*s is saved differently\n", section, (int)(x.value - x.name),
                (const char *)a->data + x.name);
        return;
    }
}

static bool same(const struct svi_checkpoint *a, const struct svi_checkpoint *b, bool tell) {
    bool all = true;
    for (int i = 0; i < a->sections; i++) {
        const struct svi_section *s = &a->section[i], *t = &b->section[i];
        const struct svi_bytes was = {.data = a->bodies.data + s->offset, .size = s->size},
                               is = {.data = b->bodies.data + t->offset, .size = t->size};
        const bool equal = was.size == is.size && memcmp(was.data, is.data, is.size) == 0;
        if (!equal && tell)
            tell_difference(s->name, &was, &is);
        all = all && equal;
    }
    return all;
}

/* What was taken is saved as the same bytes; where there are two forms of one thing (a zero and a zero with a
 * sign, in a row that keeps none), then at least from there on. */
static void check_saved_alike(struct fuzz_engine *f, const struct svi_checkpoint *c) {
    struct svi_checkpoint once = {0}, twice = {0};
    struct fuzz_engine other;
    must(svi_stream_save(f->stream, &once, NULL) == SVS_OK);
    if (!same(c, &once, false)) {
        fuzz_engine_open(&other, f->kind);
        must(svi_stream_load(other.stream, &once, NULL) == SVS_OK);
        must(svi_stream_save(other.stream, &twice, NULL) == SVS_OK);
        must(same(&once, &twice, true));
        fuzz_engine_close(&other);
    }
    svi_checkpoint_clear(&once);
    svi_checkpoint_clear(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    const unsigned kind = (unsigned)input_take(&in, 1) % FUZZ_ENGINES;
    struct svi_checkpoint changed;
    struct fuzz_engine f;
    svs_error err = {SVS_OK, ""};
    double difference;
    if (!sound[kind].sections)
        make_sound(kind);
    make_changed(&sound[kind], in, &changed);
    fuzz_engine_open(&f, kind);
    svs_code code = svi_stream_load(f.stream, &changed, &err);
    must(code == SVS_OK ? input_left(&in) > 0 || !err.text[0] : code == SVS_DAMAGED && err.text[0]);
    must(code == SVS_OK || input_left(&in) > 0);
    if (code == SVS_OK) {
        check_saved_alike(&f, &changed);
        must(svi_stream_verify(f.stream, &difference, &err) == SVS_OK);
        check_saved_alike(&f, &changed);
        svi_engine_refit_restart(svi_stream_root(f.stream));
        fuzz_go_on(&f, BEFORE, BEFORE + AFTER);
        svi_stream_rebuild(f.stream);
        fuzz_go_on(&f, BEFORE + AFTER, BEFORE + AFTER + 10);
    }
    fuzz_engine_close(&f);
    svi_checkpoint_clear(&changed);
    return 0;
}
