/* receiver.h: a model of a process with in.mode router and of the way to it, for tests of
 * producers. It takes samples {id: int, ...} in order, and dies with and without its state. In a
 * power cut it loses what is not on disk, and what is under way. It gets messages twice, and those
 * of a connection that broke arrive late, among newer ones. */
#ifndef TEST_SUPPORT_RECEIVER_H
#define TEST_SUPPORT_RECEIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#define PIPE 4096 /* messages on the way, in each direction */
#define LOG  8192 /* numbers that a process can use up */

struct letter {
    char *bytes;
    size_t size;
};

/* What is on the way, first in, first out. */
struct way {
    struct letter letter[PIPE];
    int first, count;
};

static inline void way_add(struct way *w, const void *bytes, size_t size) {
    assert_true(w->count < PIPE);
    struct letter *l = &w->letter[(w->first + w->count++) % PIPE];
    l->bytes = malloc(size + 1);
    l->size = size;
    memcpy(l->bytes, bytes, size);
}

/* The caller frees its bytes. */
static inline struct letter way_take(struct way *w) {
    assert_true(w->count > 0);
    struct letter l = w->letter[w->first];
    w->first = (w->first + 1) % PIPE;
    w->count--;
    return l;
}

static inline void way_lose(struct way *w, int count) {
    while (count-- > 0)
        free(way_take(w).bytes);
}

/* The last `count` are lost. */
static inline void way_cut(struct way *w, int count) {
    while (count-- > 0)
        free(w->letter[(w->first + --w->count) % PIPE].bytes);
}

struct receiver {
    struct way in, out;
    struct way late; /* from a connection that broke: nobody hears the answers */
    uint64_t epoch;
    const char *level;  /* `delivery` in the answer to hello; NULL = not told */
    bool keeps, always; /* its state; on disk before each answer */
    int64_t synced;     /* numbers below this are on disk */
    int64_t log[LOG];   /* what a number stood for in the present state; -1: a sample without id */
    int64_t next, credit;
    int64_t last;              /* id of the last sample in this life, -1 = none */
    int64_t applied, repeated; /* samples: all lives; of an id that was taken before in this life */
    int refuse_every;          /* ids divisible by it are refused for good; 0 = none */
    const char *busy;          /* everything is refused for now, for this code */
    bool explains;             /* says why samples of a batch were refused */
    int largest;               /* bytes; a larger message vanishes with all behind it; 0 = no limit */
    uint64_t run;              /* of the process; 0 = not told */
    bool forgotten;            /* the producer was silent for long, and the name is removed */
    bool bye;                  /* has arrived */
    int returned;              /* times that the producer stated its position */
    bool skips;                /* ids may be left out: the test took them away */
    void (*took)(void *user, int64_t id); /* taken or refused for good */
    void *user;
    int64_t low; /* first id of this life */
};

static inline const msgpack_object *receiver_key(const msgpack_object *map, const char *key) {
    assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object *k = &map->via.map.ptr[i].key;
        if (k->via.str.size == strlen(key) && memcmp(k->via.str.ptr, key, k->via.str.size) == 0)
            return &map->via.map.ptr[i].val;
    }
    return NULL;
}

/* fields: name, number, name, number, ..., NULL; a negative number is left out */
static inline void receiver_answer(struct receiver *r, const char *word, bool truth, const char *code, ...) {
    msgpack_sbuffer b;
    msgpack_packer p;
    va_list fields;
    int pairs = (code ? 3 : 1) + (r->level != NULL);
    va_start(fields, code);
    for (const char *name = va_arg(fields, const char *); name; name = va_arg(fields, const char *))
        pairs += va_arg(fields, int64_t) >= 0;
    va_end(fields);
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&p, &b, msgpack_sbuffer_write);
    msgpack_pack_map(&p, (size_t)pairs);
#define TEXT(t) msgpack_pack_str_with_body(&p, t, strlen(t))
    TEXT(word);
    truth ? msgpack_pack_true(&p) : msgpack_pack_false(&p);
    if (code) {
        TEXT("code");
        TEXT(code);
        TEXT("error");
        TEXT("it is refused");
    }
    if (r->level) {
        TEXT("delivery");
        TEXT(r->level);
    }
    va_start(fields, code);
    for (const char *name = va_arg(fields, const char *); name; name = va_arg(fields, const char *)) {
        int64_t value = va_arg(fields, int64_t);
        if (value < 0)
            continue;
        TEXT(name);
        msgpack_pack_int64(&p, value);
    }
    va_end(fields);
#undef TEXT
    way_add(&r->out, b.data, b.size);
    msgpack_sbuffer_destroy(&b);
}

/* True: it is taken; false: refused for good. */
static inline bool receiver_apply(struct receiver *r, const msgpack_object *sample) {
    const msgpack_object *id = receiver_key(sample, "id");
    assert_true(r->next < LOG);
    r->log[r->next] = id ? id->via.i64 : -1;
    if (!id)
        return false; /* only its number is used up */
    int64_t i = id->via.i64;
    r->repeated += i <= r->last;
    if (r->last >= 0 && !r->skips)
        assert_int_equal(i, r->last + 1); /* nothing is left out within a life */
    if (r->last < 0)
        r->low = i;
    r->last = i;
    if (r->took)
        r->took(r->user, i);
    bool good = r->refuse_every == 0 || i % r->refuse_every != 0;
    r->applied += good;
    return good;
}

/* As it is told: -1 = nothing. */
static inline int64_t receiver_durable(const struct receiver *r) {
    return r->keeps ? r->synced - 1 : -1;
}

static inline void receiver_samples(struct receiver *r, const msgpack_object *o) {
    const msgpack_object *one = o->type == MSGPACK_OBJECT_ARRAY ? o->via.array.ptr : o;
    int64_t count = o->type == MSGPACK_OBJECT_ARRAY ? o->via.array.size : 1, good = 0, bad = 0, known = 0;
    int64_t n = receiver_key(one, "n")->via.i64;
    assert_non_null(receiver_key(one, "src"));
    assert_false(r->bye);
    if (r->forgotten) {
        assert_true(n > 0); /* else it would be taken for a new producer */
        receiver_answer(r, "final", false, "source_forgotten", "n", n, "next", INT64_C(0), NULL);
        return;
    }
    if (n > r->next) {
        receiver_answer(r, "final", false, "gap", "n", n, "next", r->next, NULL);
        return;
    }
    if (r->busy) {
        receiver_answer(r, "final", false, r->busy, "n", n, "next", r->next, NULL);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (n + i < r->next) {
            known++;
            continue;
        }
        bool taken = receiver_apply(r, &one[i]);
        good += taken;
        bad += !taken;
        r->next++;
    }
    r->synced = r->always ? r->next : r->synced;
    if (good == 0 && known == 0)
        receiver_answer(r, "final", true, "wrong_dimension", "n", n, "next", r->next, NULL);
    else
        receiver_answer(r, "ok", true, bad > 0 && r->explains ? "wrong_dimension" : NULL, "n", r->next - 1,
                        "applied", r->next - 1, "durable", receiver_durable(r), "credit", r->credit,
                        "refused", bad > 0 ? bad : INT64_C(-1), NULL);
}

/* Hello, perhaps of a producer that was forgotten: then it says where it was, to a process of the same run.
 */
static inline void receiver_hello(struct receiver *r, const msgpack_object *hello) {
    const msgpack_object *n = receiver_key(hello, "n"), *run = receiver_key(hello, "run");
    assert_true(!n || (run && run->via.u64 > 0));
    if (n && run->via.u64 == r->run && r->forgotten) {
        assert_int_equal(n->via.i64, r->next); /* nothing lost, nothing twice */
        r->forgotten = false;
        r->returned++;
    }
    receiver_answer(r, "ok", true, NULL, "next", r->forgotten ? INT64_C(0) : r->next, "durable",
                    r->forgotten ? INT64_C(-1) : receiver_durable(r), "credit", r->credit, "epoch",
                    (int64_t)r->epoch, "run", r->run > 0 ? (int64_t)r->run : INT64_C(-1), "max_message",
                    r->largest > 0 ? (int64_t)r->largest : INT64_C(-1), NULL);
}

/* Takes the next message. */
static inline void receiver_turn(struct receiver *r, bool twice) {
    struct letter l = way_take(&r->in);
    if (r->largest > 0 && l.size > (size_t)r->largest) {
        free(l.bytes);
        way_lose(&r->in, r->in.count); /* the connection is cut */
        return;
    }
    for (int i = 0; i < 1 + twice; i++) {
        msgpack_unpacked u;
        msgpack_unpacked_init(&u);
        assert_int_equal(msgpack_unpack_next(&u, l.bytes, l.size, NULL), MSGPACK_UNPACK_SUCCESS);
        const msgpack_object *op = u.data.type == MSGPACK_OBJECT_MAP ? receiver_key(&u.data, "op") : NULL;
        const bool bye = op && op->via.str.size == 3;
        r->bye = r->bye || bye;
        if (bye)
            receiver_answer(r, "ok", true, NULL, NULL);
        else if (op && i == 0) /* samples come twice when they are sent again; hellos are counted */
            receiver_hello(r, &u.data);
        else if (!op)
            receiver_samples(r, &u.data);
        msgpack_unpacked_destroy(&u);
    }
    free(l.bytes);
}

/* The connection breaks and another one is made: what is on the way there may still arrive, later. */
static inline void receiver_reconnect(struct receiver *r) {
    while (r->in.count > 0 && r->late.count < PIPE) {
        struct letter l = way_take(&r->in);
        r->late.letter[(r->late.first + r->late.count++) % PIPE] = l;
    }
    way_lose(&r->out, r->out.count);
}

/* The next message of a connection that broke. */
static inline void receiver_turn_late(struct receiver *r) {
    const int before = r->out.count;
    const struct way in = r->in;
    r->in = r->late;
    receiver_turn(r, false);
    r->late = r->in;
    r->in = in;
    way_cut(&r->out, r->out.count - before);
}

/* It continues at `next`. The kernel loses the first `lost` messages of the way there, and the last
 * `undelivered` of the way back. */
static inline void receiver_fall(struct receiver *r, int64_t next, int lost, int undelivered) {
    way_lose(&r->in, lost < r->in.count ? lost : r->in.count);
    way_lose(&r->late, r->late.count);
    way_cut(&r->out, undelivered < r->out.count ? undelivered : r->out.count);
    r->next = next;
    r->synced = r->synced < next ? r->synced : next;
    r->last = -1;
    r->forgotten = false;
    r->run += r->run > 0;
}

/* It dies, and another one with `next` takes its place. */
static inline void receiver_die(struct receiver *r, int64_t next, int lost, int undelivered) {
    receiver_fall(r, next, lost, undelivered);
    r->epoch++;
}

static inline void receiver_clear(struct receiver *r) {
    way_lose(&r->in, r->in.count);
    way_lose(&r->out, r->out.count);
    way_lose(&r->late, r->late.count);
}

#endif
