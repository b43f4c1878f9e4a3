#include "client/feed_columns.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "client/outbox_internal.h"
#include "client/request.h"
#include "wire/columns.h"
#include "wire/fields.h"

#define ASK_SECONDS 1.0

/* The names of a row's cells, one after another, each with its NUL. */
static svs_code feed_columns_names(const struct svi_message *row, struct svi_bytes *names) {
    svs_code code = SVS_OK;
    for (int i = 0; i < row->cell_count && code == SVS_OK; i++) {
        code = svi_bytes_append(names, row->cells[i].name, row->cells[i].name_length);
        if (code == SVS_OK)
            code = svi_bytes_append(names, "", 1);
    }
    return code;
}

/* Are these the names that go already? */
static bool feed_columns_same(const struct svi_message *row, const struct svi_bytes *named) {
    size_t at = 0;
    for (int i = 0; i < row->cell_count; i++) {
        const size_t length = row->cells[i].name_length;
        if (named->size - at < length + 1 || memcmp(named->data + at, row->cells[i].name, length) != 0 ||
            named->data[at + length] != '\0')
            return false;
        at += length + 1;
    }
    return at == named->size;
}

svs_code feed_columns_tell(svs_outbox *box, const struct svi_message *row, struct svi_bytes *named,
                           svs_error *err) {
    if (!row->listed || feed_columns_same(row, named))
        return SVS_OK;
    const int count = row->cell_count;
    const char **names = svi_alloc_array((size_t)count + 1, sizeof *names);
    named->size = 0;
    svs_code code = names ? feed_columns_names(row, named) : SVS_NO_MEMORY;
    const char *at = (const char *)named->data;
    for (int i = 0; code == SVS_OK && i < count; i++, at += strlen(at) + 1)
        names[i] = at;
    code = code == SVS_OK ? svs_outbox_columns(box, names, count, err) : svi_fail_memory(err, "the columns");
    svi_free(names);
    named->size = code == SVS_OK ? named->size : 0;
    return code;
}

/* Would a sample of these columns be scored, and one of a key? */
static svs_code feed_columns_request(const struct svi_message *row, struct svi_bytes *request) {
    const bool keyed = row->key.kind != SVS_NONE;
    struct svi_pack p;
    svi_pack_begin(&p, request);
    svi_pack_map(&p, keyed ? 3 : 2);
    svi_put_text(&p, "op", "score");
    if (keyed)
        svi_put_text(&p, "key", "");
    svi_put_map(&p, "sample", 3);
    svi_put_text(&p, "missing", "zero");
    svi_columns_pack_cells(&p, row);
    svi_put_array(&p, "x", (size_t)row->cell_count);
    for (int i = 0; i < row->cell_count; i++)
        svi_pack_nil(&p);
    return svi_pack_end(&p);
}

svs_code feed_columns_ask(const struct svi_settings *s, const struct svi_message *row, svs_error *err) {
    static const svs_code refusals[] = {SVS_OTHER_COLUMNS, SVS_BAD_KEY};
    struct svi_bytes request = {0}, reply = {0};
    struct svi_answer answer;
    svs_code code = SVS_OK;
    if (svi_settings_chosen(s, "in") && !svi_settings_chosen(s, "ctl"))
        return SVS_OK;
    if (feed_columns_request(row, &request) != SVS_OK)
        code = svi_fail_memory(err, "the columns");
    else if (client_ask(s, &(struct client_question){.request = &request, .timeout = ASK_SECONDS}, &reply,
                        NULL) == SVS_OK &&
             svi_answer_read(&answer, reply.data, reply.size, NULL) == SVS_OK)
        for (size_t i = 0; i < sizeof refusals / sizeof *refusals && code == SVS_OK; i++)
            if (strcmp(answer.code, svs_code_name(refusals[i])) == 0)
                code = svi_fail(err, refusals[i], "%s", answer.reason);
    svi_bytes_clear(&request);
    svi_bytes_clear(&reply);
    return code;
}
