#include "net/zap.h"

#include <string.h>

#include <zmq.h>

enum { VERSION, ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY, FRAMES };

static void zap_take_text(char *out, size_t room, const char *bytes, size_t size) {
    size_t length = size < room ? size : room - 1;
    memcpy(out, bytes, length);
    out[length] = '\0';
}

static void zap_take_frame(struct svi_zap *q, int number, const char *bytes, size_t size) {
    if (number == ID && size < sizeof q->id) {
        memcpy(q->id, bytes, size);
        q->id_size = size;
    } else if (number == DOMAIN) {
        zap_take_text(q->domain, sizeof q->domain, bytes, size);
    } else if (number == ADDRESS) {
        zap_take_text(q->address, sizeof q->address, bytes, size);
    } else if (number == MECHANISM) {
        zap_take_text(q->mechanism, sizeof q->mechanism, bytes, size);
    } else if (number == KEY && size == sizeof q->key) {
        memcpy(q->key, bytes, size);
        q->key_size = size;
    }
}

bool svi_zap_receive(void *gate, struct svi_zap *q) {
    zmq_msg_t m;
    bool more = true;
    int count = 0;
    memset(q, 0, sizeof *q);
    zmq_msg_init(&m);
    for (; more && zmq_msg_recv(&m, gate, ZMQ_DONTWAIT) >= 0; count++) {
        zap_take_frame(q, count, zmq_msg_data(&m), zmq_msg_size(&m));
        more = zmq_msg_more(&m);
    }
    zmq_msg_close(&m);
    q->complete = count > MECHANISM;
    return count > 0;
}

void svi_zap_answer(void *gate, const struct svi_zap *q, bool yes, const char *user) {
    /* Status, its text, user, metadata. 400 would make libzmq's clients give up for ever without a word;
     * after 300 they try again, once the handshake has timed out, and are let in when their key is listed by
     * then. */
    const char *const reply[] = {yes ? "200" : "300", "", yes ? user : "", ""};
    zmq_send(gate, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(gate, q->id, q->id_size, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    for (int i = 0; i < 4; i++)
        zmq_send(gate, reply[i], strlen(reply[i]), (i < 3 ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT);
}
