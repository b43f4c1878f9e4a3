/* model: a model from a file or from a running process, as a table or in other formats.
 *
 * The source is always the payload of a model event. A file may contain one, a process sends one,
 * and a file of `train` is encoded as one (formats/model_file.h). The bytes are kept next to the
 * decoded model, because an export as msgpack writes them unchanged. Only what they do with the
 * model distinguishes show and export: see cmd_model_load and the two functions after it. The
 * command diff reads two models and leaves the comparison to report/model_diff.h. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "client/request.h"
#include "cli/command.h"
#include "cli/object.h"
#include "formats/file_io.h"
#include "formats/model_file.h"
#include "report/model_diff.h"
#include "formats/schema_text.h"
#include "report/tuning_report.h"
#include "wire/pack.h"

#define ASK_TIMEOUT 10 /* seconds */
#define NAME_SIZE   (4 * SVS_NAME_MAX + 8)

enum { FORMAT_JSON, FORMAT_LIBLINEAR, FORMAT_MSGPACK }; /* --format */

/* Asks the process at `ctl` and appends the value of `model` from its reply {ok, model: {...}}. */
static svs_code ask_process(const struct cli_args *a, struct svi_bytes *out, svs_error *err) {
    struct svi_bytes request = {0}, reply = {0};
    char text[200];
    svs_code code = client_model_request(cli_value(a, "key"), &request);
    if (code == SVS_OK)
        code = client_ask(&a->settings,
                          &(struct client_question){&request, ASK_TIMEOUT, false, cli_waiting, (void *)a, 0},
                          &reply, err);
    if (code == SVS_OK)
        code = svi_msgpack_check(reply.data, reply.size, SVI_WALK_MAX, err);
    const struct svi_view map = svi_view_of(reply.data, reply.size);
    const struct svi_view model = code == SVS_OK ? svi_view_key(map, "model") : map;
    if (code == SVS_OK && !model.at)
        code = svi_fail(err, SVS_UNAVAILABLE, "%.80s has no model: %s", a->settings.ctl,
                        cli_key_text(map, "error", text, sizeof text));
    if (code == SVS_OK && (code = svi_bytes_append(out, model.at, (size_t)(model.end - model.at))) != SVS_OK)
        svi_fail_memory(err, "the model");
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return code;
}

static const char *cmd_model_feature_name(const svs_model *m, int j, char *out) {
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

/* Prints the `top` largest weights of row k, by falling size: each round over the d columns finds the largest
 * one after the last shown. No array of d entries is needed, and `top` is small. */
static void show_row(const svs_model *m, int k, int64_t top) {
    const double *w = m->W + (size_t)k * (size_t)m->d;
    char name[NAME_SIZE];
    printf("\n%s  bias %.6g\n", row_name(m, k, name), m->b[k]);
    double before = INFINITY;
    int column = -1; /* last shown; of equal sizes the lower column comes first */
    for (int64_t i = 0; i < top && i < m->d; i++) {
        int best = -1;
        for (int j = 0; j < m->d; j++) {
            bool below = fabs(w[j]) < before || (fabs(w[j]) == before && j > column);
            if (below && (best < 0 || fabs(w[j]) > fabs(w[best])))
                best = j;
        }
        if (best < 0 || w[best] == 0)
            break;
        printf("  %14.6g  %s\n", w[best], cmd_model_feature_name(m, best, name));
        before = fabs(w[best]);
        column = best;
    }
}

struct model_source {
    const struct cli_args *args;
    int format;
    struct svi_bytes bytes; /* the payload, unchanged */
    svs_model *model;
};

static void print_model_table(const struct model_source *s, int64_t top) {
    const svs_model *m = s->model;
    char name[NAME_SIZE];
    svi_model_report(m, stdout);
    if (m->elsewhere)
        puts("scores are those of the bank (method auto), not of these weights: see `svmstream ctl bank`");
    svi_tuning_line(stdout, s->bytes.data, s->bytes.data + s->bytes.size);
    for (int k = 0; k < m->class_count; k++)
        printf("%s%s", k ? ", " : "classes ", svs_value_text(m->classes[k], name, NAME_SIZE));
    if (m->class_count > 0)
        putchar('\n');
    for (int k = 0; k < m->rows; k++)
        show_row(m, k, top);
}

static svs_code cmd_model_write(void *user, FILE *to, svs_error *err) {
    const struct model_source *s = user;
    if (s->format == FORMAT_JSON)
        return svs_model_write_json(s->model, to, err);
    if (s->format == FORMAT_LIBLINEAR)
        return svs_model_write_liblinear(s->model, to, err);
    fwrite(s->bytes.data, 1, s->bytes.size, to);
    return SVS_OK;
}

/* Reads the model from the named file, or from the process at `ctl`. */
static svs_code cmd_model_load(struct model_source *s, svs_error *err) {
    const char *path = s->args->positional_count > 1 ? s->args->positional[1] : NULL;
    if (path && cli_has(s->args, "key"))
        return svi_fail(
            err, SVS_SETTING,
            "--key selects a model of a running process, but %.100s is a file: leave one of them out", path);
    if (path)
        return svi_model_any_read(path, &s->bytes, &s->model, err);
    SVI_TRY(ask_process(s->args, &s->bytes, err));
    if (!(s->model = svs_model_decode(s->bytes.data, s->bytes.size, err)))
        return err->code;
    return SVS_OK;
}

static int cmd_model_end(struct model_source *s, svs_code code, const svs_error *err) {
    svs_model_free(&s->model);
    svi_bytes_clear(&s->bytes);
    return code == SVS_OK ? CLI_OK : cli_fail(s->args, "%s", err->text);
}

static int cmd_model_show(const struct cli_args *a) {
    struct model_source s = {.args = a};
    svs_error err;
    svs_code code = cmd_model_load(&s, &err);
    if (code == SVS_OK) {
        print_model_table(&s, cli_integer(a, "top"));
        code = svi_schema_print(s.model, stdout, &err);
    }
    return cmd_model_end(&s, code, &err);
}

static int cmd_model_export(const struct cli_args *a) {
    struct model_source s = {.args = a, .format = cli_word(a, "format")};
    svs_error err;
    svs_code code = cmd_model_load(&s, &err);
    if (code == SVS_OK)
        code = svi_file_write(cli_value(a, "output"), cmd_model_write, &s, &err);
    return cmd_model_end(&s, code, &err);
}

/* Exit codes of diff: 0 equal, 1 different, 2 they could not be compared. */
static int cmd_model_diff(const struct cli_args *a) {
    struct svi_model_side side[2] = {{0}, {0}};
    svs_error err;
    bool same = false;
    svs_code code = SVS_OK;
    for (int i = 0; i < 2 && code == SVS_OK; i++) {
        side[i].name = a->positional[1 + i];
        code = svi_model_any_read(side[i].name, &side[i].bytes, &side[i].model, &err);
    }
    if (code == SVS_OK)
        code = svi_model_diff(side, cli_integer(a, "top"), cli_has(a, "json"), stdout, &same, &err);
    for (int i = 0; i < 2; i++) {
        svs_model_free(&side[i].model);
        svi_bytes_clear(&side[i].bytes);
    }
    if (code != SVS_OK)
        cli_fail(a, "%s", err.text);
    return code != SVS_OK ? CLI_USAGE : same ? CLI_OK : CLI_FAILED;
}

static const struct cli_verb verbs[] = {{"show", cmd_model_show, "[FILE]", "top key"},
                                        {"export", cmd_model_export, "[FILE]", "format output key"},
                                        {"diff", cmd_model_diff, "A B", "top json"},
                                        {NULL, NULL, NULL, NULL}};

static const struct cli_option options[] = {
    CLI_OPTION("format", 0, "json|liblinear|msgpack", "json", "format of the export"),
    CLI_OPTION("output", 'o', "FILE", "-", "export to this file; - is standard output"),
    CLI_OPTION("key", 0, "KEY", NULL, "of a stream with keys: the model of this key"),
    CLI_INTEGER("top", 0, "N", "10", 0, INT32_MAX, "show the N largest weights of each class, or changes"),
    CLI_SWITCH("json", 0, "the difference as one line of JSON"),
    CLI_END};

const struct cli_command cli_model = {
    .name = "model",
    .text = "show a model, export it as JSON or for LIBLINEAR, or compare two",
    .usage = "show|export [FILE] or diff A B",
    .help =
        "FILE is the payload of a `model.` event (`svmstream eval --model-out` writes one) or a file of\n"
        "`train`. Without FILE, the command asks the process at `ctl` for its current model. Weights are\n"
        "in the units of the raw input.\n"
        "\n"
        "diff compares two models: classes and features of only one, the weights that differ most, the\n"
        "cosine of their rows, and figures side by side. The exit code is 0 if they score every row\n"
        "alike, 1 if they differ, and 2 if they cannot be compared.\n"
        "\n"
        "Examples:\n"
        "  svmstream model show\n"
        "  svmstream model export --key press-03 -o press-03.json\n"
        "  svmstream model diff monday.msgpack today.msgpack\n"
        "  svmstream model export --format liblinear -o rain.model m.msgpack",
    .keys = "ctl curve curve.server",
    .options = options,
    .verbs = verbs};
