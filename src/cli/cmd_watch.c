/* watch: prints the events that a running process publishes, one line each.
 *
 * With --since the alerts that were missed come first, from `ctl` (watch_ask). Alerts that are published go
 * by their number from then on: one that is known already is left out, and before one that leaves a gap the
 * process is asked again. It is also asked every ASK_SECONDS, for those that were kept and not published.
 *
 * client/subscription.h receives events, follows their sequence numbers and drops repeated ones. Here an
 * event becomes a line: for people, one function a topic selects the keys that matter; for programs, the
 * payload as JSON with its topic in front (subscription_json). An alert also rings the bell and goes to the
 * command of --exec, one at a time: the next event waits until it has ended or its time is over, so that
 * commands never pile up.
 *
 * Read from the bottom: cmd_watch_run, cmd_watch_follow, cmd_watch_show. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "cli/command.h"
#include "cli/object.h"
#include "report/bank_report.h"
#include "report/progress.h"
#include "client/request.h"
#include "client/subscription.h"
#include "net/transport.h"

#define QUEUE        100000 /* events that may wait in this process */
#define TEXT         120    /* bytes of one value as text */
#define KEY_TEXT     (4 * SVS_KEY_MAX + 4)
#define ARRAY_SHOWN  8 /* elements of an array */
#define STATS        "stats."
#define ASK_SECONDS  10.0 /* between two questions for alerts, and ... */
#define ASK_PATIENCE 5.0  /* ... how long one waits for its answer */

struct watch {
    const struct cli_args *args;
    struct subscription subscription;
    bool refused;    /* a refusal was reported */
    bool waiting;    /* it was reported that no process, or no event of the key, is there */
    const char *key; /* of --key, NULL = all */
    bool asks;       /* with --key and without --stream: waits for stats, which name the stream */
    char stream[sizeof((struct svi_settings *)0)->stream];
    bool json, bell;
    const char *command; /* of --exec, NULL = none */
    double limit;        /* seconds that the command may take */
    int64_t wanted, events;
    struct svi_bytes line;
    bool asks_alerts; /* --since; the next five are for it */
    struct client_alerts known;
    double ask_due;  /* svi_monotonic */
    bool unanswered; /* it was reported that there was no answer */
    struct svi_bytes request, reply;
};

/* ---- an event as one line, for people or as JSON */

/* Prints " key=value" for each of the keys that has a value in the map. */
static void print_keys(struct svi_view map, const char *const *keys) {
    char text[TEXT];
    for (; *keys; keys++) {
        const struct svi_view o = svi_view_key(map, *keys);
        if (svi_view_item(o).type != SVI_NIL)
            printf(" %s=%s", *keys, cli_scalar(o, text, sizeof text));
    }
}

static void print_array(struct svi_view map, const char *key) {
    const struct svi_view array = svi_view_key(map, key);
    const struct svi_item item = svi_view_item(array);
    struct svi_view element = {item.body, array.end};
    char text[TEXT];
    if (item.type != SVI_ARRAY)
        return;
    printf(" %s=", key);
    for (uint32_t i = 0; i < item.length && i < ARRAY_SHOWN; i++) {
        printf("%s%s", i ? "," : "", cli_scalar(element, text, sizeof text));
        svi_walk(&element.at, element.end, SVI_WALK_MAX);
    }
    if (item.length > ARRAY_SHOWN)
        fputs(",...", stdout);
}

static const char *const quality[] = {"accuracy", "accuracy.w", "kappa", "kappa_t", "f1",
                                      "mae",      "rmse",       "r2",    NULL};

static void print_model(struct svi_view m) {
    print_keys(m, (const char *const[]){"version", "method", "d", NULL});
    print_array(m, "classes");
    print_keys(m, (const char *const[]){"seen", "learned", "serves", NULL});
    if (svi_view_key(m, "gap").at) /* the model of a refit */
        print_keys(m, (const char *const[]){"at", "objective", "gap", "iterations", "milliseconds", NULL});
    print_keys(svi_view_key(m, "quality"), quality);
}

static void print_score(struct svi_view m) {
    const struct svi_view y = svi_view_key(m, "y"), yhat = svi_view_key(m, "yhat");
    const size_t size = (size_t)(y.end - y.at);
    print_keys(m, (const char *const[]){"id", "yhat", "y", NULL});
    if (y.at && yhat.at && svi_view_item(yhat).type != SVI_REAL)
        fputs(yhat.end - yhat.at == y.end - y.at && memcmp(y.at, yhat.at, size) == 0 ? " right" : " wrong",
              stdout);
    print_array(m, "scores");
    print_keys(m, (const char *const[]){"novelty", "p", "anomaly", "model", NULL});
}

static void print_stats(struct svi_view m) {
    print_keys(m, (const char *const[]){"seen", "learned", "errors", "rate", NULL});
    print_keys(m, quality);
    print_keys(m, (const char *const[]){"latency_p99", NULL});
}

static void print_error(struct svi_view m) {
    char code[TEXT], count[TEXT], reason[400];
    printf(" %s (%s): %s", cli_key_text(m, "code", code, sizeof code),
           cli_key_text(m, "count", count, sizeof count), cli_key_text(m, "reason", reason, sizeof reason));
}

static void print_alert(struct svi_view m) {
    char text[400];
    print_keys(m, (const char *const[]){"kind", "alert", "state", "id", "novelty", "p", "grade", "measure",
                                        "before", "after", NULL});
    printf(" %s", cli_key_text(m, "text", text, sizeof text));
}

static void print_bank(struct svi_view m) {
    print_keys(m, (const char *const[]){"version", "d", "serves", NULL});
    putchar('\n');
    svi_bank_report(stdout, m.at, m.end);
}

static void print_sums(struct svi_view m) {
    print_keys(m, (const char *const[]){"part", "part_epoch", "offset", "n", "window", "d", "weight", NULL});
    print_array(m, "classes");
}

static void print_prior(struct svi_view m) {
    const struct svi_view prior = svi_view_key(m, "prior");
    print_keys(prior, (const char *const[]){"keys", NULL});
    print_array(prior, "labels");
}

/* The stream key of an event, escaped; "" when it has none. */
static const char *event_key(struct svi_view payload, char key[KEY_TEXT]) {
    const struct svi_view o = svi_view_key(payload, "key");
    key[0] = '\0';
    return o.at ? cli_scalar(o, key, KEY_TEXT) : key;
}

/* "score default key=m1 id=7 yhat=1 y=0 wrong ..." */
static void print_event(enum svi_topic kind, struct svi_view payload) {
    static void (*const printers[SVI_TOPIC_COUNT])(struct svi_view) = {
        [SVI_TOPIC_MODEL] = print_model, [SVI_TOPIC_SCORE] = print_score, [SVI_TOPIC_ALERT] = print_alert,
        [SVI_TOPIC_STATS] = print_stats, [SVI_TOPIC_ERROR] = print_error, [SVI_TOPIC_BANK] = print_bank,
        [SVI_TOPIC_SUMS] = print_sums,   [SVI_TOPIC_PRIOR] = print_prior};
    char stream[TEXT], key[KEY_TEXT];
    if (kind == SVI_TOPIC_COUNT)
        return;
    printf("%s %s", svi_topic_name(kind), cli_key_text(payload, "stream", stream, sizeof stream));
    if (*event_key(payload, key))
        printf(" key=%s", key);
    printers[kind](payload);
    if (kind != SVI_TOPIC_BANK)
        putchar('\n');
}

/* ---- a command that gets an alert on its standard input */

/* Starts the command in a separate process group, so that it can be killed with its children. Returns its id,
 * -1 on failure. */
static pid_t pipe_to_start(const char *command, int ends[2]) {
    const pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        signal(SIGPIPE, SIG_DFL);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        setpgid(pid, pid); /* in both processes: either may run first */
    return pid;
}

/* Writes until all bytes are written, the command has closed its end, or the time is over. The pipe must be
 * non-blocking: a command that does not read must not block the watch. */
static void pipe_to_hand_over(int to, const char *bytes, size_t size, double end) {
    struct pollfd item = {to, POLLOUT, 0};
    while (size > 0) {
        const double left = end - svi_monotonic();
        if (left <= 0 || (poll(&item, 1, (int)(1000 * left) + 1) < 0 && errno != EINTR))
            return;
        const ssize_t n = item.revents & POLLOUT ? write(to, bytes, size) : 0;
        if (item.revents & POLLERR || (n < 0 && errno != EAGAIN && errno != EINTR))
            return;
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
}

/* Waits for the command's end. False: the time was over first, and its group was killed. A pidfd can be
 * polled with a timeout; waitpid cannot. */
static bool pipe_to_wait(pid_t pid, double end, int *status) {
    const int handle = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd item = {handle, POLLIN, 0};
    int ready = handle >= 0 ? -1 : 1; /* an old kernel without pidfd: no time limit */
    while (ready < 0) {
        const double left = end - svi_monotonic();
        ready = poll(&item, 1, left > 0 ? (int)(1000 * left) + 1 : 0);
        if (ready < 0 && errno != EINTR) /* EINTR: this process was stopped and continued */
            ready = 1;
    }
    if (handle >= 0)
        close(handle);
    const bool ended = ready > 0;
    if (!ended)
        kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return ended;
}

static svs_code pipe_to_assess(const char *command, bool ended, int status, double seconds, svs_error *err) {
    if (!ended)
        return svi_fail(
            err, SVS_UNAVAILABLE,
            "the command '%.100s' was ended after %g seconds: raise --exec-timeout if it needs longer",
            command, seconds);
    if (WIFSIGNALED(status))
        return svi_fail(err, SVS_UNAVAILABLE, "the command '%.100s' was ended by signal %d", command,
                        WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return svi_fail(err, SVS_UNAVAILABLE, "the command '%.100s' failed with exit code %d", command,
                        WEXITSTATUS(status));
    return SVS_OK;
}

/* Runs `command` with /bin/sh, writes the bytes to its standard input and waits until it ends. After
 * `seconds` it is killed, with all processes that it started. SVS_UNAVAILABLE: it could not be started, took
 * too long, or failed, with its exit code or signal. A command need not read all bytes. */
static svs_code pipe_to(const char *command, const void *bytes, size_t size, double seconds, svs_error *err) {
    int ends[2], status = 0;
    const double end = svi_monotonic() + seconds;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return svi_fail(err, SVS_UNAVAILABLE, "cannot make a pipe for '%.100s': %s", command,
                        strerror(errno));
    const pid_t pid = pipe_to_start(command, ends);
    close(ends[0]);
    if (pid > 0) {
        void (*const before)(int) = signal(SIGPIPE, SIG_IGN); /* the command may end without reading */
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        pipe_to_hand_over(ends[1], bytes, size, end);
        signal(SIGPIPE, before);
    }
    close(ends[1]); /* end of file, which most commands wait for before they end */
    if (pid < 0)
        return svi_fail(err, SVS_UNAVAILABLE, "cannot start '%.100s': %s", command, strerror(errno));
    const bool ended = pipe_to_wait(pid, end, &status);
    return pipe_to_assess(command, ended, status, seconds, err);
}

/* ---- incoming events */

/* Rings the terminal's bell when people watch, and runs the command with the event as JSON on its standard
 * input. */
static void raise_alarm(struct watch *w, const struct subscription_event *e) {
    if (w->bell)
        fputc('\a', stdout);
    if (!w->command)
        return;
    fflush(stdout); /* the event's line must appear before the command's output */
    svs_error err;
    if (subscription_json(&w->line, e) == SVS_OK) {
        if (pipe_to(w->command, w->line.data, w->line.size, w->limit, &err) != SVS_OK)
            cli_fail(w->args, "%s", err.text);
    } else
        cli_fail(w->args, "out of memory: '%s' does not receive this event", w->command);
}

static void cmd_watch_show(struct watch *w, const struct subscription_event *e) {
    const struct svi_view payload = svi_view_of(e->payload, e->size);
    char key[KEY_TEXT];
    if (e->lost > 0)
        fprintf(w->json ? stderr : stdout, "lost %" PRId64 " %s event%s%s%s\n", e->lost,
                e->kind < SVI_TOPIC_COUNT ? svi_topic_name(e->kind) : "other", e->lost > 1 ? "s" : "",
                *event_key(payload, key) ? " of " : "", key);
    w->events++;
    if (!w->json)
        print_event(e->kind, payload);
    else if (subscription_json(&w->line, e) == SVS_OK)
        fwrite(w->line.data, 1, w->line.size, stdout);
    if (e->kind == SVI_TOPIC_ALERT)
        raise_alarm(w, e);
}

/* ---- alerts that were missed */

/* Shows an alert of a reply as if it had just been published. */
static void watch_show_kept(struct watch *w, struct svi_view event) {
    char topic[SVI_TOPIC_MAX], stream[SVI_STREAM_MAX + 1], key[SVS_KEY_MAX + 1] = "";
    const struct svi_item name = svi_view_item(svi_view_key(event, "stream")),
                          of = svi_view_item(svi_view_key(event, "key"));
    snprintf(stream, sizeof stream, "%.*s", name.type == SVI_STRING ? (int)name.length : 0,
             (const char *)name.body);
    if (of.type == SVI_STRING && of.length < sizeof key)
        snprintf(key, sizeof key, "%.*s", (int)of.length, (const char *)of.body);
    const size_t length = svi_topic_write(SVI_TOPIC_ALERT, stream, key, topic);
    cmd_watch_show(w, &(struct subscription_event){SVI_TOPIC_ALERT, topic, length, event.at,
                                                   (size_t)(event.end - event.at), 0});
}

/* Was it kept and not published because of a mute? What is left of it then is published after the mute. */
static bool watch_is_held_back(struct svi_view event) {
    char state[16];
    return !svi_view_key(event, "seq").at &&
           strcmp(cli_key_text(event, "state", state, sizeof state), SVI_ALERT_VERDICT) != 0;
}

/* Shows what one reply lists. *more: is there another page? */
static svs_code watch_take_reply(struct watch *w, bool *more, svs_error *err) {
    const struct svi_view reply = svi_view_of(w->reply.data, w->reply.size);
    struct svi_view next = svi_view_key(reply, "alerts"), event;
    int64_t left = -1;
    char reason[400];
    *more = false;
    if (svi_view_item(next).type != SVI_ARRAY)
        return svi_fail(err, SVS_UNAVAILABLE, "%s refused to list its alerts: %s", w->args->settings.ctl,
                        cli_key_text(reply, "error", reason, sizeof reason));
    const uint64_t lost = svi_view_unsigned(reply, "lost", 0);
    if (svi_view_true(reply, "reset"))
        cli_fail(w->args,
                 "the state is another one than that of alert event %" PRIu64 ": all its alert events follow",
                 w->known.since);
    if (lost > 0)
        fprintf(w->json ? stderr : stdout, "lost %" PRIu64 " alert event%s, no longer kept (alert.keep)\n",
                lost, lost > 1 ? "s" : "");
    while (w->events < w->wanted && svi_view_next(&next, &left, &event))
        if (!watch_is_held_back(event))
            watch_show_kept(w, event);
    w->known.since = svi_view_unsigned(reply, "next", 0);
    w->known.epoch = svi_view_unsigned(reply, "epoch", 0);
    w->known.known = true;
    *more = svi_view_true(reply, "more") && w->events < w->wanted;
    return SVS_OK;
}

/* Asks for the alerts since the last one that is known, page by page. No answer is no end: the process may
 * come back, and what it has kept by then is asked for. */
static svs_code watch_ask(struct watch *w, svs_error *err) {
    bool more = true;
    w->ask_due = svi_monotonic() + ASK_SECONDS;
    while (more) {
        svs_code code = client_alerts_request(&w->known, &w->request);
        if (code == SVS_OK)
            code = client_ask(&w->args->settings,
                              &(struct client_question){.request = &w->request, .timeout = ASK_PATIENCE},
                              &w->reply, err);
        if (code == SVS_IO && !w->unanswered)
            cli_fail(w->args, "%s", err->text);
        w->unanswered = code == SVS_IO;
        if (code != SVS_OK)
            return code == SVS_IO ? SVS_OK : code;
        SVI_TRY(watch_take_reply(w, &more, err));
    }
    return SVS_OK;
}

/* An alert that is published: it is shown if it is the next one; one with a gap before it is in the answer
 * that fills the gap. */
static svs_code watch_take_alert(struct watch *w, const struct subscription_event *e, svs_error *err) {
    const struct svi_view payload = svi_view_of(e->payload, e->size);
    const uint64_t number = svi_view_unsigned(payload, "number", 0);
    if (number <= w->known.since)
        return SVS_OK;
    if (number > w->known.since + 1)
        return watch_ask(w, err);
    cmd_watch_show(w, e);
    w->known.since = number;
    return SVS_OK;
}

/* ---- subscriptions */

/* Expands a word such as "model" to the full topic when a stream or a key is given; longer words are prefixes
 * of topics already and stay unchanged. */
static const char *watch_topic(const struct watch *w, const char *word, char *topic) {
    const struct cli_args *a = w->args;
    for (int t = 0; t < SVI_TOPIC_COUNT && (w->key || cli_given(a, "stream")); t++)
        if (strcmp(word, svi_topic_name((enum svi_topic)t)) == 0) {
            svi_topic_write((enum svi_topic)t, w->stream, w->key, topic);
            return topic;
        }
    return word;
}

/* Subscribes to the named topics, or to all; of one stream and one key when these are given. While the name
 * of the stream is unknown, only to stats. */
static svs_code cmd_watch_subscribe(struct watch *w, svs_error *err) {
    const struct cli_args *a = w->args;
    const int count = a->positional_count;
    char topic[SVI_TOPIC_MAX];
    if (w->asks)
        return subscription_add(&w->subscription, STATS, err);
    if (count == 0 && !w->key && !cli_given(a, "stream"))
        return subscription_add(&w->subscription, "", err);
    svs_code code = SVS_OK;
    for (int i = 0; i < count && code == SVS_OK; i++)
        code = subscription_add(&w->subscription, watch_topic(w, a->positional[i], topic), err);
    for (int t = 0; count == 0 && t < SVI_TOPIC_COUNT && code == SVS_OK; t++) {
        svi_topic_write((enum svi_topic)t, w->stream, w->key, topic);
        code = subscription_add(&w->subscription, topic, err);
    }
    return code;
}

/* Reads the name of the stream from the topic "stats.NAME." and subscribes to that stream's topics. Stats are
 * unsubscribed last, or those of the stream itself could be lost in between. */
static svs_code cmd_watch_learn_name(struct watch *w, const struct subscription_event *e, svs_error *err) {
    const char *name = e->topic + strlen(STATS);
    const size_t rest = e->topic_length > strlen(STATS) ? e->topic_length - strlen(STATS) : 0;
    const char *end = memchr(name, '.', rest);
    if (!end || (size_t)(end - name) >= sizeof w->stream)
        return SVS_OK;
    memcpy(w->stream, name, (size_t)(end - name));
    w->stream[end - name] = '\0';
    w->asks = false;
    const svs_code code = cmd_watch_subscribe(w, err);
    return code == SVS_OK ? subscription_remove(&w->subscription, STATS, err) : code;
}

static svs_code cmd_watch_take_events(struct watch *w, svs_error *err) {
    struct subscription_event e;
    svs_code code = SVS_OK;
    /* With --key, events without a key are dropped: stats by which the stream's name was learned may still be
     * queued. */
    while (code == SVS_OK && w->events < w->wanted && subscription_next(&w->subscription, &e))
        if (w->asks)
            code = cmd_watch_learn_name(w, &e, err);
        else if (w->asks_alerts && e.kind == SVI_TOPIC_ALERT)
            code = watch_take_alert(w, &e, err);
        else if (!w->key || *event_key(svi_view_of(e.payload, e.size), (char[KEY_TEXT]){0}))
            cmd_watch_show(w, &e);
    fflush(stdout);
    return code;
}

/* Reports a refusal, once: the process may admit us later, and the socket keeps trying. */
static void cmd_watch_show_refusal(struct watch *w) {
    if (!subscription_refused(&w->subscription) || w->refused)
        return;
    cli_fail(w->args,
             "%s refused the connection; retrying. Check that curve.server is its key, and that its allow "
             "file has your key with the role subscribe",
             w->args->settings.out);
    w->refused = true;
}

/* Reports, once and after SVI_WAITING seconds, that no process answers or that the key has no events. Returns
 * the seconds until the next call is needed. */
static double cmd_watch_show_waiting(struct watch *w, double start) {
    const double left = start + SVI_WAITING - svi_monotonic();
    if (w->waiting || (w->subscription.met && (!w->key || w->events > 0)))
        return 3600;
    if (left > 0)
        return left;
    w->waiting = true;
    if (!w->subscription.met)
        cli_waiting((void *)w->args, w->args->settings.out);
    else if (w->asks && !w->args->quiet)
        cli_fail(w->args,
                 "waiting for stats from %.200s, which name the stream: give --stream NAME to skip this",
                 w->args->settings.out);
    else if (!w->args->quiet)
        cli_fail(w->args,
                 "waiting for an event of the key %.64s in the stream %s (`svmstream keys` lists the keys%s)",
                 w->key, w->stream, cli_given(w->args, "stream") ? "; --stream may name another one" : "");
    return 3600;
}

/* Runs until `wanted` events were shown, the time is over, or standard output fails. */
static int cmd_watch_follow(struct watch *w, double seconds) {
    zmq_pollitem_t items[2] = {{w->subscription.socket, 0, ZMQ_POLLIN, 0},
                               {w->subscription.monitor, 0, ZMQ_POLLIN, 0}};
    const double start = svi_monotonic();
    while (w->events < w->wanted && !ferror(stdout)) {
        const double left = seconds > 0 ? start + seconds - svi_monotonic() : 3600;
        if (left <= 0)
            break;
        double wait = fmin(left, cmd_watch_show_waiting(w, start));
        svs_error err;
        if (w->asks_alerts && svi_monotonic() >= w->ask_due) {
            if (watch_ask(w, &err) != SVS_OK)
                return cli_error(w->args, &err);
            fflush(stdout);
            continue;
        }
        if (w->asks_alerts)
            wait = fmin(wait, w->ask_due - svi_monotonic());
        if (zmq_poll(items, w->subscription.monitor ? 2 : 1, (long)(1000 * wait) + 1) < 0 && errno != EINTR)
            return cli_fail(w->args, "waiting failed: %s", zmq_strerror(errno));
        if (cmd_watch_take_events(w, &err) != SVS_OK)
            return cli_error(w->args, &err);
        cmd_watch_show_refusal(w);
    }
    if (seconds > 0 && w->events == 0 && !w->subscription.met)
        return cli_fail(w->args,
                        "no process answered at %.200s within %g seconds: check that `svmstream run` runs "
                        "with this `out`",
                        w->args->settings.out, seconds);
    if (w->wanted == INT64_MAX || w->events == w->wanted)
        return CLI_OK;
    return cli_fail(w->args, "%" PRId64 " of %" PRId64 " events arrived from %s in %g seconds", w->events,
                    w->wanted, w->args->settings.out, seconds);
}

static int cmd_watch_run_with(struct watch *w, void *context, double seconds) {
    struct svi_identity id;
    svs_error err;
    svs_code code = svi_identity_load(&w->args->settings, true, &id, &err);
    if (code == SVS_OK)
        code = subscription_open(&w->subscription, context, w->args->settings.out, &id, QUEUE, &err);
    svi_identity_wipe(&id);
    if (code == SVS_OK)
        code = cmd_watch_subscribe(w, &err);
    int result = code == SVS_OK ? cmd_watch_follow(w, seconds) : cli_error(w->args, &err);
    subscription_close(&w->subscription);
    return result;
}

/* True when the word is a prefix of a topic's name, or that name and more after a dot. */
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

/* With --key, topics must be plain words, which watch_topic expands to the topics of the key. */
static int check_key(const struct cli_args *a) {
    const char *key = cli_value(a, "key");
    if (key && (!*key || strlen(key) > SVS_KEY_MAX))
        return cli_usage(a, "--key: a key has 1 to %d bytes", SVS_KEY_MAX);
    for (int i = 0; i < a->positional_count && key; i++)
        if (strchr(a->positional[i], '.'))
            return cli_usage(a, "with --key a topic is one word (model, alert, ...): '%.60s' is not",
                             a->positional[i]);
    return CLI_OK;
}

/* The alerts of one process are asked for and subscribed to: without `ctl` that of another one might answer.
 */
static int check_since(const struct cli_args *a) {
    const char *alert = svi_topic_name(SVI_TOPIC_ALERT);
    bool subscribed = a->positional_count == 0;
    for (int i = 0; i < a->positional_count; i++)
        subscribed = subscribed || strncmp(a->positional[i], alert, strlen(alert)) == 0;
    if (cli_has(a, "since") && !subscribed)
        return cli_usage(a, "--since applies to alert events: add the topic alert");
    if (cli_has(a, "since") && svi_settings_chosen(&a->settings, "out") &&
        !svi_settings_chosen(&a->settings, "ctl"))
        return cli_usage(a, "--since sends a request to `ctl`: give --ctl as well as --out");
    return CLI_OK;
}

static int cmd_watch_run(const struct cli_args *a) {
    const double seconds = cli_number(a, "timeout");
    const int64_t count = cli_integer(a, "count");
    for (int i = 0; i < a->positional_count; i++)
        if (!is_topic(a->positional[i]))
            return cli_usage(a,
                             "no topic begins with '%.60s': the topics are model, score, stats, error, "
                             "alert, bank, sums and prior",
                             a->positional[i]);
    if (check_key(a) != CLI_OK || check_since(a) != CLI_OK)
        return CLI_USAGE;
    struct watch w = {.args = a,
                      .json = cli_has(a, "json"),
                      .key = cli_value(a, "key"),
                      .limit = cli_number(a, "exec-timeout"),
                      .wanted = count ? count : INT64_MAX};
    snprintf(w.stream, sizeof w.stream, "%s", a->settings.stream);
    w.asks = w.key && !cli_given(a, "stream");
    w.asks_alerts = cli_has(a, "since");
    w.known =
        (struct client_alerts){.since = w.asks_alerts ? (uint64_t)cli_integer(a, "since") : 0, .key = w.key};
    w.bell = !w.json && !a->quiet && isatty(STDOUT_FILENO);
    w.command = cli_value(a, "exec");
    void *context = zmq_ctx_new();
    int result = context ? cmd_watch_run_with(&w, context, seconds) : cli_fail(a, "out of memory");
    if (context)
        zmq_ctx_term(context);
    svi_bytes_clear(&w.line);
    svi_bytes_clear(&w.request);
    svi_bytes_clear(&w.reply);
    return result;
}

static const struct cli_option options[] = {
    CLI_OPTION("key", 0, "KEY", NULL, "print only events of this key, its current model first"),
    CLI_SWITCH("json", 0, "print events as JSON lines, with their topic"),
    CLI_INTEGER("since", 0, "N", NULL, 0, CLI_UNLIMITED,
                "print the alert events after number N first (a request to `ctl`), then each new one, and "
                "none twice"),
    CLI_INTEGER("count", 'n', "N", "0", 0, CLI_UNLIMITED, "stop after N events; 0 does not stop"),
    CLI_NUMBER("timeout", 0, "SECONDS", "0", 0, 1e9,
               "stop after this time; 0 does not stop; the exit code is 1 after fewer than --count events, "
               "or if no process answers"),
    CLI_OPTION(
        "exec", 0, "COMMAND", NULL,
        "run this in a shell for each alert event, with the event as a JSON line on its standard input"),
    CLI_NUMBER("exec-timeout", 0, "SECONDS", "60", 0.001, 1e6,
               "end that command, and its children, after this time"),
    CLI_END};

static const char *watch_word(bool config, int i) {
    return !config && i < SVI_TOPIC_COUNT ? svi_topic_name((enum svi_topic)i) : NULL;
}

const struct cli_command cli_watch = {
    .name = "watch",
    .word = watch_word,
    .text = "print the events of a running process",
    .usage = "[TOPIC...]",
    .help =
        "Subscribes at `out` and prints one line per event. TOPIC is a prefix: model, score, bank, stats,\n"
        "error, alert, sums or prior. With the stream's name it selects one stream: model.pump1. (the\n"
        "final dot excludes model.pump10.). If watch is too slow, it reports the lost events: lost 3\n"
        "score events.\n"
        "\n"
        "An alert rings the terminal's bell, unless you give --quiet. --exec runs a command for each\n"
        "alert event, one after the other. The state of the event is open, update or close. watch reports\n"
        "a command that fails or takes more than --exec-timeout seconds, and runs the command again at\n"
        "the next event.\n"
        "\n"
        "Examples:\n"
        "  svmstream watch model error\n"
        "  svmstream watch --json score | jq .yhat\n"
        "  svmstream watch --key press-03 model alert            # of a stream with keys\n"
        "  svmstream watch alert --since 17                      # the missed ones since event 17 first\n"
        "  svmstream watch alert --exec 'jq -r .text | mail -s alert me@example.org'",
    .keys = "out ctl stream curve curve.server",
    .options = options,
    .run = cmd_watch_run};
