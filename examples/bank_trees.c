/* A program that computes the scores of the boosted trees of `method auto` by itself: it sends samples,
 * receives banks and scores, walks each row through the trees of the bank that made its score, and compares.
 *
 *     svmstream run --publish.every 1 --score.members yes &
 *     build/examples/bank_trees tcp://127.0.0.1:5555 tcp://127.0.0.1:5556
 *
 * Two classes here; bank_trees.py does more of them, and regressions. A bank has the nodes of a forest when
 * they are new, and only their version later, so the last ones of each name are kept. The layout of a node is
 * in `svmstream help protocol`, Trees of a bank. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>
#include <zmq.h>

enum { D = 3, SAMPLES = 400, NODE = 12, TREES_MAX = 1000, FORESTS = 2, FIRST_WAIT_MS = 10000 };

static const char *const names[FORESTS] = {"trees-5000", "trees-all"};

/* Sample i, known to both sides; its class is no linear one. */
static int64_t sample(int i, double *x) {
    x[0] = cos(0.7 * i) * (1 + 0.01 * i);
    x[1] = 1e6 + sin(1.3 * i);
    x[2] = 0.5 * cos(0.11 * i);
    return (x[0] > 0) != (x[1] > 1e6);
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
    for (uint32_t i = 0; map && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == strlen(name) &&
            memcmp(k->via.str.ptr, name, k->via.str.size) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

static double real(const msgpack_object *o) {
    return !o                                           ? NAN
           : o->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (double)o->via.u64
           : o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ? (double)o->via.i64
                                                        : o->via.f64;
}

/* The forest of one member, as its last event with nodes had it. */
struct forest {
    double base;
    uint32_t first[TREES_MAX];
    uint32_t trees;
    uint8_t *nodes;
    size_t size;
};

/* The bank as it was published last. */
struct bank {
    uint64_t version;
    bool has[FORESTS]; /* this member has trees */
    double origin[D], limit;
    int origins;
    struct forest forest[FORESTS];
    int received; /* forests with nodes so far */
};

static void read_forest(struct bank *b, const msgpack_object *f) {
    const msgpack_object *name = get(f, "name"), *nodes = get(f, "nodes"), *first = get(f, "first"),
                         *base = get(f, "base");
    int k = 0;
    while (k < FORESTS && strncmp(names[k], name->via.str.ptr, name->via.str.size) != 0)
        k++;
    if (k == FORESTS)
        return;
    b->has[k] = true;
    if (!nodes || first->via.array.size > TREES_MAX)
        return;
    struct forest *to = &b->forest[k];
    free(to->nodes);
    to->size = nodes->via.bin.size;
    to->nodes = malloc(to->size);
    if (!to->nodes)
        exit(1);
    memcpy(to->nodes, nodes->via.bin.ptr, to->size);
    memcpy(&to->base, base->via.ext.ptr, sizeof to->base);
    to->trees = first->via.array.size;
    for (uint32_t i = 0; i < to->trees; i++)
        to->first[i] = (uint32_t)first->via.array.ptr[i].via.u64;
    b->received++;
}

static void read_bank(struct bank *b, const msgpack_object *event) {
    const msgpack_object *trees = get(event, "trees"), *origin = get(trees, "origin");
    const msgpack_object *forests = get(trees, "forests"), *version = get(event, "version");
    b->version = version ? version->via.u64 : 0;
    b->has[0] = b->has[1] = false;
    if (!trees || !origin || !forests || origin->via.ext.size > D * sizeof(double))
        return;
    b->limit = real(get(trees, "limit"));
    b->origins = (int)(origin->via.ext.size / sizeof(double));
    memcpy(b->origin, origin->via.ext.ptr, origin->via.ext.size);
    for (uint32_t i = 0; i < forests->via.array.size; i++)
        read_forest(b, &forests->via.array.ptr[i]);
}

/* The node at this index: bit 31 of the word marks a leaf, bit 30 that missing values go left, the rest is
 * the column. */
struct node {
    uint32_t word;
    float value;
    uint32_t right;
};

static struct node node_at(const struct forest *f, size_t i) {
    struct node n = {.word = UINT32_C(1) << 31};
    if ((i + 1) * NODE > f->size)
        return n;
    memcpy(&n.word, f->nodes + i * NODE, 4); /* little-endian, as this machine is */
    memcpy(&n.value, f->nodes + i * NODE + 4, 4);
    memcpy(&n.right, f->nodes + i * NODE + 8, 4);
    return n;
}

/* Half the log odds of the second class. */
static double score_of(const struct bank *b, const struct forest *f, const double *x) {
    float row[D] = {0};
    double sum = f->base;
    for (int j = 0; j < b->origins; j++)
        row[j] = (float)(x[j] - b->origin[j]);
    for (uint32_t t = 0; t < f->trees; t++) {
        size_t i = f->first[t];
        struct node n = node_at(f, i);
        while (!(n.word >> 31)) {
            const float v = row[(n.word & 0x3fffffff) % D];
            i += (isnan(v) ? !(n.word >> 30 & 1) : v > n.value) ? n.right : 1;
            n = node_at(f, i);
        }
        sum += n.value;
    }
    return fmin(fmax(sum / 2, -b->limit), b->limit);
}

struct result {
    int scores, compared;
    double worst; /* difference */
};

/* Both members, while the second has no trees of its own, score by the first's. */
static void compare(const struct bank *b, const msgpack_object *score, struct result *r) {
    const msgpack_object *members = get(score, "members"), *id = get(score, "id"), *made = get(score, "bank");
    r->scores++;
    if (!members || !id || !made || made->via.u64 != b->version || !b->has[0] || id->via.u64 >= SAMPLES)
        return;
    for (int k = 0; k < FORESTS; k++) {
        const msgpack_object *published = get(members, names[k]);
        double x[D];
        if (!published || published->via.array.size != 1)
            continue;
        sample((int)id->via.u64, x);
        const double own = score_of(b, &b->forest[b->has[k] ? k : 0], x);
        r->worst = fmax(r->worst, fabs(own - real(&published->via.array.ptr[0])));
        r->compared++;
    }
}

/* One event (topic, payload). False: nothing arrived in time. */
static bool receive(void *sub, struct bank *b, struct result *r) {
    zmq_msg_t topic, payload;
    msgpack_unpacked event;
    zmq_msg_init(&topic);
    zmq_msg_init(&payload);
    msgpack_unpacked_init(&event);
    const bool came = zmq_msg_recv(&topic, sub, 0) >= 0 && zmq_msg_recv(&payload, sub, 0) >= 0;
    if (came && msgpack_unpack_next(&event, zmq_msg_data(&payload), zmq_msg_size(&payload), NULL) ==
                    MSGPACK_UNPACK_SUCCESS) {
        if (memcmp(zmq_msg_data(&topic), "bank.", 5) == 0)
            read_bank(b, &event.data);
        else
            compare(b, &event.data, r);
    }
    msgpack_unpacked_destroy(&event);
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
    return came;
}

/* Subscriptions travel. The last of them answers when all are in force, for the process repeats its stats. */
static bool subscribe(void *sub) {
    static const char *const topics[] = {"bank.", "score.", "stats."};
    bool answered = false, failed = false;
    for (int i = 0; i < 3; i++)
        zmq_setsockopt(sub, ZMQ_SUBSCRIBE, topics[i], strlen(topics[i]));
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
    return !failed;
}

static int talk(void *push, void *sub) {
    struct bank bank = {0};
    struct result r = {0};
    bool came = true;
    for (int i = 0; i < SAMPLES; i++)
        if (send_sample(push, i) != 0)
            return 1;
    while (came && r.scores < SAMPLES)
        came = receive(sub, &bank, &r);
    printf("%d scores of trees compared, %d forests received, largest difference %.1e\n", r.compared,
           bank.received, r.worst);
    for (int k = 0; k < FORESTS; k++)
        free(bank.forest[k].nodes);
    return came && r.compared >= SAMPLES && r.worst <= 1e-6 ? 0 : 1;
}

int main(int argc, char **argv) {
    int timeout = FIRST_WAIT_MS, status = 1, no_limit = 0;
    if (argc != 3) {
        fprintf(stderr,
                "usage: bank_trees IN OUT, the addresses of a running `svmstream run --publish.every 1 "
                "--score.members yes`\n");
        return 2;
    }
    void *context = zmq_ctx_new(), *push = zmq_socket(context, ZMQ_PUSH), *sub = zmq_socket(context, ZMQ_SUB);
    zmq_setsockopt(sub, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    zmq_setsockopt(sub, ZMQ_RCVHWM, &no_limit, sizeof no_limit);
    if (zmq_connect(push, argv[1]) != 0 || zmq_connect(sub, argv[2]) != 0)
        fprintf(stderr, "bank_trees: %s\n", zmq_strerror(zmq_errno()));
    else if (!subscribe(sub))
        fprintf(stderr, "bank_trees: no process publishes at %s\n", argv[2]);
    else
        status = talk(push, sub);
    timeout = 0;
    zmq_setsockopt(push, ZMQ_LINGER, &timeout, sizeof timeout);
    zmq_close(push);
    zmq_close(sub);
    zmq_ctx_term(context);
    return status;
}
