#include "wire/class_table.h"

#include "wire/pack.h"

/* The six figures of a class and, with a window, five of them over it. */
static void put_class_figures(struct svi_pack *p, const struct svi_class_table *t, int k) {
    const struct svi_class_count *c = &t->all[k];
    svi_pack_map(p, t->window ? 11 : 6);
    svi_put_value(p, "class", t->classes[k]);
    svi_put_int(p, "support", c->support);
    svi_put_int(p, "predicted", c->predicted);
    svi_put_real(p, "precision", svi_class_precision(c));
    svi_put_real(p, "recall", svi_class_recall(c));
    svi_put_real(p, "f1", svi_class_f1(c));
    if (!t->window)
        return;
    c = &t->window[k];
    svi_put_int(p, "support.w", c->support);
    svi_put_int(p, "predicted.w", c->predicted);
    svi_put_real(p, "precision.w", svi_class_precision(c));
    svi_put_real(p, "recall.w", svi_class_recall(c));
    svi_put_real(p, "f1.w", svi_class_f1(c));
}

static void put_class_matrix(struct svi_pack *p, const int64_t *matrix, int n) {
    svi_pack_array(p, (size_t)n);
    for (int i = 0; i < n; i++) {
        svi_pack_array(p, (size_t)n);
        for (int j = 0; j < n; j++)
            svi_pack_int(p, matrix[(size_t)i * (size_t)n + (size_t)j]);
    }
}

int svi_class_table_keys(const struct svi_class_table *t) {
    return t->count > 0 ? 1 + (t->confusion != NULL) + (t->confusion_window != NULL) : 0;
}

void svi_put_class_table(struct svi_pack *p, const struct svi_class_table *t) {
    if (t->count == 0)
        return;
    svi_pack_key(p, "by_class");
    svi_pack_array(p, (size_t)t->count);
    for (int k = 0; k < t->count; k++)
        put_class_figures(p, t, k);
    if (t->confusion) {
        svi_pack_key(p, "confusion");
        put_class_matrix(p, t->confusion, t->count);
    }
    if (t->confusion_window) {
        svi_pack_key(p, "confusion.w");
        put_class_matrix(p, t->confusion_window, t->count);
    }
}
