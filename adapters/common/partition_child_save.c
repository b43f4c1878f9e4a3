/* Checkpoints of a partition as files.
 *
 * The place in the log that belongs to a checkpoint is known because no entry is under way when it is taken:
 * the save waits until all are answered, and entries are held back until the process has confirmed it. A
 * marker after all events then shows that those of the samples in the checkpoint were handed over: an
 * adapter that stores the file after it has stored these events never skips one. The export reads the folder
 * while the process continues. */
#include "partition_child_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "net/transport.h"
#include "wire/fields.h"

struct save_reply {
    int64_t record;
    const uint8_t *hash, *error;
};

void partition_child_save(struct partition_child *c) {
    if (partition_child_state(c) == PARTITION_READY)
        c->step = SAVE_WAITS;
}

void partition_child_save_end(struct partition_child *c, const char *why) {
    const bool saving = c->step != SAVE_NONE;
    c->step = SAVE_NONE;
    if (saving && why)
        partition_process_kill(&c->tool);
    if (saving && c->o.calls->saved)
        c->o.calls->saved(c->o.user, why ? NULL : &c->saved, why);
}

static void save_ask(struct partition_child *c) {
    static const char request[] = "\x81\xa2op\xa4save";
    if (zmq_send(c->ctl, request, sizeof request - 1, ZMQ_DONTWAIT) < 0)
        return; /* the next turn tries again */
    c->step = SAVE_ASKED;
    c->saved = (struct partition_saved){.path = c->folder.path[PARTITION_CHECKPOINT],
                                        .at = c->saved_at,
                                        .at_size = c->at_size,
                                        .next = c->next,
                                        .epoch = c->epoch};
    memcpy(c->saved_at, c->at, c->at_size);
}

/* The text of a msgpack string, printable; "" for anything else. */
static void save_text(const uint8_t *value, char *out, size_t size) {
    struct svi_item item = {.type = SVI_NIL};
    if (value)
        svi_item_read(value, &item);
    const bool text = item.type == SVI_STRING;
    svi_escape(out, size, text ? (const char *)item.body : "", text ? item.length : 0);
}

static void save_confirmed(struct partition_child *c) {
    static const struct svi_field fields[] = {
        {.name = "record",
         .type = SVI_FIELD_INTEGER,
         .to = offsetof(struct save_reply, record),
         .high = 0x1p62,
         .optional = true},
        {.name = "hash", .to = offsetof(struct save_reply, hash), .optional = true},
        {.name = "error", .to = offsetof(struct save_reply, error), .optional = true}};
    struct save_reply r = {.record = -1};
    char why[SVS_ERROR_TEXT];
    zmq_msg_t m;
    zmq_msg_init(&m);
    if (svi_last_frame(c->ctl, &m, NULL)) {
        const uint8_t *bytes = zmq_msg_data(&m);
        const size_t size = zmq_msg_size(&m);
        if (svi_msgpack_check(bytes, size, SVI_DEPTH_MAX, NULL) == SVS_OK)
            svi_fields_read("save", SVI_FIELDS(fields), bytes, bytes + size, &r, NULL);
        save_text(r.error, why, sizeof why);
        save_text(r.hash, c->saved.hash, sizeof c->saved.hash);
        c->record = (uint64_t)r.record;
        if (r.record < 0 || why[0])
            partition_child_save_end(c, why[0] ? why : "the reply to save cannot be read");
        else if (partition_child_link_mark(c, NULL) != SVS_OK)
            partition_child_save_end(c, "the end of its events cannot be found");
        else
            c->step = SAVE_MARKED;
    }
    zmq_msg_close(&m);
}

static void save_export(struct partition_child *c) {
    char number[24];
    char *const argv[] = {"svmstream", "state", "export", "-q", c->folder.path[PARTITION_STATE],
                          number,      NULL};
    svs_error err;
    snprintf(number, sizeof number, "%" PRIu64, c->record);
    const int out = open(c->folder.path[PARTITION_UNFINISHED],
                         O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    const int error = errno;
    svs_code code = out < 0 ? svi_fail(&err, SVS_IO, "%.150s cannot be written: %s",
                                       c->folder.path[PARTITION_UNFINISHED], strerror(error))
                            : partition_process_start(&c->tool, c->program, argv, -1, out, &err);
    if (out >= 0)
        close(out);
    c->step = SAVE_EXPORTS;
    if (code != SVS_OK)
        partition_child_save_end(c, err.text);
}

static void save_exported(struct partition_child *c) {
    char text[200], why[300];
    snprintf(why, sizeof why, "the export of the checkpoint %s",
             partition_process_text(&c->tool, text, sizeof text));
    if (c->tool.failed || !WIFEXITED(c->tool.status) || WEXITSTATUS(c->tool.status) != 0)
        partition_child_save_end(c, why);
    else if (rename(c->folder.path[PARTITION_UNFINISHED], c->folder.path[PARTITION_CHECKPOINT]) != 0)
        partition_child_save_end(c, strerror(errno));
    else
        partition_child_save_end(c, NULL);
}

void partition_child_save_turn(struct partition_child *c) {
    if (c->step == SAVE_WAITS && c->phase == PHASE_LIVE && c->entries.count == 0)
        save_ask(c);
    if (c->step == SAVE_ASKED)
        save_confirmed(c);
    if (c->step == SAVE_MARKED && !c->marker)
        save_export(c);
    if (c->step == SAVE_EXPORTS && partition_process_ended(&c->tool))
        save_exported(c);
}
