/* kafka_log.h: what the adapter reports on standard error: one line an occasion, with the program's name in
 * front. What may happen with every record is logged the first few times only; the counters go on. */
#ifndef KAFKA_LOG_H
#define KAFKA_LOG_H

#include <stdint.h>

#define KAFKA_LOGGED 5 /* times that the same kind of trouble is logged */

/* A line the first KAFKA_LOGGED times, by `count` (already raised; 0: always); the last of them states that
 * further ones are only counted. */
void kafka_log_few(int64_t count, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define kafka_log(...) kafka_log_few(0, __VA_ARGS__)

#endif
