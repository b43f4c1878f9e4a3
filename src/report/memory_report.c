#include "report/memory_report.h"

#include "base/human.h"
#include "fleet/fleet.h"
#include "server/process_memory.h"

static void memory_write_line(const struct svi_settings *s, int d, int classes, FILE *to) {
    const double process = svi_server_memory(s, d, classes), engine = process - svi_server_process_memory(d);
    if (s->task == SVS_REGRESS)
        fprintf(to, "#   %5d features             engine %10.2f MiB, process %10.2f MiB\n", d,
                engine / SVI_MIB, process / SVI_MIB);
    else
        fprintf(to, "#   %5d features, %4d classes engine %7.2f MiB, process %10.2f MiB\n", d, classes,
                engine / SVI_MIB, process / SVI_MIB);
}

void svi_memory_write_keys(const struct svi_settings *s, const char *lead, FILE *to) {
    const int d = svi_keys_features(s);
    struct svi_keys_memory m;
    if (!svi_settings_keyed(s))
        return;
    svi_keys_memory(s, d, 2, &m);
    fprintf(
        to, "%seach key with %d features and a full window takes %s %.1f KiB; keys.memory %lld, %.2f GiB%s",
        lead, d, s->method == SVI_METHOD_AUTO ? "at most" : "about", m.each / SVI_KIB,
        (long long)s->keys_memory,
        (s->keys_memory > 0 ? (double)(s->keys_memory < s->keys_max ? s->keys_memory : s->keys_max) * m.each
                            : m.share) /
            SVI_GIB,
        s->keys_memory > 0 ? "\n" : "");
    if (s->keys_memory == 0)
        fprintf(to, " (half of what %s): %lld keys\n", m.of, (long long)m.most);
}

/* For the named features; without names for some usual numbers of features, up to the limit. */
void svi_memory_write(const struct svi_settings *s, FILE *to) {
    const int named = svi_settings_feature_count(s), last = named > 0 ? named : (int)s->max_features;
    fprintf(to,
            "# Memory at most (the engine, and the process; queues of peers that are ahead come on top):\n");
    for (const int *usual = (const int[]){10, 54, 100, 0}; *usual && named == 0; usual++)
        if (*usual < last)
            memory_write_line(s, *usual, 2, to);
    memory_write_line(s, last, 2, to);
    if (s->task == SVS_CLASSIFY)
        memory_write_line(s, last, (int)s->max_classes, to);
    svi_memory_write_keys(s, "#   ", to);
}

bool svi_memory_keys_warning(const struct svi_settings *s, char *text, size_t size) {
    struct svi_keys_memory m;
    if (!svi_settings_keyed(s))
        return false;
    svi_keys_memory(s, svi_keys_features(s), 2, &m);
    const double all = (double)(m.most < s->keys_max ? m.most : s->keys_max) * m.each;
    if (!(m.machine > 0 && all > m.machine))
        return false;
    snprintf(text, size,
             "keys.memory %lld keeps %.1f GiB of keys in memory, and %s %.1f GiB: at most %.0f keys fit, the "
             "others can be on disk",
             (long long)s->keys_memory, all / SVI_GIB, m.of, m.machine / SVI_GIB, m.machine / m.each);
    return true;
}
