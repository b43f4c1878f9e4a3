/* Control requests, parsed once: one pass over the map notes where the values of the known keys stand.
 *
 * Two tables, items and flags, list what a request may have: a new key is a row there and a member of the
 * structure. Only the form and the op (table `commands`) are checked here, and on request the values that
 * several operations share (id, label, verdict); everything else is for the operation to refuse. Of a
 * duplicate key the first value counts. */
#include "wire/control_command.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/text.h"
#include "wire/envelope.h"
#include "wire/fields.h"

enum changes {
    NEVER,
    ALWAYS,
    WITH_SET,
    WITH_MODEL /* loading a checkpoint has a journal record of another kind */
};

static const struct {
    const char *name;
    enum changes changes;
} commands[SVI_COMMAND_COUNT] = {
#define X(constant, name, changes) {#name, changes},
    SVI_COMMANDS(X)
#undef X
};

const char *svi_command_name(enum svi_command_op op) {
    return commands[op].name;
}

bool svi_command_changes(const struct svi_command *c) {
    const enum changes changes = commands[c->op].changes;
    return changes == ALWAYS || (changes == WITH_SET && c->has_set) || (changes == WITH_MODEL && c->model);
}

/* The operation that begins with `name`, or the nearest one at an edit distance of at most 2 and of at most
 * half the length of `name`; NULL: none is similar. */
static const char *similar_command(const char *name, const char *const *names) {
    const size_t n = strlen(name);
    for (int i = 0; names[i] && n > 0; i++)
        if (strncmp(names[i], name, n) == 0)
            return names[i];
    const char *nearest = svi_nearest(name, names);
    const int far = nearest ? svi_edit_distance(name, nearest, 3) : 3;
    return far <= 2 && 2 * (size_t)far <= n ? nearest : NULL;
}

static svs_code unknown_command(const char *name, svs_error *err) {
    const char *names[SVI_COMMAND_COUNT + 1];
    char all[240] = "";
    int count = 0;
    for (int i = 0; i < SVI_COMMAND_COUNT; i++)
        names[count++] = commands[i].name;
    names[count] = NULL;
    for (int i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    const char *similar = similar_command(name, names);
    return svi_fail(err, SVS_UNKNOWN_OP,
                    similar ? "unknown op '%s': did you mean '%s'?" : "unknown op '%s': it must be one of %s",
                    name, similar ? similar : all);
}

#define AT(member) offsetof(struct svi_command, member)

/* Keys whose item is stored as it is (items), and keys that count only if their value is true (flags). */
static const struct command_part {
    const char *name;
    size_t to; /* in struct svi_command */
} items[] = {{"id", AT(id)},           {"key", AT(key)},         {"y", AT(y)},
             {"alert", AT(alert)},     {"verdict", AT(verdict)}, {"checkpoint", AT(checkpoint)},
             {"by", AT(by)},           {"since", AT(since)},     {"epoch", AT(epoch)},
             {"without", AT(without)}, {"like", AT(like)},       {"prefix", AT(prefix)},
             {"limit", AT(limit)},     {"sort", AT(sort)},       {"silent", AT(silent)},
             {"rows", AT(rows)},       {"name", AT(name)},       {"sensor", AT(sensor)},
             {"for", AT(lasts)},       {"reason", AT(reason)},   {"who", AT(who)},
             {"learn", AT(learn)},     {"mute", AT(mute)},       {NULL, 0}},
  flags[] = {{"relearn", AT(relearn)}, {"loo", AT(loo)}, {"yes", AT(yes)}, {"open", AT(open)}, {NULL, 0}};

static void *command_part(struct svi_command *c, const struct command_part *parts,
                          const struct svi_item *key) {
    while (parts->name && !svi_item_is(key, parts->name))
        parts++;
    return parts->name ? (char *)c + parts->to : NULL;
}

/* Stores the value of one key, unless the key was seen before. `end`: end of the value's bytes. */
static void command_take(struct svi_command *c, struct svi_item *op, const struct svi_item *key,
                         const uint8_t *value, const uint8_t *end) {
    struct svi_item item, *to = svi_item_is(key, "op") ? op : command_part(c, items, key);
    bool *flag = command_part(c, flags, key);
    svi_item_read(value, &item);
    if (to && to->type == SVI_ITEM_TYPE_COUNT) {
        *to = item;
    } else if (flag) {
        *flag = item.type == SVI_BOOL && item.i != 0;
    } else if (svi_item_is(key, "set") && !c->has_set) {
        c->has_set = true;
        c->set = item;
    } else if (svi_item_is(key, "model") && !c->model) {
        c->model = value;
        c->model_size = (size_t)(end - value);
    } else if (svi_item_is(key, "sample") && !c->sample) {
        c->sample = value;
        c->sample_size = (size_t)(end - value);
    } else if (svi_item_is(key, "x")) {
        c->has_x = true;
    }
}

svs_code svi_command_read(struct svi_command *c, const void *bytes, size_t size, svs_error *err) {
    char name[40];
    struct svi_item map, key, op = {.type = SVI_ITEM_TYPE_COUNT}; /* not met yet */
    *c = (struct svi_command){.bytes = bytes, .size = size};
    /* Every item is marked as absent: nil is a value that a request may have. */
    for (const struct command_part *i = items; i->name; i++)
        memcpy((char *)c + i->to, &op, sizeof op);
    /* Checked as a whole first: the walks below cannot fail. */
    SVI_TRY(svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, err));
    const uint8_t *at = svi_item_read(bytes, &map), *end = c->bytes + size;
    if (map.type != SVI_MAP)
        return svi_fail(err, SVS_WRONG_TYPE, "a request must be a map with the key op");
    for (uint32_t i = 0; i < map.length; i++) {
        svi_item_read(at, &key);
        svi_walk(&at, end, SVI_DEPTH_MAX);
        const uint8_t *value = at;
        svi_walk(&at, end, SVI_DEPTH_MAX);
        command_take(c, &op, &key, value, at);
    }
    if (op.type != SVI_STRING)
        return svi_fail(err, op.type == SVI_ITEM_TYPE_COUNT ? SVS_UNKNOWN_OP : SVS_WRONG_TYPE,
                        "a request must be a map with the key op, a string");
    /* Escaped for the error text; no operation has characters that escaping changes. */
    svi_escape(name, sizeof name, (const char *)op.body, op.length);
    while (c->op < SVI_COMMAND_COUNT && strcmp(commands[c->op].name, name) != 0)
        c->op++;
    return c->op < SVI_COMMAND_COUNT ? SVS_OK : unknown_command(name, err);
}

/* ---- values */

svs_value svi_item_value(const struct svi_item *item) {
    switch (item->type) {
    case SVI_BOOL:
    case SVI_INT:
        return svs_int(item->i);
    case SVI_REAL:
        if (!isfinite(item->r))
            return svs_none();
        /* 1.0 and 1 are the same label, as in samples (decode.c). */
        return item->r == trunc(item->r) && fabs(item->r) <= SVI_EXACT_MAX ? svs_int((int64_t)item->r)
                                                                           : svs_real(item->r);
    case SVI_STRING:
        return (svs_value){.kind = SVS_STR, .length = item->length, .as.s = (const char *)item->body};
    default:
        return svs_none();
    }
}

static bool is_good_text(svs_value v) {
    return v.kind != SVS_STR ||
           (v.length >= 1 && v.length <= SVS_NAME_MAX && svi_utf8_valid(v.as.s, v.length));
}

svs_code svi_command_id(const struct svi_command *c, svs_value *id, svs_error *err) {
    *id = svi_item_value(&c->id);
    if ((c->id.type == SVI_INT || c->id.type == SVI_STRING) && is_good_text(*id))
        return SVS_OK;
    return svi_fail(err, SVS_BAD_ID, "id must be given: an integer, or a string of 1 to %d bytes of UTF-8",
                    SVS_NAME_MAX);
}

svs_code svi_command_label(const struct svi_command *c, svs_value *y, svs_error *err) {
    *y = svi_item_value(&c->y);
    if (y->kind != SVS_NONE && is_good_text(*y))
        return SVS_OK;
    return svi_fail(err, SVS_BAD_LABEL,
                    "y must be given: a finite number, a bool or a string of 1 to %d bytes", SVS_NAME_MAX);
}

svs_code svi_command_verdict(const struct svi_command *c, int64_t *number, bool *is_true, svs_error *err) {
    /* A command line sends words, programs send a bool: both count. */
    const bool yes = svi_item_is(&c->verdict, "true"), no = svi_item_is(&c->verdict, "false");
    const bool given = c->alert.type != SVI_ITEM_TYPE_COUNT;
    if (given && (c->alert.type != SVI_INT || c->alert.i < 1))
        return svi_fail(err, SVS_WRONG_TYPE,
                        "alert must be the number of an alert event, from 1; the default is the last one");
    if (c->verdict.type != SVI_BOOL && !yes && !no)
        return svi_fail(err, SVS_WRONG_TYPE, "verdict must be given: true, or false where nothing was wrong");
    *number = given ? c->alert.i : 0;
    *is_true = c->verdict.type == SVI_BOOL ? c->verdict.i != 0 : yes;
    return SVS_OK;
}

svs_code svi_command_by(const struct svi_command *c, char *by, svs_error *err) {
    const svs_value v = svi_item_value(&c->by);
    by[0] = '\0';
    if (c->by.type == SVI_ITEM_TYPE_COUNT)
        return SVS_OK;
    if (c->by.type != SVI_STRING || !is_good_text(v) || memchr(v.as.s, 0, v.length))
        return svi_fail(
            err, SVS_WRONG_TYPE,
            "by must be the name of the person who gives the verdict, a string of 1 to %d bytes of UTF-8",
            SVS_NAME_MAX);
    memcpy(by, v.as.s, v.length);
    by[v.length] = '\0';
    return SVS_OK;
}
