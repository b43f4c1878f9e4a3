#include "data/shape_archive.h"

#include <stdio.h>
#include <string.h>

/* A name goes where it was, or is there already: the fixed ones. */
static void archive_name(struct svi_archive *a, struct svi_shape *s, int column) {
    char key[32], name[SVS_NAME_MAX + 1] = "";
    svs_error err = {0};
    if (!svi_archive_loading(a))
        snprintf(name, sizeof name, "%s", svs_features_name(s->names, column));
    snprintf(key, sizeof key, "name %d", column);
    svi_archive_text(a, key, name, sizeof name);
    if (!svi_archive_loading(a) || !svi_archive_ok(a))
        return;
    const int place = svs_features_add(s->names, name, strlen(name), &err);
    if (place < 0 && err.code == SVS_NO_MEMORY)
        svi_archive_fail(a, SVS_NO_MEMORY, err.text);
    else
        svi_archive_check(a, place == column, "a column's name is none, or is another column's, too");
}

void svi_shape_archive(struct svi_archive *a, struct svi_shape *s) {
    int kind = (int)s->kind, names = s->names_kept;
    svi_archive_int(a, "kind", &kind, SVI_UNSET, SVI_NAMED);
    svi_archive_int(a, "columns", &s->d, s->fixed_names ? s->d : 0, s->fixed_names ? s->d : s->max_features);
    svi_archive_int(a, "names", &names, 0, s->max_features);
    svi_archive_check(a, names >= s->names_kept && (names == s->names_kept || !s->fixed_names),
                      "the setting `features` was another");
    for (int column = 0; column < names && svi_archive_ok(a); column++)
        archive_name(a, s, column);
    if (!svi_archive_ok(a))
        return;
    s->kind = (enum svi_kind)kind;
    s->names_kept = names;
}
