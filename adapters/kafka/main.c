/* svmstream-kafka: streams of svmstream over the partitions of a Kafka topic (kafka_run), rows of files into
 * that log (kafka_feed), and the sums of its models out of it (kafka_sums). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kafka_feed.h"
#include "kafka_log.h"
#include "kafka_run.h"
#include "kafka_sums.h"

/* The end of the pipe that a signal writes to: the only thing that a handler can reach. */
static int stop_pipe[2] = {-1, -1};

static void kafka_main_on_stop(int number) {
    const int saved = errno;
    (void)number;
    if (write(stop_pipe[1], "", 1) < 0)
        errno = saved;
    errno = saved;
}

/* A write to a closed pipe must fail, not end the program. The byte stays in the pipe: a loop that polls it
 * later sees the signal too. */
static int kafka_main_signals(void) {
    struct sigaction stop = {.sa_handler = kafka_main_on_stop}, none = {.sa_handler = SIG_IGN};
    const bool good = pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) == 0 && sigaction(SIGINT, &stop, NULL) == 0 &&
                      sigaction(SIGTERM, &stop, NULL) == 0 && sigaction(SIGPIPE, &none, NULL) == 0;
    if (!good)
        kafka_log("signals cannot be waited for: %s", strerror(errno));
    return good ? 0 : 1;
}

int main(int argc, char **argv) {
    static int (*const commands[])(struct kafka_options *, int) = {
        [KAFKA_RUN] = kafka_run, [KAFKA_FEED] = kafka_feed, [KAFKA_SUMS] = kafka_sums};
    struct kafka_options *o = svi_alloc(sizeof *o);
    bool done = false;
    if (!o) {
        kafka_log("no memory");
        return 1;
    }
    int code = kafka_options_read(o, argc, argv, &done);
    if (!code && !done)
        code = kafka_main_signals();
    if (!code && !done)
        code = commands[o->command](o, stop_pipe[0]);
    kafka_options_clear(o);
    svi_free(o);
    return code;
}
