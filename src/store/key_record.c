#include "store/key_record.h"

#include <math.h>
#include <endian.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "wire/archive_file.h"

#define LENGTH_SIZE 4
#define CHECK_SIZE  8

/* The order of the fields is the format: the packed form has no names. */
static void record_archive_figures(struct svi_archive *a, struct svi_key_figures *f) {
    int alerts = f->alerts, open = f->open;
    svi_archive_int64(a, "rows", &f->rows, 0, INT64_MAX / 4);
    svi_archive_int64(a, "labelled", &f->labelled, 0, INT64_MAX / 4);
    svi_archive_int64(a, "refused", &f->refused, 0, INT64_MAX / 4);
    svi_archive_int64(a, "judged", &f->judged, 0, INT64_MAX / 4);
    svi_archive_int64(a, "right", &f->right, 0, INT64_MAX / 4);
    svi_archive_double(a, "squares", &f->squares);
    svi_archive_double(a, "quality", &f->quality);
    svi_archive_double(a, "worse", &f->worse);
    svi_archive_int(a, "alerts", &alerts, 0, INT32_MAX);
    svi_archive_int(a, "open", &open, 0, INT32_MAX);
    svi_archive_double(a, "deadline", &f->deadline);
    svi_archive_double(a, "quiet", &f->quiet);
    svi_archive_check(a, !isnan(f->deadline) && !isnan(f->quiet), "a time is not a number");
    svi_archive_double(a, "found", &f->finds.found);
    svi_archive_double(a, "found in days", &f->finds.days);
    svi_archive_int64(a, "finds", &f->finds.count, 0, INT64_MAX / 4);
    f->alerts = alerts;
    f->open = open;
}

/* The head of a record. Values whose C type has no archive function pass through a variable of one that has,
 * in both directions: when saving, the assignments back change nothing. */
static void record_archive(struct svi_archive *a, struct svi_key_record *r) {
    svi_archive_text(a, "name", r->name, sizeof r->name);
    r->head.length = (uint8_t)strlen(r->name);
    svi_archive_uint64(a, "number", &r->head.number);
    svi_archive_uint64(a, "owner", &r->head.owner);
    svi_archive_int64(a, "begun", &r->head.begun, 0, INT64_MAX / 4);
    svi_archive_uint64(a, "note", &r->head.note);
    int64_t rests = r->head.rests;
    svi_archive_int64(a, "rests", &rests, 0, UINT32_MAX);
    r->head.rests = (uint32_t)rests;
    svi_archive_uint64(a, "again", &r->head.again);
    svi_archive_double(a, "heard", &r->last_arrival);
    svi_archive_uint64(a, "reported", &r->head.published);
    svi_archive_uint64(a, "turn", &r->head.turn);
    record_archive_figures(a, &r->last);
    svi_archive_bytes(a, "hash", r->hash, sizeof r->hash);
    svi_archive_bool(a, "gone", &r->removed);
    int64_t common = (int64_t)r->common_size;
    svi_archive_int64(a, "common", &common, 0, SVI_KEY_RECORD_MAX / 2);
    r->common_size = (size_t)common;
    svi_archive_check(a, r->name[0] || r->removed, "a key has no name");
}

svs_code svi_key_record_append(struct svi_bytes *out, const struct svi_key_record *r, svs_error *err) {
    struct svi_archive_out to;
    struct svi_key_record head = *r;
    const size_t begin = out->size; /* the record is removed from here on failure */
    svs_error local;
    err = err ? err : &local;
    /* The length is not known before the head is packed: four zeros hold its place. */
    svs_code code = svi_bytes_append(out, "\0\0\0", LENGTH_SIZE);
    svi_packed_out_begin(&to, out, "key", err);
    if (code == SVS_OK)
        record_archive(&to.archive, &head);
    if (code == SVS_OK)
        code = err->code;
    if (code == SVS_OK && r->size > SVI_KEY_RECORD_MAX / 2)
        code = svi_fail(err, SVS_TOO_LARGE, "the state of key %s has %zu bytes", r->name, r->size);
    if (code == SVS_OK)
        code = svi_bytes_reserve(out, r->common_size + r->size + CHECK_SIZE);
    if (code != SVS_OK) {
        out->size = begin;
        return code == SVS_NO_MEMORY ? svi_fail_memory(err, "the record of a key") : code;
    }
    /* Reserved above: the appends below cannot fail. */
    if (r->common_size > 0)
        svi_bytes_append(out, r->common, r->common_size);
    if (r->size > 0)
        svi_bytes_append(out, r->state, r->size);
    const uint32_t length = htole32((uint32_t)(out->size - begin + CHECK_SIZE));
    memcpy(out->data + begin, &length, sizeof length); /* before the check, which covers it */
    const uint64_t check = htole64(XXH3_64bits(out->data + begin, out->size - begin));
    return svi_bytes_append(out, &check, sizeof check);
}

svs_code svi_key_record_read(const uint8_t *bytes, size_t size, struct svi_key_record *r, size_t *length,
                             svs_error *err) {
    struct svi_archive_in in;
    uint32_t stored = 0;
    uint64_t check;
    if (size >= LENGTH_SIZE)
        memcpy(&stored, bytes, sizeof stored);
    *length = le32toh(stored);
    /* The length is the only part used before the check: out of range it must not lead outside of `bytes`. */
    if (*length < LENGTH_SIZE + CHECK_SIZE || *length > size || *length > SVI_KEY_RECORD_MAX)
        return svi_fail(err, SVS_DAMAGED, "the record of a key is truncated");
    /* The check before the content: what follows reads bytes that were written as they are. */
    const size_t body = *length - CHECK_SIZE;
    memcpy(&check, bytes + body, sizeof check);
    if (le64toh(check) != XXH3_64bits(bytes, body))
        return svi_fail(err, SVS_DAMAGED, "the checksum of the record of a key is wrong");
    *r = (struct svi_key_record){0};
    svi_packed_in_begin(&in, bytes + LENGTH_SIZE, body - LENGTH_SIZE, "key", err);
    record_archive(&in.archive, r);
    if (err->code != SVS_OK)
        return err->code;
    if (r->common_size > (size_t)(in.end - in.at))
        return svi_fail(err, SVS_DAMAGED, "the record of a key is truncated");
    /* No svi_archive_in_end: the bytes after the head are common and state, not unknown fields. */
    r->common = in.at;
    r->state = in.at + r->common_size;
    r->size = (size_t)(in.end - r->state);
    return SVS_OK;
}
