/* Any bytes as a checkpoint: refused with a text, or a checkpoint that is written and read back as the same.
 * Unless the first byte is odd, checks and the hash are put right first, or the search would end there. */
#include "fuzz/target.h"

#include <xxhash.h>

#include "store/checkpoint_file.h"
#include "store/checksum.h"

static void put64(uint8_t *at, uint64_t v) {
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
}

/* A section on its way into the hash, or the end, whose hash is put right. */
static void mend_array(uint8_t *at, uint8_t *end, struct svi_checkpoint *c) {
    struct svi_item array, name, second, body;
    const uint8_t *item = svi_item_read(at, &array);
    if (array.type != SVI_ARRAY || array.length < 3)
        return;
    item = svi_item_read(item, &name);
    item = svi_item_read(item, &second);
    if (array.length == 3 && second.type == SVI_BIN && second.length == sizeof c->hash) {
        svi_checkpoint_hash(c);
        memcpy(at + (second.body - at), c->hash, sizeof c->hash);
    }
    svi_item_read(item, &body);
    if (array.length != 4 || name.type != SVI_STRING || name.length >= 16 || body.type != SVI_BIN ||
        c->sections == SVI_SECTIONS_MAX || body.body + body.length > end)
        return;
    struct svi_section s = {.hashed = second.i != 0, .offset = c->bodies.size, .size = body.length};
    struct svi_section *last = c->sections ? &c->section[c->sections - 1] : NULL;
    memcpy(s.name, name.body, name.length);
    if (last && strcmp(last->name, s.name) == 0 && last->hashed == s.hashed)
        last->size += s.size; /* a further piece */
    else
        c->section[c->sections++] = s;
    must(svi_bytes_append(&c->bodies, body.body, body.length) == SVS_OK);
}

static void mend(uint8_t *bytes, size_t size) {
    struct svi_checkpoint c = {0};
    uint64_t check = 0;
    const uint8_t *behind = bytes;
    for (uint8_t *at = bytes, *end = bytes + size; at < end; at = bytes + (behind - bytes)) {
        if (svi_walk(&behind, end, 2) != SVS_OK || behind - at <= SVI_CHECK_SIZE)
            break;
        mend_array(at, end, &c);
        uint8_t *seal = at + (behind - at) - SVI_CHECK_SIZE;
        check = XXH3_64bits_withSeed(at, (size_t)(seal - at), check);
        *seal = SVI_LEAD_UINT64;
        put64(seal + 1, check);
    }
    svi_checkpoint_clear(&c);
}

static bool same(const struct svi_bytes *a, const struct svi_bytes *b) {
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static void check_sections(const struct svi_checkpoint *c) {
    size_t behind = 0;
    must(c->sections >= 0 && c->sections <= SVI_SECTIONS_MAX);
    for (int i = 0; i < c->sections; i++) {
        const struct svi_section *s = &c->section[i];
        must(s->offset == behind && s->size <= c->bodies.size - behind);
        must(strnlen(s->name, sizeof s->name) < sizeof s->name && svi_checkpoint_find(c, s->name) == s);
        behind += s->size;
    }
    must(behind == c->bodies.size && c->settings.data[c->settings.size] == '\0');
}

static void write_and_read(struct svi_checkpoint *c) {
    static struct svi_state_dir f = {.fd = -1, .lock = -1};
    struct svi_checkpoint again = {0};
    int64_t size;
    if (f.fd < 0)
        must(svi_state_dir_open(&f, fuzz_folder(), false, NULL) == SVS_OK);
    must(svi_checkpoint_write(&f, c, &size, NULL) == SVS_OK && size > 0);
    must(svi_checkpoint_read(&f, c->position.number, &again, NULL) == SVS_OK);
    must(memcmp(again.hash, c->hash, sizeof c->hash) == 0 && again.sections == c->sections);
    must(memcmp(again.section, c->section, sizeof again.section[0] * (size_t)c->sections) == 0);
    must(memcmp(&again.position, &c->position, sizeof again.position) == 0 && again.epoch == c->epoch);
    must(same(&again.bodies, &c->bodies) && same(&again.settings, &c->settings));
    must(strcmp(again.program, c->program) == 0 && strcmp(again.isa, c->isa) == 0 &&
         strcmp(again.stream, c->stream) == 0);
    must(svi_state_dir_remove(&f, SVI_CHECKPOINT, c->position.number, NULL) == SVS_OK);
    svi_checkpoint_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input in = {data, data + size};
    const bool trust = input_take(&in, 1) % 2;
    const size_t left = input_left(&in);
    uint8_t *bytes = malloc(left + 1);
    struct svi_checkpoint c = {0};
    svs_error err = {SVS_OK, ""};
    memcpy(bytes, in.at, left);
    if (!trust)
        mend(bytes, left);
    svs_code code = svi_checkpoint_parse(bytes, left, NULL, "fuzz", &c, &err);
    free(bytes); /* it must not look back */
    if (code == SVS_OK) {
        check_sections(&c);
        write_and_read(&c);
    } else {
        must(err.text[0] && strlen(err.text) < sizeof err.text && c.sections == 0 && c.bodies.size == 0);
        must(code == SVS_DAMAGED || code == SVS_UNAVAILABLE);
    }
    svi_checkpoint_clear(&c);
    return 0;
}
