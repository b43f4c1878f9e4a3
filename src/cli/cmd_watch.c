/* watch: what a running process says, one line an event. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/command.h"
#include "cli/pipe_to.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "engine/transport.h"

#define TOPICS 256    /* of different streams whose sequence numbers are followed */
#define QUEUE  100000 /* events that may wait here */

struct last {
    char topic[SVI_TOPIC_MAX];
    uint64_t epoch;
    int64_t seq;
};

struct watch {
    const struct cli_args *args;
    void *socket, *refusals;
    bool told_refusal;
    bool json, bell;
    const char *command; /* of --exec, NULL = none */
    double limit;        /* seconds that it may take */
    int64_t wanted, events;
    struct last *last; /* TOPICS */
    int topics;
    struct svi_bytes line;
};

static struct last *find_topic(struct watch *w, const char *topic, size_t length) {
    for (int i = 0; i < w->topics; i++)
        if (strlen(w->last[i].topic) == length && memcmp(w->last[i].topic, topic, length) == 0)
            return &w->last[i];
    if (w->topics == TOPICS || length >= SVI_TOPIC_MAX)
        return NULL;
    struct last *l = &w->last[w->topics++];
    memcpy(l->topic, topic, length);
    l->seq = -1;
    return l;
}

/* False: a retained event that was seen already. Says what was lost. */
static bool is_new(struct watch *w, struct last *l, enum svi_topic kind, const msgpack_object *payload) {
    int64_t seq = cli_key_integer(payload, "seq", -1);
    uint64_t epoch = (uint64_t)cli_key_integer(payload, "epoch", 0);
    bool known = l && l->seq >= 0 && l->epoch == epoch;
    if (known && seq <= l->seq)
        return false;
    if (known && seq > l->seq + 1)
        fprintf(w->json ? stderr : stdout, "lost %" PRId64 " %s event%s\n", seq - l->seq - 1,
                kind < SVI_TOPIC_COUNT ? svi_topic_name(kind) : "other", seq > l->seq + 2 ? "s" : "");
    if (l) {
        l->seq = seq;
        l->epoch = epoch;
    }
    return true;
}

/* The terminal's bell where people look at lines; the command gets the event as JSON on its standard input,
 * one event after the other. */
static void raise_alarm(struct watch *w, const char *topic, size_t length, const zmq_msg_t *payload) {
    if (w->bell)
        fputc('\a', stdout);
    if (!w->command)
        return;
    fflush(stdout);
    const svs_code code = cli_event_json(topic, length, zmq_msg_data((zmq_msg_t *)payload),
                                         zmq_msg_size(payload), &w->line, NULL);
    if (code != SVS_OK) {
        cli_fail(w->args, "no memory for the event that %s was to be told", w->command);
        return;
    }
    (void)cli_pipe_to(w->args, w->command, w->line.data, w->line.size, w->limit); /* it has told why */
}

static void show(struct watch *w, zmq_msg_t *topic, zmq_msg_t *payload) {
    msgpack_unpacked u;
    const char *name = zmq_msg_data(topic);
    size_t length = zmq_msg_size(topic);
    enum svi_topic kind = cli_topic_kind(name, length);
    if (cli_unpack(&u, zmq_msg_data(payload), zmq_msg_size(payload), NULL) == SVS_OK &&
        is_new(w, find_topic(w, name, length), kind, &u.data)) {
        w->events++;
        if (w->json)
            cli_print_json(stdout, name, length, zmq_msg_data(payload), zmq_msg_size(payload), &w->line,
                           NULL);
        else
            cli_print_event(stdout, kind, &u.data);
        if (kind == SVI_TOPIC_ALERT)
            raise_alarm(w, name, length, payload);
    }
    msgpack_unpacked_destroy(&u);
}

static void take_events(struct watch *w) {
    zmq_msg_t topic, payload;
    zmq_msg_init(&topic);
    zmq_msg_init(&payload);
    while (w->events < w->wanted && zmq_msg_recv(&topic, w->socket, ZMQ_DONTWAIT) >= 0)
        if (zmq_msg_more(&topic) && svi_last_frame(w->socket, &payload))
            show(w, &topic, &payload);
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
    fflush(stdout);
}

static bool subscribe(struct watch *w) {
    const struct cli_args *a = w->args;
    bool ok = true;
    char topic[SVI_TOPIC_MAX];
    for (int i = 0; i < a->positional_count; i++)
        ok = ok && zmq_setsockopt(w->socket, ZMQ_SUBSCRIBE, a->positional[i], strlen(a->positional[i])) == 0;
    bool one = cli_given(a, "stream");
    for (int t = 0; t < SVI_TOPIC_COUNT && one && a->positional_count == 0; t++) {
        size_t n = svi_topic_write((enum svi_topic)t, a->settings.stream, topic);
        ok = ok && zmq_setsockopt(w->socket, ZMQ_SUBSCRIBE, topic, n) == 0;
    }
    if (a->positional_count == 0 && !one)
        ok = zmq_setsockopt(w->socket, ZMQ_SUBSCRIBE, "", 0) == 0;
    return ok;
}

/* Once: the other end may let us in later. */
static void tell_refusal(struct watch *w) {
    if (svi_refusals_any(w->refusals) && !w->told_refusal) {
        cli_fail(w->args,
                 "%s refused us: is this its key (curve.server), and ours in its allow file with the role "
                 "subscribe? Trying on",
                 w->args->settings.out);
        w->told_refusal = true;
    }
}

/* Until `wanted` events came, or the time is over. */
static int follow(struct watch *w, double seconds) {
    zmq_pollitem_t items[2] = {{w->socket, 0, ZMQ_POLLIN, 0}, {w->refusals, 0, ZMQ_POLLIN, 0}};
    double end = cli_clock() + seconds;
    while (w->events < w->wanted && !ferror(stdout)) {
        double left = seconds > 0 ? end - cli_clock() : 3600;
        if (left <= 0)
            break;
        if (zmq_poll(items, w->refusals ? 2 : 1, (long)(1000 * left) + 1) < 0 && errno != EINTR)
            return cli_fail(w->args, "waiting failed: %s", zmq_strerror(errno));
        take_events(w);
        tell_refusal(w);
    }
    if (w->wanted == INT64_MAX || w->events == w->wanted)
        return CLI_OK;
    return cli_fail(w->args, "%" PRId64 " of %" PRId64 " events came from %s in %g seconds", w->events,
                    w->wanted, w->args->settings.out, seconds);
}

static svs_code open_socket(struct watch *w, void *context, svs_error *err) {
    const struct svi_socket_plan plan = {"out", ZMQ_SUB, false, QUEUE, 0, -1};
    struct svi_identity id;
    svs_code code = svi_identity_load(&w->args->settings, true, &id, err);
    if (code == SVS_OK && !(w->socket = svi_socket_new(context, &plan, err)))
        code = err->code;
    if (code == SVS_OK && id.on)
        w->refusals = svi_refusals_new(context, w->socket);
    if (code == SVS_OK)
        code = svi_socket_secure(w->socket, &plan, &id, err);
    svi_identity_wipe(&id);
    return code == SVS_OK ? svi_socket_attach(w->socket, &plan, w->args->settings.out, NULL, err) : code;
}

static int run_with(struct watch *w, void *context, double seconds) {
    svs_error err;
    int result;
    if (open_socket(w, context, &err) != SVS_OK)
        result = cli_error(w->args, &err);
    else if (!subscribe(w))
        result = cli_fail(w->args, "cannot subscribe: %s", zmq_strerror(errno));
    else
        result = follow(w, seconds);
    svi_refusals_free(&w->refusals, w->socket);
    svi_socket_close(&w->socket);
    return result;
}

/* Can a topic begin like this? */
static bool is_topic(const char *word) {
    bool may = false;
    for (int k = 0; k < SVI_TOPIC_COUNT && !may; k++) {
        const char *name = svi_topic_name((enum svi_topic)k);
        const size_t n = strlen(name);
        may = strncmp(word, name, n) == 0 ? word[n] == '.' || word[n] == '\0'
                                          : strncmp(word, name, strlen(word)) == 0;
    }
    return may;
}

static int run(const struct cli_args *a) {
    double seconds, limit;
    int64_t count;
    if (!cli_number(a, "timeout", 0, 1e9, &seconds) || !cli_integer(a, "count", 0, INT64_MAX, &count) ||
        !cli_number(a, "exec-timeout", 0.001, 1e6, &limit))
        return CLI_USAGE;
    for (int i = 0; i < a->positional_count; i++)
        if (!is_topic(a->positional[i]))
            return cli_usage(a, "no topic begins with '%.60s': model, score, stats, error and alert do",
                             a->positional[i]);
    struct watch w = {
        .args = a, .json = cli_has(a, "json"), .limit = limit, .wanted = count ? count : INT64_MAX};
    w.bell = !w.json && !a->quiet && isatty(STDOUT_FILENO);
    w.command = cli_value(a, "exec");
    w.last = svi_alloc_array(TOPICS, sizeof *w.last);
    void *context = zmq_ctx_new();
    int result = w.last && context ? run_with(&w, context, seconds) : cli_fail(a, "no memory");
    if (context)
        zmq_ctx_term(context);
    svi_free(w.last);
    svi_bytes_clear(&w.line);
    return result;
}

static const struct cli_option options[] = {
    {"json", 0, NULL, NULL, "events as JSON lines, with their topic"},
    {"count", 'n', "N", "0", "stop after so many events; 0 goes on"},
    {"timeout", 0, "SECONDS", "0", "stop after so long; 0 goes on; exit code 1 when fewer than --count came"},
    {"exec", 0, "COMMAND", NULL,
     "run this in a shell for each alert event, with the event as one line of JSON on its standard input"},
    {"exec-timeout", 0, "SECONDS", "60", "end that command, and what it started, when it takes longer"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_watch = {
    .name = "watch",
    .text = "print what a running process publishes",
    .usage = "[TOPIC...]",
    .help =
        "Subscribes at the address `out` and prints one line an event. A TOPIC is a prefix: model, score,\n"
        "stats, error, alert, or with the stream's name: model.pump1. (the closing dot keeps model.pump10. "
        "out).\n"
        "Events that this subscriber was too slow for are told: lost 3 score events. An alert rings the\n"
        "terminal's bell, unless told --quiet. --exec hands each alert event on, one after the other: its\n"
        "state is open, update or close. A command that fails or takes more than --exec-timeout seconds is\n"
        "told, and the next event gets its own.\n"
        "\n"
        "  svmstream watch model error\n"
        "  svmstream watch --json score | jq .yhat\n"
        "  svmstream watch alert --exec 'jq -r .text | mail -s alert me@example.org'",
    .keys = "out stream curve curve.server",
    .options = options,
    .positional_max = -1,
    .run = run};
