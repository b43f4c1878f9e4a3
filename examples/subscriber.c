/* A program that scores by itself: it sends samples to a running `svmstream run`, receives the models,
 * computes the scores of its own samples with them, and compares with what the process says. They agree to
 * the last few bits.
 *
 *     svmstream run --method alsvm --publish.every 1 &
 *     build/examples/subscriber tcp://127.0.0.1:5555 tcp://127.0.0.1:5556
 *
 * A score names the model version that made it; with publish.every 1 every version is published. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>
#include <zmq.h>

#include <svmstream/svmstream.h>

enum { D = 3, SAMPLES = 200, MODELS = 2 * SAMPLES, FIRST_WAIT_MS = 10000 };

/* Sample i, known to both sides: a point on a slowly turning spiral; its label is which side of a plane it
 * lies on. */
static int64_t sample(int i, double *x) {
    x[0] = cos(0.7 * i) * (1 + 0.01 * i);
    x[1] = sin(1.3 * i);
    x[2] = 0.5 * cos(0.11 * i);
    return x[0] + 2 * x[1] - x[2] > 0.3;
}

static void key(msgpack_packer *to, const char *name) {
    msgpack_pack_str_with_body(to, name, strlen(name));
}

static int send_sample(void *push, int i) {
    double x[D];
    int64_t y = sample(i, x);
    msgpack_sbuffer bytes;
    msgpack_packer to;
    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&to, &bytes, msgpack_sbuffer_write);
    msgpack_pack_map(&to, 3);
    key(&to, "id");
    msgpack_pack_int(&to, i);
    key(&to, "y");
    msgpack_pack_int64(&to, y);
    key(&to, "x");
    msgpack_pack_array(&to, D);
    for (int j = 0; j < D; j++)
        msgpack_pack_double(&to, x[j]);
    int sent = zmq_send(push, bytes.data, bytes.size, 0);
    msgpack_sbuffer_destroy(&bytes);
    return sent < 0 ? -1 : 0;
}

/* The value of a key of a map, or NULL. */
static const msgpack_object *get(const msgpack_object *map, const char *name) {
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == strlen(name) &&
            memcmp(k->via.str.ptr, name, k->via.str.size) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

struct published {
    long id;
    uint64_t version;
    double score;
};

/* Reads one `score.` payload; -1 when it is not one, or one without a score (no class was known yet). */
static int read_score(const void *bytes, size_t length, struct published *out) {
    msgpack_unpacked unpacked;
    int result = -1;
    msgpack_unpacked_init(&unpacked);
    if (msgpack_unpack_next(&unpacked, bytes, length, NULL) == MSGPACK_UNPACK_SUCCESS &&
        unpacked.data.type == MSGPACK_OBJECT_MAP) {
        const msgpack_object *id = get(&unpacked.data, "id"), *version = get(&unpacked.data, "model");
        const msgpack_object *scores = get(&unpacked.data, "scores");
        if (id && version && scores && scores->type == MSGPACK_OBJECT_ARRAY && scores->via.array.size == 1) {
            const double score = scores->via.array.ptr[0].via.f64;
            *out = (struct published){(long)id->via.i64, version->via.u64, score};
            result = 0;
        }
    }
    msgpack_unpacked_destroy(&unpacked);
    return result;
}

/* The events received. */
struct received {
    svs_model *model[MODELS];
    int models;
    struct published score[SAMPLES];
    int scores;
};

static const svs_model *find(const struct received *h, uint64_t version) {
    for (int i = 0; i < h->models; i++)
        if (h->model[i]->version == version)
            return h->model[i];
    return NULL;
}

/* One event (topic, payload); returns 1 when the score of the last sample was received, -1 when nothing arrived
 * in time. */
static int receive(void *sub, struct received *h) {
    zmq_msg_t topic, payload;
    int last = 0;
    zmq_msg_init(&topic);
    zmq_msg_init(&payload);
    if (zmq_msg_recv(&topic, sub, 0) < 0 || zmq_msg_recv(&payload, sub, 0) < 0) {
        last = -1;
    } else if (memcmp(zmq_msg_data(&topic), "model.", 6) == 0) {
        svs_model *m = svs_model_decode(zmq_msg_data(&payload), zmq_msg_size(&payload), NULL);
        if (m && m->d == D && h->models < MODELS)
            h->model[h->models++] = m;
        else
            svs_model_free(&m);
    } else if (h->scores < SAMPLES) {
        struct published s;
        if (read_score(zmq_msg_data(&payload), zmq_msg_size(&payload), &s) == 0) {
            h->score[h->scores++] = s;
            last = s.id == SAMPLES - 1;
        }
    }
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
    return last;
}

static int compare(const struct received *h) {
    int compared = 0, equal = 0;
    for (int i = 0; i < h->scores; i++) {
        const struct published *s = &h->score[i];
        const svs_model *m = find(h, s->version);
        double x[D], own;
        if (!m || s->id < 0 || s->id >= SAMPLES)
            continue;
        sample((int)s->id, x);
        svs_model_scores(m, x, &own);
        compared++;
        equal += fabs(own - s->score) <= 1e-9 * (1 + fabs(s->score));
    }
    printf("%d scores compared, %d equal\n", compared, equal);
    return compared >= SAMPLES / 2 && equal == compared ? 0 : 1;
}

static int talk(void *push, void *sub) {
    static struct received events;
    int last = 0, status = 1;
    for (int i = 0; i < SAMPLES; i++)
        if (send_sample(push, i) != 0)
            return 1;
    while (last == 0)
        last = receive(sub, &events);
    if (last < 0)
        fprintf(stderr, "subscriber: no event arrived within %d ms: %s\n", FIRST_WAIT_MS,
                zmq_strerror(zmq_errno()));
    else
        status = compare(&events);
    for (int i = 0; i < events.models; i++)
        svs_model_free(&events.model[i]);
    return status;
}

/* Subscriptions travel. The last of them answers when all are in force, for the process repeats its stats. */
static int subscribe(void *sub) {
    static const char *const topics[] = {"model.", "score.", "stats."};
    bool answered = false, failed = false;
    for (int i = 0; i < 3; i++)
        zmq_setsockopt(sub, ZMQ_SUBSCRIBE, topics[i], 6);
    while (!answered && !failed) {
        zmq_msg_t topic, payload;
        zmq_msg_init(&topic);
        zmq_msg_init(&payload);
        failed = zmq_msg_recv(&topic, sub, 0) < 0 || zmq_msg_recv(&payload, sub, 0) < 0;
        answered = !failed && memcmp(zmq_msg_data(&topic), "stats.", 6) == 0;
        zmq_msg_close(&topic);
        zmq_msg_close(&payload);
    }
    zmq_setsockopt(sub, ZMQ_UNSUBSCRIBE, "stats.", 6);
    return failed ? -1 : 0;
}

int main(int argc, char **argv) {
    int timeout = FIRST_WAIT_MS, status = 1;
    if (argc != 3) {
        fprintf(stderr,
                "usage: subscriber IN OUT, the addresses of a running `svmstream run --publish.every 1`\n");
        return 2;
    }
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *sub = zmq_socket(context, ZMQ_SUB);
    int no_limit = 0;
    zmq_setsockopt(sub, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(sub, ZMQ_RCVHWM, &no_limit, sizeof no_limit);
    if (zmq_connect(push, argv[1]) != 0 || zmq_connect(sub, argv[2]) != 0)
        fprintf(stderr, "subscriber: %s\n", zmq_strerror(zmq_errno()));
    else if (subscribe(sub) != 0)
        fprintf(stderr, "subscriber: nobody publishes at %s\n", argv[2]);
    else
        status = talk(push, sub);
    timeout = 0;
    zmq_setsockopt(push, ZMQ_LINGER, &timeout, sizeof timeout);
    zmq_close(push);
    zmq_close(sub);
    zmq_ctx_term(context);
    return status;
}
