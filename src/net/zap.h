/* zap.h: libzmq's question whether a peer may connect, and the answer (ZAP, rfc.zeromq.org/spec/27), on a REP
 * socket at inproc://zeromq.zap.01. */
#ifndef SVI_ZAP_H
#define SVI_ZAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SVI_ZAP_ADDRESS "inproc://zeromq.zap.01"

/* Texts end in NUL; a longer one is cut, and then equals none that is known. */
struct svi_zap {
    bool complete; /* no frame is missing */
    char id[256];
    size_t id_size;
    char domain[16], address[64], mechanism[16];
    uint8_t key[32]; /* CURVE: the peer's public key */
    size_t key_size; /* 0 with another mechanism or another size */
};

/* Takes the next question without waiting. False: there is none. */
bool svi_zap_receive(void *gate, struct svi_zap *q);

/* `user` becomes the messages' User-Id. */
void svi_zap_answer(void *gate, const struct svi_zap *q, bool yes, const char *user);

#endif
