/* Checkpoint files: the shared parts first, then writing, then reading.
 *
 * A file gets its final name only when it is complete and on disk (NAME.tmp, fsync, rename, fsync of the
 * directory), so a crash leaves the old checkpoints and perhaps a NAME.tmp, which the next start removes. The
 * check of each object is seeded with the one before, and the end holds the hash of the state: a reader
 * accepts a file whole or not at all.
 *
 * A worker writes in the background while the stream runs. Journal syncs wait for everything that the file
 * system has queued, so the file is flushed in pieces (WRITE_PIECE) as it grows. Nothing is copied: the body
 * of a section is written in place, and its check is updated with head and body in turn. Reading parses one
 * object at a time (parse_object) and appends the bodies to one buffer, allocated once. */
#define XXH_STATIC_LINKING_ONLY /* hash states live on the stack: all memory goes through base/alloc.h */
#include "store/checkpoint_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "store/checksum.h"
#include "store/io.h"
#include "store/read_buffer.h"

#define FORMAT        "svmstream-checkpoint"
#define HEADER_PAIRS  14
#define SECTION_ITEMS 4
#define END           "end"
#define END_ITEMS     3

#define SECTION_PIECE ((size_t)1 << 31) /* bytes of a section in one object: lengths have 32 bits */
#define WRITE_PIECE   ((size_t)1 << 18) /* bytes queued in the file system before they are flushed */

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

bool svi_archive_block(struct svi_archive *a, const char *size_name, const char *name, struct svi_bytes *b,
                       int64_t max_size, const char *truncated, const char *no_memory) {
    int64_t size = (int64_t)b->size;
    svi_archive_int64(a, size_name, &size, 0, max_size);
    if (svi_archive_loading(a))
        b->size = 0;
    /* The size is compared with the bytes that remain before it is reserved: a damaged size must not make us
     * allocate gigabytes. */
    if (svi_archive_loading(a) && size > 0 && svi_archive_ok(a) &&
        svi_archive_check(a, size <= svi_archive_left(a), truncated)) {
        if (svi_bytes_reserve(b, (size_t)size + 1) != SVS_OK)
            svi_archive_fail(a, SVS_NO_MEMORY, no_memory);
        else
            b->data[b->size = (size_t)size] = '\0';
    }
    svi_archive_bytes(a, name, b->data, (int64_t)b->size);
    return svi_archive_ok(a);
}

void svi_checkpoint_hash(struct svi_checkpoint *c) {
    XXH3_state_t state;
    XXH128_canonical_t hash;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (int i = 0; i < c->sections; i++) {
        const struct svi_section *s = &c->section[i];
        /* Name and size delimit the bodies: moving bytes from one section to the next changes the hash. */
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
    struct svi_bytes *to;  /* in memory instead of fd; NULL: a file */
    int fd, error;         /* error: errno of the first failure */
    size_t piece;          /* largest body of one object, bytes */
    size_t unsynced;       /* bytes written since the last flush, below WRITE_PIECE */
    uint64_t objects;      /* of all sections */
    int64_t size;          /* bytes written */
    uint64_t check;        /* of the previous object: the seed of the next */
    struct svi_bytes head; /* the bytes of an object before its body */
};

/* After an error nothing more is written; write_unfinished reports it once, at the end. */
static void write_bytes(struct writer *w, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    if (w->to) {
        w->error = w->error ? w->error : svi_bytes_append(w->to, bytes, size) == SVS_OK ? 0 : ENOMEM;
        return;
    }
    /* Each write ends at the next multiple of WRITE_PIECE, which is then flushed: the amount of dirty data
     * that a sync of the journal may have to wait for stays bounded. */
    while (size > 0 && !w->error) {
        size_t n = size < WRITE_PIECE - w->unsynced ? size : WRITE_PIECE - w->unsynced;
        w->error = svi_write_all(w->fd, at, n);
        w->unsynced += n;
        w->size += (int64_t)n;
        at += n;
        size -= n;
        if (w->unsynced == WRITE_PIECE && !w->error)
            w->error = svi_write_back(w->fd);
        w->unsynced %= WRITE_PIECE;
    }
}

/* Writes `head`, an object without its last item, and its check, which continues the chain. */
static svs_code write_checked(struct writer *w, struct svi_pack *p) {
    w->check = svi_check_append(p, 0, w->check);
    svs_code code = svi_pack_end(p);
    if (code == SVS_OK)
        write_bytes(w, w->head.data, w->head.size);
    w->head.size = 0;
    return code;
}

static svs_code write_header(struct writer *w, const struct svi_checkpoint *c) {
    struct svi_pack p;
    svi_pack_begin(&p, &w->head);
    svi_pack_map(&p, HEADER_PAIRS);
    svi_put_text(&p, "format", FORMAT);
    svi_put_uint(&p, "v", SVI_STATE_LAYOUT);
    svi_put_text(&p, "program", c->program);
    svi_put_text(&p, "isa", c->isa);
    svi_put_text(&p, "stream", c->stream);
    svi_put_uint(&p, "epoch", c->epoch);
    svi_put_uint(&p, "number", c->position.number);
    svi_put_uint(&p, "segment", c->position.segment);
    svi_put_uint(&p, "offset", c->position.offset);
    svi_put_uint(&p, "chain", c->position.chain);
    svi_put_uint(&p, "secret", c->position.secret);
    svi_pack_key(&p, "settings");
    msgpack_pack_str_with_body(&p.packer, c->settings.size ? (const void *)c->settings.data : "",
                               c->settings.size);
    svi_put_uint(&p, "sections", w->objects);
    svi_pack_key(&p, "check");
    return write_checked(w, &p);
}

/* Writes one object of a section. The head is packed, the body is not: msgpack's bin header comes last in the
 * head, so that the body can be written in place and hashed in two updates. */
static svs_code write_piece(struct writer *w, const struct svi_section *s, const uint8_t *body, size_t size) {
    struct svi_pack p;
    XXH3_state_t state;
    uint8_t check[SVI_CHECK_SIZE];
    svi_pack_begin(&p, &w->head);
    svi_pack_array(&p, SECTION_ITEMS);
    svi_pack_text(&p, s->name);
    svi_pack_bool(&p, s->hashed);
    msgpack_pack_bin(&p.packer, size);
    if (svi_pack_end(&p) != SVS_OK)
        return SVS_NO_MEMORY;
    /* The streamed digest equals XXH3_64bits_withSeed over the contiguous object, which the reader computes.
     */
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, w->check);
    XXH3_64bits_update(&state, w->head.data, w->head.size);
    if (size > 0)
        XXH3_64bits_update(&state, body, size);
    w->check = XXH3_64bits_digest(&state);
    svi_pack_store_word(check, SVI_LEAD_UINT64, w->check);
    write_bytes(w, w->head.data, w->head.size);
    write_bytes(w, body, size);
    write_bytes(w, check, sizeof check);
    w->head.size = 0;
    return SVS_OK;
}

static svs_code write_section(struct writer *w, const struct svi_checkpoint *c, const struct svi_section *s) {
    svs_code code = SVS_OK;
    size_t done = 0;
    do { /* at least once: an empty section is one object with an empty body, as check_sizes counts it */
        const size_t left = s->size - done, size = left < w->piece ? left : w->piece;
        code = write_piece(w, s, size ? c->bodies.data + s->offset + done : NULL, size);
        done += size;
    } while (code == SVS_OK && done < s->size);
    return code;
}

static svs_code write_end(struct writer *w, const struct svi_checkpoint *c) {
    struct svi_pack p;
    svi_pack_begin(&p, &w->head);
    svi_pack_array(&p, END_ITEMS);
    svi_pack_text(&p, END);
    svi_pack_bin(&p, c->hash, sizeof c->hash);
    return write_checked(w, &p);
}

static svs_code write_content(struct writer *w, const struct svi_checkpoint *c) {
    SVI_TRY(write_header(w, c));
    for (int i = 0; i < c->sections; i++)
        SVI_TRY(write_section(w, c, &c->section[i]));
    return write_end(w, c);
}

/* Writes and syncs NAME.tmp. `code` holds failures of memory, w->error those of the disk. */
static svs_code write_unfinished(const struct svi_state_dir *dir, struct writer *w, const char *name,
                                 const struct svi_checkpoint *c, svs_error *err) {
    w->fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    w->error = w->fd < 0 ? errno : 0;
    svs_code code = w->error ? SVS_OK : write_content(w, c);
    if (code == SVS_OK && !w->error)
        w->error = svi_sync_file(w->fd);
    if (w->fd >= 0)
        close(w->fd);
    if (code != SVS_OK)
        return svi_fail_memory(err, "the header of a checkpoint");
    if (w->error)
        return svi_fail_write(err, dir->path, name, c->bodies.size, "written", w->error);
    return SVS_OK;
}

/* Counts the objects for the header and enforces the reader's limits: a file that is written must be
 * readable. */
static svs_code check_sizes(struct writer *w, const struct svi_checkpoint *c, svs_error *err) {
    uint64_t bytes = c->settings.size + ((uint64_t)1 << 20); /* header, heads and checks stay below 1 MiB */
    for (int i = 0; i < c->sections; i++) {
        const size_t size = c->section[i].size;
        w->objects += size ? (size - 1) / w->piece + 1 : 1;
        bytes += size;
    }
    if (w->objects <= SVI_OBJECTS_MAX && bytes <= SVI_CHECKPOINT_MAX)
        return SVS_OK;
    return svi_fail(err, SVS_TOO_LARGE,
                    "the state has %llu bytes, more than a checkpoint holds: reduce the window",
                    (unsigned long long)bytes);
}

svs_code svi_checkpoint_encode(struct svi_checkpoint *c, struct svi_bytes *out, svs_error *err) {
    struct writer w = {.to = out, .fd = -1, .piece = SECTION_PIECE};
    const size_t before = out->size;
    SVI_TRY(check_sizes(&w, c, err));
    svi_checkpoint_hash(c);
    svs_code code = svi_bytes_reserve(out, c->bodies.size + c->settings.size);
    if (code == SVS_OK)
        code = write_content(&w, c);
    svi_bytes_clear(&w.head);
    if (code == SVS_OK && !w.error)
        return SVS_OK;
    out->size = before;
    return svi_fail_memory(err, "the bytes of a checkpoint");
}

svs_code svi_checkpoint_write(const struct svi_state_dir *dir, struct svi_checkpoint *c, int64_t *size,
                              svs_error *err) {
    return svi_checkpoint_write_pieces(dir, c, SECTION_PIECE, size, err);
}

svs_code svi_checkpoint_write_pieces(const struct svi_state_dir *dir, struct svi_checkpoint *c, size_t piece,
                                     int64_t *size, svs_error *err) {
    char name[SVI_FILE_NAME], unfinished[SVI_FILE_NAME + 4];
    struct writer w = {.fd = -1, .piece = piece};
    if (check_sizes(&w, c, err) != SVS_OK)
        return SVS_TOO_LARGE;
    svi_state_dir_name(name, SVI_CHECKPOINT, c->position.number);
    snprintf(unfinished, sizeof unfinished, "%s" SVI_UNFINISHED, name);
    svi_checkpoint_hash(c);
    svs_code code = write_unfinished(dir, &w, unfinished, c, err);
    svi_bytes_clear(&w.head);
    /* The content is on disk before the rename: the name never refers to a partial file. The directory is
     * synced after it: only then may the caller trim the journal that this checkpoint replaces. */
    if (code == SVS_OK && renameat(dir->fd, unfinished, dir->fd, name) != 0)
        code = svi_no_space(errno) ? svi_fail_full(err, dir->path, name, 0, errno)
                                   : svi_fail_io(err, dir->path, unfinished, "renamed", errno);
    if (code != SVS_OK)
        (void)unlinkat(dir->fd, unfinished, 0);
    else
        code = svi_state_dir_sync(dir, err);
    if (code == SVS_OK && size)
        *size = w.size;
    return code;
}

/* ---- reading */

struct parser {
    const uint8_t *bytes, *at, *end;
    const uint8_t *next; /* end of the object that parse_object has verified */
    const char *dir;     /* path; NULL: in memory */
    const char *name;
    uint64_t check; /* of the previous object */
    int objects;    /* of sections, not parsed yet */
    svs_error *err;
};

static svs_code fail_damaged(const struct parser *p, const char *what) {
    return svi_fail_file(p->err, SVS_DAMAGED, p->dir, p->name, "is damaged at byte %llu: %s",
                         (unsigned long long)(p->at - p->bytes), what);
}

struct header_parts {
    int64_t sections;
    const uint8_t *settings;
};

#define CHECKPOINT_POSITION(member)                                                                          \
    { #member, SVI_FIELD_UINT, offsetof(struct svi_checkpoint, position.member), 0, 0, NULL, false }

static svs_code parse_header(struct parser *p, struct svi_checkpoint *c) {
    static const struct svi_field fields[] = {SVI_FIELD_STRING(struct svi_checkpoint, program),
                                              SVI_FIELD_STRING(struct svi_checkpoint, isa),
                                              SVI_FIELD_STRING(struct svi_checkpoint, stream),
                                              SVI_FIELD(struct svi_checkpoint, epoch, UINT, 0, 0),
                                              CHECKPOINT_POSITION(number),
                                              CHECKPOINT_POSITION(segment),
                                              CHECKPOINT_POSITION(offset),
                                              CHECKPOINT_POSITION(chain),
                                              CHECKPOINT_POSITION(secret)};
    static const struct svi_field more[] = {
        SVI_FIELD(struct header_parts, sections, INTEGER, 0, SVI_OBJECTS_MAX),
        SVI_FIELD(struct header_parts, settings, ANY, 0, 0)};
    struct svi_header h;
    struct header_parts parts;
    struct svi_item settings;
    if (!svi_header_open(&h, p->at, (size_t)(p->end - p->at), SVI_FIELDS(fields), c))
        return fail_damaged(p, "the header is missing");
    /* Layout before completeness: a file of another layout may lack fields and is not damaged. */
    enum svi_header_state state = svi_header_check(&h, FORMAT, 0, &p->check);
    if (state == SVI_HEADER_LAYOUT)
        return svi_fail_layout(p->err, p->dir, p->name, h.v);
    if (state == SVI_HEADER_BAD)
        return fail_damaged(p, "the checksum of the header is wrong");
    if (state != SVI_HEADER_SOUND ||
        svi_fields_read("header", SVI_FIELDS(more), p->at, p->at + h.size, &parts, NULL) != SVS_OK)
        return fail_damaged(p, "the header is incomplete");
    /* The settings are read in place: they have no fixed capacity, unlike the other texts of the header. */
    svi_item_read(parts.settings, &settings);
    if (settings.type != SVI_STRING)
        return fail_damaged(p, "the header is incomplete");
    p->objects = (int)parts.sections;
    if (svi_bytes_append(&c->settings, settings.body, settings.length) != SVS_OK ||
        svi_bytes_append(&c->settings, "", 1) != SVS_OK)
        return svi_fail_memory(p->err, "the settings of a checkpoint");
    c->settings.size--; /* the NUL terminates the text, but is not part of it */
    p->at += h.size;
    return SVS_OK;
}

uint64_t svi_checkpoint_layout(const uint8_t *bytes, size_t size) {
    struct svi_header h;
    uint64_t check;
    return svi_header_open(&h, bytes, size, NULL, 0, NULL) &&
                   svi_header_check(&h, FORMAT, 0, &check) == SVI_HEADER_LAYOUT
               ? h.v
               : SVI_STATE_LAYOUT;
}

/* Verifies the object at p->at, an array of `items` items of which the last is the check, and reads its
 * items. p->at moves only when the caller has accepted the content, so that errors name the object's byte. */
static svs_code parse_object(struct parser *p, struct svi_item *item, uint32_t items) {
    const uint8_t *end = p->at;
    struct svi_item array;
    if (svi_walk(&end, p->end, 1) != SVS_OK)
        return fail_damaged(p, "it ends too early, or is not msgpack");
    const uint8_t *at = svi_item_read(p->at, &array);
    /* Depth 1 in the walk and the exact number of items bound the reads below. */
    if (array.type != SVI_ARRAY || array.length != items || end - p->at <= SVI_CHECK_SIZE)
        return fail_damaged(p, "a section is invalid");
    for (uint32_t i = 0; i < items; i++)
        at = svi_item_read(at, &item[i]);
    const uint8_t *check = end - SVI_CHECK_SIZE;
    uint64_t sum = XXH3_64bits_withSeed(p->at, (size_t)(check - p->at), p->check);
    if (!svi_check_is(check, sum))
        return fail_damaged(p, "the checksum of the section is wrong");
    p->check = sum;
    p->next = end;
    return SVS_OK;
}

/* The section that this object belongs to: the last one (its next piece) or a new one; NULL: the name is a
 * duplicate, or there are too many sections. Pieces must be consecutive, because bodies are concatenated. */
static struct svi_section *place_section(struct svi_checkpoint *c, const struct svi_section *read) {
    struct svi_section *last = c->sections ? &c->section[c->sections - 1] : NULL;
    if (last && strcmp(last->name, read->name) == 0 && last->hashed == read->hashed)
        return last;
    if (c->sections == SVI_SECTIONS_MAX || svi_checkpoint_find(c, read->name))
        return NULL;
    c->section[c->sections] = *read;
    return &c->section[c->sections++];
}

static svs_code parse_section(struct parser *p, struct svi_checkpoint *c) {
    struct svi_item item[SECTION_ITEMS];
    struct svi_section read = {.offset = c->bodies.size}, *s;
    SVI_TRY(parse_object(p, item, SECTION_ITEMS));
    /* A right check only proves that the file is as it was written: types are not taken for granted. */
    if (item[0].type != SVI_STRING || item[0].length == 0 || item[0].length >= sizeof read.name ||
        memchr(item[0].body, '\0', item[0].length) || item[1].type != SVI_BOOL || item[2].type != SVI_BIN)
        return fail_damaged(p, "the section has the wrong form");
    read.hashed = item[1].i != 0;
    memcpy(read.name, item[0].body, item[0].length);
    if (!(s = place_section(c, &read)))
        return fail_damaged(p, "the section is a duplicate, or there are too many");
    if (svi_bytes_append(&c->bodies, item[2].body, item[2].length) != SVS_OK)
        return svi_fail_memory(p->err, "the sections of a checkpoint");
    s->size += item[2].length;
    p->at = p->next;
    return SVS_OK;
}

static svs_code parse_end(struct parser *p, struct svi_checkpoint *c) {
    struct svi_item item[END_ITEMS];
    SVI_TRY(parse_object(p, item, END_ITEMS));
    if (!svi_item_is(&item[0], END) || item[1].type != SVI_BIN || item[1].length != sizeof c->hash)
        return fail_damaged(p, "the end has the wrong form");
    /* The chained checks cover the bytes of the file; the hash covers the sections as they were assembled. */
    svi_checkpoint_hash(c);
    if (memcmp(c->hash, item[1].body, sizeof c->hash) != 0)
        return fail_damaged(p, "the hash of the state is wrong");
    p->at = p->next;
    return p->at == p->end ? SVS_OK : fail_damaged(p, "bytes follow the end");
}

/* Empties the checkpoint, but keeps the capacity of its buffers. */
static void empty_checkpoint(struct svi_checkpoint *c) {
    struct svi_bytes settings = c->settings, bodies = c->bodies;
    settings.size = bodies.size = 0;
    *c = (struct svi_checkpoint){.settings = settings, .bodies = bodies};
}

svs_code svi_checkpoint_parse(const uint8_t *bytes, size_t size, const char *dir, const char *name,
                              struct svi_checkpoint *c, svs_error *err) {
    struct parser p = {
        .bytes = bytes, .at = bytes, .end = bytes + size, .dir = dir, .name = name, .err = err};
    empty_checkpoint(c);
    /* The bodies are smaller than the file, so one allocation of its size suffices: growing would copy a
     * large state several times and hold two copies of it at its peak. */
    void *grown = size > c->bodies.capacity ? svi_realloc(c->bodies.data, 0, size) : c->bodies.data;
    if (size > 0 && !grown)
        return svi_fail_memory(err, "the sections of a checkpoint");
    c->bodies.data = grown;
    c->bodies.capacity = size > c->bodies.capacity ? size : c->bodies.capacity;
    svs_code code = parse_header(&p, c);
    while (code == SVS_OK && p.objects-- > 0)
        code = parse_section(&p, c);
    if (code == SVS_OK)
        code = parse_end(&p, c);
    if (code != SVS_OK)
        empty_checkpoint(c);
    return code;
}

svs_code svi_checkpoint_read(const struct svi_state_dir *dir, uint64_t number, struct svi_checkpoint *c,
                             svs_error *err) {
    const uint8_t *bytes = (const uint8_t *)""; /* an empty file has no buffer, and is parsed as damaged */
    struct svi_read_buffer b = {.fd = -1};
    char name[SVI_FILE_NAME];
    svs_code code = svi_read_buffer_open(&b, dir, svi_state_dir_name(name, SVI_CHECKPOINT, number), err);
    if (code == SVS_OK && b.size > SVI_CHECKPOINT_MAX)
        code = svi_fail_file(err, SVS_DAMAGED, dir->path, name,
                             "has %llu bytes, more than a checkpoint holds", (unsigned long long)b.size);
    if (code == SVS_OK && b.size > 0)
        code = svi_read_buffer_at(&b, 0, (size_t)b.size, &bytes, err);
    if (code == SVS_OK)
        code = svi_checkpoint_parse(bytes, (size_t)b.size, dir->path, name, c, err);
    c->dir = dir;
    svi_read_buffer_clear(&b);
    /* Checkpoints are chosen and ordered by their names, so the name must state what the content is. */
    if (code == SVS_OK && c->position.number != number) {
        empty_checkpoint(c);
        code = svi_fail_file(err, SVS_DAMAGED, dir->path, name,
                             "holds the state after a different number of records");
    }
    return code;
}
