#include "stats/confusion.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/fetch.h"

#define COUNT_MAX (INT64_MAX / 8)

struct svi_confusion {
    int most;    /* classes that are told apart */
    int room;    /* classes that there is room for: the stride of a row */
    int classes; /* seen so far */
    bool over;   /* more than there is room for were seen */
    int64_t *count;
};

void svi_confusion_fetch(const svi_confusion *c) {
    for (int k = 0; k < c->classes && k < c->room; k++)
        svi_fetch(c->count + (size_t)k * (size_t)c->room, (size_t)c->classes * sizeof *c->count);
}

static int confusion_room(int max_classes) {
    return max_classes < SVI_CONFUSION_MAX ? max_classes : SVI_CONFUSION_MAX;
}

svi_confusion *svi_confusion_new(int max_classes, svs_error *err) {
    svi_confusion *c = svi_confusion_new_lean(max_classes, err);
    if (c && svi_confusion_reserve(c, max_classes, err) != SVS_OK)
        svi_confusion_free(&c);
    return c;
}

svi_confusion *svi_confusion_new_lean(int max_classes, svs_error *err) {
    svi_confusion *c = svi_alloc_plain(sizeof *c);
    if (!c) {
        svi_fail_memory(err, "the confusion matrix");
        return NULL;
    }
    c->most = confusion_room(max_classes);
    if (svi_confusion_reserve(c, 2, err) != SVS_OK)
        svi_confusion_free(&c);
    return c;
}

svs_code svi_confusion_reserve(svi_confusion *c, int classes, svs_error *err) {
    const int room = classes < c->most ? classes : c->most;
    if (room <= c->room)
        return SVS_OK;
    int64_t *count = svi_alloc_plain_array((size_t)room * (size_t)room, sizeof *count);
    if (!count)
        return svi_fail_memory(err, "the confusion matrix");
    for (int i = 0; i < c->classes; i++)
        memcpy(count + (size_t)i * (size_t)room, c->count + (size_t)i * (size_t)c->room,
               (size_t)c->classes * sizeof *count);
    svi_free(c->count);
    c->count = count;
    c->room = room;
    return SVS_OK;
}

void svi_confusion_free(svi_confusion **c) {
    if (*c)
        svi_free((*c)->count);
    svi_free(*c);
    *c = NULL;
}

double svi_confusion_memory(int classes) {
    const double room = confusion_room(classes);
    return sizeof(struct svi_confusion) + room * room * (double)sizeof(int64_t);
}

void svi_confusion_reset(svi_confusion *c) {
    memset(c->count, 0, (size_t)c->room * (size_t)c->room * sizeof *c->count);
    c->classes = 0;
    c->over = false;
}

void svi_confusion_add(svi_confusion *c, int truth, int predicted) {
    const int last = truth > predicted ? truth : predicted;
    if (last >= c->room) {
        c->over = true;
        return;
    }
    c->classes = last >= c->classes ? last + 1 : c->classes;
    if (predicted >= 0)
        c->count[(size_t)truth * (size_t)c->room + (size_t)predicted]++;
}

bool svi_confusion_matrix(const svi_confusion *c, int classes, int64_t *out) {
    if (c->over || classes > c->room)
        return false;
    for (int i = 0; i < classes; i++)
        memcpy(out + (size_t)i * (size_t)classes, c->count + (size_t)i * (size_t)c->room,
               (size_t)classes * sizeof *out);
    return true;
}

void svi_confusion_archive(struct svi_archive *a, svi_confusion *c) {
    if (svi_archive_loading(a))
        svi_confusion_reset(c);
    svi_archive_bool(a, "too many classes", &c->over);
    int classes = c->classes;
    svi_archive_int(a, "confused classes", &classes, 0, c->most);
    if (svi_archive_ok(a) && svi_confusion_reserve(c, classes, a->err) != SVS_OK)
        svi_archive_fail(a, SVS_NO_MEMORY, "no memory for the confusion matrix");
    c->classes = svi_archive_ok(a) ? classes : 0;
    for (int i = 0; i < c->classes && svi_archive_ok(a); i++) {
        char name[SVI_KEY_MAX];
        svi_archive_int64s(a, svi_archive_key(name, "confusion", i), c->count + (size_t)i * (size_t)c->room,
                           c->classes, 0, COUNT_MAX);
    }
}
