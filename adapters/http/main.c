/* svmstream-http: streams of svmstream for browsers, scrapers and curl. It speaks only the wire protocol.
 *
 * One thread, one loop (http_main_turn): it polls the HTTP server's descriptors, and whatever the other parts
 * wait for, until the nearest deadline, and then gives each part its turn. Nothing blocks. A signal ends the
 * loop through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <svmstream/svmstream.h>
#include <zmq.h>

#include "alert_list.h"
#include "app.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "event_ring.h"
#include "guard.h"
#include "http_history.h"
#include "http_log.h"
#include "http_options.h"
#include "http_server.h"
#include "polled.h"
#include "routes.h"
#include "streams.h"
#include "token_command.h"
#include "weight_log.h"

#define LONGEST_WAIT  1.0
#define FIRST_SECONDS                                                                                        \
    0.5 /* for streams that run: a client that then reads the address finds them connected */
#define AHEAD_BYTES                                                                                          \
    (2u << 20) /* kept by malloc: bodies and answers are as large as it gives back otherwise */
#define TURN_SECONDS                                                                                         \
    0.1 /* all sockets of the streams get a turn at least this often while clients are served */

/* The end of the pipe that a signal writes its number to: the only thing that a handler can reach. */
static int http_signal_pipe[2] = {-1, -1};

/* Only async-signal-safe calls may stand here. */
static void http_main_on_signal(int number) {
    const int saved = errno;
    const char byte = (char)number;
    if (write(http_signal_pipe[1], &byte, 1) < 0)
        errno = saved;
    errno = saved;
}

static int http_main_signals(void) {
    const struct sigaction pass = {.sa_handler = http_main_on_signal}, none = {.sa_handler = SIG_IGN};
    if (pipe2(http_signal_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGINT, &pass, NULL) == 0 &&
        sigaction(SIGTERM, &pass, NULL) == 0 && sigaction(SIGHUP, &pass, NULL) == 0 &&
        sigaction(SIGPIPE, &none, NULL) == 0)
        return 0;
    http_log("signals cannot be waited for: %s", strerror(errno));
    return 1;
}

/* The items of the loop, in this order; behind them, HTTP_STREAM_ITEMS of each stream. */
enum { SIGNALS, HISTORY, SERVER, STREAMS = SERVER + HTTP_SERVER_ITEMS };

_Static_assert(STREAMS + HTTP_STREAMS_MAX * HTTP_STREAM_ITEMS <= HTTP_POLLED_MAX, "items of the loop");

/* SIGHUP: certificate and tokens may have been replaced. */
static void http_main_reload(struct http_app *app) {
    http_server_reload(app->server);
    if (app->guard) {
        http_guard_reload(app->guard);
        http_server_recheck(app->server);
    }
}

/* Takes the signals that have arrived. False: one of them says that it is time to end. */
static bool http_main_take_signals(struct http_app *app) {
    char number;
    while (read(http_signal_pipe[0], &number, 1) == 1)
        if (number != SIGHUP)
            return false;
        else
            http_main_reload(app);
    return true;
}

/* One round of the loop, which waits at most `longest` seconds. False: a signal says that it is time to end.
 */
static bool http_main_turn(struct http_app *app, double longest) {
    zmq_pollitem_t items[HTTP_POLLED_MAX];
    items[SIGNALS] = (zmq_pollitem_t){NULL, http_signal_pipe[0], ZMQ_POLLIN, 0};
    items[HISTORY] = (zmq_pollitem_t){NULL, http_history_fd(app->history), ZMQ_POLLIN, 0};
    http_server_items(app->server, items + SERVER);
    const int n = http_streams_items(app->streams, items + STREAMS);
    const double wait = fmin(fmin(longest, http_server_wait(app->server)),
                             fmin(http_streams_wait(app->streams), http_events_wait(app->events)));
    http_polled_wait(items, STREAMS + n, wait);
    /* The streams first: their replies are answers, which the server then sends in the same round. Now and
     * then all of their sockets are tried: some have monitors that are not polled. */
    const bool all = svi_monotonic() - app->streams_turn >= TURN_SECONDS;
    if (all)
        app->streams_turn = svi_monotonic();
    if (all || http_polled_any(items + STREAMS, n) || http_streams_wait(app->streams) <= 0)
        http_streams_turn(app->streams, all ? NULL : items + STREAMS);
    http_events_turn(app->events);
    if (items[HISTORY].revents)
        http_history_turn(app->history);
    http_server_turn(app->server, items + SERVER);
    return !items[SIGNALS].revents || http_main_take_signals(app);
}

static int http_main_open(struct http_app *app) {
    svs_error err;
    if ((app->streams = http_streams_open(app->options, &err)) &&
        (app->events = http_events_open(app->streams, &app->tally, &err)) &&
        (app->alerts = http_alerts_open(app->streams, &err)) &&
        (app->weights = http_weights_open(app->streams, &err)) &&
        (app->history = http_history_open(app->options->history, app->options->history_days, app->streams,
                                          &app->tally, &err)))
        return http_main_signals() == 0 &&
                       (!app->options->tokens || (app->guard = http_guard_open(app->options->tokens))) &&
                       (app->server = http_server_open(app))
                   ? 0
                   : 1;
    http_log("%s", err.text);
    return 1;
}

/* The server first, so that no client is left; then the streams, whose requests under way end. */
static void http_main_close(struct http_app *app) {
    http_server_close(app->server);
    http_streams_close(&app->streams);
    http_events_close(&app->events);
    http_alerts_close(&app->alerts);
    http_weights_close(&app->weights);
    http_history_close(&app->history);
    http_guard_close(app->guard);
}

/* Can every stream be asked, and take samples if it takes any from here? */
static bool http_main_connected(const struct http_app *app) {
    for (int i = 0; i < http_streams_count(app->streams); i++) {
        const struct http_stream *s = http_streams_at(app->streams, i);
        if (s->state != HTTP_STREAM_LIVE || s->config.size == 0 ||
            (s->in_mode == HTTP_IN_ROUTER && !s->in.connected))
            return false;
    }
    return true;
}

static int http_main_run(const struct http_options *o) {
    struct http_app *app = http_log_need(1, sizeof *app);
    svi_alloc_ahead(AHEAD_BYTES);
    app->options = o;
    app->routes = http_routes;
    const int code = http_main_open(app);
    const double announce = svi_monotonic() + FIRST_SECONDS;
    bool announced = o->quiet;
    while (code == 0 && http_main_turn(app, announced ? LONGEST_WAIT : FIRST_SECONDS / 10))
        if (!announced && (http_main_connected(app) || svi_monotonic() >= announce)) {
            http_log("open %s in a browser", http_server_url(app->server));
            announced = true;
        }
    http_main_close(app);
    svi_free(app);
    return code;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "token") == 0)
        return http_token_command_run(argc - 1, argv + 1);
    struct http_options *o = http_log_need(1, sizeof *o);
    bool done;
    int code = http_options_read(o, argc, argv, &done);
    if (!code && !done)
        code = http_main_run(o);
    http_options_clear(o);
    svi_free(o);
    return code;
}
