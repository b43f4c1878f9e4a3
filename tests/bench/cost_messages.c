/* The way of messages from the input socket, for `make cost` (tests/bench/cost), which counts its
 * instructions in two lengths and takes the difference. Sender and receiver are two sockets of one thread
 * (inproc), so that nothing depends on how threads take turns; svi_intake_turn does what it does in
 * `run`: receive, parse, judge, write ahead, apply, answer.
 *
 * usage: cost_messages FORM FILE SAMPLES [KEY VALUE]...
 *
 *   text     rows are read, and that is all
 *   array    {x: [numbers], y}                     of a CSV with a header, the label last
 *   packed   64 of {x: packed numbers, y}          likewise
 *   router   {src, n, x: packed numbers, y}        likewise, each answered
 *   json     each line of FILE
 *
 * All of FILE becomes messages, however few of them are sent: what is made ahead does not depend on SAMPLES.
 */
#include "bench/bench.h"

#include "config/settings.h"
#include "data/reader.h"
#include "server/intake.h"
#include "state/write_ahead.h"

enum { COLUMNS = 128, LINE = 4096, PACKED = 64, TURN = 16 };
#define ADDRESS "inproc://cost"
#define NOW     1.7e9

enum form { ARRAY, PACKED_ARRAY, JSON, ROUTER, TEXT, FORMS };
static const char *const forms[FORMS] = {"array", "packed", "json", "router", "text"};

struct rows {
    double (*x)[COLUMNS]; /* the label last */
    int d;                /* without it */
    int64_t count;
};

struct messages {
    msgpack_sbuffer *message;
    int64_t count;
    int samples; /* in each */
};

static void check(svs_code code, const svs_error *err) {
    if (code != SVS_OK)
        bench_die(err->text);
}

static struct rows read_rows(const char *path) {
    struct rows r = {0};
    char line[LINE], *at;
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        bench_die("no rows");
    for (at = line; (at = strchr(at, ',')); at++)
        r.d++;
    for (int64_t capacity = 0; fgets(line, sizeof line, f); r.count++) {
        if (r.count == capacity)
            r.x = realloc(r.x, (size_t)(capacity = 2 * capacity + 1024) * sizeof *r.x);
        at = line;
        for (int j = 0; j <= r.d; j++, at++)
            r.x[r.count][j] = strtod(at, &at);
    }
    fclose(f);
    return r;
}

static void pack_map(msgpack_packer *to, const struct rows *r, int64_t i, enum form form) {
    msgpack_pack_map(to, form == ROUTER ? 4 : 2);
    if (form == ROUTER) {
        bench_pack_text(to, "src");
        bench_pack_text(to, "bench");
        bench_pack_text(to, "n");
        msgpack_pack_int64(to, i);
    }
    bench_pack_text(to, "x");
    if (form == ARRAY)
        msgpack_pack_array(to, (size_t)r->d);
    else
        msgpack_pack_ext_with_body(to, r->x[i], 8 * (size_t)r->d, 2);
    for (int j = 0; form == ARRAY && j < r->d; j++)
        msgpack_pack_double(to, r->x[i][j]);
    bench_pack_text(to, "y");
    msgpack_pack_int64(to, (int64_t)r->x[i][r->d]);
}

/* Each line is a message. */
static struct messages read_messages(const char *path) {
    struct messages m = {.samples = 1};
    char line[LINE];
    FILE *f = fopen(path, "r");
    if (!f)
        bench_die("no messages");
    for (int64_t capacity = 0; fgets(line, sizeof line, f); m.count++) {
        if (m.count == capacity)
            m.message = realloc(m.message, (size_t)(capacity = 2 * capacity + 1024) * sizeof *m.message);
        msgpack_sbuffer_init(&m.message[m.count]);
        msgpack_sbuffer_write(&m.message[m.count], line, strlen(line));
    }
    fclose(f);
    return m;
}

static struct messages make_messages(const char *path, enum form form) {
    const struct rows rows = read_rows(path);
    struct messages m = {.samples = form == PACKED_ARRAY ? PACKED : 1};
    m.count = rows.count / m.samples;
    m.message = calloc((size_t)m.count, sizeof *m.message);
    for (int64_t i = 0; i < m.count; i++) {
        msgpack_packer to;
        msgpack_packer_init(&to, &m.message[i], msgpack_sbuffer_write);
        if (m.samples > 1)
            msgpack_pack_array(&to, PACKED);
        for (int64_t k = i * m.samples; k < (i + 1) * m.samples; k++)
            pack_map(&to, &rows, k, form);
    }
    return m;
}

/* ---- the receiving side */

struct receiver {
    struct svi_settings settings;
    svi_stream *stream;
    svi_write_ahead *write_ahead; /* NULL: nothing is kept */
    struct svi_control control;
    struct svi_access access;
    struct svi_latency latency;
    struct svi_latency_buckets buckets;
    struct svi_intake in;
    void *context, *socket, *sender;
};

static void ignore(void *user, const struct svi_event *event) {
    (void)user, (void)event;
}

static void receiver_open(struct receiver *r, const char *const *given) {
    svs_error err;
    memset(r, 0, sizeof *r);
    svi_settings_default(&r->settings);
    for (; given[0]; given += 2)
        check(svi_settings_set(&r->settings, given[0], given[1], &err), &err);
    if (r->settings.state_dir[0])
        r->write_ahead = svi_write_ahead_open(&r->settings, ignore, NULL, NULL, &r->stream, &err);
    else
        r->stream = svi_stream_new(&r->settings, 1, ignore, NULL, &err);
    if (!r->stream)
        bench_die(err.text);
    const bool replies = r->settings.in_mode == SVI_IN_ROUTER;
    r->context = zmq_ctx_new();
    r->socket = zmq_socket(r->context, replies ? ZMQ_ROUTER : ZMQ_PULL);
    r->sender = zmq_socket(r->context, replies ? ZMQ_DEALER : ZMQ_PUSH);
    if (zmq_bind(r->socket, ADDRESS) != 0 || zmq_connect(r->sender, ADDRESS) != 0)
        bench_die("no connection");
    r->control = (struct svi_control){.stream = r->stream,
                                      .settings = &r->settings,
                                      .started = NOW,
                                      .run = 1,
                                      .write_ahead = r->write_ahead,
                                      .json.columns = svi_settings_reader(&r->settings)};
    r->in = (struct svi_intake){.settings = &r->settings,
                                .control = &r->control,
                                .access = &r->access,
                                .latency = &r->latency,
                                .buckets = &r->buckets};
    check(svi_intake_new(&r->in, &err), &err);
    r->in.own = r->socket; /* inproc has no address that another process could take */
}

static void receiver_close(struct receiver *r) {
    svi_intake_free(&r->in);
    svi_control_clear(&r->control);
    svi_write_ahead_free(&r->write_ahead);
    svi_stream_free(&r->stream);
    zmq_close(r->sender);
    zmq_ctx_term(r->context);
}

static void take_replies(struct receiver *r, int count) {
    char reply[512];
    for (int i = 0; i < count; i++)
        if (zmq_recv(r->sender, reply, sizeof reply, ZMQ_DONTWAIT) <= 0)
            bench_die("no reply");
}

/* `count` messages come at once. */
static void receiver_take(struct receiver *r, const struct messages *m, int64_t from, int count, double now) {
    svs_error err;
    for (int i = 0; i < count; i++)
        if (zmq_send(r->sender, m->message[from + i].data, m->message[from + i].size, ZMQ_DONTWAIT) < 0)
            bench_die("cannot send");
    for (bool took = true; took;)
        check(svi_intake_turn(&r->in, true, now, &took, &err), &err);
    if (r->settings.in_mode == SVI_IN_ROUTER)
        take_replies(r, count);
}

/* ---- text */

/* Rows of text alone: nothing learns them. */
static void read_text(const char *path, int64_t samples) {
    struct svi_settings settings;
    struct svi_shape shape;
    struct svi_message m;
    svs_error err;
    svi_settings_default(&settings);
    check(svi_shape_init(&shape, COLUMNS, NULL, &err), &err);
    const struct svi_reader_options options = svi_settings_reader(&settings);
    svi_reader *reader = svi_reader_open(path, &options, &shape, &err);
    if (!reader)
        bench_die(err.text);
    for (int64_t i = 0; i < samples; i++)
        if (svi_reader_row(reader, &m, &err) != SVI_READ_ROW)
            bench_die("a row is missing");
    svi_reader_close(&reader);
    svi_shape_clear(&shape);
}

int main(int argc, char **argv) {
    static struct receiver r;
    int form = 0;
    while (argc > 3 && form < FORMS && strcmp(argv[1], forms[form]) != 0)
        form++;
    if (argc < 4 || form == FORMS || argc % 2)
        bench_die("usage: cost_messages array|packed|json|router|text FILE SAMPLES [KEY VALUE]...");
    const int64_t samples = strtoll(argv[3], NULL, 10);
    if (form == TEXT) {
        read_text(argv[2], samples);
        return 0;
    }
    const struct messages m = form == JSON ? read_messages(argv[2]) : make_messages(argv[2], (enum form)form);
    const int64_t count = samples / m.samples;
    if (count > m.count || count % TURN != 0)
        bench_die("SAMPLES must fill turns, and be as many as there are rows at most");
    receiver_open(&r, (const char *const *)argv + 4);
    for (int64_t i = 0; i < count; i += TURN)
        receiver_take(&r, &m, i, TURN, NOW + 1e-3 * (double)i);
    if (svi_stream_seen(r.stream) != samples || svi_stream_errors(r.stream) != 0)
        bench_die("not every sample was taken");
    receiver_close(&r);
    return 0;
}
