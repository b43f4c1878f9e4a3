/* redis_log.h: lines on standard error, each beginning with the program's name, and memory that must be
 * there. Text that came over the network is escaped by the caller. */
#ifndef REDIS_LOG_H
#define REDIS_LOG_H

#include <stddef.h>
#include <stdint.h>

#define REDIS_LOGGED 5 /* times that the same kind of trouble is logged */

/* A line the first REDIS_LOGGED times, by `count` (already raised; 0: always); the last one announces that
 * further ones are only counted. */
void redis_log_few(int64_t count, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define redis_log(...) redis_log_few(0, __VA_ARGS__)

/* Zeroed memory, to be freed with svi_free. Without any the program ends (exit code 1): Redis keeps the
 * leases and the log for another worker. */
void *redis_need(size_t count, size_t size);
void redis_no_memory(size_t size) __attribute__((noreturn));

#endif
