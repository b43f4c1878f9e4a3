/* kafka_options.h: the command lines of svmstream-kafka: `run`, `feed`, `sums`. */
#ifndef KAFKA_OPTIONS_H
#define KAFKA_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/settings.h"
#include "kafka_conf.h"

#define KAFKA_FILES_MAX 1000
#define KAFKA_TOPIC     256 /* bytes of the name of a topic */

enum kafka_command { KAFKA_RUN, KAFKA_FEED, KAFKA_SUMS };

struct kafka_options {
    enum kafka_command command;
    struct kafka_settings kafka; /* owned */
    const char *brokers;         /* NULL: bootstrap.servers of the user's settings */
    const char *stream, *topic;  /* topic: of the entries; the others are STREAM.state, .sums, .out */
    const char *file;            /* of settings */
    const char *group, *strategy, *folder, *program, *publish;
    bool transactional;
    unsigned kinds;                /* bit t: events of enum svi_topic t go to STREAM.out */
    double save, stats, handover;  /* seconds */
    const char *const *arguments;  /* of `svmstream run`; NULL at the end */
    struct svi_settings *settings; /* of feed: what the columns are; owned */
    const char *files[KAFKA_FILES_MAX];
    int file_count;
    const char *column; /* of feed: it selects the partition */
    int64_t batch, entry_bytes;
    bool packed, quiet, once;
    char own_group[128], own_folder[128];
};

/* Reads the words after the program's name. Returns 0, or the exit code after reporting what is wrong; *done:
 * --help or --version was answered. `arguments` points into argv. kafka_options_clear in any case. */
int kafka_options_read(struct kafka_options *o, int argc, char **argv, bool *done);
void kafka_options_clear(struct kafka_options *o);

#endif
