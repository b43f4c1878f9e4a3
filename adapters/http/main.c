/* svmstream-http: streams of svmstream for browsers, scrapers and curl. It speaks only the wire protocol.
 *
 * One thread, one loop (http_main_turn): it polls the HTTP server's descriptors, and whatever the other parts
 * wait for, until the nearest deadline, and then gives each part its turn. Nothing blocks. A signal ends the
 * loop through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
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
#include "routes.h"
#include "streams.h"
#include "token_command.h"
#include "weight_log.h"

#define LONGEST_WAIT 1.0
#define TURN_SECONDS 0.1 /* the streams get a turn at least this often while clients are served */
#define ITEMS_MAX    (2 + HTTP_SERVER_ITEMS + HTTP_STREAMS_MAX * HTTP_STREAM_ITEMS)

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

/* Waits as zmq_poll does, with half of its system calls: those are most of what a small request costs. True:
 * a socket of ZeroMQ may have something. Its descriptor is signalled once for what arrives, so the sockets
 * are asked right before the wait; between the two no call of ZeroMQ may stand. */
static bool http_main_poll(const zmq_pollitem_t *items, int n, double seconds) {
    struct pollfd fds[ITEMS_MAX];
    bool ready = false, signalled = false;
    for (int i = 0; i < n; i++) {
        int events = 0, fd = items[i].fd;
        size_t size = sizeof events;
        if (items[i].socket && zmq_getsockopt(items[i].socket, ZMQ_EVENTS, &events, &size) == 0)
            ready = ready || (events & items[i].events);
        size = sizeof fd;
        if (items[i].socket && zmq_getsockopt(items[i].socket, ZMQ_FD, &fd, &size) != 0)
            fd = -1;
        fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)n, ready ? 0 : (int)ceil(1000 * seconds)) <= 0)
        return ready; /* interrupted: another round */
    for (int i = 0; i < n; i++)
        signalled = signalled || (items[i].socket && fds[i].revents);
    return ready || signalled;
}

/* One round of the loop. False: a signal says that it is time to end. */
static bool http_main_turn(struct http_app *app) {
    zmq_pollitem_t items[ITEMS_MAX] = {{NULL, http_signal_pipe[0], ZMQ_POLLIN, 0},
                                       {NULL, http_history_fd(app->history), ZMQ_POLLIN, 0}};
    const int capacity = (int)(sizeof items / sizeof *items);
    int n = 2;
    char number;
    n += http_server_items(app->server, items + n);
    n += http_streams_items(app->streams, items + n, capacity - n);
    const double wait = fmin(fmin(LONGEST_WAIT, http_server_wait(app->server)),
                             fmin(http_streams_wait(app->streams), http_events_wait(app->events)));
    /* The streams first: their replies are answers, which the server then sends in the same round. */
    if (http_main_poll(items, n, wait) || http_streams_wait(app->streams) <= 0 ||
        svi_monotonic() - app->streams_turn >= TURN_SECONDS) {
        http_streams_turn(app->streams);
        app->streams_turn = svi_monotonic();
    }
    http_events_turn(app->events);
    http_history_turn(app->history);
    http_server_turn(app->server);
    while (read(http_signal_pipe[0], &number, 1) == 1)
        if (number != SIGHUP)
            return false;
        else if (app->guard) {
            http_guard_reload(app->guard);
            http_server_recheck(app->server);
        }
    return true;
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

static int http_main_run(const struct http_options *o) {
    struct http_app *app = http_log_need(1, sizeof *app);
    app->options = o;
    app->routes = http_routes;
    const int code = http_main_open(app);
    if (code == 0 && !o->quiet)
        http_log("open %s in a browser", http_server_url(app->server));
    while (code == 0 && http_main_turn(app))
        ;
    http_main_close(app);
    svi_free(app);
    return code;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "token") == 0)
        return http_token_command_run(argc - 1, argv + 1);
    struct http_options *o = http_log_need(1, sizeof *o);
    enum http_wish wish;
    int code = http_options_read(o, argc, argv, &wish);
    if (!code && wish == HTTP_HELP)
        http_options_help();
    else if (!code && wish == HTTP_VERSION)
        puts("svmstream-http " SVS_VERSION);
    else if (!code)
        code = http_main_run(o);
    http_options_clear(o);
    svi_free(o);
    return code;
}
