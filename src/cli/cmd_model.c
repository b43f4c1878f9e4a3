/* model: a model from a file or from a running process, as a table or in other formats. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/object.h"
#include "wire/model_file.h"

#define FILE_MAX    (1024 * 1024 * 1024) /* bytes: a file beyond this is no model */
#define ASK_TIMEOUT 10                   /* seconds */
#define NAME_SIZE   (4 * SVS_NAME_MAX + 8)

static svs_code read_file(const char *path, struct svi_bytes *out, svs_error *err) {
    char chunk[65536];
    bool standard_input = strcmp(path, "-") == 0;
    FILE *from = standard_input ? stdin : fopen(path, "rb");
    svs_code code = SVS_OK;
    size_t n;
    if (!from)
        return svi_fail(err, SVS_IO, "cannot open %.150s: %s", path, strerror(errno));
    while (code == SVS_OK && out->size < FILE_MAX && (n = fread(chunk, 1, sizeof chunk, from)) > 0)
        code = svi_bytes_append(out, chunk, n);
    if (code != SVS_OK)
        svi_fail_memory(err, "the model");
    else if (ferror(from))
        code = svi_fail(err, SVS_IO, "cannot read %.150s", path);
    if (!standard_input)
        fclose(from);
    return code;
}

/* The `model` of the reply {ok, model: {...}}. */
static svs_code ask_process(const struct cli_args *a, struct svi_bytes *out, svs_error *err) {
    struct svi_bytes request = {0}, reply = {0};
    msgpack_unpacked u = {0};
    char text[200];
    size_t size = 0;
    svs_code code = cli_operation("model", &request);
    if (code == SVS_OK)
        code = cli_ask(&a->settings, &request, ASK_TIMEOUT, &reply, err);
    if (code == SVS_OK)
        code = cli_unpack(&u, reply.data, reply.size, err);
    const void *model = code == SVS_OK ? cli_key_bytes(reply.data, reply.size, "model", &size) : NULL;
    if (code == SVS_OK && !model)
        code = svi_fail(err, SVS_UNAVAILABLE, "%.80s has no model: %s", a->settings.ctl,
                        cli_key_text(&u.data, "error", text, sizeof text));
    if (code == SVS_OK && (code = svi_bytes_append(out, model, size)) != SVS_OK)
        svi_fail_memory(err, "the model");
    msgpack_unpacked_destroy(&u);
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return code;
}

static const char *feature_name(const svs_model *m, int j, char *out) {
    if (m->features && m->features[j])
        svi_escape(out, NAME_SIZE, m->features[j], strlen(m->features[j]));
    else
        snprintf(out, NAME_SIZE, "%d", j);
    return out;
}

static const char *row_name(const svs_model *m, int k, char *out) {
    int class = m->rows == 1 && m->class_count == 2 ? 1 : k;
    if (m->task == SVS_REGRESS || class >= m->class_count)
        snprintf(out, NAME_SIZE, "value");
    else
        svs_value_text(m->classes[class], out, NAME_SIZE);
    return out;
}

/* The largest weights of row k, in falling order of their size: `top` rounds over d, each below the one
 * before. */
static void show_row(const svs_model *m, int k, int64_t top) {
    const double *w = m->W + (size_t)k * (size_t)m->d;
    char name[NAME_SIZE];
    printf("\n%s  bias %.6g\n", row_name(m, k, name), m->b[k]);
    double before = INFINITY;
    int column = -1; /* shown last: of equal ones the lower column comes first */
    for (int64_t i = 0; i < top && i < m->d; i++) {
        int best = -1;
        for (int j = 0; j < m->d; j++) {
            bool below = fabs(w[j]) < before || (fabs(w[j]) == before && j > column);
            if (below && (best < 0 || fabs(w[j]) > fabs(w[best])))
                best = j;
        }
        if (best < 0 || w[best] == 0)
            break;
        printf("  %14.6g  %s\n", w[best], feature_name(m, best, name));
        before = fabs(w[best]);
        column = best;
    }
}

static void show(const svs_model *m, int64_t top) {
    char name[NAME_SIZE];
    printf("version %" PRIu64 "\nmethod %s\ntask %s\nfeatures %d\nC %g\nwindow %" PRId64 "\nseen %" PRId64
           "\nlearned %" PRId64 "\n",
           m->version, m->method, m->task == SVS_REGRESS ? "regress" : "classify", m->d, m->C, m->window,
           m->seen, m->learned);
    for (int k = 0; k < m->class_count; k++)
        printf("%s%s", k ? ", " : "classes ", svs_value_text(m->classes[k], name, NAME_SIZE));
    if (m->class_count > 0)
        putchar('\n');
    for (int k = 0; k < m->rows; k++)
        show_row(m, k, top);
}

static svs_code write_as(const char *format, const svs_model *m, const struct svi_bytes *bytes, FILE *to,
                         svs_error *err) {
    if (strcmp(format, "json") == 0)
        return svs_model_write_json(m, to, err);
    if (strcmp(format, "liblinear") == 0)
        return svs_model_write_liblinear(m, to, err);
    if (fwrite(bytes->data, 1, bytes->size, to) != bytes->size)
        return svi_fail(err, SVS_IO, "cannot write the model");
    return SVS_OK;
}

static svs_code export(const struct cli_args *a, const svs_model *m, const struct svi_bytes *bytes,
                       svs_error *err) {
    const char *path = cli_value(a, "output");
    bool standard_output = strcmp(path, "-") == 0;
    FILE *to = standard_output ? stdout : fopen(path, "wb");
    if (!to)
        return svi_fail(err, SVS_IO, "cannot write %.150s: %s", path, strerror(errno));
    svs_code code = write_as(cli_value(a, "format"), m, bytes, to, err);
    if (!standard_output && fclose(to) != 0 && code == SVS_OK)
        code = svi_fail(err, SVS_IO, "cannot write %.150s: %s", path, strerror(errno));
    return code;
}

/* What `train` writes is read too; its bytes become those of an event's model. */
static svs_model *from_training(const char *path, struct svi_bytes *bytes, svs_error *err) {
    struct svi_machine machine = {0};
    svs_error why;
    if (svi_machine_read(&machine, path, &why) != SVS_OK)
        return NULL; /* *err tells why it is no event's model: the first reading counts */
    bytes->size = 0;
    if (machine.kernel)
        svi_fail(err, SVS_UNAVAILABLE,
                 "%.150s is a kernel model, which has no weights to show: `svmstream predict` uses it", path);
    else if (svi_model_encode(machine.linear, NULL, 0, bytes) != SVS_OK)
        svi_fail_memory(err, "the model");
    else
        return machine.linear;
    svi_machine_clear(&machine);
    return NULL;
}

static svs_model *decode(const struct cli_args *a, struct svi_bytes *bytes, svs_error *err) {
    const char *path = a->positional_count > 1 ? a->positional[1] : "-";
    svs_model *m = svs_model_decode(bytes->data, bytes->size, err);
    return m || strcmp(path, "-") == 0 ? m : from_training(path, bytes, err);
}

static int run(const struct cli_args *a) {
    struct svi_bytes bytes = {0};
    svs_model *m = NULL;
    svs_error err = {0};
    int64_t top;
    const char *format = cli_value(a, "format");
    if (!cli_integer(a, "top", 0, INT32_MAX, &top))
        return CLI_USAGE;
    if (strcmp(format, "json") != 0 && strcmp(format, "liblinear") != 0 && strcmp(format, "msgpack") != 0)
        return cli_usage(a, "--format takes json, liblinear or msgpack");
    svs_code code =
        a->positional_count > 1 ? read_file(a->positional[1], &bytes, &err) : ask_process(a, &bytes, &err);
    if (code == SVS_OK && !(m = decode(a, &bytes, &err)))
        code = err.code;
    if (code == SVS_OK && strcmp(a->positional[0], "show") == 0)
        show(m, top);
    else if (code == SVS_OK)
        code = export(a, m, &bytes, &err);
    svs_model_free(&m);
    svi_bytes_clear(&bytes);
    return code == SVS_OK ? CLI_OK : cli_fail(a, "%s", err.text);
}

static const struct cli_option options[] = {
    {"format", 0, "FORMAT", "json", "export as json, liblinear or msgpack"},
    {"output", 'o', "FILE", "-", "export to this file; - is standard output"},
    {"top", 0, "N", "10", "show so many weights of each class"},
    {NULL, 0, NULL, NULL, NULL}};

const struct cli_command cli_model = {
    .name = "model",
    .text = "show a model, or export it as JSON or for LIBLINEAR",
    .usage = "show|export [FILE]",
    .help =
        "FILE is the payload of a `model.` event (`svmstream eval --model-out` writes one) or what `train` "
        "wrote;\n"
        "without it the present model of the running process at `ctl` is taken. Weights are in the units of "
        "the raw input.\n"
        "\n"
        "  svmstream model show\n"
        "  svmstream model export --format liblinear -o rain.model m.msgpack",
    .keys = "ctl curve curve.server",
    .options = options,
    .positional_min = 1,
    .positional_max = 2,
    .words = "show export",
    .run = run};
