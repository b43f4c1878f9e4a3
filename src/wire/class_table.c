#include "wire/class_table.h"

#include "wire/pack.h"

/* The figures of class k over the stream and, with names that end in .w, over the window. */
static void put_class_figures(struct svi_pack *p, const struct svi_class_table *t, int k) {
    static const char *const names[][5] = {{"support", "predicted", "precision", "recall", "f1"},
                                           {"support.w", "predicted.w", "precision.w", "recall.w", "f1.w"}};
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_value(p, "class", t->classes[k]);
    for (int w = 0; w < (t->window ? 2 : 1); w++) {
        const struct svi_class_count *c = w ? &t->window[k] : &t->all[k];
        svi_put_int(p, names[w][0], c->support);
        svi_put_int(p, names[w][1], c->predicted);
        svi_put_real(p, names[w][2], svi_class_precision(c));
        svi_put_real(p, names[w][3], svi_class_recall(c));
        svi_put_real(p, names[w][4], svi_class_f1(c));
    }
    svi_pack_close(p, map);
}

/* An n x n matrix by rows (truth), columns are predictions; NULL: no pair. */
static void put_class_matrix(struct svi_pack *p, const char *key, const int64_t *matrix, int n) {
    if (!matrix)
        return;
    svi_put_array(p, key, (size_t)n);
    for (int i = 0; i < n; i++) {
        svi_pack_array(p, (size_t)n);
        for (int j = 0; j < n; j++)
            svi_pack_int(p, matrix[(size_t)i * (size_t)n + (size_t)j]);
    }
}

void svi_put_class_table(struct svi_pack *p, const struct svi_class_table *t) {
    if (t->count == 0)
        return;
    svi_put_array(p, "by_class", (size_t)t->count);
    for (int k = 0; k < t->count; k++)
        put_class_figures(p, t, k);
    put_class_matrix(p, "confusion", t->confusion, t->count);
    put_class_matrix(p, "confusion.w", t->confusion_window, t->count);
}
