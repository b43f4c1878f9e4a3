/* process_figures.h: the figures that every exporter has of its own process, by Prometheus' names. */
#ifndef HTTP_PROCESS_FIGURES_H
#define HTTP_PROCESS_FIGURES_H

#include "exposition.h"

/* Writes process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
 * process_start_time_seconds, process_open_fds and process_max_fds. What the system does not say is left
 * out. */
void http_process_figures_write(struct http_exposition *x);

#endif
