/* svmstream-redis: a stream whose log is in Redis Streams, on any number of machines. It speaks only the wire
 * format to the `svmstream run` of each partition. */
#include "redis_feed.h"
#include "redis_options.h"
#include "redis_read.h"
#include "redis_worker.h"

int main(int argc, char **argv) {
    static int (*const commands[])(const struct redis_options *) = {redis_worker_run, redis_feed_run,
                                                                    redis_sums_run, redis_status_run};
    struct redis_options o;
    bool done;
    int code = redis_options_read(&o, argc, argv, &done);
    if (code == 0 && !done)
        code = commands[o.command](&o);
    redis_options_clear(&o);
    return code;
}
