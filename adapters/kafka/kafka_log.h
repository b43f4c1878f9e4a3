/* kafka_log.h: what the adapter reports on standard error (../common/adapter_log.h). */
#ifndef KAFKA_LOG_H
#define KAFKA_LOG_H

#include "../common/adapter_log.h"

#define KAFKA_PROGRAM             "svmstream-kafka"
#define kafka_log_few(count, ...) adapter_log_few(KAFKA_PROGRAM, count, __VA_ARGS__)
#define kafka_log(...)            kafka_log_few(0, __VA_ARGS__)

#endif
