/* Converts JSON text into msgpack, in one pass over checked text.
 *
 * data/json_in.h checks the whole text first, so nothing here compares lengths, and a malformed message is
 * refused before a byte is written. Values are written in the order of the text. The head of a container
 * needs the number of its elements, which is known at its end (svi_pack_fill). Functions that convert a value
 * return the address after it.
 *
 * A flat row becomes a map with x in it: features are written to x in their order; the few columns with a
 * meaning (label, time, ...) are noted (struct flat_row) and written after x. Objects in a flat row stay maps
 * in x, whose names the decoder joins; the meaning of a column depends on the joined name.
 *
 * Reading order: convert_value, convert_sample, convert_flat, svi_json_message. */
#include "wire/json_message.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "data/cell.h"
#include "data/column_guess.h"
#include "data/json_in.h"
#include "data/number.h"
#include "base/time_text.h"
#include "wire/envelope.h"
#include "wire/pack.h"

#define SHORTEST_TIME 10 /* 2026-11-22 */
#define STRING_HEAD   5  /* bytes of the longest head of a string */
#define NOTED_MAX                                                                                            \
    8 /* noted columns of a row: there are five meanings, a sixth column repeats one and is refused */

struct conversion {
    struct svi_json_input *in;
    struct svi_pack pack;
    bool too_many; /* a batch has more than SVI_BATCH_MAX elements */
};

/* The columns of a flat row that are not features. */
struct flat_row {
    struct {
        enum svi_use use;
        const char *value;
    } noted[NOTED_MAX];
    int count;
};

static const char *past_blanks(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    return p;
}

/* ---- values */

/* Reserves `size` bytes and returns where to write them; NULL: no memory. The caller adds what it has written
 * to the size of `out`. */
static uint8_t *convert_reserve(struct conversion *c, size_t size) {
    struct svi_bytes *out = c->pack.out;
    c->pack.failed = c->pack.failed || svi_bytes_reserve(out, size) != SVS_OK;
    return c->pack.failed ? NULL : out->data + out->size;
}

/* Packs a double with its exact bits. svi_pack_real would turn NaN into nil, a missing value; NaN must be
 * refused by the decoder instead. */
static void convert_real(struct conversion *c, double r) {
    uint8_t *to = convert_reserve(c, 9);
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    if (to)
        c->pack.out->size += (size_t)(svi_pack_store_word(to, SVI_LEAD_DOUBLE, bits) - to);
}

static const char *convert_number(struct conversion *c, const char *value) {
    int64_t i = 0;
    double r = 0;
    const char *end = value + 1;
    while (*end >= '0' && *end <= '9')
        end++;
    const bool whole = *end != '.' && *end != 'e' && *end != 'E';
    /* -0 stays a double: an integer has no negative zero. */
    if (whole && svi_integer(value, &i) == end && (i != 0 || *value != '-')) {
        svi_pack_int(&c->pack, i);
        return end;
    }
    end = svi_number(value, &r);
    convert_real(c, r);
    return end;
}

/* Packs a string, given as its raw text between the quotes. Its length, and so the size of its head, is known
 * only after unescaping: it is unescaped after space for the longest head and then moved to its place. */
static void convert_string(struct conversion *c, struct svi_span raw) {
    struct svi_bytes *out = c->pack.out;
    struct svi_span text = raw;
    const size_t raw_size = (size_t)(raw.end - raw.at); /* unescaping never lengthens a string */
    uint8_t *to = convert_reserve(c, STRING_HEAD + raw_size);
    if (!to)
        return;
    svi_json_unescape(raw, (char *)to + STRING_HEAD, raw_size, &text);
    const size_t length = (size_t)(text.end - text.at);
    /* The head fits into the reserved space, so packing it moves no memory that `text` points to. */
    if (length < 32)
        out->data[out->size++] = (uint8_t)(0xa0 | length);
    else
        msgpack_pack_str(&c->pack.packer, length);
    memmove(out->data + out->size, text.at, length);
    out->size += length;
}

static const char *convert_container(struct conversion *c, const char *value, bool feature);

/* Converts a value of any type. `feature`: it is in x, where true and false are numbers. */
static const char *convert_value(struct conversion *c, const char *value, bool feature) {
    struct svi_span raw;
    const enum svi_json_type type = svi_json_type(value);
    switch (type) {
    case SVI_JSON_NUMBER:
        return convert_number(c, value);
    case SVI_JSON_STRING:
        value = svi_json_string_at(value, &raw);
        convert_string(c, raw);
        return value;
    case SVI_JSON_ARRAY:
    case SVI_JSON_OBJECT:
        return convert_container(c, value, feature && type == SVI_JSON_OBJECT);
    case SVI_JSON_NOT_FINITE:
        convert_real(c, *value == 'N' ? (double)NAN : *value == '-' ? -INFINITY : INFINITY);
        break;
    case SVI_JSON_NULL:
        svi_pack_nil(&c->pack);
        break;
    default:
        if (feature)
            svi_pack_int(&c->pack, type == SVI_JSON_TRUE);
        else
            svi_pack_bool(&c->pack, type == SVI_JSON_TRUE);
    }
    return svi_json_skip(value);
}

/* Does this string (in a flat row also: number) stand for a missing value? */
static bool is_missing_word(const struct conversion *c, const char *value, bool flat) {
    const struct svi_missing_words *missing = &c->in->missing;
    const enum svi_json_type type = svi_json_type(value);
    struct svi_span raw;
    if (type == SVI_JSON_NUMBER && flat && missing->numbers)
        return svi_cell_missing(missing, (struct svi_span){value, svi_json_skip(value)});
    if (type != SVI_JSON_STRING)
        return false;
    svi_json_string_at(value, &raw);
    return flat ? svi_cell_missing(missing, raw) : raw.at == raw.end;
}

/* Is the value the word None? A class may have this name, so for a label it is not missing. */
static bool is_none(const char *value) {
    struct svi_span raw;
    if (svi_json_type(value) != SVI_JSON_STRING)
        return false;
    svi_json_string_at(value, &raw);
    return svi_cell_none(raw);
}

/* Converts a value of a named column. NaN and some words are missing. In a column that the settings declare
 * as words, a number or bool becomes its text; in one declared as numbers, a string becomes its number. */
static const char *convert_feature(struct conversion *c, const char *value, enum svi_use use, bool flat) {
    const enum svi_json_type type = svi_json_type(value);
    const bool word = type == SVI_JSON_STRING;
    struct svi_span raw = {value, value};
    double number;
    if (word)
        svi_json_string_at(value, &raw);
    if (is_missing_word(c, value, flat) || (type == SVI_JSON_NOT_FINITE && *value == 'N'))
        svi_pack_nil(&c->pack);
    else if (use == SVI_USE_NUMBER && word && svi_cell_number(raw, &number))
        convert_real(c, number);
    else if (use == SVI_USE_WORD &&
             (type == SVI_JSON_NUMBER || type == SVI_JSON_TRUE || type == SVI_JSON_FALSE))
        convert_string(c, (struct svi_span){value, svi_json_skip(value)});
    else
        return convert_value(c, value, true);
    return svi_json_skip(value);
}

/* Recursion is bounded by SVI_JSON_DEPTH, which svi_json_message has checked. */
static const char *convert_container(struct conversion *c, const char *value, bool feature) {
    const bool object = *value == '{';
    const size_t at = svi_pack_hole(&c->pack);
    uint32_t count = 0;
    for (const char *p = svi_json_first(value); p; p = svi_json_next(value)) {
        struct svi_span key;
        if (object) {
            p = svi_json_key(p, &key);
            convert_string(c, key);
        }
        value = feature && object ? convert_feature(c, p, SVI_USE_OPEN, false) : convert_value(c, p, feature);
        count++;
    }
    svi_pack_fill(&c->pack, at, count, object);
    return past_blanks(count > 0 ? value : past_blanks(value + 1)) + 1;
}

/* ---- samples */

static void convert_missing(struct conversion *c) {
    svi_put_text(&c->pack, "missing", "mean");
}

/* Is the value ISO 8601 text? Without a zone it is UTC. It is read raw: a time contains no character that
 * would need an escape. */
static bool is_time_text(const char *value, double *seconds) {
    struct svi_span raw;
    if (svi_json_type(value) != SVI_JSON_STRING)
        return false;
    svi_json_string_at(value, &raw);
    const size_t length = (size_t)(raw.end - raw.at);
    return length >= SHORTEST_TIME && raw.at[4] == '-' && svi_time_of_text(raw.at, length, 0, seconds);
}

static bool is_key(struct svi_span key, enum svi_key which) {
    return svi_span_is(key, svi_key_name(which));
}

static const char *convert_row(struct conversion *c, const char *object);
static void convert_batch(struct conversion *c, const char *array);

/* `sample` of a request: one sample or a batch. */
static const char *convert_request_sample(struct conversion *c, const char *value) {
    if (*value == '{')
        return convert_row(c, value);
    convert_batch(c, value);
    return svi_json_skip(value);
}

static const char *convert_pair(struct conversion *c, struct svi_span key, const char *value) {
    const enum svi_json_type type = svi_json_type(value);
    double seconds;
    convert_string(c, key);
    if (is_key(key, SVI_KEY_X) && (type == SVI_JSON_ARRAY || type == SVI_JSON_OBJECT))
        return convert_container(c, value, true);
    if (svi_span_is(key, "sample") && (type == SVI_JSON_OBJECT || type == SVI_JSON_ARRAY))
        return convert_request_sample(c, value);
    if (!is_key(key, SVI_KEY_TS) || !is_time_text(value, &seconds))
        return convert_value(c, value, false);
    convert_real(c, seconds);
    return svi_json_skip(value);
}

/* An object with the keys of the wire. */
static const char *convert_sample(struct conversion *c, const char *object) {
    /* "missing" may follow x, so the pair is added only after all keys were seen. */
    const size_t at = svi_pack_hole(&c->pack);
    bool has_x = false, has_missing = false;
    uint32_t count = 0;
    const char *value = object;
    for (const char *p = svi_json_first(object); p; p = svi_json_next(value)) {
        struct svi_span key;
        p = svi_json_key(p, &key);
        has_x = has_x || is_key(key, SVI_KEY_X);
        has_missing = has_missing || is_key(key, SVI_KEY_MISSING);
        value = convert_pair(c, key, p);
        count++;
    }
    if (has_x && !has_missing)
        convert_missing(c);
    svi_pack_fill(&c->pack, at, count + (has_x && !has_missing), true);
    return past_blanks(value) + 1;
}

/* The use of a column of ISO 8601 text that the settings do not mention: the first one is the time. */
static enum svi_use use_of_time(struct svi_json_input *in, struct svi_span key) {
    const char *ts = in->columns.ts;
    const size_t length = (size_t)(key.end - key.at);
    if (in->time[0] || (ts && *ts) || length == 0 || length > SVS_NAME_MAX)
        return SVI_USE_NONE;
    memcpy(in->time, key.at, length);
    in->time[length] = '\0';
    return SVI_USE_TIME;
}

/* The rank of a column as the label, by its name (1 is the best); 0: it cannot be the label. Its value must
 * be a word, a bool or an integer. `name`: out, if the rank is not 0. */
static int flat_label_rank(const struct conversion *c, struct svi_span key, const char *value, char *name) {
    const enum svi_json_type type = svi_json_type(value);
    const size_t length = (size_t)(key.end - key.at);
    double number = 0, seconds;
    if (type == SVI_JSON_NUMBER)
        svi_number(value, &number);
    if (length == 0 || length > SVS_NAME_MAX || type == SVI_JSON_OBJECT || type == SVI_JSON_ARRAY ||
        type == SVI_JSON_NULL || type == SVI_JSON_NOT_FINITE || number != trunc(number) ||
        svi_use_of(&c->in->columns, key) != SVI_USE_OPEN || is_time_text(value, &seconds))
        return 0;
    memcpy(name, key.at, length);
    name[length] = '\0';
    return svi_label_rank(name);
}

/* Finds the label of flat rows by the names in the first one: the column of the best rank, if no other has
 * the same rank. Only the first row is searched, so that the meaning of columns does not change within a
 * stream. */
static void flat_find_label(struct conversion *c, const char *object) {
    struct svi_json_input *in = c->in;
    char name[SVS_NAME_MAX + 1];
    int best = 0;
    for (const char *p = svi_json_first(object); p;) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        const int rank = flat_label_rank(c, key, value, name);
        /* The settings know the label: a name must not compete with it. */
        if (svi_use_of(&in->columns, key) == SVI_USE_LABEL) {
            in->label[0] = '\0';
            return;
        }
        if (rank > 0 && (best == 0 || rank < best))
            memcpy(in->label, name, sizeof name);
        else if (rank > 0 && rank == best)
            in->label[0] = '\0';
        best = rank > 0 && (best == 0 || rank < best) ? rank : best;
        p = svi_json_next(svi_json_skip(value));
    }
}

/* Finds a column of the first row that is named like an identifier and is a feature, since no setting names
 * an id. The log reports it, since a later label would not find its row. */
static void flat_find_id(struct svi_json_input *in, const char *object) {
    for (const char *p = svi_json_first(object); p && !in->id[0];) {
        struct svi_span key;
        char name[SVS_NAME_MAX + 1];
        const char *value = svi_json_key(p, &key);
        const size_t length = (size_t)(key.end - key.at);
        if (length <= SVS_NAME_MAX && svi_use_of(&in->columns, key) == SVI_USE_OPEN) {
            memcpy(name, key.at, length);
            name[length] = '\0';
            if (svi_is_id_name(name))
                memcpy(in->id, name, length + 1);
        }
        p = svi_json_next(svi_json_skip(value));
    }
}

/* Searches the first flat row, whatever its columns are taken for. */
static void flat_look(struct conversion *c, const char *object) {
    struct svi_json_input *in = c->in;
    in->looked = true;
    if (!in->columns.label_required && !in->columns.unlabelled)
        flat_find_label(c, object);
    if (!in->columns.id || !in->columns.id[0])
        flat_find_id(in, object);
}

/* The use of a column: by the settings, by the label found in the first row, by the time found so far. */
static enum svi_use use_of_key(const struct conversion *c, struct svi_span key, const char *value) {
    const enum svi_use use = svi_use_of(&c->in->columns, key);
    double seconds;
    if (use != SVI_USE_OPEN)
        return use;
    if (c->in->label[0] && svi_span_is(key, c->in->label))
        return SVI_USE_LABEL;
    if (c->in->time[0] && svi_span_is(key, c->in->time))
        return SVI_USE_TIME;
    return is_time_text(value, &seconds) ? use_of_time(c->in, key) : SVI_USE_OPEN;
}

/* Converts a time to seconds since 1970, from text or from a count whose magnitude shows its unit. Any other
 * value is passed on, and refused when the sample is decoded. */
static void convert_time(struct conversion *c, const char *value) {
    enum svi_time_unit unit = SVI_TIME_UNKNOWN;
    double seconds = 0;
    const bool number = svi_json_type(value) == SVI_JSON_NUMBER;
    if (number)
        svi_number(value, &seconds);
    if (number && isfinite(seconds))
        convert_real(c, svi_time_of_number(seconds, &unit));
    else if (!number && is_time_text(value, &seconds))
        convert_real(c, seconds);
    else
        convert_value(c, value, false);
}

/* Writes the noted columns under their keys of the wire. Time, key and label may be missing; an id or a
 * weight may not, so a word for missing values is passed on there. */
static void convert_noted(struct conversion *c, const struct flat_row *row) {
    static const enum svi_key keys[] = {[SVI_USE_LABEL] = SVI_KEY_Y,
                                        [SVI_USE_ID] = SVI_KEY_ID,
                                        [SVI_USE_TIME] = SVI_KEY_TS,
                                        [SVI_USE_WEIGHT] = SVI_KEY_W,
                                        [SVI_USE_KEY] = SVI_KEY_KEY};
    for (int i = 0; i < row->count; i++) {
        const enum svi_use use = row->noted[i].use;
        const char *value = row->noted[i].value;
        svi_pack_text(&c->pack, svi_key_name(keys[use]));
        const bool may_miss =
            use == SVI_USE_TIME || use == SVI_USE_KEY || (use == SVI_USE_LABEL && !is_none(value));
        if (may_miss && is_missing_word(c, value, true))
            svi_pack_nil(&c->pack);
        else if (use == SVI_USE_TIME)
            convert_time(c, value);
        else
            convert_value(c, value, false);
    }
}

/* The joined name of a key in the object `outer` (NULL: in the row itself), in `joined` if necessary. at
 * NULL: the name is longer than any that the settings can mention. */
static struct svi_span flat_name(const struct svi_span *outer, struct svi_span key,
                                 char joined[SVS_NAME_MAX]) {
    if (!outer)
        return key;
    const size_t length = outer->at ? svi_join_names(outer->at, (size_t)(outer->end - outer->at), key.at,
                                                     (size_t)(key.end - key.at), joined, SVS_NAME_MAX)
                                    : 0;
    return length > 0 ? (struct svi_span){joined, joined + length} : (struct svi_span){NULL, NULL};
}

/* Writes the features of an object as a map and notes its other columns in `row`. `outer`: the joined name of
 * the object; NULL: it is the row itself. An object whose joined name the settings give no use stays nested.
 */
static const char *convert_columns(struct conversion *c, struct flat_row *row, const struct svi_span *outer,
                                   const char *object) {
    uint32_t features = 0;
    /* After the loop, value is the address after the last pair; of an empty object it is its end. */
    const size_t at = svi_pack_hole(&c->pack);
    const char *value = past_blanks(object + 1);
    for (const char *p = svi_json_first(object); p; p = svi_json_next(value)) {
        char joined[SVS_NAME_MAX];
        struct svi_span key;
        p = svi_json_key(p, &key);
        const struct svi_span name = flat_name(outer, key, joined);
        const enum svi_use use = name.at ? use_of_key(c, name, p) : SVI_USE_OPEN;
        const bool feature = use != SVI_USE_NONE && use <= SVI_USE_WORD;
        const bool nested = svi_json_type(p) == SVI_JSON_OBJECT &&
                            (use == SVI_USE_OPEN || use == SVI_USE_NONE) &&
                            !(name.at && svi_span_listed(name, c->in->columns.ignore));
        if (feature || nested) {
            convert_string(c, key);
            value = nested ? convert_columns(c, row, &name, p) : convert_feature(c, p, use, true);
            features++;
            continue;
        }
        value = svi_json_skip(p); /* not a feature: noted by its address in the text, converted after x */
        if (use != SVI_USE_NONE && row->count < NOTED_MAX) {
            row->noted[row->count].use = use;
            row->noted[row->count++].value = p;
        }
    }
    svi_pack_fill(&c->pack, at, features, true);
    return past_blanks(value) + 1;
}

static const char *convert_flat(struct conversion *c, const char *object) {
    struct flat_row row = {.count = 0};
    const size_t at = svi_pack_hole(&c->pack);
    /* Before any column is converted: the label must be known to keep it out of x. */
    if (!c->in->looked)
        flat_look(c, object);
    svi_pack_key(&c->pack, "x");
    const char *end = convert_columns(c, &row, NULL, object);
    convert_noted(c, &row);
    convert_missing(c);
    svi_pack_fill(&c->pack, at, (uint32_t)row.count + 2, true); /* with x and missing */
    return end;
}

/* Does the object lack every key that would make it a message with the keys of the wire? */
static bool is_flat(const char *object) {
    for (const char *p = svi_json_first(object); p;) {
        struct svi_span key;
        const char *value = svi_json_key(p, &key);
        if (is_key(key, SVI_KEY_X) || is_key(key, SVI_KEY_OP) ||
            (is_key(key, SVI_KEY_COLUMNS) && *value == '['))
            return false;
        p = svi_json_next(svi_json_skip(value));
    }
    return true;
}

static const char *convert_row(struct conversion *c, const char *object) {
    return is_flat(object) ? convert_flat(c, object) : convert_sample(c, object);
}

/* ---- the message */

/* Is the first element of a batch {op: message}? */
static bool is_op_message(const char *element) {
    if (*element != '{')
        return false;
    for (const char *p = svi_json_first(element); p;) {
        struct svi_span key, word;
        const char *value = svi_json_key(p, &key);
        if (is_key(key, SVI_KEY_OP) && svi_json_type(value) == SVI_JSON_STRING) {
            svi_json_string_at(value, &word);
            return svi_span_is(word, "message");
        }
        p = svi_json_next(svi_json_skip(value));
    }
    return false;
}

/* Elements that are not objects are passed on: the decoder refuses each with an event of its own. Converting
 * stops at the limit, and the message is dropped at the end. */
static void convert_batch(struct conversion *c, const char *array) {
    const size_t at = svi_pack_hole(&c->pack);
    const char *p = svi_json_first(array);
    const uint32_t most = SVI_BATCH_MAX + (p && is_op_message(p)); /* which is no element of the batch */
    uint32_t count = 0;
    for (; p && count <= most; count++)
        p = svi_json_next(*p == '{' ? convert_row(c, p) : convert_value(c, p, false));
    c->too_many = c->too_many || count > most;
    svi_pack_fill(&c->pack, at, count, false);
}

/* Most messages are ASCII: eight bytes at a time. */
static bool is_ascii(const char *text, size_t size) {
    uint64_t all = 0, word;
    for (; size >= sizeof word; text += sizeof word, size -= sizeof word) {
        memcpy(&word, text, sizeof word);
        all |= word;
    }
    for (; size > 0; size--)
        all |= (uint64_t)(*text++ & 0x80);
    return (all & 0x8080808080808080u) == 0;
}

static svs_code check_encoding(const char *text, size_t size, svs_error *err) {
    size_t at = 0, n = 1;
    if (is_ascii(text, size))
        return SVS_OK;
    for (; at < size && n > 0; at += n)
        n = svi_utf8_length(text + at, size - at);
    return n > 0 ? SVS_OK
                 : svi_fail(err, SVS_NOT_JSON, "not JSON: the text is not valid UTF-8 at byte %zu", at + 1);
}

/* Copies the message with SVI_NUMBER_PAD zeros after its end: numbers are read several bytes at a time, and
 * the caller's bytes may end at a page. */
static svs_code take_text(struct svi_json_input *in, const void *text, size_t size) {
    in->text.size = 0;
    if (!in->missing.words)
        svi_missing_words_init(&in->missing, in->columns.missing);
    if (svi_bytes_reserve(&in->text, size + 1 + SVI_NUMBER_PAD) != SVS_OK)
        return SVS_NO_MEMORY;
    memcpy(in->text.data, text, size);
    memset(in->text.data + size, 0, 1 + SVI_NUMBER_PAD);
    return SVS_OK;
}

void svi_json_input_clear(struct svi_json_input *in) {
    svi_bytes_clear(&in->text);
}

bool svi_json_begins(const void *bytes, size_t size) {
    const char *at = bytes, *end = at + size;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at < end && (*at == '{' || *at == '[');
}

svs_code svi_json_message(struct svi_json_input *in, const void *text, size_t size, struct svi_bytes *out,
                          svs_error *err) {
    struct conversion c = {.in = in};
    /* Check everything, then convert: `out` gets nothing of a message that is refused. */
    if (!svi_json_begins(text, size))
        return svi_fail(err, SVS_NOT_JSON, "not JSON: an object or an array expected");
    if (take_text(in, text, size) != SVS_OK)
        return svi_fail_memory(err, "a message in JSON");
    const char *own = (const char *)in->text.data;
    svs_code code = svi_json_check_value((struct svi_span){own, own + size}, SVI_JSON_DEPTH, err);
    if (code == SVS_OK)
        code = check_encoding(own, size, err);
    if (code == SVS_NOT_MSGPACK) /* the code of readers of text, which SVS_NOT_JSON replaces on the wire */
        code = err->code = SVS_NOT_JSON;
    if (code != SVS_OK)
        return code;
    svi_pack_begin(&c.pack, out);
    own = past_blanks(own);
    /* From here on only memory can fail, or the size of a batch: both are checked once, at the end. */
    if (*own == '[')
        convert_batch(&c, own);
    else
        convert_row(&c, own);
    if (svi_pack_end(&c.pack) != SVS_OK)
        return svi_fail_memory(err, "a message in JSON");
    if (!c.too_many)
        return SVS_OK;
    out->size = c.pack.start;
    return svi_fail(err, SVS_TOO_LARGE, "a batch of more than %d elements: at most %d are accepted at once",
                    SVI_BATCH_MAX, SVI_BATCH_MAX);
}
