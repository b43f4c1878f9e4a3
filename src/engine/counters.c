#include "engine/counters.h"

const struct svi_counter_row svi_counter_table[SVI_COUNTER_COUNT] = {
#define X(constant, name, kind, unit, text) {#name, SVI_##kind, unit, text},
    SVI_COUNTERS(X)
#undef X
};

static const char *const refused_names[SVS_CODE_COUNT] = {
#define X(constant, name, text) "refused." #name,
    SVS_CODES(X)
#undef X
};

int svi_counters_figures(const struct svi_counters *c, struct svi_figure *out) {
    int filled = 0;
    for (int i = 0; i < SVI_COUNTER_COUNT; i++) {
        const struct svi_counter_row *row = &svi_counter_table[i];
        struct svi_figure *f = &out[filled++];
        if (row->kind == SVI_COUNT)
            *f = (struct svi_figure){.name = row->name, .type = SVI_COUNT, .as.count = c->of[i].count};
        else
            *f = (struct svi_figure){.name = row->name, .type = SVI_NUMBER, .as.number = c->of[i].number};
    }
    for (int code = 0; code < SVS_CODE_COUNT; code++)
        if (c->refused[code] > 0)
            out[filled++] = (struct svi_figure){
                .name = refused_names[code], .type = SVI_COUNT, .as.count = c->refused[code]};
    return filled;
}
