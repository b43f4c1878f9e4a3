#include "store/files.h"

#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/checkpoint.h"
#include "store/io.h"
#include "store/sealed.h"
#include "store/window.h"

struct parser {
    const uint8_t *bytes, *at, *end;
    const uint8_t *next; /* behind the object that parse_array has checked */
    const struct svi_folder *folder;
    const char *name;
    uint64_t check; /* of the object before */
    int objects;    /* of sections to come */
    svs_error *err;
};

static svs_code damaged(const struct parser *p, const char *what) {
    return svi_fail_file(p->err, SVS_DAMAGED, p->folder, p->name, "is damaged at byte %llu: %s",
                         (unsigned long long)(p->at - p->bytes), what);
}

static bool copy_text(struct svi_bytes *b, const struct svi_item *item) {
    b->size = 0;
    if (item->length > 0 && svi_bytes_append(b, item->body, item->length) != SVS_OK)
        return false;
    if (svi_bytes_append(b, "", 1) != SVS_OK)
        return false;
    b->size--; /* the NUL stands behind */
    return true;
}

static svs_code parse_header(struct parser *p, struct svi_checkpoint *c) {
    struct svi_head h;
    struct svi_item settings;
    if (!svi_head_open(&h, p->at, (size_t)(p->end - p->at)))
        return damaged(p, "there is no header");
    enum svi_head_state state =
        svi_head_state(&h, SVI_CHECKPOINT_FORMAT, SVI_CHECKPOINT_VERSION, 0, &p->check);
    if (state == SVI_HEAD_LATER)
        return svi_fail_file(p->err, SVS_UNAVAILABLE, p->folder, p->name,
                             "was written by a later version of this program: use that one");
    if (state == SVI_HEAD_BAD)
        return damaged(p, "the header is not sound");
    svi_head_text(&h, "program", c->program, sizeof c->program);
    svi_head_text(&h, "isa", c->isa, sizeof c->isa);
    svi_head_text(&h, "stream", c->stream, sizeof c->stream);
    c->epoch = svi_head_uint(&h, "epoch");
    c->position.number = svi_head_uint(&h, "number");
    c->position.segment = svi_head_uint(&h, "segment");
    c->position.offset = svi_head_uint(&h, "offset");
    c->position.chain = svi_head_uint(&h, "chain");
    c->position.secret = svi_head_uint(&h, "v") > 1 ? svi_head_uint(&h, "secret") : 0; /* as its segment */
    uint64_t sections = svi_head_uint(&h, "sections");
    if (!h.sound || sections > SVI_OBJECTS_MAX || !svi_head_find(&h, "settings", &settings) ||
        settings.type != SVI_STRING)
        return damaged(p, "the header lacks something");
    p->objects = (int)sections;
    if (!copy_text(&c->settings, &settings))
        return svi_fail_memory(p->err, "the settings of a checkpoint");
    p->at += h.size;
    return SVS_OK;
}

/* Reads an array of items, the last of which is its check. */
static svs_code parse_array(struct parser *p, struct svi_item *item, uint32_t items) {
    const uint8_t *end = p->at;
    struct svi_item array;
    if (svi_walk(&end, p->end, 1) != SVS_OK)
        return damaged(p, "it ends too early, or it is not msgpack");
    const uint8_t *at = svi_item_read(p->at, &array);
    if (array.type != SVI_ARRAY || array.length != items || end - p->at <= SVI_CHECK_SIZE)
        return damaged(p, "it is no section");
    for (uint32_t i = 0; i < items; i++)
        at = svi_item_read(at, &item[i]);
    const uint8_t *check = end - SVI_CHECK_SIZE;
    uint64_t sum = XXH3_64bits_withSeed(p->at, (size_t)(check - p->at), p->check);
    if (*check != SVI_LEAD_UINT64 || svi_load64(check + 1) != sum)
        return damaged(p, "the section is not sound");
    p->check = sum;
    p->next = end;
    return SVS_OK;
}

/* Another section, or another piece of the last one: NULL if it can be neither. */
static struct svi_section *place(struct svi_checkpoint *c, const struct svi_section *read) {
    struct svi_section *last = c->sections ? &c->section[c->sections - 1] : NULL;
    if (last && strcmp(last->name, read->name) == 0 && last->hashed == read->hashed)
        return last;
    if (c->sections == SVI_SECTIONS_MAX || svi_checkpoint_find(c, read->name))
        return NULL;
    c->section[c->sections] = *read;
    return &c->section[c->sections++];
}

static svs_code parse_section(struct parser *p, struct svi_checkpoint *c) {
    struct svi_item item[SVI_SECTION_ITEMS];
    struct svi_section read = {.offset = c->bodies.size}, *s;
    svs_code code = parse_array(p, item, SVI_SECTION_ITEMS);
    if (code != SVS_OK)
        return code;
    if (item[0].type != SVI_STRING || item[0].length == 0 || item[0].length >= sizeof read.name ||
        memchr(item[0].body, '\0', item[0].length) || item[1].type != SVI_BOOL || item[2].type != SVI_BIN)
        return damaged(p, "the section has another form");
    read.hashed = item[1].i != 0;
    memcpy(read.name, item[0].body, item[0].length);
    if (!(s = place(c, &read)))
        return damaged(p, "the section is there twice, or one too many");
    if (svi_bytes_append(&c->bodies, item[2].body, item[2].length) != SVS_OK)
        return svi_fail_memory(p->err, "the sections of a checkpoint");
    s->size += item[2].length;
    p->at = p->next;
    return SVS_OK;
}

static svs_code parse_end(struct parser *p, struct svi_checkpoint *c) {
    struct svi_item item[SVI_END_ITEMS];
    svs_code code = parse_array(p, item, SVI_END_ITEMS);
    if (code != SVS_OK)
        return code;
    if (item[0].type != SVI_STRING || item[0].length != strlen(SVI_END) ||
        memcmp(item[0].body, SVI_END, item[0].length) != 0 || item[1].type != SVI_BIN ||
        item[1].length != sizeof c->hash)
        return damaged(p, "the end has another form");
    svi_checkpoint_hash(c);
    if (memcmp(c->hash, item[1].body, sizeof c->hash) != 0)
        return damaged(p, "the state has another hash");
    p->at = p->next;
    return p->at == p->end ? SVS_OK : damaged(p, "bytes follow the end");
}

static svs_code parse(struct parser *p, struct svi_checkpoint *c) {
    svs_code code = parse_header(p, c);
    while (code == SVS_OK && p->objects-- > 0)
        code = parse_section(p, c);
    return code == SVS_OK ? parse_end(p, c) : code;
}

/* As empty as a new one, but with its room. */
static void empty(struct svi_checkpoint *c) {
    struct svi_bytes settings = c->settings, bodies = c->bodies;
    settings.size = bodies.size = 0;
    *c = (struct svi_checkpoint){.settings = settings, .bodies = bodies};
}

/* The bodies are not more than the file: room for them all, instead of growing beyond. */
static svs_code make_room(struct svi_bytes *b, size_t size, svs_error *err) {
    if (size <= b->capacity)
        return SVS_OK;
    void *grown = svi_realloc(b->data, 0, size);
    if (!grown)
        return svi_fail_memory(err, "the sections of a checkpoint");
    b->data = grown;
    b->capacity = size;
    return SVS_OK;
}

static svs_code parse_all(struct parser *p, struct svi_checkpoint *c) {
    empty(c);
    svs_code code = make_room(&c->bodies, (size_t)(p->end - p->bytes), p->err);
    if (code == SVS_OK)
        code = parse(p, c);
    if (code != SVS_OK)
        empty(c);
    return code;
}

svs_code svi_checkpoint_parse(const uint8_t *bytes, size_t size, const char *name, struct svi_checkpoint *c,
                              svs_error *err) {
    struct parser p = {.bytes = bytes, .at = bytes, .end = bytes + size, .name = name, .err = err};
    return parse_all(&p, c);
}

static svs_code read_window(struct svi_window *w, struct svi_checkpoint *c, svs_error *err) {
    static const uint8_t nothing[1];
    struct parser p = {.bytes = nothing, .folder = w->folder, .name = w->name, .err = err};
    if (w->size > SVI_CHECKPOINT_MAX)
        return svi_fail_file(err, SVS_DAMAGED, w->folder, w->name,
                             "has %llu bytes: too many for a checkpoint", (unsigned long long)w->size);
    svs_code code = w->size ? svi_window_at(w, 0, (size_t)w->size, &p.bytes, err) : SVS_OK;
    if (code != SVS_OK)
        return code;
    p.at = p.bytes;
    p.end = p.bytes + w->size;
    return parse_all(&p, c);
}

svs_code svi_checkpoint_read(const struct svi_folder *f, uint64_t number, struct svi_checkpoint *c,
                             svs_error *err) {
    struct svi_window w = {.fd = -1};
    char name[SVI_FILE_NAME];
    svs_code code = svi_window_open(&w, f, svi_folder_name(name, SVI_CHECKPOINT, number), err);
    if (code == SVS_OK)
        code = read_window(&w, c, err);
    svi_window_clear(&w);
    if (code == SVS_OK && c->position.number != number) {
        empty(c);
        code = svi_fail_file(err, SVS_DAMAGED, f, name, "holds the state after another number of records");
    }
    return code;
}
