/* adapter_log.h: lines of an adapter on standard error, each beginning with the program's name, and memory
 * that must be there. Text that arrived over the network is escaped by the caller. */
#ifndef ADAPTER_LOG_H
#define ADAPTER_LOG_H

#include <stddef.h>
#include <stdint.h>

#define ADAPTER_LOGGED 5 /* times that the same kind of trouble is logged */

/* A line the first ADAPTER_LOGGED times, by `count` (already raised; 0: always); the last one announces that
 * further ones are only counted. */
void adapter_log_few(const char *program, int64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory, to be freed with svi_free. Without any the program ends (exit code 1): an adapter has
 * nothing to save, and broker or log keep what they have for the next run. */
void *adapter_need(const char *program, size_t count, size_t size);
void adapter_no_memory(const char *program, size_t size) __attribute__((noreturn));

#endif
