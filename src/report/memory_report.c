#include "report/memory_report.h"

#include <unistd.h>

#include "fleet/fleet.h"
#include "server/process_memory.h"

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static void memory_write_line(const struct svi_settings *s, int d, int classes, FILE *to) {
    const double process = svi_server_memory(s, d, classes), engine = process - svi_server_process_memory(d);
    if (s->task == SVS_REGRESS)
        fprintf(to, "#   %5d features             engine %10.2f MiB, process %10.2f MiB\n", d, engine / MIB,
                process / MIB);
    else
        fprintf(to, "#   %5d features, %4d classes engine %7.2f MiB, process %10.2f MiB\n", d, classes,
                engine / MIB, process / MIB);
}

/* Of one key with that many features, and of all that keys.memory keeps. */
static double memory_of_keys(const struct svi_settings *s, int d, double *each) {
    int contexts = s->context[0] != '\0';
    for (const char *c = s->context; *c; c++)
        contexts += *c == ',';
    *each = svi_key_memory(s, d, contexts < d ? contexts : d, 2);
    return *each * (double)(s->keys_memory < s->keys_max ? s->keys_memory : s->keys_max);
}

/* The named features, or a usual number of them. */
static int memory_key_features(const struct svi_settings *s) {
    const int named = svi_settings_feature_count(s);
    return named > 0 ? named : s->max_features < 10 ? (int)s->max_features : 10;
}

void svi_memory_write_keys(const struct svi_settings *s, const char *lead, FILE *to) {
    const int d = memory_key_features(s);
    double each, all = memory_of_keys(s, d, &each);
    if (svi_settings_keyed(s))
        fprintf(
            to,
            "%seach key with %d features and a full window takes %s %.1f KiB; keys.memory %lld, %.2f GiB\n",
            lead, d, s->method == SVI_METHOD_AUTO ? "at most" : "about", each / KIB,
            (long long)s->keys_memory, all / GIB);
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
    const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double each, all = memory_of_keys(s, memory_key_features(s), &each);
    if (!svi_settings_keyed(s) || !(machine > 0 && all > machine))
        return false;
    snprintf(text, size,
             "keys.memory %lld keeps %.1f GiB of keys in memory, and this machine has %.1f GiB: at most %.0f "
             "keys fit, the others can be on disk",
             (long long)s->keys_memory, all / GIB, machine / GIB, machine / each);
    return true;
}
