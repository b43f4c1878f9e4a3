/* redis_log.h: lines on standard error, and memory that must be there (../common/adapter_log.h). */
#ifndef REDIS_LOG_H
#define REDIS_LOG_H

#include "../common/adapter_log.h"

#define REDIS_PROGRAM             "svmstream-redis"
#define redis_log_few(count, ...) adapter_log_few(REDIS_PROGRAM, count, __VA_ARGS__)
#define redis_log(...)            redis_log_few(0, __VA_ARGS__)
#define redis_need(count, size)   adapter_need(REDIS_PROGRAM, count, size)
#define redis_no_memory(size)     adapter_no_memory(REDIS_PROGRAM, size)

#endif
