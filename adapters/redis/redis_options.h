/* redis_options.h: the command line of svmstream-redis. */
#ifndef REDIS_OPTIONS_H
#define REDIS_OPTIONS_H

#include "config/settings.h"
#include "redis_url.h"

enum redis_command { REDIS_COMMAND_WORKER, REDIS_COMMAND_FEED, REDIS_COMMAND_SUMS, REDIS_COMMAND_STATUS };

struct redis_options {
    enum redis_command command;
    const char *redis, *password_file; /* as given */
    struct redis_url url;
    const char *stream;
    int64_t count;  /* of partitions; 0: as it is */
    double timeout; /* seconds */
    int64_t wait;   /* replicas; of a worker and feed */
    /* of a worker */
    const char *partitions, *folder, *program, *publish;
    unsigned topics;
    double lease, save, stats;
    int64_t keep;
    bool keep_log;
    const char *const *arguments; /* of `svmstream run` */
    int argument_count;
    /* of feed */
    const char *column, *src;
    int64_t batch;
    bool packed, quiet;
    struct svi_settings settings;
    const char **path; /* owned */
    int paths;
    /* of sums */
    bool follow;
};

/* 0; 2 (or 1, when a file cannot be read) after a line on standard error. *done: help was printed.
 * redis_options_clear in any case. */
int redis_options_read(struct redis_options *o, int argc, char *const *argv, bool *done);
void redis_options_clear(struct redis_options *o);

/* Marks the partitions of "0-3,7" in wanted[0 .. count); 2 and a line if the list is wrong. */
int redis_options_partitions(const struct redis_options *o, int count, bool *wanted);

/* Reports a mistake in the command line. Returns 2. */
#define redis_options_wrong(...) adapter_options_wrong("svmstream-redis", __VA_ARGS__)

#endif
