#define XXH_STATIC_LINKING_ONLY /* states on the stack: no memory beside the gate */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/fail.h"
#include "store/checkpoint.h"
#include "store/io.h"
#include "store/sealed.h"

/* A journal's sync waits for what the file system has to write of other files as well, so no more than this
 * is left to it at a time. */
#define PIECE ((size_t)1 << 18)

void svi_checkpoint_clear(struct svi_checkpoint *c) {
    svi_bytes_clear(&c->settings);
    svi_bytes_clear(&c->bodies);
    *c = (struct svi_checkpoint){0};
}

const struct svi_section *svi_checkpoint_find(const struct svi_checkpoint *c, const char *name) {
    for (int i = 0; i < c->sections; i++)
        if (strcmp(c->section[i].name, name) == 0)
            return &c->section[i];
    return NULL;
}

void svi_checkpoint_hash(struct svi_checkpoint *c) {
    XXH3_state_t state;
    XXH128_canonical_t hash;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (int i = 0; i < c->sections; i++) {
        const struct svi_section *s = &c->section[i];
        uint64_t size = htobe64(s->size);
        if (!s->hashed)
            continue;
        XXH3_128bits_update(&state, s->name, strlen(s->name) + 1);
        XXH3_128bits_update(&state, &size, sizeof size);
        if (s->size > 0)
            XXH3_128bits_update(&state, c->bodies.data + s->offset, s->size);
    }
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(&state));
    memcpy(c->hash, hash.digest, sizeof c->hash);
}

char *svi_hash_text(const uint8_t hash[16], char out[SVI_HASH_TEXT]) {
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
    return out;
}

/* ---- writing */

struct writer {
    int fd, error; /* error: errno of the first failure */
    size_t piece;
    size_t unsynced;
    int64_t size;          /* written */
    uint64_t check;        /* of the object before */
    struct svi_bytes head; /* what an object has beside its body */
};

static void write_bytes(struct writer *w, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    while (size > 0 && !w->error) {
        size_t n = size < PIECE - w->unsynced ? size : PIECE - w->unsynced;
        w->error = svi_write_all(w->fd, at, n);
        w->unsynced += n;
        w->size += (int64_t)n;
        at += n;
        size -= n;
        if (w->unsynced == PIECE && !w->error)
            w->error = svi_write_back(w->fd);
        w->unsynced %= PIECE;
    }
}

/* Writes `head` and a check of it. */
static svs_code write_sealed(struct writer *w, struct svi_pack *p) {
    w->check = svi_seal(p, 0, w->check);
    svs_code code = svi_pack_end(p);
    if (code == SVS_OK)
        write_bytes(w, w->head.data, w->head.size);
    w->head.size = 0;
    return code;
}

static void pack_bytes(struct svi_pack *p, const char *key, struct svi_bytes b) {
    svi_pack_text(p, key);
    msgpack_pack_str_with_body(&p->packer, b.size ? (const void *)b.data : "", b.size);
}

static void pack_text(struct svi_pack *p, const char *key, const char *text) {
    svi_pack_text(p, key);
    svi_pack_text(p, text);
}

static void pack_uint(struct svi_pack *p, const char *key, uint64_t u) {
    svi_pack_text(p, key);
    svi_pack_uint(p, u);
}

/* An empty section has one too. */
static uint64_t pieces(const struct svi_section *s, size_t piece) {
    return s->size ? (s->size - 1) / piece + 1 : 1;
}

static svs_code write_header(struct writer *w, const struct svi_checkpoint *c) {
    struct svi_pack p;
    uint64_t objects = 0;
    for (int i = 0; i < c->sections; i++)
        objects += pieces(&c->section[i], w->piece);
    svi_pack_begin(&p, &w->head);
    svi_pack_map(&p, SVI_CHECKPOINT_PAIRS);
    pack_text(&p, "format", SVI_CHECKPOINT_FORMAT);
    pack_uint(&p, "v", SVI_CHECKPOINT_VERSION);
    pack_text(&p, "program", c->program);
    pack_text(&p, "isa", c->isa);
    pack_text(&p, "stream", c->stream);
    pack_uint(&p, "epoch", c->epoch);
    pack_uint(&p, "number", c->position.number);
    pack_uint(&p, "segment", c->position.segment);
    pack_uint(&p, "offset", c->position.offset);
    pack_uint(&p, "chain", c->position.chain);
    pack_uint(&p, "secret", c->position.secret);
    pack_bytes(&p, "settings", c->settings);
    pack_uint(&p, "sections", objects);
    svi_pack_text(&p, "check");
    return write_sealed(w, &p);
}

/* The body is written from where it is, so its check is made of two pieces. */
static svs_code write_piece(struct writer *w, const struct svi_section *s, const uint8_t *body, size_t size) {
    struct svi_pack p;
    XXH3_state_t state;
    uint8_t check[SVI_CHECK_SIZE];
    svi_pack_begin(&p, &w->head);
    svi_pack_array(&p, SVI_SECTION_ITEMS);
    svi_pack_text(&p, s->name);
    svi_pack_bool(&p, s->hashed);
    msgpack_pack_bin(&p.packer, size);
    if (svi_pack_end(&p) != SVS_OK)
        return SVS_NO_MEMORY;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, w->check);
    XXH3_64bits_update(&state, w->head.data, w->head.size);
    if (size > 0)
        XXH3_64bits_update(&state, body, size);
    w->check = XXH3_64bits_digest(&state);
    svi_put_word(check, SVI_LEAD_UINT64, w->check);
    write_bytes(w, w->head.data, w->head.size);
    write_bytes(w, body, size);
    write_bytes(w, check, sizeof check);
    w->head.size = 0;
    return SVS_OK;
}

static svs_code write_section(struct writer *w, const struct svi_checkpoint *c, const struct svi_section *s) {
    svs_code code = SVS_OK;
    size_t done = 0;
    do {
        const size_t left = s->size - done, size = left < w->piece ? left : w->piece;
        code = write_piece(w, s, size ? c->bodies.data + s->offset + done : NULL, size);
        done += size;
    } while (code == SVS_OK && done < s->size);
    return code;
}

static svs_code write_end(struct writer *w, const struct svi_checkpoint *c) {
    struct svi_pack p;
    svi_pack_begin(&p, &w->head);
    svi_pack_array(&p, SVI_END_ITEMS);
    svi_pack_text(&p, SVI_END);
    svi_pack_bin(&p, c->hash, sizeof c->hash);
    return write_sealed(w, &p);
}

static svs_code write_content(struct writer *w, const struct svi_checkpoint *c) {
    svs_code code = write_header(w, c);
    for (int i = 0; i < c->sections && code == SVS_OK; i++)
        code = write_section(w, c, &c->section[i]);
    return code == SVS_OK ? write_end(w, c) : code;
}

/* Writes and syncs NAME.tmp. */
static svs_code write_unfinished(const struct svi_folder *f, struct writer *w, const char *name,
                                 const struct svi_checkpoint *c, svs_error *err) {
    w->fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    w->error = w->fd < 0 ? errno : 0;
    svs_code code = w->error ? SVS_OK : write_content(w, c);
    if (code == SVS_OK && !w->error)
        w->error = svi_sync_file(w->fd);
    if (w->fd >= 0)
        close(w->fd);
    if (code != SVS_OK)
        return svi_fail_memory(err, "the header of a checkpoint");
    if (w->error)
        return svi_no_room(w->error) ? svi_fail_full(err, f, name, c->bodies.size, w->error)
                                     : svi_fail_io(err, f, name, "written", w->error);
    return SVS_OK;
}

/* What is written must be taken when it is read. */
static svs_code check_sizes(const struct svi_checkpoint *c, size_t piece, svs_error *err) {
    uint64_t objects = 0, bytes = c->settings.size + ((uint64_t)1 << 20); /* all else is below */
    for (int i = 0; i < c->sections; i++) {
        objects += pieces(&c->section[i], piece);
        bytes += c->section[i].size;
    }
    if (objects <= SVI_OBJECTS_MAX && bytes <= SVI_CHECKPOINT_MAX)
        return SVS_OK;
    return svi_fail(err, SVS_TOO_LARGE,
                    "the state has %llu bytes, more than a checkpoint takes: make the window smaller",
                    (unsigned long long)bytes);
}

svs_code svi_checkpoint_write(const struct svi_folder *f, struct svi_checkpoint *c, int64_t *size,
                              svs_error *err) {
    return svi_checkpoint_write_pieces(f, c, SVI_SECTION_PIECE, size, err);
}

svs_code svi_checkpoint_write_pieces(const struct svi_folder *f, struct svi_checkpoint *c, size_t piece,
                                     int64_t *size, svs_error *err) {
    char name[SVI_FILE_NAME], unfinished[SVI_FILE_NAME + 4];
    struct writer w = {.fd = -1, .piece = piece};
    if (check_sizes(c, piece, err) != SVS_OK)
        return SVS_TOO_LARGE;
    svi_folder_name(name, SVI_CHECKPOINT, c->position.number);
    snprintf(unfinished, sizeof unfinished, "%s" SVI_UNFINISHED, name);
    svi_checkpoint_hash(c);
    svs_code code = write_unfinished(f, &w, unfinished, c, err);
    svi_bytes_clear(&w.head);
    if (code == SVS_OK && renameat(f->fd, unfinished, f->fd, name) != 0)
        code = svi_no_room(errno) ? svi_fail_full(err, f, name, 0, errno)
                                  : svi_fail_io(err, f, unfinished, "renamed", errno);
    if (code != SVS_OK)
        (void)unlinkat(f->fd, unfinished, 0);
    else
        code = svi_folder_sync(f, err);
    if (code == SVS_OK && size)
        *size = w.size;
    return code;
}
