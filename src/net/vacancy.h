/* vacancy.h: does anybody listen on an address? Asked before one is bound, and until one that was closed is
 * free, which libzmq does in the background. */
#ifndef SVI_VACANCY_H
#define SVI_VACANCY_H

#include <stdbool.h>

/* Could it be bound now? Of tcp and ipc addresses as libzmq reports those that it has bound; others count as
 * free. */
bool svi_address_is_free(const char *address);

/* Waits for that, at most this long. */
void svi_address_await_free(const char *address, double seconds);

#endif
